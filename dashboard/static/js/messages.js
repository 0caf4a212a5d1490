// Message rows open in place: the link's own page is put under the row, and taken away again. Which are open stands in
// the address (?open=12&open=15), where the table says so: a reload or a link shows the same.

import { partOf } from "./parts.js";

/** The query string with a message opened or closed. */
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
