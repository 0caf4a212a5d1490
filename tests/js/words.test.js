// Scripts say their words in the language of the page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { say } from "../../dashboard/static/js/format.js";

const german = { Stale: "Veraltet", "%(time)s ago": "vor %(time)s" };

test("a word is said in the page's language", () => {
  assert.equal(say("Stale", {}, german), "Veraltet");
  assert.equal(say("%(time)s ago", { time: "3 min" }, german), "vor 3 min");
});

test("a word that has no translation is said as it is written", () => {
  assert.equal(say("Copied", {}, german), "Copied");
  assert.equal(say("Stopped, %(count)s rows kept", { count: "1,234" }), "Stopped, 1,234 rows kept");
});
