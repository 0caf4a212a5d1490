"""What the worker sampled in the last minute, kept in this process: each record is read and taken apart once.

Where thousands of streams move, a minute of samples is tens of megabytes, and a page shows a few streams.
"""

import threading
import time
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from streams import selectors
from streams.selectors import SamplesRead

SPAN_S = 60
CARRY_S = 3.0
"""Ticks are a second apart and a little late: up to here a rate is taken to go on, beyond it was nought."""

KEPT_S = SPAN_S + 2 * CARRY_S
SHARED_S = 0.5
"""Hundreds of browsers that come back together ask for the same samples; the next event brings newer ones anyway."""

TIDIED_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Moved:
    """One stream in one sample: unix seconds; messages and bytes published and messages done with, a second."""

    at_s: float
    rate_in: float
    bytes_in: float
    rate_out: float


class _Figures(msgspec.Struct, gc=False):
    rate_in: float = msgspec.field(name="in", default=0.0)
    bytes_in: float = 0.0
    rate_out: float = msgspec.field(name="out", default=0.0)


class _Second(msgspec.Struct):
    """One record of the internal stream, as far as the rates are concerned; ``at`` is unix ms."""

    at: int
    streams: dict[str, _Figures]


_decode = msgspec.json.Decoder(_Second).decode
WIDTH = 4


class Lately:
    """The samples of the last minute by stream; safe to share between threads."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._place: SamplesRead | None = None
        self._read_at_s = self._tidied_at_s = float("-inf")
        self._points: dict[str, array[float]] = {}

    def since(self, stream_ids: Iterable[str], *, since_s: float) -> dict[str, list[Moved]]:
        """The samples of these streams from then on (unix seconds, within the last minute), oldest first."""
        with self._reading:
            self._read_on()
            found = {each: self._points[each] for each in stream_ids if each in self._points}
            return {
                each: [moved for moved in map(_moved, _quadruples(points)) if moved.at_s >= since_s]
                for each, points in found.items()
            }

    def newest(self, *, within_s: float = CARRY_S, shared_s: float = 0.0) -> dict[str, Moved]:
        """The newest sample of each stream that was sampled within the last seconds, by its internal id.

        Args:
            shared_s: how old the look at the samples may be.
        """
        with self._reading:
            if time.monotonic() - self._read_at_s > shared_s:
                self._read_on()
            since_s = time.time() - within_s
            return {
                each: _moved(points[-WIDTH:])
                for each, points in self._points.items()
                if points[-WIDTH] >= since_s
            }

    def _read_on(self) -> None:
        now_s = time.time()
        if time.monotonic() - self._read_at_s > SPAN_S:
            self._place = None
        before = self._place
        records, self._place = selectors.samples_read_on(before, since_ms=int((now_s - KEPT_S) * 1000))
        if self._place is None or not self._place.goes_on(before):
            self._points.clear()
        for record in records:
            second = _decode(record.body)
            at_s = second.at / 1000
            for stream_id, figures in second.streams.items():
                points = self._points.setdefault(stream_id, array("d"))
                points.extend((at_s, figures.rate_in, figures.bytes_in, figures.rate_out))
        self._read_at_s = time.monotonic()
        if self._read_at_s - self._tidied_at_s > TIDIED_EVERY_S:
            self._tidied_at_s = self._read_at_s
            self._tidy(now_s - KEPT_S)

    def _tidy(self, since_s: float) -> None:
        for stream_id, points in list(self._points.items()):
            if points[-WIDTH] < since_s:
                del self._points[stream_id]
                continue
            first = next(at for at in range(0, len(points), WIDTH) if points[at] >= since_s)
            if first:
                del points[:first]


def _quadruples(points: "array[float]") -> Iterable["array[float]"]:
    return (points[at : at + WIDTH] for at in range(0, len(points), WIDTH))


def _moved(quadruple: "array[float]") -> Moved:
    return Moved(*quadruple)


samples = Lately()
"""Those of this process."""
