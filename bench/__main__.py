"""``make bench``: starts a product and a store of its own in a temporary folder and prints one table.

Load and server share this machine's cores, so a figure is a lower bound; what lasts from machine to machine are the
ratios to the append script with batches of the same size.
"""

import argparse
import os
import platform
import tempfile
from collections.abc import Iterable
from pathlib import Path

import uvloop

from bench import http_load, log_load
from bench.measure import Measured
from tests.product import Product
from tests.servers import store

# Clients at once for each size of a batch: enough to keep the server busy.
SIZES = {1: 16, 100: 16, 1000: 4}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each line is measured (3)")
    parser.add_argument("--fsync", choices=["always", "everysec", "no"], default="always", help="(always)")
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, fsync {options.fsync}"
    )
    with tempfile.TemporaryDirectory(prefix="okmq-bench-") as folder:
        alone = in_the_log(Path(folder, "store"), seconds=options.seconds, fsync=options.fsync)
        over_http = through_the_product(Path(folder, "data"), seconds=options.seconds, fsync=options.fsync)
    print(table([*alone, *over_http]))


def in_the_log(folder: Path, *, seconds: float, fsync: str) -> list[Measured]:
    """The store alone."""
    with store(folder, fsync=fsync) as server:
        return [
            uvloop.run(load(server.url, batch=batch, clients=clients, seconds=seconds))
            for load in (log_load.adding, log_load.appending)
            for batch, clients in SIZES.items()
        ]


def through_the_product(data_dir: Path, *, seconds: float, fsync: str) -> list[Measured]:
    """The whole path, over HTTP."""
    product = Product(data_dir=data_dir, more={"OKMQ_HISTORY": "off", "OKMQ_FSYNC": fsync})
    try:
        product.start()
        return uvloop.run(_through(product, seconds=seconds))
    finally:
        product.end_all()


async def _through(product: Product, *, seconds: float) -> list[Measured]:
    target = http_load.Target(port=product.port, token=product.token)
    measured = [
        await http_load.publishing(target, batch=batch, clients=clients, seconds=seconds)
        for batch, clients in SIZES.items()
    ]
    return [*measured, await http_load.reading(target, batch=1000, clients=4, seconds=seconds)]


def table(lines: Iterable[Measured]) -> str:
    """The table as Markdown, so that it can be kept as it is."""
    lines = list(lines)
    script = {line.batch: line.messages_per_s for line in lines if line.name == "append script"}
    head = ["", "batch", "clients", "calls/s", "messages/s", "of the script", "p50 ms", "p99 ms"]
    rows = [head, ["---", *["---:"] * 7]]
    rows += [
        [
            line.name,
            f"{line.batch}",
            f"{line.clients}",
            f"{line.calls_per_s:,.0f}",
            f"{line.messages_per_s:,.0f}",
            f"{line.messages_per_s / script[line.batch]:.2f}",
            f"{line.percentile_ms(50):.1f}",
            f"{line.percentile_ms(99):.1f}",
        ]
        for line in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    )


if __name__ == "__main__":
    main()
