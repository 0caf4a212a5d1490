"""Ages of messages: nobody is told that one is over before its time, wherever the clock of the server is set."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import pytest

from streams.log import (
    append,
    config,
    dead_letters,
    groups,
    keys,
    preview,
    read,
    removals,
    search,
    standing,
    stats,
    trim,
    undo,
)
from streams.log.client import Log
from streams.log.clock import JUMPS_KEPT, STEP_MS, Times, jumps_noted
from streams.log.groups import Settings
from tests.streams.log.clocks import Faked, skew_ms, steady, used_to
from tests.streams.log.messages import message, offsets
from tests.waiting import until

TTL_S = 4
EARLY_S = STEP_MS / 1000
"""By so much, at most, an end may be seen before its time after a jump: the clock is not known better."""

JUMPS_S = (3600, -3600, 86_400, -86_400)


@dataclass(frozen=True)
class Aging:
    """Two streams with a group each: the one has an age limit, in the other each message has a time to live."""

    log: Log
    aged: str
    timed: str

    def publish(self, *numbers: int) -> float:
        """Publish messages of these numbers to both; when, by a clock that nobody sets."""
        began = time.monotonic()
        for number in numbers:
            self.log.run(append.append(self.aged, [message(number)]))
            self.log.run(append.append(self.timed, [message(number, ttl_s=TTL_S)]))
        return began

    @property
    def both(self) -> tuple[str, str]:
        return self.aged, self.timed


def aging(log: Log) -> Aging:
    made = []
    for name, more in (("aged", {"ttl": TTL_S}), ("timed", {})):
        stream = config.Registered(
            stream_id=keys.stream_id(), name=name, workspace="w", workspace_id=1, archive=False
        )
        settings = {"dedup_window": 60, "max_message_bytes": 1000, "discard": "old", **more}
        log.run(config.stream_publish(stream, settings))
        log.run(groups.group_publish(stream.stream_id, "g", Settings()))
        made.append(stream.stream_id)
    return Aging(log, *made)


def tended(log: Log, stream: str) -> None:
    """What the worker does for a stream again and again."""
    log.run(trim.due([stream]))
    log.run(trim.apply_limits(stream))
    log.run(trim.expire(stream))
    log.run(trim.drop(stream, hold_ms=0))


def counted(log: Log, stream: str) -> set[int]:
    """How many messages there are for everybody who looks or counts in another way."""
    tended(log, stream)
    at = log.run(read.position(stream))
    found = log.run(search.search(stream, at, start=1, stop=None, limit=100)).found
    last = log.run(read.backward(stream, at, at.last + 1, 100))
    group = log.run(standing.inspect(stream, "g"))
    held = log.run(stats.inspect(stream))
    would_go = log.run(preview.preview(stream, {}, {}, purge=preview.Purge()))
    return {len(found), len(last), group.lag, held.messages, would_go.messages, len(offsets(log, stream))}


def all_there_until(due: float, log: Log, streams: Sequence[str], numbers: int) -> None:
    """Everybody sees so many messages as long as they are due later, by more than a clock that was set may be off;
    at least one look ends before that.
    """
    looks, due = 0, due - EARLY_S
    while True:
        seen = [counted(log, stream) for stream in streams]
        if time.monotonic() >= due:
            break
        assert seen == [{numbers}] * len(streams)
        looks += 1
    assert looks, "too slow a machine to see anything"


def gone(log: Log, streams: Sequence[str], *numbers: int) -> Callable[[], bool]:
    """Whether nobody is shown these any more."""
    return lambda: all(set(numbers).isdisjoint(offsets(log, stream)) for stream in streams)


@pytest.mark.parametrize("is_noted", [False, True], ids=["at once", "noted"])
@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_a_jump_takes_nothing_before_its_time(faked: Faked, jump_s: int, is_noted: bool) -> None:
    worker, publisher = used_to(faked.connect(keeps_clock=True)), used_to(faked.connect())
    streams = aging(publisher)
    first = streams.publish(1, 2)
    if is_noted:
        faked.set_clock_noted(jump_s, worker)
        reader = faked.connect()  # another process, which has never seen the clock right
    else:
        faked.set_clock(jump_s)
        reader = publisher
    second = streams.publish(3)
    all_there_until(first + TTL_S, reader, streams.both, 3)
    if jump_s > 0:
        until(gone(reader, streams.both, 1, 2))
    else:  # timestamps of both are the same; what has a time of its own ends by that
        until(gone(reader, [streams.timed], 1, 2))
        assert len(offsets(reader, streams.aged)) == 3
    assert time.monotonic() >= first + TTL_S - EARLY_S
    until(gone(reader, [streams.timed], 3))
    assert time.monotonic() >= second + TTL_S - EARLY_S
    if jump_s > 0 and is_noted:
        until(gone(reader, [streams.aged], 3))
        assert time.monotonic() >= second + TTL_S - EARLY_S
    for each in {worker, publisher, reader}:
        each.close()


def test_jumps_forth_and_back_take_nothing_before_its_time(faked: Faked) -> None:
    worker, publisher = used_to(faked.connect(keeps_clock=True)), used_to(faked.connect())
    streams = aging(publisher)
    first = streams.publish(1)
    faked.set_clock_noted(-86_400, worker)
    streams.publish(2)
    faked.set_clock_noted(3600, worker)
    streams.publish(3)
    faked.set_clock_noted(0, worker)
    streams.publish(4)
    with closing(faked.connect()) as late:
        all_there_until(first + TTL_S, late, streams.both, 4)
        until(gone(late, [streams.timed], 1, 2, 3, 4))
    for each in (worker, publisher):
        each.close()


def test_what_a_member_has_and_what_died_goes_on_after_a_jump(faked: Faked) -> None:
    worker, member = used_to(faked.connect(keeps_clock=True)), used_to(faked.connect())
    streams = aging(member)
    for stream in streams.both:
        member.run(groups.group_publish(stream, "g", Settings(max_deliver=1, ack_wait_ms=1000)))
    first = streams.publish(1)
    for stream in streams.both:
        assert len(member.run(groups.fetch(stream, "g", limit=1)).deliveries) == 1
    faked.set_clock(86_400)
    assert time.monotonic() < first + TTL_S

    def has_died(stream: str) -> bool:
        """Looks for more, by which what was delivered for the last time becomes a dead letter."""
        member.run(groups.fetch(stream, "g", limit=1))
        return bool(member.run(dead_letters.page(stream, "g")))

    until(lambda: all(map(has_died, streams.both)))
    for each in (worker, member):
        each.close()


def test_what_a_person_took_away_can_be_brought_back_after_a_jump(faked: Faked) -> None:
    worker = used_to(faked.connect(keeps_clock=True))
    for jump_s in (86_400, 0):
        for purge in (
            removals.purge(faked.stream, below=20, keep_ms=60_000, facts={}),
            removals.delete(faked.stream, [20], keep_ms=60_000, facts={}),
        ):
            worker.run(purge)
        faked.set_clock(jump_s)
        worker.run(undo.end(faked.stream))
        faked.set_clock_noted(jump_s, worker)
        of_purge, of_one = worker.run(removals.removals(faked.stream))
        now_ms = worker.run(read.position(faked.stream)).now_ms
        assert 0 < of_purge.until_ms - now_ms <= 60_000
        worker.run(undo.undo(faked.stream, of_one.number))
        worker.run(undo.undo(faked.stream, of_purge.number))
        assert len(offsets(worker, faked.stream)) == 20
    worker.close()


def test_what_waits_for_the_history_goes_on_waiting_after_a_jump(faked: Faked) -> None:
    worker = used_to(faked.connect(keeps_clock=True))
    stream = config.Registered(
        stream_id=keys.stream_id(), name="archived", workspace="w", workspace_id=1, archive=True
    )
    settings = {
        "dedup_window": 60,
        "max_message_bytes": 1000,
        "discard": "old",
        "archive": True,
        "max_messages": 1,
    }
    worker.run(config.stream_publish(stream, settings))
    for number in range(5):
        worker.run(append.append(stream.stream_id, [message(number)]))
    for jump_s in (0, 86_400):
        faked.set_clock(jump_s)
        worker.run(trim.drop(stream.stream_id, hold_ms=3_600_000))
        assert len(worker.run(read.archive_range(stream.stream_id, 1, 5, 10))) == 5
    worker.close()


def noted(log: Log) -> bytes:
    found: bytes = log.client.execute_command("GET", keys.JUMPS)
    return found


def test_a_jump_is_noted_with_its_time(faked: Faked) -> None:
    worker = used_to(faked.connect(keeps_clock=True))
    before_ms = steady(worker)
    faked.set_clock_noted(3600, worker)
    faked.set_clock_noted(-86_400, worker)
    start, ahead, back = jumps_noted(noted(worker), ahead_ms=skew_ms(worker))
    assert start == (0, 0)
    assert before_ms <= ahead[0] <= back[0] <= steady(worker) + 100
    assert abs(ahead[1] - 3_600_000) < 1000
    assert back[1] == skew_ms(worker)
    worker.close()


def test_what_a_version_before_noted_without_a_time_takes_nothing_early(faked: Faked) -> None:
    worker, publisher = used_to(faked.connect(keeps_clock=True)), used_to(faked.connect())
    streams = aging(publisher)
    first = streams.publish(1)
    faked.set_clock(86_400)
    publisher.client.execute_command("SET", keys.SKEW, 86_400_000)
    with closing(faked.connect()) as late:
        all_there_until(first + TTL_S / 2, late, streams.both, 1)
        until(lambda: steady(worker) and noted(worker))
        all_there_until(first + TTL_S, late, streams.both, 1)
        until(gone(late, streams.both, 1))
    for each in (worker, publisher):
        each.close()


def test_of_many_jumps_the_oldest_count_as_the_least_of_them(faked: Faked) -> None:
    worker = used_to(faked.connect(keeps_clock=True))
    ahead_s = [3600 * (number % 5 - 3) for number in range(JUMPS_KEPT + 10)]
    for each in ahead_s:
        faked.set_clock_noted(each, worker)
    jumps = jumps_noted(noted(worker), ahead_ms=skew_ms(worker))
    assert len(jumps) == JUMPS_KEPT
    assert jumps[0][0] == 0
    assert abs(jumps[0][1] - min(ahead_s) * 1000) < 1000
    assert [round(ahead_ms / 1000) for _, ahead_ms in jumps[1:]] == ahead_s[-JUMPS_KEPT + 1 :]
    worker.close()


def test_without_a_jump_ages_are_those_of_the_wall_clock() -> None:
    assert Times(steady_ms=1_000_000).cutoff_ms(10_000) == 990_000


def test_a_process_that_first_looks_right_after_a_jump_ends_nothing_early(faked: Faked) -> None:
    worker, publisher = used_to(faked.connect(keeps_clock=True)), used_to(faked.connect())
    streams = aging(publisher)
    first = streams.publish(1)
    faked.set_clock(86_400)
    with closing(faked.connect()) as late:
        all_there_until(first + TTL_S, late, streams.both, 1)
        until(gone(late, streams.both, 1))
    for each in (worker, publisher):
        each.close()


@pytest.mark.parametrize("jump_s", [3600, -86_400])
def test_a_worker_notes_a_jump_from_before_its_start(faked: Faked, jump_s: int) -> None:
    before, publisher = used_to(faked.connect(keeps_clock=True)), used_to(faked.connect())
    before.close()
    streams = aging(publisher)
    first = streams.publish(1)
    faked.set_clock(jump_s)
    with closing(faked.connect(keeps_clock=True)) as worker:
        steady(worker)
        assert abs(skew_ms(worker) - jump_s * 1000) < 1000
        all_there_until(first + TTL_S, worker, streams.both, 1)
    publisher.close()
