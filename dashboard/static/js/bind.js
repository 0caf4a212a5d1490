// Elements that show a live value say so themselves:
//   <span data-live="stream:flights" data-field="messages" data-format="count">
// and this puts the newest value there, said as the server said the first one.

import { FORMATS, age, count, moment } from "./format.js";
import { say } from "./words.js";

const ACTIVE_WITHIN_MS = 60_000;

/** The topics that the page shows, from its elements. */
export function topicsOf(root) {
  const topics = new Set();
  for (const { dataset } of root.querySelectorAll("[data-live], [data-spark]")) topics.add(dataset.live ?? dataset.spark);
  return topics;
}

/** Whether a stream is written to: the word beside its dot, as dashboard/stream_rows.py says it. */
export function healthOf({ messages, last_ms: lastMs }, nowMs) {
  if (lastMs && nowMs - lastMs < ACTIVE_WITHIN_MS) return "active";
  return messages ? "idle" : "empty";
}

/** The text and the title of a value. */
export function said(value, format) {
  const text = (FORMATS[format] ?? String)(value);
  const bytes = value != null && { count: count(Math.round(value)) };
  if (bytes && format === "size") return { text, title: say("%(count)s bytes", bytes) };
  if (bytes && format === "size_rate") return { text, title: say("%(count)s bytes/s", bytes) };
  return { text, title: null };
}

function paintElement(element, event, nowMs) {
  const { field, format } = element.dataset;
  if (format === "health") {
    if (event.kind !== "stream_sampled") return;
    element.dataset.state = healthOf(event, nowMs);
    element.title = element.querySelector("span").textContent = say(element.dataset.state);
    return;
  }
  const value = event[field];
  if (value === undefined) return;
  if (format === "state") element.dataset.state = value;
  else if (format === "title") element.title = value;
  else if (format === "differs") element.hidden = String(value) === element.dataset.value;
  else if (format === "age") paintAge(element, value, nowMs);
  else {
    const { text, title } = said(value, format);
    if (element.textContent !== text) element.textContent = text;
    if (title) element.title = title;
  }
}

function paintAge(element, value, nowMs) {
  if (value) {
    element.dataset.ms = value;
    element.dateTime = new Date(value).toISOString();
    element.title = moment(value);
  }
  element.textContent = age(value ? (nowMs - value) / 1000 : null);
}

/** Put an event's values where the page shows them. */
export function paint(root, topic, event, nowMs = Date.now()) {
  for (const element of root.querySelectorAll("[data-live]")) {
    if (element.dataset.live === topic) paintElement(element, event, nowMs);
  }
}

/** Let the relative times grow older. */
export function growOlder(root, nowMs = Date.now()) {
  for (const element of root.querySelectorAll("[data-age][data-ms]")) {
    const text = age((nowMs - Number(element.dataset.ms)) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}
