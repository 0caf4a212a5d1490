import pytest

from streams.log import entries, read, search, trim
from streams.log.append import append
from streams.log.client import Log, Op
from streams.log.entries import Entry
from streams.log.search import Slice
from tests.streams.log.messages import fill, message


def run(log: Log, stream: str, *, start: int = 0, stop: int | None = None, **how: object) -> Slice:
    def op() -> Op[Slice]:
        at = yield from read.position(stream)
        return (yield from search.search(stream, at, start=start, stop=stop, **how))  # type: ignore[arg-type]

    return log.run(op())


def offsets(found: Slice) -> list[int]:
    return [entries.position(entry)[0] for entry in found.found]


def every_third(entry: Entry) -> bool:
    return entries.position(entry)[0] % 3 == 0


def test_a_page_reads_as_many_as_it_gives_and_tells_what_is_left(log: Log, stream: str) -> None:
    fill(log, stream, 10)
    found = run(log, stream, limit=4)
    assert (offsets(found), found.scanned, found.rest) == ([1, 2, 3, 4], 4, (5, 11))
    found = run(log, stream, limit=4, newest_first=True)
    assert (offsets(found), found.scanned, found.rest) == ([10, 9, 8, 7], 4, (1, 7))


@pytest.mark.parametrize("newest_first", [False, True])
def test_slices_put_together_find_every_match_once_and_look_at_each_message_once(
    log: Log, stream: str, newest_first: bool
) -> None:
    fill(log, stream, 100)
    log.run(trim.delete(stream, [30, 31, 60]))
    rest: tuple[int, int] | None = (0, 101)
    found, scanned = [], 0
    while rest is not None:
        slice_ = run(
            log,
            stream,
            start=rest[0],
            stop=rest[1],
            limit=4,
            wanted=every_third,
            newest_first=newest_first,
            most=17,
        )
        assert slice_.scanned <= 17
        found += offsets(slice_)
        scanned += slice_.scanned
        rest = slice_.rest
    expected = [n for n in range(3, 101, 3) if n not in (30, 60)]
    assert found == (expected[::-1] if newest_first else expected)
    assert scanned == 97


def test_a_search_ends_after_its_time_and_goes_on_from_there(log: Log, stream: str) -> None:
    fill(log, stream, 3000)
    found = run(log, stream, limit=10, wanted=lambda entry: False, seconds=0)
    assert found.scanned < 3000
    assert found.rest == (found.scanned + 1, 3001)


def test_what_has_expired_is_neither_found_nor_counted(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1), message(2), message(3)]))
    log.run(trim.purge(stream, below=3))
    found = run(log, stream, limit=10, wanted=lambda entry: True)
    assert (offsets(found), found.scanned, found.rest) == ([3], 1, None)


def test_counts_between_offsets_leave_out_single_deletions(log: Log, stream: str) -> None:
    fill(log, stream, 100)
    log.run(trim.delete(stream, [10, 20, 55]))
    assert log.run(search.counts_between(stream, [1, 11, 51, 101])) == [9, 39, 49]
    assert log.run(search.counts_between(stream, [7])) == []


def test_each_time_has_the_first_offset_at_or_after_it(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    (first,) = run(log, stream, limit=1).found
    at_ms = entries.position(first)[1]
    assert log.run(search.offsets_at(stream, [0, at_ms, at_ms + 3_600_000])) == [1, 1, 4]
