// Charts (uPlot), with the attributes that templates/dashboard/parts/chart_head.html says.

import { FORMATS, onClock, pageZone } from "./format.js";
import { partOf } from "./parts.js";

const REST_MS = 3000; // a subject at rest did nothing so long ago
const DURATIONS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000];
const BINARY = Array.from({ length: 60 }, (_, power) => 2 ** power);
const said = (seconds) => onClock(seconds * 1000)[0];

/** [times, values of each line…] with a sample more: what is older than the window goes, a gap stays a gap. */
export function appended([times, ...lines], time, values, windowS, gapS) {
  const last = times.at(-1);
  if (time <= last) return [times, ...lines];
  const gap = time - last > gapS;
  const from = [...times, ...(gap ? [last + 1] : []), time].findIndex((at) => at >= time - windowS);
  const grown = (row, value, between) => [...row, ...(gap ? [between] : []), value].slice(from);
  return [grown(times, time, last + 1), ...lines.map((line, at) => grown(line, values[at], null))];
}

/** From where to where a chart of values goes: nought is on it. */
export const heightsOf = (low, top) => [Math.min(low, 0) * 1.1, Math.max(top, 0) * 1.1 || (low < 0 ? 0 : 1)];

/** Whether all lines ended at nought: nothing tells of what goes on so. */
export const isAtRest = ([, ...lines]) => lines.every((line) => line.at(-1) === 0);

export function axisLabel(seconds, stepS) {
  const text = said(seconds);
  return stepS >= 86_400 ? text.slice(5, 10) : text.slice(11, stepS < 60 ? 19 : 16);
}

/** The address of the page with the steps that were dragged over as range. */
export function rangeAddress(search, fromS, untilS, stepS) {
  const query = new URLSearchParams(search);
  query.delete("range");
  query.delete("step");
  const iso = (seconds) => new Date(seconds * 1000).toISOString();
  query.set("since", iso(Math.floor(fromS / stepS) * stepS));
  query.set("until", iso(Math.ceil(untilS / stepS) * stepS));
  return `?${query}`;
}

export const marksNear = (marks, atS, withinS) => marks.flatMap(([at, text]) => (Math.abs(at - atS) > withinS ? [] : text));

/** What is usual, behind the lines. */
function paintBand(plot, low, high, fill) {
  const { left, top, width, height } = plot.bbox;
  const place = (value) => Math.min(top + height, Math.max(top, plot.valToPos(Number(value), "y", true)));
  plot.ctx.save();
  plot.ctx.fillStyle = fill;
  plot.ctx.fillRect(left, place(high), width, place(low) - place(high));
  plot.ctx.restore();
}

function paintMarks(plot, marks, fill) {
  const { left, top, width, height } = plot.bbox;
  plot.ctx.save();
  plot.ctx.fillStyle = fill;
  for (const [at] of marks) {
    const x = Math.round(plot.valToPos(at, "x", true));
    if (x < left || x > left + width) continue;
    plot.ctx.fillRect(x, top, devicePixelRatio, height);
    plot.ctx.fillRect(x - 2 * devicePixelRatio, top, 5 * devicePixelRatio, 4 * devicePixelRatio);
  }
  plot.ctx.restore();
}

/** Go to the range that was dragged over; a click is none, nor is another chart's drag. */
function choose(box, plot, stepS) {
  const { left, width } = plot.select;
  if (width < 5 || !plot.cursor.event) return;
  const place = box.closest("section[id]")?.id;
  location.assign(rangeAddress(location.search, plot.posToVal(left, "x"), plot.posToVal(left + width, "x"), stepS) + (place ? `#${place}` : ""));
}

function options(box, { step_s: stepS = 0, window_s: windowS, span, marks = [] }) {
  const { format, kind, colour: series, x, line, low, high, says = "", lineSays = "" } = box.dataset;
  const bars = kind === "bars";
  const numbers = x === "number";
  const say = FORMATS[format];
  // A token's in this theme.
  const colour = (name) => {
    box.style.color = `var(${name})`;
    return getComputedStyle(box).color;
  };
  const faint = colour("--ink-faint");
  const hide = { show: false };
  const axis = { stroke: faint, grid: { stroke: colour("--line"), width: 1 }, ticks: hide, font: `11px ${getComputedStyle(document.body).fontFamily}` };
  const short = (value) => say(value).replace(/(?:\.|(\.\d*[1-9]))0+(?=\D|$)/, "$1");
  // A line reaches the chart's edge: after its last step is a gap.
  const ended = (plot, n, from, last, gaps) => [...gaps, [plot.valToPos(plot.data[0][last] + stepS, "x", true), Infinity]];
  const readout = box.closest("figure").querySelector("[data-readout]");
  const head = readout.closest("figure > *");
  const resting = readout.textContent;
  return {
    width: box.clientWidth,
    height: box.clientHeight,
    legend: hide,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), pageZone()),
    cursor: { sync: { key: "okmq" }, drag: { x: box.hasAttribute("data-ranges"), y: false, setScale: false }, points: { size: 6 } },
    padding: [8, 20, 0, 0],
    scales: { x: { time: !numbers, range: (_, first, last) => span ?? (kind === "live" ? [last - windowS, last] : [first, last + stepS]) }, y: { range: (_, bottom, top) => heightsOf(bottom, Math.max(top, high ?? 0)) } },
    axes: [
      { ...axis, grid: hide, values: (_, splits, __, ___, step) => splits.map((at) => (numbers ? String(at) : axisLabel(at, step))), space: 70, size: 26 },
      { ...axis, values: (_, splits) => splits.map(short), size: 66, space: 36, gap: 6, ...(format.startsWith("size") && { incrs: BINARY }), ...(/duration|latency/.test(format) && { incrs: DURATIONS }) },
    ],
    series: [
      {},
      {
        stroke: colour(`--${series}`),
        fill: colour(`--${series}${bars ? "" : "-fill"}`),
        width: bars ? 0 : 1.5,
        points: hide,
        ...(bars && { paths: uPlot.paths.bars({ size: [0.75, 60], align: 1 }) }),
      },
      ...(line ? [{ stroke: colour(bars ? "--ink" : "--series-2"), width: 1.5, dash: [4, 3], points: hide, ...(bars && { paths: uPlot.paths.stepped({ extend: true, alignGaps: 1 }), gaps: ended }) }] : []),
    ],
    hooks: {
      draw: [(plot) => paintMarks(plot, marks, faint)],
      setSelect: [(plot) => choose(box, plot, stepS)],
      drawClear: [(plot) => low && paintBand(plot, low, high, colour("--line"))],
      setCursor: [
        (plot) => {
          const at = plot.cursor.idx;
          // However long the words, the chart stays where it is.
          head.style.height = at == null ? "" : head.style.height || `${head.offsetHeight}px`;
          readout.textContent =
            plot.data[1][at] == null
              ? (box.dataset.resting ?? resting)
              : [numbers ? plot.data[0][at] : said(plot.data[0][at]).slice(stepS >= 3600 ? 0 : 11, stepS >= 60 ? 16 : 19), ...plot.data.slice(1).flatMap((row, n) => (row[at] == null ? [] : `${say(row[at])} ${[says, lineSays][n]}`.trim())), ...marksNear(marks, plot.posToVal(plot.cursor.left, "x"), plot.posToVal(6, "x") - plot.posToVal(0, "x"))].join(" · ");
        },
      ],
    },
  };
}

let asked;

/** With what came while it was paused or hidden; asked for once by all charts. */
const pageNow = () => (asked ??= partOf(location, {}).finally(() => (asked = null)));

function draw(box) {
  const { chart, series: field, kind, liveChart: topic, line } = box.dataset;
  const fields = line ? [field, line] : [field];
  const seedIn = (page) => JSON.parse(page?.getElementById(chart)?.textContent ?? null);
  const seed = seedIn(document);
  const linesOf = ({ times, ...lines }) => [times, ...fields.map((each) => lines[each])];
  let data = linesOf(seed);
  let plot = new uPlot(options(box, seed), data, box);
  new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: box.clientHeight })).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    plot.destroy();
    plot = new uPlot(options(box, seed), data, box);
  });
  if (!topic || kind !== "live") return;
  const take = async (atMs, values) => {
    const at = Math.round(atMs / 1000);
    if (at - data[0].at(-1) > seed.gap_s) {
      const fresh = seedIn(await pageNow());
      if (fresh?.times.at(-1) > data[0].at(-1)) data = linesOf(fresh);
    }
    data = appended(data, at, values, seed.window_s, seed.gap_s);
    plot.setData(data);
  };
  document.addEventListener("okmq:live", ({ detail: { topic: from, event } }) => {
    if (from === topic && event[field] !== undefined) take(event.at_ms, fields.map((each) => event[each]));
    else if (from !== topic && event.kind === "overview_sampled" && event.rate_in !== null && isAtRest(data)) take(event.at_ms - REST_MS, fields.map(() => 0));
  });
}

if (globalThis.document) {
  const drawAll = () => document.querySelectorAll("[data-chart]:empty").forEach(draw);
  drawAll();
  document.addEventListener("htmx:afterSwap", drawAll);
}
