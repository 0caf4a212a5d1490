"""Pages of entries into record batches, without a Spark session."""

import gc
from collections.abc import Generator
from dataclasses import replace

import pytest

from spark import reading, schemas
from spark.options import parse
from spark.positions import archive_backlog, positions
from spark.ranges import Range
from spark.readers import OffsetRanges, OkmqStreamReader
from spark.reading import DataLossError, StreamDeletedError, batches
from spark.source import OkmqDataSource
from streams.log import config, removals, trim, undo
from streams.log.entries import NewMessage
from tests.spark.published import Published
from tests.waiting import until

ARROW = schemas.arrow(schemas.MESSAGES)


def whole(published: Published, stream_id: str, last: int) -> Range:
    return Range(workspace_id=published.workspace_id, stream_id=stream_id, stream="s", first=1, last=last)


def offsets(published: Published, wanted: Range, *, archive: bool = False, strict: bool = True) -> list[int]:
    found = batches(published.log, wanted, schema=ARROW, archive=archive, strict=strict)
    return [offset for batch in found for offset in batch["offset"].to_pylist()]


def test_large_bodies_come_in_batches_of_bounded_size(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH_BYTES", 300_000)
    monkeypatch.setattr(reading, "PAGE_BYTES", 300_000)
    stream = published.stream("large")
    last = published.publish(
        stream, (NewMessage(id=f"{n}", body=b'"%s"' % (b"x" * 100_000)) for n in range(40))
    )
    sizes = [
        sum(batch["bytes"].to_pylist())
        for batch in batches(
            published.log, whole(published, stream, last), schema=ARROW, archive=True, strict=True
        )
    ]
    assert sum(sizes) == 40 * 100_002
    assert max(sizes) <= 2 * 300_000


def test_an_answer_that_stops_at_its_size_limit_is_read_on(published: Published) -> None:
    stream = published.stream("large")
    body = b'"%s"' % (b"x" * 3_000_000)
    last = published.publish(stream, [NewMessage(id="small", body=b"1")])
    for n in range(14):
        last = published.publish(stream, [NewMessage(id=f"{n}", body=body)])
    assert offsets(published, whole(published, stream, last)) == list(range(1, 16))


def test_gaps_are_passed_over(published: Published) -> None:
    stream = published.stream("s")
    last = published.numbered(stream, 2500)
    published.delete(stream, [2, 3, 999, 1000, 1001, 2499])
    missing = {2, 3, 999, 1000, 1001, 2499}
    assert offsets(published, whole(published, stream, last)) == [
        n for n in range(1, 2501) if n not in missing
    ]


def test_offsets_that_went_are_an_error_to_a_strict_reader_and_a_warning_to_others(
    published: Published, caplog: pytest.LogCaptureFixture
) -> None:
    stream = published.stream("s")
    last = published.numbered(stream, 20)
    published.log.run(trim.purge(stream, below=6))
    wanted = whole(published, stream, last)
    assert offsets(published, wanted, strict=False) == list(range(6, 21))
    (said,) = [record.getMessage() for record in caplog.records if record.name == "spark.reading"]
    assert said.startswith("Stream 's': offsets 1 to 5 are no longer there")
    with pytest.raises(DataLossError, match="1 to 5"):
        offsets(published, wanted)


def test_what_newer_messages_of_a_key_pushed_out_is_seen_by_the_archive_only(published: Published) -> None:
    stream = published.stream("s", max_messages_per_key=2)
    published.publish(stream, [NewMessage(id="without a key", body=b"1")])
    last = published.numbered(stream, 30, key="k")
    wanted = whole(published, stream, last)
    assert offsets(published, wanted) == [1, 26, 27, 28, 29, 30, 31]
    assert offsets(published, wanted, archive=True) == list(range(1, 32))


def test_a_streaming_read_of_a_stream_that_is_deleted_meanwhile_fails_or_says_so(
    published: Published, caplog: pytest.LogCaptureFixture
) -> None:
    stream = published.stream("s")
    published.numbered(stream, 20)
    strict, lenient = (
        OkmqStreamReader(parse(published.options(failOnDataLoss=word)), ARROW) for word in ("true", "false")
    )
    (part,) = strict.partitions({stream: 5}, {stream: 20})
    published.remove("s")
    with pytest.raises(StreamDeletedError, match="'s' was deleted while offsets 6 to 20 were read"):
        list(strict.read(part))
    assert list(lenient.read(part)) == []
    assert "Stream 's' was deleted while offsets 6 to 20 were read; reading on" in caplog.text


def test_a_stream_that_is_deleted_while_it_is_read_is_said_so(published: Published) -> None:
    stream = published.stream("s")
    last = published.numbered(stream, 20)
    published.remove("s")
    with pytest.raises(StreamDeletedError):
        offsets(published, whole(published, stream, last))
    assert offsets(published, whole(published, stream, last), archive=True) == []


def test_the_archive_sees_what_a_limit_hid_but_not_what_a_person_took(published: Published) -> None:
    stream = published.stream("s")
    last = published.numbered(stream, 20)
    published.delete(stream, [15])
    published.stream("s", max_messages=4)
    published.log.run(trim.apply_limits(stream))
    wanted = whole(published, stream, last)
    assert offsets(published, wanted, strict=False) == [17, 18, 19, 20]
    assert offsets(published, wanted, archive=True) == [n for n in range(1, 21) if n != 15]
    published.log.run(trim.purge(stream, below=19))
    assert offsets(published, wanted, archive=True) == [*(n for n in range(1, 17) if n != 15), 19, 20]


def test_the_archive_goes_on_at_what_a_limit_took_before_a_person_took_the_rest(published: Published) -> None:
    stream = published.stream("s", max_messages=10)
    last = published.numbered(stream, 100)
    published.log.run(trim.purge(stream))
    published.numbered(stream, 5, prefix="on")

    def earliest() -> int:
        return published.log.run(positions([stream]))[stream].next_offset(archive=True)

    assert earliest() == 1
    assert published.log.run(archive_backlog()) == 105
    wanted = whole(published, stream, last + 5)
    assert offsets(published, wanted, archive=True) == [*range(1, 91), *range(101, 106)]
    published.log.run(config.archived_set(stream, 89))
    assert earliest() == 90
    published.log.run(config.archived_set(stream, 90))
    assert earliest() == 101
    assert offsets(published, replace(wanted, first=91), archive=True) == list(range(101, 106))


def test_the_archive_of_a_log_that_has_less_than_the_history_waits_for_it_to_catch_up(
    published: Published,
) -> None:
    stream = published.stream("s")
    published.numbered(stream, 20)
    published.log.run(config.archived_set(stream, 60))
    reader = OkmqDataSource(published.options("*", view="archive")).streamReader(schemas.MESSAGES)
    assert reader.initialOffset() == {stream: 60}
    assert published.log.run(archive_backlog()) == 0


def test_the_archive_goes_up_to_what_was_removed_and_can_come_back(published: Published) -> None:
    stream = published.stream("s")
    published.numbered(stream, 100)
    published.log.run(config.archived_set(stream, 40))

    def ready() -> int:
        return published.log.run(positions([stream]))[stream].last_offset(archive=True)

    def removed(*named: int) -> int:
        _, number = published.log.run(removals.delete(stream, named, keep_ms=3_600_000, facts={}))
        assert number
        return number

    removed(10, 30)
    assert ready() == 100, "the history has them"
    singles = removed(20, 39, 70, 80)
    assert ready() == 69
    assert published.log.run(archive_backlog()) == 29
    published.log.run(config.archived_set(stream, 69))
    assert published.log.run(archive_backlog()) == 0
    _, purged = published.log.run(removals.purge(stream, below=91, keep_ms=3_600_000, facts={}))
    assert purged
    published.log.run(undo.undo(stream, purged))
    assert ready() == 69
    published.log.run(undo.undo(stream, singles))
    assert ready() == 100
    _, purged = published.log.run(removals.purge(stream, below=91, keep_ms=3_600_000, facts={}))
    assert purged
    assert ready() == 69
    published.log.run(undo.end(stream, purged))
    assert ready() == 100
    assert offsets(published, whole(published, stream, 100), archive=True) == list(range(91, 101))


def test_what_is_older_than_the_stream_allows_is_hidden(published: Published) -> None:
    stream = published.stream("s")
    last = published.numbered(stream, 5)
    wanted = whole(published, stream, last)
    published.stream("s", ttl=1)
    # Nobody has applied the limit: the reader sees by itself that the age has come.
    until(lambda: offsets(published, wanted) == [], within_s=5)
    assert offsets(published, wanted, archive=True) == [1, 2, 3, 4, 5]


def test_what_has_expired_is_hidden_though_it_is_still_there(published: Published) -> None:
    stream = published.stream("s")
    last = published.publish(stream, [NewMessage(id="a", body=b"1"), NewMessage(id="b", body=b"2", ttl_s=1)])
    wanted = whole(published, stream, last)
    assert offsets(published, wanted) == [1, 2]
    until(lambda: offsets(published, wanted) == [1], within_s=5)
    assert offsets(published, wanted, archive=True) == [1, 2]


def test_a_task_has_the_collector_off_while_it_reads_and_gives_it_back(published: Published) -> None:
    stream = published.stream("s")
    last = published.numbered(stream, 100)
    reader = OkmqDataSource(published.options("s")).reader(schemas.MESSAGES)
    task = OffsetRanges((whole(published, stream, last),))
    reading_on = reader.read(task)
    assert isinstance(reading_on, Generator)
    next(reading_on)
    assert not gc.isenabled()
    reading_on.close()
    assert gc.isenabled()
    assert sum(len(batch) for batch in reader.read(task)) == 100
    assert gc.isenabled()
