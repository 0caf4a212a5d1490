"""Ten thousand streams: making them, listing them, publishing into all of them, and the pages that count them."""

import statistics
import time
from functools import partial
from itertools import cycle

from bench.http_load import compared, http_load, ours_target
from bench.measure import Figure
from bench.product import Product

STREAMS = 10_000
PAGES = 20


def crowd(ours: Product, *, seconds: float) -> list[Figure]:
    """They stay: what is measured after it has them beside it."""
    made, took_s = [], []
    for _ in range(0, STREAMS, 1000):
        began = time.perf_counter()
        made += ours.streams(1000)
        took_s.append(time.perf_counter() - began)
    targets = [ours_target(ours, f"/api/v1/streams/{name}/messages") for name, _ in made]
    makers = cycle([target.publish(1) for target in targets])

    def next_request() -> bytes:
        return next(makers)()

    spread = partial(http_load, targets[0], next_request, batch=1)
    known = 0
    while known < STREAMS:  # each has had a message and is known to the process, as in a long run
        known += spread(connections=16, seconds=seconds).messages
    single = partial(http_load, targets[0], targets[0].publish(1, first=10**9), batch=1)
    return [
        Figure(
            name="a thousand streams made in one call",
            reached=statistics.median(took_s),
            unit="s",
            at_most=10,
        ),
        Figure(
            name=f"publish 1 over {STREAMS:,} streams / into one",
            reached=compared(spread, single, seconds=seconds),
            unit="",
            at_least=0.8,
        ),
        Figure(
            name=f"a page of 100 of {STREAMS:,} streams",
            reached=_page_ms(ours, "/streams/?limit=100&after=bench-8"),
            unit="ms",
            at_most=100,
        ),
        Figure(
            name=f"the account with {STREAMS:,} streams",
            reached=_page_ms(ours, "/account"),
            unit="ms",
            at_most=300,
        ),
    ]


def _page_ms(ours: Product, path: str) -> float:
    took_s = []
    for _ in range(PAGES):
        began = time.perf_counter()
        ours.ask("GET", path)
        took_s.append(time.perf_counter() - began)
    return statistics.median(took_s) * 1e3
