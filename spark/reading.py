"""Reading a range of offsets as Arrow record batches: one page of entries after the other, in bounded memory."""

import gc
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark.positions import positions
from spark.pushed import NOTHING, Pushed
from spark.ranges import Range
from streams.log import aside, entries, read
from streams.log.client import Log
from streams.log.entries import Entry
from streams.log.errors import StreamLost, StreamNotFound

PAGE_BYTES = 64 * 1024 * 1024
"""A page could hold this much if every body in it were as large as the largest ever."""

BATCH_ROWS = 8_000
BATCH_BYTES = 16 * 1024 * 1024
"""A record batch is given on once it has so many rows or so many bytes of bodies."""


warnings = logging.getLogger(__name__)


class DataLossError(RuntimeError):
    """Offsets that a reader should have seen are no longer there."""


class StreamDeletedError(DataLossError):
    """A stream was deleted while it was read."""


@contextmanager
def without_search_for_cycles() -> Iterator[None]:
    """Have Python look for no cycles among its objects while this lasts.

    Entries are lists in lists, freed without it; looking through thousands of them again and again took as long as
    reading them.
    """
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


def batches(
    log: Log, wanted: Range, *, schema: pa.Schema, archive: bool, strict: bool, pushed: Pushed = NOTHING
) -> Iterator[pa.RecordBatch]:
    """The messages of a range in offset order.

    Args:
        schema: the columns to build, any of ``schemas.MESSAGES`` in any order.
        archive: see also what a limit has hidden, as long as it is physically there.
        strict: offsets that went while they were being read are an error, not a gap.
        pushed: of whose keys nothing else is built; the range is narrowed already.

    Raises:
        DataLossError: with ``strict``.
        StreamDeletedError: whether strict or not, where the view is not the archive's.
        LogError: the store does not answer.
    """
    pages = archive_pages(log, wanted) if archive else visible_pages(log, wanted, strict=strict)
    if pushed.keys:
        pages = _with_keys(pages, pushed)
    yield from in_batches(pages, wanted, schema=schema)


def in_batches(pages: Iterator[list[Entry]], wanted: Range, *, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Pages of entries of one stream as record batches of bounded size."""
    pending: list[Entry] = []
    size_bytes = 0
    for page in pages:
        pending += page
        size_bytes += sum(len(entry[1][3]) for entry in page)
        if len(pending) >= BATCH_ROWS or size_bytes >= BATCH_BYTES:
            yield record_batch(pending, wanted, schema=schema)
            pending, size_bytes = [], 0
    if pending:
        yield record_batch(pending, wanted, schema=schema)


def _with_keys(pages: Iterator[list[Entry]], pushed: Pushed) -> Iterator[list[Entry]]:
    """Pages of what has the keys that are wanted; each key is looked at once a page."""
    for page in pages:
        held = {
            key: pushed.wants_key(None if key is None else key.decode()) for key in map(entries.key, page)
        }
        yield [entry for entry in page if held[entries.key(entry)]]


def visible_pages(log: Log, wanted: Range, *, strict: bool) -> Iterator[list[Entry]]:
    """Pages of what any reader may see."""
    start = wanted.first
    try:
        while start <= wanted.last:
            at = log.run(read.position(wanted.stream_id))
            _refuse_loss(wanted, start, at, strict=strict)
            start = max(start, at.floor)
            count = page_rows(at.widest)
            page = log.run(read.archive_range(wanted.stream_id, start, wanted.last, count))
            if not page or entries.position(page[0])[0] != start:
                # A gap in front: deletions, or retention that came between the two questions.
                _refuse_loss(wanted, start, log.run(read.position(wanted.stream_id)), strict=strict)
            away = log.run(read.hidden(wanted.stream_id, at, page))
            yield [entry for entry in _visible(page, at) if not away(entry)]
            if len(page) < count:
                return
            start = entries.position(page[-1])[0] + 1
    except StreamLost:
        if strict:
            raise DataLossError(
                f"Stream {wanted.stream!r} is kept in memory, and its server has lost what it held; "
                "failOnDataLoss=false reads on without it."
            ) from None
    except StreamNotFound:
        raise StreamDeletedError(
            f"Stream {wanted.stream!r} was deleted while offsets {wanted.first} to {wanted.last} were read; "
            "failOnDataLoss=false reads on without them."
        ) from None


def _refuse_loss(wanted: Range, start: int, at: read.Position, *, strict: bool) -> None:
    if at.floor > start:
        refuse_or_report(wanted.stream, start, min(at.floor - 1, wanted.last), strict=strict)


def refuse_or_report(
    stream: str, first: int, last: int, *, strict: bool, why: str = "retention or a purge took them"
) -> None:
    """Offsets that were asked for have gone: an error to those who may lose nothing, else a warning in the log.

    Raises:
        DataLossError: with ``strict``.
    """
    refuse_or_warn(f"Stream {stream!r}: offsets {first} to {last} are no longer there ({why})", strict=strict)


def refuse_or_warn(gone: str, *, strict: bool) -> None:
    """The same, of a loss in words, without a full stop.

    Raises:
        DataLossError: with ``strict``.
    """
    if strict:
        raise DataLossError(f"{gone}; failOnDataLoss=false reads on without them.")
    warnings.warning("%s; reading on without them.", gone)


def _visible(page: list[Entry], at: read.Position) -> list[Entry]:
    """The entries that have not expired. Times do not run backwards: the first that is young enough ends the search."""
    if at.cutoff_ms is not None:
        young = next((n for n, entry in enumerate(page) if read.is_visible(entry, at)), len(page))
        page = page[young:]
    return [entry for entry in page if entries.expires_ms(entry) is None or read.is_visible(entry, at)]


def archive_pages(
    log: Log,
    wanted: Range,
    *,
    on_page: Callable[[int, list[Entry], int], None] = lambda start, page, end: None,
    with_aside: bool = True,
) -> Iterator[list[Entry]]:
    """Pages of what the history keeps: everything physically there but what a person purged.

    Args:
        with_aside: also what was removed and can come back. The history takes nothing that was removed before it looked
            how far it may go, and what is removed later.
        on_page: told of each page before it is given: the offsets that it was asked from and reaches to; and of what a
            person purged, as of an empty one.
    """
    start = wanted.first
    while start <= wanted.last:
        at = log.run(positions([wanted.stream_id], strict=True)).get(wanted.stream_id)
        if at is None:
            return  # deleted, or lost with the memory that it was in
        page: list[Entry] = []
        end, count = min(at.after_taken(start) - 1, wanted.last), page_rows(at.widest)
        if end < start:
            before = at.before_taken(start)
            end = wanted.last if before is None else min(before, wanted.last)
            page = log.run(read.archive_range(wanted.stream_id, start, end, count))
            if len(page) == count:
                end = entries.position(page[-1])[0]
        elif at.hides:
            page, end = log.run(aside.hidden_range(wanted.stream_id, start, end, count))
        if page and at.has_aside and not with_aside:
            away = log.run(aside.set_aside(wanted.stream_id, start, end))
            page = [entry for entry in page if not away(entry)]
        on_page(start, page, end)
        if page:
            yield page
        start = end + 1


def page_rows(widest_bytes: int) -> int:
    """Most entries in one page of a stream whose widest body ever had so many bytes."""
    return max(1, min(read.PAGE, PAGE_BYTES // max(1, widest_bytes)))


def record_batch(found: Sequence[Entry], wanted: Range, *, schema: pa.Schema) -> pa.RecordBatch:
    """Raw entries of one stream as a record batch with the columns of ``schema``."""
    return pa.RecordBatch.from_arrays(
        [_COLUMNS[field.name](found, wanted, field.type) for field in schema], schema=schema
    )


def _position(found: Sequence[Entry], part: int) -> pa.Array:
    """Part 0 (offset) or 1 (unix ms) of the entries' ids, parsed by Arrow."""
    ids = pc.split_pattern(pa.array([entry[0] for entry in found], pa.string()), "-")
    return pc.list_element(ids, part).cast(pa.int64())


def _offsets(found: Sequence[Entry], wanted: Range, kind: pa.DataType) -> pa.Array:
    return _position(found, 0)


def _timestamps(found: Sequence[Entry], wanted: Range, kind: pa.DataType) -> pa.Array:
    return _position(found, 1).cast(pa.timestamp("ms", tz="UTC")).cast(kind)


def _ids(found: Sequence[Entry], wanted: Range, kind: pa.DataType) -> pa.Array:
    return pa.array([entry[1][1] for entry in found], kind)


def _bodies(found: Sequence[Entry], wanted: Range, kind: pa.DataType) -> pa.Array:
    return pa.array([entry[1][3] for entry in found], kind)


def _sizes(found: Sequence[Entry], wanted: Range, kind: pa.DataType) -> pa.Array:
    return pa.array([len(entry[1][3]) for entry in found], kind)


def _keys(found: Sequence[Entry], wanted: Range, kind: pa.DataType) -> pa.Array:
    return pa.array([entries.key(entry) for entry in found], kind)


def _headers(found: Sequence[Entry], wanted: Range, kind: pa.DataType) -> pa.Array:
    return pa.array([_header_pairs(entry[1]) for entry in found], kind)


def _header_pairs(fields: Sequence[Any]) -> list[tuple[str, str]] | None:
    for n in range(6, len(fields), 2):
        if fields[n] == b"h":
            return list(json.loads(fields[n + 1]).items())
    return None


def _constant(value_of: Callable[[Range], Any]) -> Callable[[Sequence[Entry], Range, pa.DataType], pa.Array]:
    def build(found: Sequence[Entry], wanted: Range, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value_of(wanted), kind), len(found))

    return build


_COLUMNS: dict[str, Callable[[Sequence[Entry], Range, pa.DataType], pa.Array]] = {
    "workspace_id": _constant(lambda wanted: wanted.workspace_id),
    "stream_id": _constant(lambda wanted: wanted.stream_id),
    "stream": _constant(lambda wanted: wanted.stream),
    "offset": _offsets,
    "timestamp": _timestamps,
    "id": _ids,
    "key": _keys,
    "headers": _headers,
    "body": _bodies,
    "bytes": _sizes,
}
