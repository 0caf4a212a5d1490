// A live tail: when the socket says that a stream has grown, the new rows are asked for and put on top. Paused, it
// asks for nothing and says how many wait; stopped, the rows stay.

import { count } from "./format.js";
import { partOf } from "./parts.js";
import { say } from "./words.js";

/** What the line above the rows says. */
export function tailWord({ state, shown, waiting }) {
  if (state === "stopped") return say("Stopped, %(count)s rows kept", { count: count(shown) });
  if (state === "paused") return waiting ? say("Paused, up to %(count)s wait", { count: count(waiting) }) : say("Paused");
  return shown ? say("Live") : say("Waiting for messages");
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
  const ring = Number(tail.dataset.ring);
  let after = Number(tail.dataset.after);
  let newest = after;
  let state = "live";
  let asking = false;

  function say() {
    const now = tailWord({ state, shown: body.children.length, waiting: newest - after });
    if (word.textContent !== now) word.textContent = now;
    dot.dataset.state = state === "live" ? "active" : "empty";
    pause.textContent = names[state === "live" ? 0 : 1];
    stop.disabled = state === "stopped";
  }

  async function ask() {
    if (asking || state !== "live" || newest <= after) return;
    asking = true;
    try {
      const upTo = newest;
      const address = new URL(location.href);
      address.searchParams.set("after", after);
      const part = await partOf(address);
      if (!part) return;
      const rows = [...part.querySelectorAll("tr")];
      const top = rows.find((row) => row.dataset.offset);
      after = Math.max(upTo, Number(top?.dataset.offset ?? 0));
      body.prepend(...rows);
      while (body.children.length > ring) body.lastElementChild.remove();
    } finally {
      asking = false;
      say();
    }
  }

  function turn(next) {
    if (state === "stopped" && next === "live") after = newest;
    state = next;
    say();
    ask();
  }

  root.addEventListener("okmq:live", ({ detail }) => {
    if (detail.topic !== tail.dataset.tail || !(detail.event.offset >= 0)) return;
    newest = Math.max(newest, detail.event.offset);
    say();
    ask();
  });
  pause.addEventListener("click", () => turn(state === "live" ? "paused" : "live"));
  stop.addEventListener("click", () => turn("stopped"));
  tail.querySelector("[data-tail-clear]").addEventListener("click", () => {
    body.replaceChildren();
    say();
  });
}
