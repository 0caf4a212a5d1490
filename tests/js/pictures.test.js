import assert from "node:assert/strict";
import test from "node:test";

import { healthOf, said, sparkPoints, usedOf } from "../../dashboard/static/js/bind.js";
import { appended, axisLabel, heightsOf, isAtRest, marksNear, rangeAddress } from "../../dashboard/static/js/charts.js";

test("a sparkline ends at the right edge and peaks at the top", () => {
  assert.equal(sparkPoints([0, 2, 1]), "77.3,19.0 78.6,1.0 80.0,10.0");
});

test("a sparkline of silence lies on the ground", () => {
  assert.equal(sparkPoints([0, 0]), "78.6,19.0 80.0,19.0");
});

test("a live chart drops what is older than its window", () => {
  assert.deepEqual(appended([[0, 1, 2], [5, 6, 7]], 3, [8], 2, 5), [[1, 2, 3], [6, 7, 8]]);
});

test("a gap stays a gap", () => {
  assert.deepEqual(appended([[0], [5]], 60, [8], 900, 5), [[0, 1, 60], [5, null, 8]]);
});

test("how long a silence is a gap is the chart's to say", () => {
  assert.deepEqual(appended([[0], [5]], 20, [8], 900, 25), [[0, 20], [5, 8]]);
});

test("what is at rest goes on at rest, what nobody looked at does not", () => {
  assert.equal(isAtRest([[1, 2], [5, 0], [1, 0]]), true);
  assert.equal(isAtRest([[1, 2], [5, 0], [1, 3]]), false);
  assert.equal(isAtRest([[1, 2], [0, null]]), false);
  assert.equal(isAtRest([[], []]), false);
});

test("two lines of a chart grow together", () => {
  assert.deepEqual(appended([[0, 1], [5, 6], [1, 2]], 30, [7, 3], 29, 5), [[1, 2, 30], [6, null, 7], [2, null, 3]]);
});

test("a sample that was drawn already is not drawn again", () => {
  assert.deepEqual(appended([[0, 1], [5, 6]], 1, [9], 900, 5), [[0, 1], [5, 6]]);
});

test("an axis says the clock within a day and the date beyond", () => {
  assert.equal(axisLabel(1795244753, 30), "07:05:53");
  assert.equal(axisLabel(1795244753, 3600), "07:05");
  assert.equal(axisLabel(1795244753, 86_400), "11-21");
});

test("what is not known is a dash without a number behind it", () => {
  assert.deepEqual(said(null, "size"), { text: "–", title: "" });
  assert.equal(usedOf({ messages: null, bytes: null }, { ofMessages: "4" }), null);
  assert.equal(said(null, "percent").text, "–");
});

test("a rounded size tells its bytes", () => {
  assert.deepEqual(said(2048, "size"), { text: "2.00 KiB", title: "2,048 bytes" });
});

test("a stream is active for a minute after a write", () => {
  assert.equal(healthOf({ messages: 3, last_ms: 100_000 }, 159_000), "active");
  assert.equal(healthOf({ messages: 3, last_ms: 100_000 }, 161_000), "idle");
  assert.equal(healthOf({ messages: 0, last_ms: null }, 161_000), "empty");
  assert.equal(healthOf({ messages: null, last_ms: null }, 161_000), "unavailable");
});

test("the tighter limit says how much is used, and an event that tells of neither nothing", () => {
  assert.equal(usedOf({ messages: 41, bytes: 10 }, { ofMessages: "100", ofBytes: "1000" }), 0.41);
  assert.equal(usedOf({ messages: 41, bytes: 900 }, { ofBytes: "1000" }), 0.9);
  assert.ok(Number.isNaN(usedOf({}, { ofMessages: "100" })));
});

test("a drag over a chart chooses whole steps and keeps what else is asked for", () => {
  const minute = 60;
  const from = Date.UTC(2026, 10, 21, 7, 5, 20) / 1000;
  const wanted = "?compare=1&since=2026-11-21T07%3A05%3A00.000Z&until=2026-11-21T07%3A07%3A00.000Z";
  assert.equal(rangeAddress("?range=1h&step=minute&compare=1", from, from + 70, minute), wanted);
});

test("the marks near the pointer are said", () => {
  const marks = [[100, "Stream made."], [200, "Purged."]];
  assert.deepEqual(marksNear(marks, 104, 5), ["Stream made."]);
  assert.deepEqual(marksNear(marks, 150, 5), []);
});

test("a chart has nought on it, and room beyond what is above and below", () => {
  assert.deepEqual(heightsOf(-60, 40), [-66, 44]);
  assert.deepEqual(heightsOf(-0.5, -0.25), [-0.55, 0]);
  assert.deepEqual(heightsOf(2, 10), [0, 11]);
  assert.deepEqual(heightsOf(0, 0), [0, 1]);
  assert.deepEqual(heightsOf(null, null), [0, 1]);
});
