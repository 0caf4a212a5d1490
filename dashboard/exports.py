"""Messages as files, written while they are sent: a page of them is in memory at a time, whatever the number.

The end of the range is fixed at the start, so that an export of a stream that grows comes to an end. A file that is
cut short by an error is seen to be: the answer is chunked, and its last chunk is missing.
"""

import asyncio
import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from django.utils import timezone

from dashboard import formats
from streams import selectors
from streams.log.entries import Entry, Message, parse, to_json
from streams.log.read import Wanted
from streams.models import Stream

PAGE = 1000
CSV_COLUMNS = ("offset", "timestamp", "id", "key", "headers", "body")
_FORMULA = re.compile(
    r"(?:\A|(?<=[;\t])(?<!\A\t))"
    r"(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|\A[\t\r\n])"
    r"(?![+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:[;\t]|\Z))"
)
"""Where a spreadsheet would begin a formula: at the beginning, also after blanks and in full width, and behind what
others separate fields by. Numbers are none."""


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: its ending, its media type, what stands first, and how messages are written."""

    ending: str
    media_type: str
    head: bytes
    rows: Callable[[Sequence[Entry]], bytes]


def cell(text: str) -> str:
    """A value that no spreadsheet takes for a formula: what begins like one gets an apostrophe before it."""
    if ";" in text or "\t" in text:
        return _FORMULA.sub("'", text)
    return f"'{text}" if _FORMULA.match(text) else text


def csv_line(values: Sequence[str]) -> str:
    """One line of a CSV file (RFC 4180), formulas made text."""
    line = io.StringIO()
    csv.writer(line).writerow([cell(value) for value in values])
    return line.getvalue()


def _csv_rows(found: Sequence[Entry]) -> bytes:
    return "".join(csv_line(_values(parse(entry))) for entry in found).encode("utf-8", "replace")


def _values(message: Message) -> tuple[str, ...]:
    return (
        str(message.offset),
        formats.iso_local(message.timestamp_ms),
        message.id,
        message.key or "",
        (message.headers or b"").decode(),
        message.body.decode("utf-8", "replace"),
    )


def _json_rows(found: Sequence[Entry]) -> bytes:
    return b"".join(_on_one_line(to_json(entry)) + b"\n" for entry in found)


def _on_one_line(message: bytes) -> bytes:
    """JSON without line breaks: outside a string they are blanks, and inside one they cannot stand."""
    return message.replace(b"\n", b" ").replace(b"\r", b" ")


FORMATS = {
    "ndjson": Format("ndjson", "application/x-ndjson", b"", _json_rows),
    "csv": Format("csv", "text/csv; charset=utf-8", csv_line(CSV_COLUMNS).encode(), _csv_rows),
}


def written(
    stream: Stream, form: Format, *, start: int, stop: int, wanted: Wanted | None
) -> AsyncIterator[bytes]:
    """The file, in the zone that is active now, a page of messages at a time; the next is read when one was taken."""
    zone = timezone.get_current_timezone()  # of the request; the rest runs when it has been answered
    return _pages(stream, form, start=start, stop=stop, wanted=wanted, zone=zone)


async def _pages(
    stream: Stream, form: Format, *, start: int, stop: int, wanted: Wanted | None, zone: tzinfo
) -> AsyncIterator[bytes]:
    yield form.head
    at: int | None = start
    while at is not None:
        found, at = await asyncio.to_thread(
            selectors.entries_page, stream, start=at, stop=stop, limit=PAGE, wanted=wanted
        )
        if found:
            with timezone.override(zone):
                part = form.rows(found)
            yield part
