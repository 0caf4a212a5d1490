"""A chart that the browser would draw from its seed (``static/js/charts.js``), drawn as SVG."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from dashboard import formats

WIDTH, HEIGHT, LEFT, BELOW = 640, 160, 66, 18
SAID: Mapping[str, Callable[[float], str]] = {
    "count": lambda value: formats.count(round(value)),
    "short_count": formats.short_count,
    "size": formats.size,
    "rate": formats.rate,
    "size_rate": formats.size_rate,
    "percent": formats.percent,
    "duration": formats.duration,
    "latency": formats.latency,
    "age": formats.age,
}
"""By the chart's ``data-format``."""
COLOURS = frozenset({"series-1", "series-2", "series-3", "series-4"})

Values = Sequence[float | None]


def chart_drawn(seed: Mapping[str, Any], chart: Mapping[str, str | None]) -> str:
    """The SVG of a chart.

    Args:
        seed: ``times`` in unix seconds, ``step_s``, ``window_s``, ``span``, ``marks``, and the values by name.
        chart: its ``data-`` attributes, without ``data-``.
    """
    times: Sequence[float] = seed.get("times") or []
    names = [name for name in (chart.get("series"), chart.get("line")) if name and name in seed]
    lines: list[Values] = [seed[name] for name in names]
    known = [value for line in lines for value in line if value is not None]
    if not times or not known:
        return ""
    low, top = min([0.0, *known]), max([0.0, *known]) or 1.0
    is_bars, step_s = chart.get("kind") == "bars", float(seed.get("step_s") or 0)
    first, last = _span(seed, times, is_live=chart.get("kind") == "live", step_s=step_s)

    def x(at: float) -> float:
        return LEFT + (at - first) / ((last - first) or 1.0) * (WIDTH - LEFT)

    def y(value: float) -> float:
        return 8 + (top - value) / ((top - low) or 1.0) * (HEIGHT - BELOW - 8)

    colour = chart["colour"] if chart.get("colour") in COLOURS else "series-1"
    parts = [f'<path d="M{LEFT},{y(0):.1f}H{WIDTH}" stroke="var(--line)" fill="none"/>']
    if is_bars:
        wide = max(1.0, (x(first + step_s) - x(first)) * 0.75)
        parts += [
            f'<rect x="{x(at):.1f}" y="{min(y(value), y(0)):.1f}" width="{wide:.1f}" '
            f'height="{abs(y(0) - y(value)):.1f}" fill="var(--{colour})"/>'
            for at, value in zip(times, lines[0], strict=True)
            if value is not None and math.isfinite(value)
        ]
    for place, line in enumerate(lines):
        if place or not is_bars:
            dashed = ' stroke-dasharray="4 3"' if place else ""
            stroke = "ink" if place and is_bars else "series-2" if place else colour
            points = "".join(_path(times, line, x, y))
            parts.append(
                f'<path d="{points}" fill="none" stroke="var(--{stroke})" stroke-width="1.5"{dashed}/>'
            )
    parts += [
        f'<path d="M{x(at):.1f},4V{HEIGHT - BELOW}" stroke="var(--ink-faint)"><title>{escape(str(text))}</title></path>'
        for at, text in seed.get("marks") or []
        if first <= at <= last
    ]
    say = SAID.get(chart.get("format") or "", formats.short_count)
    parts += [_text(LEFT - 6, y(value) + 4, say(value), "end") for value in {low, top}]
    is_number = chart.get("x") == "number"
    ends = [f"{at:g}" if is_number else formats.clock(int(at * 1000))[:16] for at in (first, last)]
    parts += [_text(LEFT, HEIGHT - 4, ends[0], "start"), _text(WIDTH, HEIGHT - 4, ends[1], "end")]
    label = escape(chart.get("label") or "", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _span(
    seed: Mapping[str, Any], times: Sequence[float], *, is_live: bool, step_s: float
) -> tuple[float, float]:
    """From when to when it is, as the browser has it."""
    if seed.get("span"):
        first, last = seed["span"]
        return float(first), float(last)
    if is_live and seed.get("window_s"):
        return times[-1] - float(seed["window_s"]), times[-1]
    return times[0], times[-1] + step_s


def _path(
    times: Sequence[float], values: Values, x: Callable[[float], float], y: Callable[[float], float]
) -> Iterator[str]:
    """A line with a gap wherever there is no value."""
    begins = True
    for at, value in zip(times, values, strict=True):
        if value is None:
            begins = True
        else:
            yield f"{'M' if begins else 'L'}{x(at):.1f},{y(value):.1f}"
            begins = False


def _text(x: float, y: float, text: str, anchor: str) -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="11" fill="var(--ink-faint)">{escape(text)}</text>'
