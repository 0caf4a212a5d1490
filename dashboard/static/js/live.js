// The page's one socket. What arrives on its topics is painted once a frame, the latest value wins. It comes back by
// itself, rests while the page is hidden, and is replaced by polling while it cannot be had.

import { duration, say } from "./format.js";

const SHORTEST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 5000;
const STALE_AFTER_MS = 4000;
const POLL_EVERY_MS = 2000;
const POLL_AFTER_FAILURES = 3;
const LONGEST_FIRST_BEAT_MS = 1500;
const LOGGED_OUT = 4401;
const BEAT = "overview"; // comes every second, so silence means stale

/** How long to wait before a try (from 0), jittered so that browsers spread. */
export function retryDelay(attempt, random = Math.random) {
  const ceiling = Math.min(LONGEST_RETRY_MS, SHORTEST_RETRY_MS * 2 ** (attempt + 1));
  return SHORTEST_RETRY_MS + random() * (ceiling - SHORTEST_RETRY_MS);
}

const is = (state, word, age = "") => ({ state, word, age });

/** How fresh the page is. */
export function statusOf({ connection, hidden, silentMs, heldMs = null, deleted = null }) {
  if (connection === "gone") return is("gone", say("Logged out"));
  if (hidden) return is("paused", say("Paused"));
  if (connection === "closed") return is("reconnecting", say("Reconnecting"), duration(silentMs / 1000));
  if (deleted) return is("deleted", deleted.dataset.subject);
  if (heldMs !== null) return is("paused", say("Paused"), duration(heldMs / 1000));
  if (silentMs > STALE_AFTER_MS) return is("stale", say("Stale"), duration(silentMs / 1000));
  return is("live", connection === "polling" ? say("Live, polling") : say("Live"));
}

/** Whether a beat was missed, and with it perhaps other events. */
export function isGap(last, next, sinceAskedMs) {
  return last === null ? sinceAskedMs > LONGEST_FIRST_BEAT_MS : next !== last + 1;
}

/** What is not painted yet: the latest event of each topic. */
export class Inbox {
  #newest = new Map();
  #waiting = new Map();

  /** Whether it is newer than what is here. */
  put(topic, event) {
    const newest = this.#newest.get(topic);
    // Its time is when the look began; one that saw more messages saw them later.
    const sawMore = event.stream_id === newest?.stream_id && event.offset > newest?.offset;
    if (newest && newest.at_ms > event.at_ms && !sawMore) return false;
    this.#newest.set(topic, event);
    this.#waiting.delete(topic); // the newest comes last
    this.#waiting.set(topic, event);
    return true;
  }

  drain() {
    const events = [...this.#waiting];
    this.#waiting.clear();
    return events;
  }

  keep(topics) {
    for (const topic of this.#newest.keys()) if (!topics.has(topic)) this.#newest.delete(topic);
  }
}

/** `paint(events)` is called at most once a frame with [[topic, event], …]. */
export class Live {
  #socket = null;
  #inbox = new Inbox();
  #topics = new Set([BEAT]);
  #attempt = 0;
  #sequence = 0;
  #beat = null;
  #askedAt = 0;
  #connection = "closed";
  #heardAt = performance.now();
  #frame = 0;
  #retry = 0;
  #poll = 0;
  #heldAt = null;

  constructor({ paint, showStatus }) {
    this.paint = paint;
    this.showStatus = showStatus;
  }

  start() {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#rest() : this.#connect()));
    setInterval(() => this.#status(), 1000);
    if (!document.hidden) this.#connect();
  }

  /** The server answers each with how it stands. */
  subscribe(topics) {
    const wanted = new Set([BEAT, ...topics]);
    if (wanted.size === this.#topics.size && [...wanted].every((topic) => this.#topics.has(topic))) return;
    this.#topics = wanted;
    this.#inbox.keep(wanted);
    this.#ask();
  }

  get isHeld() {
    return this.#heldAt !== null;
  }

  hold(on) {
    this.#heldAt = on ? performance.now() : null;
    if (!on) this.#paintSoon();
    this.#status();
  }

  #ask() {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#askedAt = performance.now();
    this.#socket.send(JSON.stringify({ type: "subscribe", topics: [...this.#topics] }));
  }

  #connect() {
    clearTimeout(this.#retry);
    if (this.#socket || this.#connection === "gone") return;
    const url = new URL("/live/", location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.onopen = () => {
      this.#sequence = 0;
      this.#beat = null;
      this.#ask();
    };
    socket.onmessage = (message) => this.#receive(JSON.parse(message.data));
    socket.onclose = ({ code }) => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      if (code === LOGGED_OUT) return this.#become("gone");
      if (document.hidden) return;
      if (this.#connection === "open") this.#become("closed");
      this.#retry = setTimeout(() => this.#connect(), retryDelay(this.#attempt));
      this.#attempt += 1;
      if (this.#attempt >= POLL_AFTER_FAILURES && !this.#poll) this.#pollNow();
    };
  }

  #rest() {
    clearTimeout(this.#retry);
    this.#stopPolling();
    const socket = this.#socket;
    this.#socket = null;
    // Closing one that is still being opened would be an error in the console.
    if (socket?.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket?.close();
    if (this.#connection !== "gone") this.#become("closed");
  }

  #receive({ topic, seq, event }) {
    const isFirst = this.#connection !== "open";
    if (isFirst) this.#heardAt = performance.now(); // it may not say how old the numbers are
    this.#hear(event);
    if (isFirst) {
      this.#attempt = 0; // some accept and close
      this.#stopPolling();
      this.#become("open");
    }
    if (seq !== this.#sequence + 1) this.#ask(); // something was lost on the way
    this.#sequence = seq;
    if (event.kind === "overview_sampled") {
      // Every browser misses the same beat: not all ask in one moment.
      if (isGap(this.#beat, event.beat, performance.now() - this.#askedAt)) setTimeout(() => this.#ask(), Math.random() * 500);
      this.#beat = event.beat;
    }
    this.#take(topic, event);
  }

  #hear({ kind, silent_ms: silentMs }) {
    if (kind === "overview_sampled") silentMs = 0;
    if (silentMs !== undefined) this.#heardAt = performance.now() - silentMs;
  }

  #take(topic, event) {
    if (this.#inbox.put(`${topic} ${event.kind}`, event)) this.#paintSoon();
  }

  #paintSoon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.isHeld) return;
      this.paint(this.#inbox.drain().map(([key, value]) => [key.split(" ")[0], value]));
      this.#status();
    });
  }

  async #pollNow() {
    this.#poll = setTimeout(() => this.#pollNow(), POLL_EVERY_MS);
    try {
      const query = new URLSearchParams([...this.#topics].map((topic) => ["topic", topic]));
      const answer = await fetch(`/live/now/?${query}`, { headers: { Accept: "application/json" } });
      if (answer.status === 401) {
        clearTimeout(this.#retry);
        return this.#become("gone");
      }
      if (!answer.ok) return this.#become("closed");
      for (const { topic, event } of (await answer.json()).events) {
        this.#hear(event);
        this.#take(topic, event);
      }
      if (this.#connection !== "open") this.#become("polling");
    } catch {
      this.#become("closed"); // until the next poll or the socket
    }
  }

  #stopPolling() {
    clearTimeout(this.#poll);
    this.#poll = 0;
  }

  #become(connection) {
    if (connection === "gone") this.#stopPolling();
    this.#connection = connection;
    this.#status();
  }

  #status() {
    this.showStatus(
      statusOf({
        connection: this.#connection,
        hidden: document.hidden,
        silentMs: performance.now() - this.#heardAt,
        heldMs: this.isHeld ? performance.now() - this.#heldAt : null,
        deleted: document.querySelector("[data-subject][data-gone]"),
      }),
    );
  }
}
