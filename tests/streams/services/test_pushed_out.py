"""What a stream's limits take for messages that are published into it again: said before, and so it is."""

from datetime import UTC, datetime
from typing import Any

import pytest

from streams import store
from streams.access import SYSTEM
from streams.log import config, groups, standing, trim
from streams.log.append import append
from streams.log.errors import LogError
from streams.log.read import position
from streams.models import Group, Replay, ReplayState, Rollup, Stream
from streams.selectors.gone import gone_behind
from streams.selectors.pushed_out import PushedOut, pushed_out, pushed_out_by
from streams.services.groups import group_create
from streams.services.streams import stream_change
from tests.streams.log.messages import message

pytestmark = pytest.mark.django_db(transaction=True)

HELD = 20
SIZE = 3


@pytest.fixture
def stream(stream: Stream) -> Stream:
    """Twenty messages of the keys k.0 to k.3; one group has the first five, another takes one key and has nothing."""
    group_create(stream, name="all", settings={}, actor=SYSTEM)
    group_create(stream, name="some", settings={"filter_keys": ["k.0"]}, actor=SYSTEM)
    publish(stream, HELD)
    store.log().run(groups.fetch(stream.stream_id, "all", limit=5))
    store.log().run(groups.ack(stream.stream_id, "all", "up_to", [5]))
    return stream


def publish(stream: Stream, count: int, *, first: int = 10) -> None:
    bodies = [message(n, key=f"k.{n % 4}", body=b"123") for n in range(first, first + count)]
    store.log().run(append(stream.stream_id, bodies))


def lost(stream: Stream, group: str) -> int:
    return store.log().run(standing.inspect(stream.stream_id, group)).lost


@pytest.mark.parametrize("count", [1, 9, 15, 25, 60])
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_messages": 24},
        {"max_messages": 20},
        {"max_bytes": 22 * SIZE},
        {"max_messages": 30, "max_bytes": 20 * SIZE + 1},
    ],
)
def test_what_goes_is_what_was_said(stream: Stream, limits: dict[str, Any], count: int) -> None:
    stream = stream_change(stream, changes=limits, actor=SYSTEM)
    told = pushed_out(stream, messages=count, size_bytes=count * SIZE)
    publish(stream, count, first=100)
    store.log().run(trim.apply_limits(stream.stream_id))
    first = store.log().run(position(stream.stream_id)).floor
    assert (told.messages, told.arriving) == (min(HELD, first - 1), max(0, first - 1 - HELD))
    assert (told.bytes, told.refused, told.reason) == (SIZE * told.messages, 0, None)
    assert told.unread.get("all", 0) == lost(stream, "all") - told.arriving
    of_its_key = sum(1 for n in range(told.arriving) if n % 4 == 0)
    assert told.unread.get("some", 0) == lost(stream, "some") - of_its_key


@pytest.mark.parametrize("limits", [{"max_messages": 24}, {"max_bytes": 26 * SIZE}, {}])
def test_a_full_stream_refuses_as_many_as_was_said(stream: Stream, limits: dict[str, Any]) -> None:
    stream = stream_change(stream, changes={**limits, "discard": "new"}, actor=SYSTEM)
    told = pushed_out(stream, messages=10, size_bytes=10 * SIZE)
    refused = 0
    for n in range(10):
        try:
            publish(stream, 1, first=100 + n)
        except LogError:
            refused += 1
    assert told == PushedOut(refused=refused)


def test_a_slow_one_loses_its_first_part_to_the_age_limit(stream: Stream) -> None:
    stream = stream_change(stream, changes={"ttl": 60}, actor=SYSTEM)
    assert pushed_out(stream, messages=1_000, size_bytes=1_000, rate=10) == PushedOut(arriving=400)
    assert pushed_out(stream, messages=1_000, size_bytes=1_000) == PushedOut()


def test_a_limit_a_key_is_named_and_not_counted(stream: Stream) -> None:
    stream = stream_change(stream, changes={"max_messages_per_key": 10}, actor=SYSTEM)
    told = pushed_out(stream, messages=3, size_bytes=3)
    assert (told.messages, told.per_key, told.reason) == (0, 10, "per_key")
    assert told.takes_something
    assert not pushed_out(stream, messages=0, size_bytes=0).takes_something


def test_a_replay_says_it_of_what_is_left_of_it_while_it_waits(stream: Stream) -> None:
    stream = stream_change(stream, changes={"max_messages": 25}, actor=SYSTEM)
    replay = Replay.objects.create(
        workspace=stream.workspace,
        source="orders",
        source_id=stream.stream_id,
        target="orders",
        target_id=stream.stream_id,
        total=40,
        total_bytes=40 * SIZE,
        stored=20,
        duplicates=10,
        state=ReplayState.PAUSED,
    )
    assert pushed_out_by(replay) == PushedOut(messages=5, bytes=5 * SIZE, unread={"some": 1})
    replay.stored = replay.duplicates = 0
    told = pushed_out_by(replay)
    assert told is not None
    assert (told.messages, told.arriving, told.unread) == (20, 15, {"all": 15, "some": 5})
    replay.state = ReplayState.RUNNING
    assert pushed_out_by(replay) is None
    replay.state, replay.target_id = ReplayState.READY, "deleted"
    assert pushed_out_by(replay) is None


def test_a_replay_for_a_group_pushes_nothing_out(stream: Stream) -> None:
    stream = stream_change(stream, changes={"max_messages": 25}, actor=SYSTEM)
    replay = Replay(
        workspace=stream.workspace,
        source="orders",
        source_id=stream.stream_id,
        target="orders",
        target_id=stream.stream_id,
        group="all",
        total=40,
        total_bytes=40 * SIZE,
        state=ReplayState.READY,
    )
    told = pushed_out_by(replay)
    assert told is not None
    assert not told.takes_something


def test_a_seek_to_a_time_takes_off_what_the_history_counted_before_it(stream: Stream) -> None:
    stream = stream_change(stream, changes={"max_messages": 12}, actor=SYSTEM)
    store.log().run(trim.apply_limits(stream.stream_id))
    store.log().run(config.archived_set(stream.stream_id, 20))
    moment = datetime(2026, 1, 5, 10, 30, 30, tzinfo=UTC)
    counted = [("day", 4, 0, 0, 3), ("hour", 5, 9, 0, 1), ("minute", 5, 10, 29, 1), ("minute", 5, 10, 30, 2)]
    for step, day, hour, minute, messages in counted:
        start = datetime(2026, 1, day, hour, minute, tzinfo=UTC)
        Rollup.objects.create(stream_id=stream.stream_id, step=step, start=start, messages=messages, bytes=1)
    found = gone_behind(Group.objects.get(stream=stream, name="all"), "timestamp", timestamp=moment)
    assert found is not None
    assert found.messages == 8 - 5
    found = gone_behind(Group.objects.get(stream=stream, name="all"), "offset", offset=3)
    assert found is not None
    assert found.messages == 6
