import assert from "node:assert/strict";
import test from "node:test";

import { partsOf } from "../../dashboard/static/js/publish.js";

const decoder = new TextDecoder();

async function parts(text, partBytes, chunkBytes = 3) {
  const bytes = new TextEncoder().encode(text);
  const chunks = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.slice(at, at + chunkBytes));
  const found = [];
  for await (const part of partsOf(ReadableStream.from(chunks), partBytes)) found.push(decoder.decode(part));
  return found;
}

test("parts end where lines end, and are no longer than they may", async () => {
  assert.deepEqual(await parts("11\n22\n33\n4", 7), ["11\n22\n", "33\n4"]);
});

test("a line that is longer than a part is one of its own", async () => {
  assert.deepEqual(await parts("1\n2222222222\n3\n", 4), ["1\n", "2222222222\n", "3\n"]);
});

test("no byte is lost, whatever the pieces", async () => {
  const text = Array.from({ length: 50 }, (_, n) => `${"é".repeat(n % 7)}${n}\n`).join("");
  for (const [partBytes, chunkBytes] of [[1, 1], [5, 64], [40, 7], [4096, 11]]) {
    assert.equal((await parts(text, partBytes, chunkBytes)).join(""), text);
  }
});

test("nothing has no parts", async () => {
  assert.deepEqual(await parts("", 8), []);
});
