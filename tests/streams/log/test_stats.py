"""What is told of many streams at once is what is told of each."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from streams.log import commit, stats, trim
from streams.log.append import append
from streams.log.client import Log
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import fill, message
from tests.waiting import until

Do = Callable[[Log, str], object]


def nothing(log: Log, stream: str) -> None: ...


def commits(log: Log, stream: str) -> None:
    log.run(commit.commit(stream, 3))


def purges_and_publishes_again(log: Log, stream: str) -> None:
    log.run(trim.purge(stream, below=4))
    fill(log, stream, 3)  # known ids: counted as duplicates
    commits(log, stream)


def deletes(log: Log, stream: str) -> None:
    log.run(trim.delete(stream, [1, 4]))


def lets_one_expire(log: Log, stream: str) -> None:
    log.run(append(stream, [message(99, ttl_s=1), message(100)]))
    until(lambda: log.run(stats.inspect(stream)).messages == 6, within_s=5)


@pytest.mark.parametrize(
    ("settings", "do"),
    [
        ({}, nothing),
        ({}, commits),
        ({}, purges_and_publishes_again),
        ({}, deletes),
        ({}, lets_one_expire),
        ({"max_messages": 2}, commits),
        ({"max_messages_per_key": 1}, nothing),
        ({"ttl": 60}, commits),
    ],
)
def test_the_counters_say_what_a_close_look_says(
    log: Log, make_stream: MakeStream, settings: dict[str, int], do: Do
) -> None:
    stream, other = make_stream(**settings), make_stream()
    fill(log, stream, 3)
    log.run(append(stream, [message(4, key="a"), message(5, key="a")]))
    do(log, stream)
    closely = log.run(stats.inspect(stream))
    counted = log.run(stats.counted([other, stream, "gone"]))
    assert counted.keys() == {other, stream}
    again = log.run(stats.counted_again([other, stream, "gone"], {}))
    assert again.keys() == {other, stream}
    told = [field for field in stats.Counted.__struct_fields__ if field not in ("first_ms", "is_bounded")]
    for field in told:
        assert getattr(counted[stream], field) == getattr(closely, field), field
        assert getattr(again[stream], field) == getattr(closely, field), field
    assert again[stream].first_ms == closely.first_ms
    assert (
        counted[other]
        == again[other]
        == stats.Counted(0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, None, is_bounded=False)
    )


def test_the_time_of_the_first_message_is_told_where_messages_go_by_age(
    log: Log, make_stream: MakeStream
) -> None:
    aged, lasting = make_stream(ttl=60), make_stream()
    for stream in (aged, lasting):
        fill(log, stream, 1)
    counted = log.run(stats.counted([aged, lasting]))
    assert counted[aged].first_ms == log.run(stats.inspect(aged)).first_ms
    assert counted[lasting].first_ms is None


def test_the_time_of_the_first_message_is_kept_while_it_is_the_first(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream()
    fill(log, stream, 3)
    before = log.run(stats.counted_again([stream], {}))
    invented = {stream: msgspec.structs.replace(before[stream], first_ms=7)}
    assert log.run(stats.counted_again([stream], invented))[stream].first_ms == 7
    log.run(trim.purge(stream, below=3))
    assert log.run(stats.counted_again([stream], invented))[stream].first_ms == before[stream].last_ms
    log.run(trim.purge(stream))
    emptied = log.run(stats.counted_again([stream], invented))
    assert emptied[stream].first_ms is emptied[stream].last_ms is None
    fill(log, stream, 1, first=4)
    again = log.run(stats.counted_again([stream], emptied))[stream]
    assert again.first_ms == again.last_ms == log.run(stats.inspect(stream)).last_ms


@pytest.mark.parametrize(
    "settings",
    [
        {"ttl": 60},
        {"max_messages": 9},
        {"max_bytes": 9},
        {"max_messages_per_key": 9},
        {"retention": "interest"},
    ],
)
def test_a_stream_with_a_limit_is_one_to_look_after(
    log: Log, make_stream: MakeStream, settings: dict[str, Any]
) -> None:
    bounded, free = make_stream(**settings), make_stream()
    counted = log.run(stats.counted([bounded, free]))
    assert (counted[bounded].is_bounded, counted[free].is_bounded) == (True, False)


def test_refusals_stand_in_the_place_of_their_replies(log: Log, make_stream: MakeStream) -> None:
    """And the connection goes on with the next call."""
    here = make_stream()
    assert list(log.run(stats.inspect_many([here, "gone"]))) == [here]
    assert log.run(stats.inspect(here)).messages == 0
