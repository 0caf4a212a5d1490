// Dragging over a timeline chooses the span of its bars; one bar alone is a plain link.

export function spanAddress(base, one, other) {
  const [first, last] = one.from <= other.from ? [one, other] : [other, one];
  const query = new URLSearchParams(base);
  query.set("at", first.from);
  query.set("until", last.until);
  return `?${query}`;
}

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
