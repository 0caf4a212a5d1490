// Keys: "/" goes to the search field, "g" then "o", "s", "e" or "g" to the overview, streams, events or groups, "j" and "k" to the next and
// the previous row (Enter opens it, as it does every link), "p" pauses a live tail, or everything that moves.

const GO = { o: "/", s: "/streams/", e: "/events/" };

export function startKeys(root) {
  let going = -Infinity; // when "g" was pressed, in ms of the page
  root.addEventListener("keydown", (event) => {
    if (root.querySelector("dialog[open]")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const search = root.querySelector("[data-search]");
    if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "j" || event.key === "k") {
      const rows = [...root.querySelectorAll("[data-row]")];
      const place = rows.indexOf(root.activeElement) + (event.key === "j" ? 1 : -1);
      rows[Math.max(0, Math.min(place, rows.length - 1))]?.focus();
    } else if (event.key === "p") {
      (root.querySelector("[data-tail-pause]") ?? root.querySelector("[data-live-pause]"))?.click();
    } else if (event.key === "g" && event.timeStamp - going < 1000) {
      location.assign(root.querySelector("[data-groups]")?.href ?? "/groups/?sort=-status");
    } else if (event.key === "g") {
      going = event.timeStamp;
    } else if (GO[event.key] && event.timeStamp - going < 1000) {
      location.assign(GO[event.key]);
    }
  });
}
