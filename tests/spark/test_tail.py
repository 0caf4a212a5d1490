"""What a query reads from the log, while the history goes on and people purge; without a Spark session."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from spark import reading, schemas
from spark.rereading import HistoryMovedOn
from spark.tail import TailRange, TailReader
from streams.log import config, removals, trim, undo
from tests.spark.published import Published

ARROW = schemas.arrow(schemas.MESSAGES)
FOR_A_WHILE: dict[str, Any] = {"keep_ms": 3_600_000, "facts": {}}


def tail(
    published: Published, stream_id: str, first: int, last: int, *, archived: int = 0
) -> Iterator[pa.RecordBatch]:
    wanted = TailRange(
        workspace_id=published.workspace_id,
        stream_id=stream_id,
        stream="s",
        first=first,
        last=last,
        archived=archived,
        archive=True,
    )
    reader = TailReader({"url": published.url, "ranges": msgspec.json.encode([wanted]).decode()}, ARROW)
    for partition in reader.partitions():
        yield from reader.read(partition)


def offsets(found: Iterator[pa.RecordBatch]) -> list[int]:
    return [offset for batch in found for offset in batch["offset"].to_pylist()]


def test_what_a_person_purged_is_missing_in_silence(published: Published) -> None:
    stream = published.stream("s")
    published.numbered(stream, 30)
    published.log.run(trim.purge(stream, below=21))
    assert offsets(tail(published, stream, 1, 30)) == list(range(21, 31))


@pytest.mark.parametrize("purged", [{"below": 21}, {"keep": 0}])
def test_what_went_into_the_history_and_was_purged_then_is_no_silent_gap(
    published: Published, purged: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_ROWS", 1)
    monkeypatch.setattr(reading, "PAGE_BYTES", 200)
    stream = published.stream("s")
    published.numbered(stream, 30)
    found = tail(published, stream, 1, 30)
    assert offsets(iter([next(found)]))[0] == 1
    published.log.run(config.archived_set(stream, 30))
    published.log.run(trim.purge(stream, **purged))
    with pytest.raises(HistoryMovedOn):
        offsets(found)


def test_what_was_removed_and_can_come_back_is_not_seen(published: Published) -> None:
    stream = published.stream("s")
    published.numbered(stream, 30)
    published.log.run(removals.purge(stream, below=6, **FOR_A_WHILE))
    _, number = published.log.run(removals.delete(stream, [10, 12], **FOR_A_WHILE))
    assert number
    left = [n for n in range(6, 31) if n not in {10, 12}]
    assert offsets(tail(published, stream, 1, 30)) == left
    published.log.run(undo.undo(stream, number))
    assert offsets(tail(published, stream, 1, 30)) == list(range(6, 31))


def test_what_went_into_the_history_and_was_removed_for_a_while_then_is_no_silent_gap(
    published: Published,
) -> None:
    stream = published.stream("s")
    published.numbered(stream, 30)
    published.log.run(config.archived_set(stream, 30))
    published.log.run(removals.delete(stream, [10], **FOR_A_WHILE))
    with pytest.raises(HistoryMovedOn):
        offsets(tail(published, stream, 1, 30))
