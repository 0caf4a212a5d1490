import assert from "node:assert/strict";
import test from "node:test";

import { Inbox, isGap, retryDelay, statusOf } from "../../dashboard/static/js/live.js";

test("a retry waits half a second at least and five at most", () => {
  for (let attempt = 0; attempt < 40; attempt += 1) {
    assert.equal(retryDelay(attempt, () => 0), 500);
    assert.ok(retryDelay(attempt, () => 1) <= 5000);
  }
  assert.equal(retryDelay(0, () => 1), 1000);
  assert.equal(retryDelay(9, () => 1), 5000);
});

test("the latest event of a topic wins, and is given once", () => {
  const inbox = new Inbox();
  inbox.put("stream:a", { at_ms: 1, messages: 1 });
  inbox.put("stream:a", { at_ms: 2, messages: 2 });
  inbox.put("stream:b", { at_ms: 1, messages: 7 });
  assert.deepEqual(inbox.drain(), [["stream:a", { at_ms: 2, messages: 2 }], ["stream:b", { at_ms: 1, messages: 7 }]]);
  assert.deepEqual(inbox.drain(), []);
});

test("a snapshot older than what was heard already is passed over", () => {
  const inbox = new Inbox();
  assert.equal(inbox.put("stream:a", { at_ms: 5, messages: 9 }), true);
  assert.equal(inbox.put("stream:a", { at_ms: 4, messages: 8 }), false);
  assert.deepEqual(inbox.drain(), [["stream:a", { at_ms: 5, messages: 9 }]]);
});

test("an event that saw more messages wins, even if its look began earlier", () => {
  const inbox = new Inbox();
  inbox.put("stream:a", { stream_id: "x", at_ms: 5, offset: 0 });
  assert.equal(inbox.put("stream:a", { stream_id: "x", at_ms: 4, offset: 1 }), true);
});

test("of what came for a topic the newest is given last", () => {
  const inbox = new Inbox();
  inbox.put("stream:a stream_sampled", { at_ms: 1 });
  inbox.put("stream:a gone", { at_ms: 2 });
  inbox.put("stream:a stream_sampled", { at_ms: 3 });
  assert.deepEqual(inbox.drain().map(([, event]) => event.at_ms), [2, 3]);
});

test("a missed beat is a gap, the first beat and the next one are none", () => {
  assert.equal(isGap(null, 7, 900), false);
  assert.equal(isGap(null, 7, 2_900), true);
  assert.equal(isGap(7, 8, 9_000), false);
  assert.equal(isGap(7, 9, 9_000), true);
  assert.equal(isGap(7, 1, 9_000), true); // another worker took over
});

test("a topic that was let go may start again", () => {
  const inbox = new Inbox();
  inbox.put("stream:a", { at_ms: 5 });
  inbox.keep(new Set(["overview"]));
  assert.equal(inbox.put("stream:a", { at_ms: 4 }), true);
});

for (const [given, state, word, age] of [
  [{ connection: "open", hidden: false, silentMs: 900 }, "live", "Live", ""],
  [{ connection: "polling", hidden: false, silentMs: 900 }, "live", "Live, polling", ""],
  [{ connection: "open", hidden: false, silentMs: 14_300 }, "stale", "Stale", "14 s"],
  [{ connection: "open", hidden: true, silentMs: 0 }, "paused", "Paused", ""],
  [{ connection: "open", hidden: false, silentMs: 9_000, heldMs: 0 }, "paused", "Paused", "0 s"],
  [{ connection: "open", hidden: false, silentMs: 0, heldMs: 72_000 }, "paused", "Paused", "1 min 12 s"],
  [{ connection: "closed", hidden: false, silentMs: 14_300, heldMs: 3 }, "reconnecting", "Reconnecting", "14 s"],
  [{ connection: "closed", hidden: false, silentMs: 900 }, "reconnecting", "Reconnecting", "0 s"],
  [{ connection: "open", hidden: false, silentMs: 0, deleted: { dataset: { subject: "Deleted" } } }, "deleted", "Deleted", ""],
  [{ connection: "gone", hidden: false, silentMs: 0 }, "gone", "Logged out", ""],
]) {
  test(`${JSON.stringify(given)} is said as ${word} ${age}`, () => {
    assert.deepEqual(statusOf(given), { state, word, age });
  });
}
