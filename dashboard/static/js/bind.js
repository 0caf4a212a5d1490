// Elements say which live value they show (data-live, data-field, data-format).
// The newest is put there, said as the server said the first.

import { FORMATS, age, count, moment, say } from "./format.js";

const ACTIVE_WITHIN_MS = 60_000;

export function topicsOf(root) {
  const topics = new Set();
  for (const { dataset } of root.querySelectorAll("[data-live], [data-spark]")) topics.add(dataset.live ?? dataset.spark);
  return topics;
}

/** Whether a stream is written to, as dashboard/stream_rows.py says it. */
export function healthOf({ messages, last_ms: lastMs }, nowMs) {
  if (messages == null) return "unavailable";
  if (lastMs && nowMs - lastMs < ACTIVE_WITHIN_MS) return "active";
  return messages ? "idle" : "empty";
}

/** The used part of its tighter limit, as there. */
export const usedOf = ({ messages, bytes }, { ofMessages = Infinity, ofBytes = Infinity }) =>
  messages === null ? null : Math.max(messages / ofMessages, bytes / ofBytes);

export function said(value, format) {
  const text = (FORMATS[format] ?? String)(value);
  const exact = { size: "%(count)s bytes", size_rate: "%(count)s bytes/s" }[format];
  return { text, title: exact && value != null ? say(exact, { count: count(Math.round(value)) }) : "" };
}

function paintElement(element, event, nowMs) {
  const { field, format } = element.dataset;
  if (format === "health") {
    if (event.worst_state) element.dataset.worst = event.worst_state;
    if (event.kind !== "stream_sampled") return;
    element.dataset.state = healthOf(event, nowMs);
    element.title = element.querySelector("span").textContent = say(element.dataset.state);
    return;
  }
  const value = field === "used" ? usedOf(event, element.dataset) : event[field];
  if (value === undefined || Number.isNaN(value)) return;
  if (format === "state") element.dataset.state = value;
  else if (format === "title") element.title = value;
  else if (format === "differs") element.hidden = String(value) === element.dataset.value;
  else if (format === "age") paintAge(element, value, nowMs);
  else if (format === "part") renew(element, String(value));
  else {
    const { text, title } = said(value, format);
    if (element.textContent !== text) element.textContent = text;
    element.title = title;
  }
}

/** A part that was painted of something older is asked for again, by whoever hears it. */
function renew(element, value) {
  if (value === element.dataset.value) return;
  element.dataset.value = value;
  element.dispatchEvent(new Event("okmq:differs", { bubbles: true }));
}

function paintAge(element, value, nowMs) {
  const ms = value ?? NaN;
  element.dataset.ms = ms;
  if (value) element.dateTime = new Date(value).toISOString();
  element.title = moment(value);
  element.textContent = age((nowMs - ms) / 1000);
}

/** What is gone keeps its last values, and says so. */
export function paint(root, topic, event, nowMs = Date.now()) {
  if ("rate_in" in event) latest.set(topic, event.rate_in);
  for (const element of root.querySelectorAll("[data-live]")) {
    if (element.dataset.live !== topic) continue;
    element.toggleAttribute("data-gone", event.kind === "gone");
    paintElement(element, event, nowMs);
  }
}

export function growOlder(root, nowMs = Date.now()) {
  for (const element of root.querySelectorAll("[data-age][data-ms]")) {
    const text = age((nowMs - Number(element.dataset.ms)) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}

// Sparklines move on once a second; dashboard/templatetags/pictures.py draws the first one the same way.

const WIDTH = 80;
const HEIGHT = 20;
const POINTS = 60;

export function sparkPoints(values) {
  const peak = Math.max(...values, 0.000001);
  const step = WIDTH / (POINTS - 1);
  const left = WIDTH - step * (values.length - 1);
  return values
    .map((value, index) => `${(left + step * index).toFixed(1)},${(HEIGHT - 1 - (value / peak) * (HEIGHT - 2)).toFixed(1)}`)
    .join(" ");
}

const latest = new Map(); // rates by topic

/** One more second: streams that said nothing go on at their last rate. */
export function advance(root) {
  for (const svg of root.querySelectorAll("[data-spark]")) {
    const values = svg.dataset.values.split(" ").filter(Boolean);
    const rate = latest.get(svg.dataset.spark);
    const shown = rate === null ? [] : [...values, rate ?? values.at(-1) ?? 0].slice(-POINTS);
    svg.dataset.values = shown.join(" ");
    svg.querySelector("polyline").setAttribute("points", sparkPoints(shown));
  }
}
