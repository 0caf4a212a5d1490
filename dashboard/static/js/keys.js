// The keys that templates/dashboard/parts/dialogs.html lists.
// In the palette, whose finds htmx asks for, arrows choose, Enter goes, Escape closes it.

const GO = { o: "/", s: "/streams/", e: "/events/" };
const isWriting = ({ target }) => target.closest("input:not([type=checkbox]), textarea, select");

export function startKeys(root) {
  let going = -Infinity; // since "g"
  root.addEventListener("keydown", (event) => {
    if (root.querySelector("dialog[open]")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event)) return;
    const search = root.querySelector("[data-search]");
    if (event.key === "/" && search) {
      event.preventDefault();
      search.closest("details")?.setAttribute("open", "");
      search.focus();
      search.select();
    } else if (event.key === "j" || event.key === "k") {
      const rows = [...root.querySelectorAll("[data-row]")];
      const place = rows.indexOf(event.target.closest("tr")?.querySelector("[data-row]")) + (event.key === "j" ? 1 : -1);
      rows[Math.max(0, Math.min(place, rows.length - 1))]?.focus();
    } else if (event.key === "p") {
      (root.querySelector("[data-tail-pause]") ?? root.querySelector("[data-live-pause]"))?.click();
    } else if (event.timeStamp - going < 1000) {
      const to = event.key === "g" ? (root.querySelector("[data-groups]")?.href ?? "/groups/?sort=-status") : GO[event.key];
      if (to) location.assign(to);
    } else if (event.key === "g") {
      going = event.timeStamp;
    }
  });
}

function choose(list, input, place) {
  const options = [...list.querySelectorAll("[role=option]")];
  const chosen = (place + options.length) % options.length; // not a number where nothing was found
  options.forEach((option, at) => option.setAttribute("aria-selected", at === chosen));
  options[chosen]?.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", options[chosen]?.id ?? "");
  return chosen;
}

export function startPalette(root) {
  const dialog = root.querySelector("[data-palette]");
  const help = root.querySelector("[data-help]");
  if (!dialog) return;
  const [input, list] = [dialog.querySelector("input"), dialog.querySelector("[role=listbox]")];
  let place = -1;
  let listed; // what the finds are for
  let isEntered = false; // before they came
  const go = (to) => (place = choose(list, input, to));
  const enter = () => {
    isEntered = listed !== input.value;
    if (!isEntered) list.querySelector("[aria-selected=true]")?.click();
  };
  const open = () => {
    if (dialog.open) return;
    help?.close();
    input.value = "";
    dialog.showModal();
    input.dispatchEvent(new Event("input"));
  };

  root.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    } else if (event.key === "?" && !isWriting(event) && !dialog.open) {
      help?.open ? help.close() : help?.showModal();
    }
  });
  root.addEventListener("click", ({ target }) => {
    if (target.closest("[data-open-palette]")) open();
    if (target.closest("[data-open-help]")) help?.showModal();
    if (target === dialog || target === help || target.closest("[data-close]")) target.closest("dialog").close();
  });
  list.addEventListener("htmx:afterSwap", ({ detail }) => {
    listed = detail.requestConfig.parameters.q ?? "";
    go(0);
    if (isEntered) enter();
  });
  input.addEventListener("input", () => (isEntered = false));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      go(place + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      enter();
    }
  });
  for (const button of root.querySelectorAll("[data-open-palette], [data-open-help]")) button.hidden = false;
}
