"""A page of messages: which ones, what lies around them, and what a search for them has cost."""

import time
from dataclasses import dataclass

from dashboard import formats
from dashboard.browse.browse_form import BrowseForm
from dashboard.browse.message_rows import MessageRow
from streams import selectors
from streams.models import Stream

PAGE_SIZE = 50
SLICE_S = 0.2
FIRST_SLICE_S = 0.1
"""How long a slice of a search looks; less where the whole page is made around it, which has to be there at once."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a search has come to, over all its slices.

    Attributes:
        scanned, total: messages looked at, of those in the range that was asked for.
        matched: how many of them were shown.
        took_ms: how long the server looked.
        looked_bytes: the size of the bodies that were looked at.
        span_ms: when the oldest and the newest of these came (unix ms); None of none.
        resume: the query parameters that go on with it; empty when it is done.
        message_id: the id that is looked for, where it is no longer remembered.
    """

    scanned: int
    total: int
    matched: int
    took_ms: int
    resume: dict[str, int]
    looked_bytes: int
    span_ms: tuple[int, int] | None
    message_id: str = ""

    @property
    def done(self) -> bool:
        return not self.resume

    @property
    def took(self) -> str:
        """``0.4 s``."""
        return f"{self.took_ms / 1000:.1f} s"

    @property
    def span(self) -> str:
        """``2026-11-27 09:00 to 09:40 UTC``."""
        return formats.span(*self.span_ms) if self.span_ms else ""


@dataclass(frozen=True, slots=True)
class Window:
    """The messages that a page shows, in its order; ``older`` and ``newer`` say where there are more.

    Attributes:
        stop: the offset that the range ends before, where an end was chosen.
    """

    rows: list[MessageRow]
    older: int | None = None
    newer: int | None = None
    search: Search | None = None
    stop: int | None = None

    @property
    def lowest(self) -> int:
        return min(row.message.offset for row in self.rows)

    @property
    def highest(self) -> int:
        return max(row.message.offset for row in self.rows)


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets that a form's start and end allow, ``stop`` excluded; ``message_id`` only where it must be sought."""

    start: int
    stop: int | None
    message_id: str = ""


def span_of(stream: Stream, form: BrowseForm) -> Span:
    """The offsets between a valid form's start and its end."""
    asked = form.cleaned_data
    stop = selectors.offset_at(stream, asked["until"]) if asked["until"] else None
    if asked["start"] == "offset":
        return Span(asked["offset"], stop)
    if asked["start"] == "time":
        return Span(selectors.offset_at(stream, asked["time"]), stop)
    if asked["start"] == "id":
        known = selectors.offset_of_id(stream, asked["at"])
        return Span(0, stop, asked["at"]) if known is None else Span(known, stop)
    return Span(0, stop)


def window_of(stream: Stream, form: BrowseForm, *, search_s: float = SLICE_S) -> Window:
    """The page of messages that a valid form asks for; of a search a slice, which ends after so many seconds."""
    span = span_of(stream, form)
    if form.is_filtered or span.message_id:
        return _searched(stream, form, span, search_s)
    asked = form.cleaned_data
    newest_first = asked["start"] == "newest"
    # Without an end the start is only where one begins to read.
    floor = 0 if span.stop is None else span.start
    if asked["before"] is not None:
        stop = asked["before"] if span.stop is None else min(asked["before"], span.stop)
        found = selectors.messages_found(stream, start=floor, stop=stop, limit=PAGE_SIZE, newest_first=True)
    elif asked["after"] is not None:
        start = max(asked["after"] + 1, floor)
        found = selectors.messages_found(stream, start=start, stop=span.stop, limit=PAGE_SIZE)
    else:
        found = selectors.messages_found(
            stream, start=span.start, stop=span.stop, limit=PAGE_SIZE, newest_first=newest_first
        )
    shown = sorted(found.messages, key=lambda message: message.offset, reverse=newest_first)
    if not shown:
        return Window([], stop=span.stop)
    lowest, highest = sorted((shown[0].offset, shown[-1].offset))
    older = selectors.messages_found(stream, start=floor, stop=lowest, limit=1, newest_first=True)
    newer = selectors.messages_found(stream, start=highest + 1, stop=span.stop, limit=1)
    rows = [MessageRow(message, form.columns, form.reading) for message in shown]
    first, last = lowest if older.messages else None, highest if newer.messages else None
    return Window(rows, first, last, stop=span.stop)


def _joined(span_ms: tuple[int, int] | None, edge_ms: int | None) -> tuple[int, int] | None:
    """What a slice looked at, in time, with where the slices before it began."""
    times = sorted([*(span_ms or ()), *([] if edge_ms is None else [edge_ms])])
    return (times[0], times[-1]) if times else None


def _searched(stream: Stream, form: BrowseForm, span: Span, seconds: float) -> Window:
    """One slice of a search; the counts of the slices before it came with the address."""
    asked = form.cleaned_data
    # An id that is no longer remembered is more likely of late than of old; of one that is, its offset is the start.
    newest_first = asked["start"] == "newest" or bool(span.message_id)
    start, stop = span.start, span.stop
    if newest_first and asked["before"] is not None:
        stop = asked["before"]
    elif not newest_first and asked["after"] is not None:
        start = asked["after"] + 1
    began = time.monotonic()
    found = selectors.messages_found(
        stream,
        start=start,
        stop=stop,
        limit=PAGE_SIZE,
        wanted=form.wanted(message_id=span.message_id),
        newest_first=newest_first,
        seconds=seconds,
    )
    took_ms = int((time.monotonic() - began) * 1000)
    scanned = (asked["scanned"] or 0) + found.scanned
    resume: dict[str, int] = {}
    left = 0
    if found.rest is not None:
        (left,) = selectors.messages_between(stream, found.rest)
        resume = {"before": found.rest[1]} if newest_first else {"after": found.rest[0] - 1}
    matched = (asked["matched"] or 0) + len(found.messages)
    took_ms += asked["took"] or 0
    looked_bytes = (asked["looked"] or 0) + found.size_bytes
    span_ms = _joined(found.span_ms, asked["edge"])
    if resume:
        resume |= {"scanned": scanned, "matched": matched, "took": took_ms, "looked": looked_bytes}
    if resume and span_ms:
        resume |= {"edge": span_ms[1 if newest_first else 0]}
    search = Search(
        scanned,
        scanned + left,
        matched,
        took_ms,
        resume,
        looked_bytes,
        span_ms,
        message_id=span.message_id,
    )
    rows = [MessageRow(message, form.columns, form.reading) for message in found.messages]
    return Window(rows, search=search, stop=span.stop)
