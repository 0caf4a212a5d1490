"""How much may come before a limit takes the oldest message that a group has not acknowledged."""

import pytest

from streams.log import dead_letters, groups, standing, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Settings
from streams.log.standing import GroupState
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import fill, message

HOUR_S = 3600


def stands(log: Log, stream: str) -> GroupState:
    return log.run(standing.inspect(stream, "g"))


def rooms(log: Log, stream: str) -> tuple[int | None, int | None]:
    state = stands(log, stream)
    return state.room_messages, state.room_bytes


def taken(log: Log, stream: str, count: int, **settings: int) -> str:
    """The group g has so many messages out; eight of ten bytes are stored."""
    log.run(groups.group_publish(stream, "g", Settings(**settings)))  # type: ignore[arg-type]
    fill(log, stream, 8, body=b"1234567890")
    log.run(groups.fetch(stream, "g", limit=count))
    return stream


def test_the_room_is_what_the_limits_leave_from_the_oldest_open_message_on(
    log: Log, make_stream: MakeStream
) -> None:
    stream = taken(log, make_stream(max_messages=10, max_bytes=90), 3)
    assert rooms(log, stream) == (2, 10)
    log.run(groups.ack(stream, "g", "offsets", [1, 2]))
    assert rooms(log, stream) == (4, 30)
    log.run(trim.delete(stream, [5]))
    assert rooms(log, stream) == (5, 40)
    log.run(groups.ack(stream, "g", "offsets", [3]))
    assert rooms(log, stream) == (6, 50)
    state = stands(log, stream)
    assert (state.max_messages, state.max_bytes, state.offset, state.appended_bytes) == (10, 90, 8, 80)


@pytest.mark.parametrize("settings", [{}, {"max_messages": 10, "max_bytes": 90, "discard": "new"}])
def test_there_is_no_edge_where_nothing_is_pushed_out(
    log: Log, make_stream: MakeStream, settings: dict[str, object]
) -> None:
    assert rooms(log, taken(log, make_stream(**settings), 3)) == (None, None)


def test_a_replayed_dead_letter_is_not_threatened(log: Log, make_stream: MakeStream) -> None:
    stream = taken(log, make_stream(max_messages=10, ttl=HOUR_S), 8)
    log.run(groups.term(stream, "g", "offsets", [1], reason="bad"))
    log.run(groups.ack(stream, "g", "offsets", range(2, 8)))
    log.run(dead_letters.replay(stream, "g", [1]))
    assert rooms(log, stream) == (9, None)
    log.run(groups.ack(stream, "g", "offsets", [8]))
    state = stands(log, stream)
    assert (state.ack_pending, state.room_messages, state.edge_ms) == (1, None, None)
    fill(log, stream, 1, first=9)
    assert rooms(log, stream) == (9, None)
    assert (stands(log, stream).edge_ms or 0) > (HOUR_S - 60) * 1000


def test_what_waits_for_its_key_is_threatened(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=10)
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True)))
    log.run(append(stream, [message(n, key="a") for n in range(1, 5)]))
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(groups.ack(stream, "g", "offsets", [1]))
    assert rooms(log, stream) == (7, None)
