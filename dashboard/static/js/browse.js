// Looking into a stream. Rows open in place: the link's own page is put under the row. Which are open stands in the
// address (?open=12&open=15), where the table says so, and how far a search came, which goes on below them (?searched=9000).

import { partOf } from "./parts.js";

const ENOUGH_ROWS = 50;

export function withOpen(search, offset, isOpen) {
  const query = new URLSearchParams(search);
  const others = query.getAll("open").filter((each) => each !== offset);
  query.delete("open");
  for (const each of isOpen ? [...others, offset] : others) query.append("open", each);
  return query.size ? `?${query}` : "";
}

const note = (query) => history.replaceState(history.state, "", location.pathname + query + location.hash);

const isElsewhere = (event) => event.ctrlKey || event.metaKey || event.shiftKey; // a tab, a window

function noteOpen(row, isOpen) {
  if (row.closest("[data-opens]")) note(withOpen(location.search, row.dataset.offset, isOpen));
}

export function startMessages(root) {
  root.addEventListener("click", async (event) => {
    const opener = event.target.closest?.("[data-open]");
    if (!opener || isElsewhere(event)) return;
    event.preventDefault();
    if (opener.ariaBusy) return; // a second click
    const row = opener.closest("tr");
    const open = opener.ariaExpanded === "true";
    opener.ariaExpanded = !open;
    if (open) {
      row.nextElementSibling.remove();
      return noteOpen(row, false);
    }
    opener.ariaBusy = true;
    const part = await partOf(opener.href);
    opener.ariaBusy = null;
    if (part === undefined) return (opener.ariaExpanded = false);
    if (!part) return location.assign(opener.href);
    const detail = document.createElement("tr");
    detail.className = "detail-row";
    const cell = document.createElement("td");
    cell.colSpan = row.children.length;
    cell.append(part);
    detail.append(cell);
    row.after(detail);
    noteOpen(row, true);
    root.dispatchEvent(new CustomEvent("okmq:shown"));
  });
}

/** Slice by slice until a page of new rows has come, the end, or Stop; without this, each slice is a page. */
export function startSearching(root) {
  const find = (what) => root.querySelector(`[data-search-${what}]`);
  const body = root.querySelector("[data-rows] tbody");

  async function goOn(isWanted) {
    const isFocused = root.activeElement === find("on");
    let stopped = false;
    for (let link; (link = find("on")) && !stopped && isWanted(); ) {
      const stop = find("stop");
      stop.addEventListener("click", () => (stopped = true));
      stop.hidden = false;
      if (isFocused) stop.focus({ preventScroll: true });
      link.hidden = true;
      const part = await partOf(link.href);
      stop.hidden = true;
      link.hidden = false;
      if (!part) return part === null && location.assign(link.href);
      body.append(...part.querySelectorAll("tbody > tr"));
      find("status").replaceWith(part.querySelector("[data-search-status]"));
      const query = new URLSearchParams(location.search);
      query.set("searched", find("status").dataset.scanned);
      note(`?${query}`);
    }
    if (isFocused) find("on")?.focus({ preventScroll: true });
  }

  root.addEventListener("click", (event) => {
    if (!body || !event.target.closest?.("[data-search-on]") || isElsewhere(event)) return;
    event.preventDefault();
    const wanted = body.children.length + ENOUGH_ROWS;
    goOn(() => body.children.length < wanted);
  });
  const searched = new URLSearchParams(location.search).get("searched");
  if (searched && body) goOn(() => +find("status").dataset.scanned < searched);
}

export function spanAddress(base, one, other) {
  const [first, last] = one.from <= other.from ? [one, other] : [other, one];
  const query = new URLSearchParams(base);
  query.set("at", first.from);
  query.set("until", last.until);
  return `?${query}`;
}

/** Dragging over the timeline chooses the span of its bars; one bar alone is a plain link. */
export function startBrush(root) {
  const svg = root.querySelector("[data-brush]");
  if (!svg) return;
  const shade = svg.querySelector(".brush");
  let begun = null;
  let ended = null;
  // A mark may stand on a bar.
  const barAt = (event) =>
    root.elementsFromPoint(event.clientX, event.clientY).find((each) => each.matches(".reach"))?.closest("a");

  svg.addEventListener("dragstart", (event) => event.preventDefault());
  svg.addEventListener("pointerdown", (event) => {
    begun = ended = event.button === 0 ? barAt(event) : null;
  });
  root.addEventListener("pointermove", (event) => {
    const bar = begun && barAt(event);
    if (!bar) return;
    ended = bar;
    const reaches = [begun, ended].map((each) => each.querySelector(".reach").getBBox());
    const left = Math.min(...reaches.map((reach) => reach.x));
    shade.setAttribute("x", left);
    shade.setAttribute("width", Math.max(...reaches.map((reach) => reach.x + reach.width)) - left);
    shade.toggleAttribute("hidden", begun === ended);
  });
  root.addEventListener("pointerup", (event) => {
    const follows = begun === ended && event.target.closest("a");
    if (begun && !follows) location.assign(spanAddress(svg.dataset.brush, begun.dataset, ended.dataset));
    begun = null;
  });
}
