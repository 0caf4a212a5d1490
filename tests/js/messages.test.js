// What a live tail says, and the span that a drag over the timeline chooses.

import assert from "node:assert/strict";
import { test } from "node:test";

import { spanAddress, withOpen } from "../../dashboard/static/js/browse.js";
import { tailWord } from "../../dashboard/static/js/tail.js";

const early = { from: "2026-11-21T07:00:00.000Z", until: "2026-11-21T07:01:00.000Z" };
const late = { from: "2026-11-21T07:05:00.000Z", until: "2026-11-21T07:06:00.000Z" };

test("a drag chooses from the first bar to the last, whichever was touched first", () => {
  const wanted = "?start=time&key=a.*&at=2026-11-21T07%3A00%3A00.000Z&until=2026-11-21T07%3A06%3A00.000Z";
  assert.equal(spanAddress("?start=time&key=a.*", early, late), wanted);
  assert.equal(spanAddress("?start=time&key=a.*", late, early), wanted);
});

test("a tail says whether it moves, waits, or has stopped", () => {
  assert.equal(tailWord({ state: "live", shown: 0, waiting: 0 }), "Waiting for messages");
  assert.equal(tailWord({ state: "live", shown: 3, waiting: 0 }), "Live");
  assert.equal(tailWord({ state: "live", shown: 3, waiting: 0, page: "Stale" }), "Stale");
  assert.equal(tailWord({ state: "paused", shown: 3, waiting: 0 }), "Paused");
  assert.equal(tailWord({ state: "paused", shown: 3, waiting: 1234 }), "Paused, up to 1,234 waiting");
  assert.equal(tailWord({ state: "stopped", shown: 500, waiting: 9 }), "Stopped, 500 rows kept");
});

test("which messages are open stands in the address, beside what else is there", () => {
  assert.equal(withOpen("", "12", true), "?open=12");
  assert.equal(withOpen("?key=a.*&open=12", "15", true), "?key=a.*&open=12&open=15");
  assert.equal(withOpen("?open=12&open=15", "12", true), "?open=15&open=12");
  assert.equal(withOpen("?key=a.*&open=12", "12", false), "?key=a.*");
  assert.equal(withOpen("?open=12", "12", false), "");
});
