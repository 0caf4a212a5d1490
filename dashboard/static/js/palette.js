// Ctrl-K: a dialog that asks the server for streams, groups, pages and actions. Arrows choose, Enter goes.
// "?" shows the sheet of keys. Both are <dialog>s of the frame; Escape closes them.

import { partOf } from "./parts.js";

const PAUSE_MS = 120;

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
  let waiting = 0;
  let asked = 0;

  const ask = async () => {
    const turn = ++asked;
    const part = await partOf(`${dialog.dataset.palette}?q=${encodeURIComponent(input.value)}`);
    if (turn !== asked || !part) return;
    list.replaceChildren(part);
    place = choose(list, input, 0);
  };
  const open = () => {
    if (dialog.open) return;
    help?.close();
    input.value = "";
    dialog.showModal();
    ask();
  };

  root.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    } else if (event.key === "?" && !event.target.closest("input, textarea, select") && !dialog.open) {
      help?.open ? help.close() : help?.showModal();
    }
  });
  root.addEventListener("click", ({ target }) => {
    if (target.closest("[data-open-palette]")) open();
    if (target.closest("[data-open-help]")) help?.showModal();
    if (target === dialog || target === help || target.closest("[data-close]")) target.closest("dialog").close();
  });
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      place = choose(list, input, place + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      list.querySelector("[aria-selected=true]")?.click();
    }
  });
  for (const button of root.querySelectorAll("[data-open-palette], [data-open-help]")) button.hidden = false;
}
