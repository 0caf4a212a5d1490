// Every page's start. Charts add themselves (charts.js).

import { advance, growOlder, paint, topicsOf } from "./bind.js";
import { startBrush, startMessages, startSearching } from "./browse.js";
import { say } from "./format.js";
import { startKeys, startPalette } from "./keys.js";
import { Live } from "./live.js";
import { watchParts } from "./parts.js";
import { startTail } from "./tail.js";
import { startTyped } from "./typed.js";

const status = document.querySelector("[data-live-status]"); // none where nothing moves
let lastWord;

function showStatus({ state, word, age }) {
  document.body.dataset.liveState = state;
  if (lastWord !== word) {
    lastWord = word;
    if (status) status.querySelector("[data-live-word]").textContent = word; // polite: it speaks at every change
    const elsewhere = document.querySelector("dialog:has([data-subject])");
    if (elsewhere?.querySelector("[data-gone]")) elsewhere.showModal();
    else elsewhere?.close();
    document.dispatchEvent(new Event("okmq:word"));
  }
  if (!status) return;
  status.dataset.state = state;
  status.querySelector("[data-live-age]").textContent = age;
  status.querySelector("[data-live-login]").hidden = state !== "gone";
}

function paintAll(events) {
  for (const [topic, event] of events) {
    paint(document, topic, event);
    if (event.kind === "overview_sampled" && event.rate_in !== null) advance(document);
    document.dispatchEvent(new CustomEvent("okmq:live", { detail: { topic, event } }));
  }
}

const live = document.querySelector("[data-subject]") && new Live({ paint: paintAll, showStatus });
if (live) {
  live.subscribe(topicsOf(document));
  live.start();
  document.addEventListener("htmx:afterSettle", () => live.subscribe(topicsOf(document)));
}
if (live && status) {
  const pause = status.querySelector("[data-live-pause]");
  const names = [pause.textContent, pause.dataset.resume];
  pause.hidden = false;
  pause.addEventListener("click", () => {
    live.hold(!live.isHeld);
    pause.textContent = names[Number(live.isHeld)];
  });
}

// A hidden page does it when it is seen.
let beats = 0;
setInterval(() => {
  beats = document.hidden || live?.isHeld ? -1 : beats + 1;
  if (beats < 0) return;
  growOlder(document);
  document.dispatchEvent(new Event("okmq:second"));
  if (beats % 15 === 0 && document.body.dataset.liveState !== "deleted") document.dispatchEvent(new Event("okmq:quarter-minute"));
}, 1000);
// What was left empty in a form is left out of the address.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  for (const [name, value] of [...detail.formData]) if (value === "") detail.formData.delete(name);
});
document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-submits]")) target.form.requestSubmit();
  const { form, dataset } = target;
  const boxes = [...(form?.elements ?? [])].filter(({ name }) => name === (dataset.all || "stream")); // also outside of it
  if ("all" in dataset) for (const box of boxes) box.checked = target.checked;
  const picked = form?.querySelector("[data-picked]");
  if (picked) picked.textContent = say("%(count)s selected", { count: boxes.filter((box) => box.checked).length });
});
// Copy buttons wait for a script, and a clipboard.
const showCopying = () => document.querySelectorAll("[data-copy][hidden]").forEach((button) => (button.hidden = !navigator.clipboard));
for (const shown of ["htmx:afterSettle", "okmq:shown"]) document.addEventListener(shown, showCopying);
showCopying();
document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-copy]");
  if (!button) return;
  const source = button.parentElement.querySelector("[data-copy-source]");
  await navigator.clipboard.writeText(source.value ?? source.textContent);
  const label = button.querySelector(".visually-hidden");
  const use = button.querySelector("use");
  const icon = use.getAttribute("href");
  const before = label.textContent;
  if (before === say("Copied")) return;
  label.textContent = say("Copied");
  use.setAttribute("href", icon.replace(/#.*/, "#check"));
  setTimeout(() => {
    label.textContent = before;
    use.setAttribute("href", icon);
  }, 1500);
});
// On a narrow screen menus are longer than it: where one is, is in sight.
for (const here of document.querySelectorAll("nav [aria-current=page]")) {
  const nav = here.parentElement;
  nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}
startKeys(document);
startMessages(document);
startSearching(document);
startBrush(document);
startTail(document);
startPalette(document);
startTyped(document);
watchParts(document);
