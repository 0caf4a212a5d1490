"""A million messages whose own time is over: how long the slowest publish waits until all of them have gone."""

import time
from threading import Event, Thread

from bench.measure import BODY, Figure
from bench.product import Product
from bench.store_load import length
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage

MESSAGES = 1_000_000
TOGETHER_S = 40
"""So long after the first was published all of them are over, at the same second."""

BEFORE_S = 5.0
LONGER_MS = 10


def expiry(ours: Product) -> list[Figure]:
    """Somebody publishes one after the other over HTTP, into another stream, while the worker takes them away.

    And for as long after it: on a busy machine the slowest of many is slow without any reason of ours.
    """
    (full, full_id), (other, _) = ours.streams(2)
    ours.ask("PATCH", f"/streams/{full}", {"archive": False})
    waited_s: list[float] = []
    stop, pause = Event(), Event()

    def publish() -> None:
        while not stop.is_set():
            began = time.perf_counter()
            ours.ask("POST", f"/streams/{other}/messages", {"id": str(time.monotonic_ns()), "body": 1})
            waited_s.append(time.perf_counter() - began)

    publisher = Thread(target=publish)
    publisher.start()
    pause.wait(BEFORE_S)
    before_s = [*waited_s]
    _fill(ours.keeper_url, full_id)
    filled = len(waited_s)
    began = time.perf_counter()
    while length(ours.keeper_url, full_id):
        pause.wait(0.1)
    took_s = time.perf_counter() - began
    gone = len(waited_s)
    pause.wait(took_s)
    stop.set()
    publisher.join()
    for name in (full, other):
        ours.drop(name)
    during_s, after_s = sorted(waited_s[filled:gone]), sorted(waited_s[gone:])
    normal_ms = max(*before_s, *after_s) * 1e3
    return [
        Figure(
            name=f"until the last of {MESSAGES:,} that expire is gone", reached=took_s, unit="s", at_most=60
        ),
        Figure(name=f"slowest publish in the {BEFORE_S:g} s before", reached=max(before_s) * 1e3, unit="ms"),
        Figure(name="slowest publish in as long a time after it", reached=after_s[-1] * 1e3, unit="ms"),
        Figure(
            name=f"slowest publish while {MESSAGES:,} expire",
            reached=during_s[-1] * 1e3,
            unit="ms",
            at_most=normal_ms + LONGER_MS,
        ),
        Figure(name="a publish in as long a time after it, p99", reached=_p99_ms(after_s), unit="ms"),
        Figure(
            name=f"a publish while {MESSAGES:,} expire, p99",
            reached=_p99_ms(during_s),
            unit="ms",
            at_most=_p99_ms(after_s) + LONGER_MS,
        ),
    ]


def _p99_ms(ascending_s: list[float]) -> float:
    return ascending_s[len(ascending_s) * 99 // 100] * 1e3


def _fill(url: str, stream_id: str) -> None:
    """Publish them, and return when their time is over."""
    log, began = Log(url), time.monotonic()
    for first in range(0, MESSAGES, 1000):
        left_s = max(1, TOGETHER_S - int(time.monotonic() - began))
        batch = [NewMessage(id=f"{n:015d}", body=BODY, ttl_s=left_s) for n in range(first, first + 1000)]
        log.run(append(stream_id, batch))
    log.close()
    Event().wait(max(1.0, TOGETHER_S - (time.monotonic() - began)))
