// A live tail of one stream or several: when the socket says that one has grown, its new rows are put on top. Paused, it
// asks for nothing and says how many wait; stopped, the rows stay. What came meanwhile comes when it goes on.

import { count, say } from "./format.js";
import { partOf } from "./parts.js";

/** What the tail does; while the page is not live, `page` is its word, as nothing comes. */
export function tailWord({ state, shown, waiting, page = null }) {
  if (state === "stopped") return say("Stopped, %(count)s rows kept", { count: count(shown) });
  if (state === "paused") return waiting ? say("Paused, up to %(count)s waiting", { count: count(waiting) }) : say("Paused");
  return page ?? (shown ? say("Live") : say("Waiting for messages"));
}

export function startTail(root) {
  const tail = root.querySelector("[data-tail]");
  if (!tail) return;
  const body = tail.querySelector("tbody");
  const dot = tail.querySelector(".dot");
  const word = tail.querySelector("[data-tail-word]");
  const pause = tail.querySelector("[data-tail-pause]");
  const stop = tail.querySelector("[data-tail-stop]");
  const names = [pause.textContent, pause.dataset.resume];
  const followed = new Map(); // by topic
  const rows = () => body.querySelectorAll("[data-offset]"); // without what is open below one, or said between two
  function takeIn() {
    for (const { dataset } of tail.querySelectorAll("[data-after]")) {
      if (!followed.has(dataset.live)) followed.set(dataset.live, { as: dataset.as, id: dataset.stream, after: +dataset.after, newest: +dataset.after });
    }
  }
  let state = "live";
  let asking = false;
  let isRefused = false; // or not answered: parts.js says so

  const behind = () => [...followed.values()].filter(({ after, newest }) => newest > after);

  function tell() {
    const waiting = behind().reduce((sum, { after, newest }) => sum + newest - after, 0);
    const page = isRefused ? say("Stale") : document.body.dataset.liveState === "live" ? null : root.querySelector("[data-live-word]").textContent;
    const now = tailWord({ state, shown: rows().length, waiting, page });
    if (word.textContent !== now) word.textContent = now;
    dot.dataset.state = state === "live" && page === null ? "active" : "empty";
    pause.textContent = names[state === "live" ? 0 : 1];
    stop.disabled = state === "stopped";
  }

  async function ask() {
    const asked = behind();
    if (asking || state !== "live" || !asked.length) return;
    asking = true;
    try {
      const address = new URL(location.href);
      for (const each of asked) {
        each.upTo = each.newest;
        address.searchParams.set(each.as, each.after);
      }
      const part = await partOf(address);
      isRefused = !part;
      if (isRefused) return;
      const fresh = [...part.querySelectorAll("tr")];
      for (const each of asked) {
        const top = fresh.find((row) => row.dataset.of === each.id);
        each.after = Math.max(each.upTo, top?.dataset.offset ?? 0);
      }
      body.prepend(...fresh);
      const beyond = rows()[tail.dataset.ring];
      while (beyond?.isConnected) body.lastElementChild.remove();
    } finally {
      asking = false;
      tell();
    }
  }

  function turn(next) {
    state = next;
    tell();
    ask();
  }

  root.addEventListener("okmq:live", ({ detail: { topic, event } }) => {
    let each = followed.get(topic);
    if (!each || !(event.offset >= 0)) return;
    if (event.stream_id !== each.id) {
      // Another one under the old name: its messages begin anew.
      for (const old of body.querySelectorAll(`[data-of="${each.id}"], [data-of="${each.id}"] + .detail-row`)) old.remove();
      each = { as: each.as, id: event.stream_id, after: 0, newest: 0 };
      followed.set(topic, each);
    }
    each.newest = Math.max(each.newest, event.offset);
    tell();
    ask();
  });
  takeIn();
  root.addEventListener("htmx:afterSettle", takeIn);
  root.addEventListener("okmq:word", tell);
  root.addEventListener("okmq:second", () => isRefused && ask());
  pause.addEventListener("click", () => turn(state === "live" ? "paused" : "live"));
  stop.addEventListener("click", () => turn("stopped"));
  tail.querySelector("[data-tail-clear]").addEventListener("click", () => {
    body.replaceChildren();
    tell();
  });
}
