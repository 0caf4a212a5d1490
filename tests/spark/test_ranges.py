"""Shares of a micro-batch, and the split into tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.ranges import Range, admit, pack

COUNTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 5000), max_size=8)


def ranges_of(counts: dict[str, int]) -> list[Range]:
    return [
        Range(workspace_id=1, stream_id=name, stream=name, first=10, last=9 + count)
        for name, count in counts.items()
    ]


def test_without_a_limit_everything_is_admitted() -> None:
    assert admit({"a": 5}, {"a": 9, "b": 3}, limit=None) == {"a": 9, "b": 3}


def test_a_deleted_stream_leaves() -> None:
    assert admit({"a": 5, "gone": 7}, {"a": 5}, limit=10) == {"a": 5}


def test_an_offset_never_goes_back() -> None:
    assert admit({"a": 50}, {"a": 9}, limit=None) == {"a": 50}


def test_a_short_queue_is_read_beside_one_that_stays_long() -> None:
    start, latest = {"big": 0, "small": 0}, {"big": 1_000_000, "small": 1}
    assert admit(start, latest, limit=1000) == {"big": 999, "small": 1}


def test_of_more_streams_than_a_batch_has_offsets_each_is_read_sometime() -> None:
    names = [f"s{n}" for n in range(10)]
    start, latest = dict.fromkeys(names, 0), dict.fromkeys(names, 5) | {"s0": 1_000}
    for _ in range(4):
        latest["s0"] += 3
        start = admit(start, latest, limit=3)
    assert all(start.values())


@pytest.mark.long
@given(start=COUNTS, latest=COUNTS, limit=st.integers(1, 6000))
def test_a_limit_is_kept_and_used_whole(start: dict[str, int], latest: dict[str, int], limit: int) -> None:
    admitted = admit(start, latest, limit=limit)
    waiting = {name: max(0, last - start.get(name, 0)) for name, last in latest.items()}
    taken = {name: admitted[name] - start.get(name, 0) for name in latest}
    assert all(0 <= taken[name] <= waiting[name] for name in latest)
    assert sum(taken.values()) == min(limit, sum(waiting.values()))


@pytest.mark.long
@given(counts=COUNTS, rows=st.integers(1, 3000), partitions=st.integers(1, 12))
def test_tasks_cover_every_offset_once_and_in_order(
    counts: dict[str, int], rows: int, partitions: int
) -> None:
    tasks = pack(ranges_of(counts), rows=rows, partitions=partitions)
    covered = [
        (part.stream_id, n) for task in tasks for part in task for n in range(part.first, part.last + 1)
    ]
    assert covered == [(name, 10 + n) for name, count in counts.items() for n in range(count)]


@pytest.mark.long
@given(counts=COUNTS, rows=st.integers(1, 3000), partitions=st.integers(1, 12))
def test_tasks_are_as_many_and_as_large_as_asked(counts: dict[str, int], rows: int, partitions: int) -> None:
    tasks = pack(ranges_of(counts), rows=rows, partitions=partitions)
    total = sum(counts.values())
    assert all(sum(part.offsets for part in task) <= rows for task in tasks)
    assert len(tasks) >= min(total, partitions)


def test_many_short_streams_share_a_task() -> None:
    tasks = pack(ranges_of({f"s{n}": 2 for n in range(500)}), rows=1000, partitions=1)
    assert [len(task) for task in tasks] == [500]
