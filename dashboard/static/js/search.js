// A search goes on slice by slice until a page of new rows has come, the end, or Stop. Without this, each slice is a
// page of its own.

import { partOf } from "./parts.js";

const ENOUGH_ROWS = 50;

export function startSearching(root) {
  root.addEventListener("click", async (event) => {
    const link = event.target.closest?.("[data-search-on]");
    const body = root.querySelector("[data-rows] tbody");
    if (!link || !body || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const wanted = body.children.length + ENOUGH_ROWS;
    let address = link.href;
    let stopped = false;
    while (address && !stopped && body.children.length < wanted) {
      const status = root.querySelector("[data-search-status]");
      const stop = status.querySelector("[data-search-stop]");
      stop.hidden = false;
      stop.focus({ preventScroll: true });
      stop.addEventListener("click", () => (stopped = true));
      status.querySelector("[data-search-on]").hidden = true;
      const part = await partOf(address);
      if (!part) return location.assign(address);
      body.append(...part.querySelectorAll("tbody > tr"));
      const next = part.querySelector("[data-search-status]");
      address = next.querySelector("[data-search-on]")?.href;
      status.replaceWith(next);
    }
    root.querySelector("[data-search-on]")?.focus({ preventScroll: true });
  });
}
