import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { FORMATS, moment } from "../../dashboard/static/js/format.js";

const fixture = JSON.parse(readFileSync(new URL("../dashboard/formats.json", import.meta.url), "utf8"));

for (const [name, rows] of Object.entries(fixture)) {
  for (const [value, expected] of rows) {
    test(`${name} of ${value} is "${expected}", as the server says it`, () => {
      assert.equal(FORMATS[name](value), expected);
    });
  }
}

test("every format is in the fixture that both sides share", () => {
  assert.deepEqual(Object.keys(fixture).sort(), Object.keys(FORMATS).sort());
});

const zones = JSON.parse(readFileSync(new URL("../dashboard/zones.json", import.meta.url), "utf8"));

for (const [ms, zone, expected] of zones) {
  test(`${ms} in ${zone} is "${expected}", as the server says it`, () => {
    assert.equal(moment(ms, zone), expected);
  });
}
