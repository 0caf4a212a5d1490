// Every page's start: live numbers, growing ages, copy buttons, keys. Charts add themselves (charts.js).

import { growOlder, paint, topicsOf } from "./bind.js";
import { startBrush } from "./brush.js";
import { startCopying } from "./copy.js";
import { startKeys } from "./keys.js";
import { Live } from "./live.js";
import { startMessages } from "./messages.js";
import { startPalette } from "./palette.js";
import { paintProcesses } from "./processes.js";
import { startSearching } from "./search.js";
import { advance, rememberRate } from "./spark.js";
import { startTail } from "./tail.js";

const status = document.querySelector("[data-live-status]");

function showStatus({ state, word, age }) {
  document.body.dataset.liveState = state;
  status.dataset.state = state;
  const said = status.querySelector("[data-live-word]");
  if (said.textContent !== word) said.textContent = word; // a polite region speaks at every change
  status.querySelector("[data-live-age]").textContent = age;
  status.querySelector("[data-live-login]").hidden = state !== "gone";
}

function paintAll(events) {
  for (const [topic, event] of events) {
    if (event.kind === "processes_changed") paintProcesses(document, event);
    else paint(document, topic, event);
    rememberRate(topic, event);
    if (event.kind === "overview_sampled") advance(document);
    document.dispatchEvent(new CustomEvent("okmq:live", { detail: { topic, event } }));
  }
}

const live = status && new Live({ paint: paintAll, showStatus });
if (live) {
  live.subscribe(topicsOf(document));
  live.start();
  document.addEventListener("htmx:afterSettle", () => live.subscribe(topicsOf(document)));
  const pause = status.querySelector("[data-live-pause]");
  const names = [pause.textContent, pause.dataset.resume];
  pause.hidden = false;
  pause.addEventListener("click", () => {
    live.hold(!live.isHeld);
    pause.textContent = names[Number(live.isHeld)];
  });
}

// What pages do now and then, they do on these beats; a hidden page has none.
let beats = 0;
setInterval(() => {
  if (document.hidden || live?.isHeld) return;
  beats += 1;
  growOlder(document);
  document.dispatchEvent(new Event("okmq:second"));
  if (beats % 15 === 0) document.dispatchEvent(new Event("okmq:quarter-minute"));
}, 1000);
// What was left empty in a form is left out of the address.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  for (const [name, value] of [...detail.formData]) if (value === "") detail.formData.delete(name);
});
document.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-all]")) return;
  for (const box of target.form.querySelectorAll(`[name=${target.dataset.all || "stream"}]`)) box.checked = target.checked;
});
// On a narrow screen menus are longer than it: where one is, is in sight.
for (const here of document.querySelectorAll("nav [aria-current=page]")) {
  const nav = here.parentElement;
  nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}
startCopying(document);
startKeys(document);
startMessages(document);
startSearching(document);
startBrush(document);
startTail(document);
startPalette(document);
