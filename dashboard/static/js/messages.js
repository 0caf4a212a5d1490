// Message rows open in place: the link's own page is put under the row. Which are open stands in the address
// (?open=12&open=15), where the table says so. A search goes on below them.

import { partOf } from "./parts.js";

const ENOUGH_ROWS = 50;

export function withOpen(search, offset, isOpen) {
  const query = new URLSearchParams(search);
  const others = query.getAll("open").filter((each) => each !== offset);
  query.delete("open");
  for (const each of isOpen ? [...others, offset] : others) query.append("open", each);
  return query.size ? `?${query}` : "";
}

function note(row, isOpen) {
  if (!row.closest("[data-opens]")) return;
  history.replaceState(history.state, "", location.pathname + withOpen(location.search, row.dataset.offset, isOpen) + location.hash);
}

export function startMessages(root) {
  root.addEventListener("click", async (event) => {
    const opener = event.target.closest?.("[data-open]");
    if (!opener || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const row = opener.closest("tr");
    const open = opener.getAttribute("aria-expanded") === "true";
    opener.setAttribute("aria-expanded", String(!open));
    if (open) {
      row.nextElementSibling.remove();
      return note(row, false);
    }
    const part = await partOf(opener.href);
    if (part === undefined) return opener.setAttribute("aria-expanded", false);
    if (!part) return location.assign(opener.href);
    const detail = document.createElement("tr");
    detail.className = "detail-row";
    const cell = document.createElement("td");
    cell.colSpan = row.children.length;
    cell.append(part);
    detail.append(cell);
    row.after(detail);
    note(row, true);
    root.dispatchEvent(new CustomEvent("okmq:shown"));
  });
}

/** Slice by slice until a page of new rows has come, the end, or Stop; without this, each slice is a page. */
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
      if (part === undefined) {
        stop.hidden = true;
        status.querySelector("[data-search-on]").hidden = false;
        return;
      }
      if (!part) return location.assign(address);
      body.append(...part.querySelectorAll("tbody > tr"));
      const next = part.querySelector("[data-search-status]");
      address = next.querySelector("[data-search-on]")?.href;
      status.replaceWith(next);
    }
    root.querySelector("[data-search-on]")?.focus({ preventScroll: true });
  });
}
