// The three calls of the streams guide as a program of its user: one side publishes, the other reads and commits.
// node guide.mjs <address> <token> <stream> <messages>; prints {seen: [[offset, id, body's number], ...]}.

const [address, token, stream, messages] = process.argv.slice(2);
const total = Number(messages);
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const api = `${address}/api/v1/streams/${stream}`;

async function call(url, options = {}) {
  const response = await fetch(url, { headers, ...options });
  if (!response.ok) {
    throw new Error(`${options.method ?? "GET"} ${url}: ${response.status} ${await response.text()}`);
  }
  return response.json();
}

async function publish(events) {
  const batch = events.map((event) => ({ id: `event-${event.number}`, body: JSON.stringify(event) }));
  return call(`${api}/messages`, { method: "POST", body: JSON.stringify(batch) });
}

async function produce() {
  for (let number = 0, size = 1; number < total; number += size, size = (size * 7 + 3) % 40 || 1) {
    const count = Math.min(size, total - number);
    const events = Array.from({ length: count }, (_, n) => ({ number: number + n, text: "Grüße, \"Welt\"" }));
    await publish(events);
    await publish(events.slice(0, 1)); // a retry, as after a lost answer
  }
}

async function consume() {
  const seen = [];
  while (seen.length < total) {
    const batch = await call(`${api}/messages?limit=10`);
    for (const message of batch) {
      seen.push([message.offset, message.id, JSON.parse(message.body).number]);
    }
    if (batch.length > 0) {
      await call(`${api}/commit`, { method: "POST", body: JSON.stringify({ offset: batch.at(-1).offset }) });
    }
  }
  return seen;
}

await call(`${address}/api/v1/streams/`, { method: "POST", body: JSON.stringify({ name: stream }) });
const [seen] = await Promise.all([consume(), produce()]);
const left = await call(`${api}/messages?limit=10&wait=0`);
console.log(JSON.stringify({ seen, left }));
