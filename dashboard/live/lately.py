"""What the worker sampled in the last minute, kept in this process: each record is read and taken apart once.

Where thousands of streams move, a minute of samples is tens of megabytes, and a page shows a few streams.
"""

import threading
import time
from collections.abc import Iterable

import msgspec

from dashboard.live.means import CARRY_S, MEAN_S, TICK_S, Course, Moved
from streams import selectors
from streams.selectors import SamplesRead

SPAN_S = 60
KEPT_S = SPAN_S + MEAN_S + 2 * CARRY_S
SHARED_S = 0.5
"""Hundreds of browsers that come back together ask for the same samples; the next event brings newer ones anyway."""

TIDIED_EVERY_S = 10.0


class _Figures(msgspec.Struct, gc=False):
    rate_in: float = msgspec.field(name="in", default=0.0)
    bytes_in: float = 0.0
    rate_out: float = msgspec.field(name="out", default=0.0)


class _Second(msgspec.Struct):
    """One record of the internal stream, as far as the rates are concerned; ``at`` is unix ms."""

    at: int
    streams: dict[str, _Figures]


_decode = msgspec.json.Decoder(_Second).decode


class Lately:
    """The samples of the last minute by stream; safe to share between threads."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._place: SamplesRead | None = None
        self._read_at_s = self._tidied_at_s = float("-inf")
        self._courses: dict[str, Course] = {}

    def since(self, stream_ids: Iterable[str], *, since_s: float) -> dict[str, Course]:
        """The samples of these streams from then on (unix seconds, within the last minute), oldest first."""
        with self._reading:
            self._read_on()
            return {each: self._courses[each].since(since_s) for each in stream_ids if each in self._courses}

    def means(self, stream_ids: Iterable[str] | None = None, *, shared_s: float = 0.0) -> dict[str, Moved]:
        """How fast streams move, by their internal ids; those that have been at rest for long are left out.

        Args:
            stream_ids: None is all.
            shared_s: how old the look at the samples may be.
        """
        with self._reading:
            if time.monotonic() - self._read_at_s > shared_s:
                self._read_on()
            now_s = time.time()
            asked = self._courses.keys() if stream_ids is None else stream_ids
            return {
                each: course.mean_now(now_s)
                for each in asked
                if (course := self._courses.get(each)) and now_s - course.newest_s < MEAN_S + TICK_S
            }

    def _read_on(self) -> None:
        now_s = time.time()
        if time.monotonic() - self._read_at_s > SPAN_S:
            self._place = None
        before = self._place
        records, self._place = selectors.samples_read_on(before, since_ms=int((now_s - KEPT_S) * 1000))
        if self._place is None or not self._place.goes_on(before):
            self._courses.clear()
        for record in records:
            second = _decode(record.body)
            at_s = second.at / 1000
            for stream_id, figures in second.streams.items():
                course = self._courses.setdefault(stream_id, Course())
                course.add(at_s, figures.rate_in, figures.bytes_in, figures.rate_out)
        self._read_at_s = time.monotonic()
        if self._read_at_s - self._tidied_at_s > TIDIED_EVERY_S:
            self._tidied_at_s = self._read_at_s
            since_s = now_s - KEPT_S
            self._courses = {
                each: course.since(since_s)
                for each, course in self._courses.items()
                if course.newest_s >= since_s
            }


samples = Lately()
"""Those of this process."""
