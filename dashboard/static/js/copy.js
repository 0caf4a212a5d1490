// Copy buttons: hidden until there is a script (and a clipboard) to serve them.

import { say } from "./format.js";

export function startCopying(root) {
  if (!navigator.clipboard) return;
  const show = () => root.querySelectorAll("[data-copy][hidden]").forEach((button) => (button.hidden = false));
  root.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const source = button.parentElement.querySelector("[data-copy-source]");
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    const label = button.querySelector(".visually-hidden");
    const before = label.textContent;
    label.textContent = say("Copied");
    const use = button.querySelector("use");
    const icon = use.getAttribute("href");
    use.setAttribute("href", icon.replace(/#.*/, "#check"));
    setTimeout(() => {
      label.textContent = before;
      use.setAttribute("href", icon);
    }, 1500);
  });
  for (const shown of ["htmx:afterSettle", "okmq:shown"]) root.addEventListener(shown, show);
  show();
}
