"""A million messages that go from one stream: how long the slowest publish into another waits meanwhile."""

import time
from threading import Event, Thread

from bench.measure import BODY, Figure, p99_ms
from bench.product import Product
from bench.store_load import length
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage

MESSAGES = 1_000_000
KEYS = 5_000
TOGETHER_S = 40
"""So long after the first was published all of them are over, at the same second."""

BEFORE_S = 5.0
LONGER_MS = 10


def expiry(ours: Product) -> list[Figure]:
    """All are over in the same second, and the worker takes them away."""
    (full, full_id), (other, _) = ours.streams(2)
    ours.ask("PATCH", f"/streams/{full}", {"archive": False})
    published = _Published(ours, other)
    _fill(ours.keeper_url, full_id)
    took_s = published.until_it_holds(full_id, 0)
    published.end()
    for name in (full, other):
        ours.drop(name)
    return published.figures(f"{MESSAGES:,} expire", took_s=took_s)


def thinning(ours: Product) -> list[Figure]:
    """A limit a key is set on a million that are there, of thousands of keys in turns: all but the newest go.

    Once more where the first of all has a key that never came again: then each message is looked at.
    """
    return [
        *_thinned(ours, f"a limit a key takes {MESSAGES:,}", old_keys=0),
        *_thinned(ours, f"a limit a key takes {MESSAGES:,} above one of an old key", old_keys=1),
    ]


def _thinned(ours: Product, what: str, *, old_keys: int) -> list[Figure]:
    (full, full_id), (other, _) = ours.streams(2)
    ours.ask("PATCH", f"/streams/{full}", {"archive": False})
    log = Log(ours.keeper_url)
    for first in range(0, MESSAGES, 1000):
        keyed = range(first, first + 1000)
        batch = [
            NewMessage(id=f"{n:015d}", body=BODY, key=f"old.{n}" if n < old_keys else f"sensor.{n % KEYS}")
            for n in keyed
        ]
        log.run(append(full_id, batch))
    log.close()
    published = _Published(ours, other)
    began = time.perf_counter()
    ours.ask("PATCH", f"/streams/{full}", {"max_messages_per_key": 1})
    published.until_it_holds(full_id, KEYS + old_keys)
    took_s = time.perf_counter() - began
    published.end()
    for name in (full, other):
        ours.drop(name)
    return published.figures(what, took_s=took_s)


class _Published:
    """Somebody publishes one after the other over HTTP, into another stream: before it, meanwhile, as long after it.

    On a busy machine the slowest of many is slow without any reason of ours.
    """

    def __init__(self, ours: Product, stream: str) -> None:
        self._ours, self._stream = ours, stream
        self._waited_s: list[float] = []
        self._stop, self._pause = Event(), Event()
        self._publisher = Thread(target=self._publish)
        self._publisher.start()
        self._pause.wait(BEFORE_S)
        self._before_s = [*self._waited_s]
        self._from = self._upto = 0

    def until_it_holds(self, stream_id: str, messages: int) -> float:
        """Wait until a stream stores no more than so many; seconds that it took."""
        self._from, began = len(self._waited_s), time.perf_counter()
        while length(self._ours.keeper_url, stream_id) > messages:
            self._pause.wait(0.1)
        self._upto = len(self._waited_s)
        took_s = time.perf_counter() - began
        self._pause.wait(took_s)
        return took_s

    def end(self) -> None:
        self._stop.set()
        self._publisher.join()

    def figures(self, what: str, *, took_s: float) -> list[Figure]:
        during_s, after_s = (
            sorted(self._waited_s[self._from : self._upto]),
            sorted(self._waited_s[self._upto :]),
        )
        normal_ms = max(*self._before_s, *after_s) * 1e3
        return [
            Figure(name=f"{what}: until the last is gone", reached=took_s, unit="s", at_most=60),
            Figure(
                name=f"{what}: slowest publish in the {BEFORE_S:g} s before",
                reached=max(self._before_s) * 1e3,
                unit="ms",
            ),
            Figure(
                name=f"{what}: slowest publish in as long a time after it",
                reached=after_s[-1] * 1e3,
                unit="ms",
            ),
            Figure(
                name=f"{what}: slowest publish meanwhile",
                reached=during_s[-1] * 1e3,
                unit="ms",
                at_most=normal_ms + LONGER_MS,
            ),
            Figure(
                name=f"{what}: a publish in as long a time after it, p99", reached=p99_ms(after_s), unit="ms"
            ),
            Figure(
                name=f"{what}: a publish meanwhile, p99",
                reached=p99_ms(during_s),
                unit="ms",
                at_most=p99_ms(after_s) + LONGER_MS,
            ),
        ]

    def _publish(self) -> None:
        while not self._stop.is_set():
            began = time.perf_counter()
            body = {"id": str(time.monotonic_ns()), "body": 1}
            self._ours.ask("POST", f"/streams/{self._stream}/messages", body)
            self._waited_s.append(time.perf_counter() - began)


def _fill(url: str, stream_id: str) -> None:
    """Publish them, and return when their time is over."""
    log, began = Log(url), time.monotonic()
    for first in range(0, MESSAGES, 1000):
        left_s = max(1, TOGETHER_S - int(time.monotonic() - began))
        batch = [NewMessage(id=f"{n:015d}", body=BODY, ttl_s=left_s) for n in range(first, first + 1000)]
        log.run(append(stream_id, batch))
    log.close()
    Event().wait(max(1.0, TOGETHER_S - (time.monotonic() - began)))
