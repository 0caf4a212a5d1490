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

export function rememberRate(topic, event) {
  if (event.rate_in != null) latest.set(topic, event.rate_in);
}

/** One more second: streams that said nothing go on at their last rate. */
export function advance(root) {
  for (const svg of root.querySelectorAll("[data-spark]")) {
    const values = svg.dataset.values.split(" ").filter(Boolean);
    const shown = [...values, latest.get(svg.dataset.spark) ?? values.at(-1) ?? 0].slice(-POINTS);
    svg.dataset.values = shown.join(" ");
    svg.querySelector("polyline").setAttribute("points", sparkPoints(shown));
  }
}
