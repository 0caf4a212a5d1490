// Sparklines move on once a second; dashboard/templatetags/pictures.py draws the first one the same way.

const WIDTH = 80;
const HEIGHT = 20;
const POINTS = 60;

/** The polyline of the last values, newest at the right edge. */
export function sparkPoints(values) {
  const shown = values.slice(-POINTS);
  const peak = Math.max(...shown, 0.000001);
  const step = WIDTH / (POINTS - 1);
  const left = WIDTH - step * (shown.length - 1);
  return shown
    .map((value, index) => `${(left + step * index).toFixed(1)},${(HEIGHT - 1 - (value / peak) * (HEIGHT - 2)).toFixed(1)}`)
    .join(" ");
}

const latest = new Map(); // topic: the rate that the last sample told

/** Remember a stream's rate until it is drawn. */
export function rememberRate(topic, event) {
  if (event.rate_in !== undefined) latest.set(topic, event.rate_in);
}

/** One more second for every sparkline: streams that said nothing go on at their last rate. */
export function advance(root) {
  for (const svg of root.querySelectorAll("[data-spark]")) {
    const values = svg.dataset.values ? svg.dataset.values.split(" ").map(Number) : [];
    values.push(latest.get(svg.dataset.spark) ?? values.at(-1) ?? 0);
    const shown = values.slice(-POINTS);
    svg.dataset.values = shown.join(" ");
    svg.querySelector("polyline").setAttribute("points", sparkPoints(shown));
  }
}
