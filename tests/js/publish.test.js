import assert from "node:assert/strict";
import test from "node:test";

import { partsOf } from "../../dashboard/static/js/publish.js";

async function parts(text, partBytes) {
  const found = [];
  for await (const part of partsOf(new Blob([text]), partBytes)) found.push(await part.text());
  return found;
}

test("parts end where lines end, and are no longer than they may", async () => {
  assert.deepEqual(await parts("11\n22\n33\n4", 7), ["11\n22\n", "33\n4"]);
});

test("a line that is longer than a part is one of its own", async () => {
  assert.deepEqual(await parts("1\n2222222222\n3\n", 4), ["1\n", "2222222222\n", "3\n"]);
});

test("the last line needs no end, however long it is", async () => {
  assert.deepEqual(await parts("1\n2222222222", 4), ["1\n", "2222222222"]);
});

test("no line is broken or lost, whatever the size of a part", async () => {
  const text = Array.from({ length: 50 }, (_, n) => `${"é".repeat(n % 7)}${n}\n`).join("");
  for (const partBytes of [1, 5, 40, 4096]) {
    const found = await parts(text, partBytes);
    assert.equal(found.join(""), text);
    assert.ok(found.every((part) => part.endsWith("\n")));
  }
});

test("nothing has no parts", async () => {
  assert.deepEqual(await parts("", 8), []);
});
