// Keys: "/" goes to the search field, "g" then "o" or "s" goes to the overview or the streams.

const GO = { o: "/", s: "/streams/" };

export function startKeys(root) {
  let going = 0;
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const search = root.querySelector("[data-search]");
    if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "g") {
      going = event.timeStamp;
    } else if (GO[event.key] && event.timeStamp - going < 1000) {
      location.assign(GO[event.key]);
    }
  });
}
