// Numbers and times as dashboard/formats.py says them (both are tested against tests/dashboard/formats.json). Unknown is
// an en dash, never 0. dashboard/words.py lists the words, and brings them in the language of the page.

const found = globalThis.document?.getElementById("words");
const words = found ? JSON.parse(found.textContent) : {};

/** A word or a sentence; `%(name)s` in it becomes `values.name`. */
export function say(word, values = {}, known = words) {
  return (known[word] ?? word).replace(/%\((\w+)\)s/g, (_, name) => values[name]);
}

export const UNKNOWN = "–";
const IEC = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const MINUTE = 60;
const TIMES = [[86400, "d"], [3600, "h"], [MINUTE, "min"], [1, "s"]];

const unknown = (value) => value == null || Number.isNaN(value);

/** Without Intl's locale: a page looks the same everywhere. */
function separated(text) {
  const [whole, fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

const fixed = (value, decimals) => separated(value.toFixed(decimals));

function threeDigits(value) {
  if (value >= 99.95) return fixed(value, 0);
  return fixed(value, value >= 9.995 ? 1 : 2);
}

export function count(value) {
  return unknown(value) ? UNKNOWN : separated(String(Math.trunc(value)));
}

export function short_count(value) {
  if (unknown(value)) return UNKNOWN;
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return `${threeDigits(value / size)} ${unit}`;
  }
  return Number.isInteger(value) ? fixed(value, 0) : threeDigits(value);
}

export function size(value) {
  if (unknown(value)) return UNKNOWN;
  if (value < 1024) return `${fixed(value, 0)} B`;
  let scaled = value;
  for (const unit of IEC) {
    scaled /= 1024;
    if (scaled < 999.5 || unit === "EiB") return `${threeDigits(scaled)} ${unit}`;
  }
  return UNKNOWN;
}

export function rate(value) {
  if (unknown(value)) return UNKNOWN;
  if (value <= 0) return "0/s";
  return value < 0.01 ? "<0.01/s" : `${threeDigits(value)}/s`;
}

export function size_rate(value) {
  return unknown(value) ? UNKNOWN : `${size(value)}/s`;
}

export function percent(value) {
  return unknown(value) ? UNKNOWN : `${fixed(value * 100, 0)} %`;
}

export function duration(seconds) {
  if (unknown(seconds)) return UNKNOWN;
  const whole = Math.max(0, Math.trunc(seconds));
  if (whole < MINUTE) return `${whole} s`;
  const at = TIMES.findIndex(([unit]) => whole >= unit);
  const [[unit, name], [part, partName]] = TIMES.slice(at);
  const rest = Math.floor((whole % unit) / part);
  return `${Math.floor(whole / unit)} ${name}${rest ? ` ${rest} ${partName}` : ""}`;
}

export function latency(seconds) {
  if (!seconds || seconds >= MINUTE) return duration(seconds);
  return seconds < 0.9995 ? `${(seconds * 1000).toFixed(0)} ms` : `${threeDigits(seconds)} s`;
}

export function age(seconds) {
  if (unknown(seconds)) return UNKNOWN;
  const whole = Math.trunc(seconds);
  if (whole < 1) return say("now");
  const [unit, name] = TIMES.find(([each]) => whole >= each);
  return say("%(time)s ago", { time: `${Math.floor(whole / unit)} ${name}` });
}

const writers = new Map();

export const pageZone = () => globalThis.document?.documentElement.dataset.zone || "UTC";

/** A moment on the clocks of a zone: ["2026-11-21 08:05:53", "+01:00"]. */
export function onClock(ms, zone = pageZone()) {
  if (zone === "UTC") return [new Date(ms).toISOString().slice(0, 19).replace("T", " "), "UTC"];
  if (!writers.has(zone)) {
    const two = "2-digit";
    const options = { timeZone: zone, hourCycle: "h23", year: "numeric", month: two, day: two, hour: two, minute: two, second: two, timeZoneName: "longOffset" };
    writers.set(zone, new Intl.DateTimeFormat("en", options));
  }
  const part = Object.fromEntries(writers.get(zone).formatToParts(ms).map(({ type, value }) => [type, value]));
  const clock = `${part.year.padStart(4, "0")}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second}`;
  return [clock, part.timeZoneName.slice(3, 9) || "+00:00"];
}

export function moment(ms, zone) {
  if (unknown(ms)) return UNKNOWN;
  const [clock, offset] = onClock(ms, zone);
  return `${clock}.${String(((ms % 1000) + 1000) % 1000).padStart(3, "0")} ${offset}`;
}

export const FORMATS = { count, short_count, size, rate, size_rate, percent, duration, latency, age, moment };
