"""What a person removed for a while comes back as it was: counts, bytes, order, groups; nothing of it counts before."""

import contextlib
import functools
import random
from collections.abc import Callable, Generator
from typing import Any

import pytest

from streams.log import config, entries, errors, groups, keys, read, removals, standing, stats, trim, undo
from streams.log.append import append
from streams.log.client import Log, Op, Script
from streams.log.groups import Settings
from streams.log.removals import Aside
from streams.log.stats import State
from tests.streams.log.beside import beside
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import browse, fill, message, offsets
from tests.waiting import until

HOUR_MS = 3_600_000


def purge(log: Log, stream: str, **asked: int) -> int:
    removed, number = log.run(removals.purge(stream, keep_ms=HOUR_MS, facts={"who": "ann"}, **asked))
    assert removed.messages
    assert number
    return number


def delete(log: Log, stream: str, *named: int) -> int:
    _, number = log.run(removals.delete(stream, named, keep_ms=HOUR_MS, facts={}))
    assert number
    return number


def state(log: Log, stream: str) -> State:
    return log.run(stats.inspect(stream))


def stored(log: Log, stream: str) -> int:
    return int(log.client.execute_command("XLEN", keys.log(stream)))


def fetched(log: Log, stream: str, name: str, limit: int = 1000) -> list[int]:
    found = log.run(groups.fetch(stream, name, limit=limit)).deliveries
    return [entries.position(each.entry)[0] for each in found]


def lag(log: Log, stream: str, name: str) -> int:
    return log.run(standing.inspect(stream, name)).lag


def test_a_purge_that_is_undone_has_changed_nothing(log: Log, stream: str) -> None:
    fill(log, stream, 20, body=b"123")
    log.run(trim.delete(stream, [7, 8]))
    before, held = state(log, stream), browse(log, stream)
    number = purge(log, stream)
    assert log.run(undo.undo(stream, number)) == trim.Removed(18, 54)
    assert (state(log, stream), browse(log, stream)) == (before, held)


def test_what_can_come_back_counts_nowhere_and_is_listed(log: Log, stream: str) -> None:
    fill(log, stream, 20)
    purge(log, stream, below=11)
    after = state(log, stream)
    assert (after.messages, after.bytes, after.first_offset) == (10, 10, 11)
    (aside,) = log.run(removals.removals(stream))
    assert aside == Aside(
        number=1, messages=10, bytes=10, first=1, until_ms=aside.until_ms, facts={"who": "ann"}
    )


def test_it_stays_physically_until_its_time_is_over(log: Log, stream: str) -> None:
    fill(log, stream, 20)
    purge(log, stream)
    log.run(trim.drop(stream))
    assert stored(log, stream) == 20
    assert log.run(undo.end(stream)) == 0
    log.run(undo.end(stream, 1))
    assert (stored(log, stream), log.run(removals.removals(stream))) == (0, [])


def test_a_removal_whose_time_is_over_cannot_be_undone(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    _, number = log.run(removals.purge(stream, keep_ms=0, facts={}))
    assert number
    with pytest.raises(errors.RemovalNotFound):
        log.run(undo.undo(stream, number))
    assert (log.run(undo.end(stream)), stored(log, stream)) == (1, 0)


def test_publishing_goes_on_between(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    number = purge(log, stream)
    fill(log, stream, 5, first=6)
    log.run(undo.undo(stream, number))
    assert offsets(log, stream) == list(range(1, 11))
    assert fill(log, stream, 1)[0].duplicate


def test_of_two_purges_the_last_is_undone_first(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    first = purge(log, stream)
    fill(log, stream, 5, first=6)
    second = purge(log, stream)
    with pytest.raises(errors.RemovedSince) as refusal:
        log.run(undo.undo(stream, first))
    assert refusal.value.later == second
    for number in (second, first):
        log.run(undo.undo(stream, number))
    assert offsets(log, stream) == list(range(1, 11))


def test_a_purge_for_good_ends_what_was_set_aside_before_it(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    number = purge(log, stream)
    log.run(trim.purge(stream))
    assert log.run(removals.removals(stream)) == []
    with pytest.raises(errors.RemovalTaken):
        log.run(undo.undo(stream, number))
    log.run(undo.end(stream))
    assert stored(log, stream) == 0


def test_deleted_messages_come_back_at_both_ends_and_between(log: Log, stream: str) -> None:
    fill(log, stream, 10)
    before = state(log, stream)
    number = delete(log, stream, 1, 2, 5, 10)
    log.run(trim.drop(stream))
    assert (offsets(log, stream), state(log, stream).messages) == ([3, 4, 6, 7, 8, 9], 6)
    log.run(undo.undo(stream, number))
    assert (offsets(log, stream), state(log, stream)) == (list(range(1, 11)), before)


def test_deletions_for_good_among_those_that_come_back_stay(log: Log, stream: str) -> None:
    fill(log, stream, 10, body=b"1234")
    number = delete(log, stream, 3, 5)
    log.run(trim.delete(stream, [4, 6]))
    log.run(undo.undo(stream, number))
    after = state(log, stream)
    assert (offsets(log, stream), after.messages, after.bytes) == ([1, 2, 3, 5, 7, 8, 9, 10], 8, 32)


def test_deletions_that_were_not_undone_are_counted_like_others(log: Log, stream: str) -> None:
    fill(log, stream, 600)
    delete(log, stream, *range(100, 400))
    assert log.run(undo.end(stream, 1)) == 1
    assert (stored(log, stream), state(log, stream).messages) == (300, 300)
    assert log.client.zcount(keys.gone(stream), 0, "+inf") == 2  # a run a block


def test_a_key_that_was_purged_comes_back(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key=f"k.{n % 2}") for n in range(1, 1001)]))
    before = state(log, stream)
    found = log.run(trim.matching(stream, lambda entry: entries.key(entry) == b"k.1", keep=10))
    number = None
    for part in found.parts(200):
        _, number = log.run(removals.purge_found(stream, part, keep_ms=HOUR_MS, facts={}, number=number))
    assert number
    assert state(log, stream).messages == 510
    log.run(undo.undo(stream, number))
    assert (state(log, stream), len(browse(log, stream))) == (before, 1000)


def test_a_deletion_below_a_later_purge_comes_back_after_it(log: Log, stream: str) -> None:
    fill(log, stream, 10)
    single, whole = delete(log, stream, 4), purge(log, stream)
    with pytest.raises(errors.RemovedSince):
        log.run(undo.undo(stream, single))
    log.run(undo.undo(stream, whole))
    assert 4 not in offsets(log, stream)
    log.run(undo.undo(stream, single))
    assert offsets(log, stream) == list(range(1, 11))


def test_an_undo_that_a_limit_has_cut_short_is_refused_unless_a_part_will_do(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_messages=10)
    fill(log, stream, 10)
    number = purge(log, stream)
    fill(log, stream, 4, first=11)
    with pytest.raises(errors.RemovalTaken) as refusal:
        log.run(undo.undo(stream, number))
    assert (refusal.value.left, refusal.value.messages) == (6, 10)
    assert log.run(undo.undo(stream, number, partial=True)).messages == 6
    assert offsets(log, stream) == list(range(5, 15))


def test_of_single_messages_those_that_nothing_has_reached_come_back_later_too(log: Log, stream: str) -> None:
    fill(log, stream, 10)
    number = delete(log, stream, 2, 5, 8)
    log.run(trim.purge(stream, below=4))
    log.run(undo.end(stream))
    assert [each.first for each in log.run(removals.removals(stream))] == [5]
    with pytest.raises(errors.RemovalTaken) as refusal:
        log.run(undo.undo(stream, number))
    assert (refusal.value.left, refusal.value.messages) == (2, 3)
    assert log.run(undo.undo(stream, number, partial=True)).messages == 2
    assert offsets(log, stream) == [4, 5, 6, 7, 8, 9, 10]


def cut_off(op: Op[Any], *, before_the: int, name: str) -> Generator[Any, Any, None]:
    """An operation whose process ends before it runs a script for the n-th time."""
    reply = None
    while before_the:
        command = op.send(reply)
        before_the -= isinstance(command, Script) and command.name == name
        reply = (yield command) if before_the else None


def test_an_undo_that_was_cut_off_can_be_asked_for_again_and_brings_back_the_rest(
    log: Log, stream: str
) -> None:
    fill(log, stream, 300, body=b"12")
    number = delete(log, stream, *range(11, 301))
    log.run(cut_off(undo.undo(stream, number), before_the=3, name="undo_delete"))
    assert state(log, stream).messages == 10 + 2 * undo.SLICE
    assert log.run(undo.undo(stream, number)) == trim.Removed(130, 260)
    assert offsets(log, stream) == list(range(1, 301))
    assert log.client.execute_command("HKEYS", keys.removals(stream)) == [b"last"]


def fits(model: list[tuple[int, bytes, bool]], room: int, room_bytes: int) -> list[int]:
    """Of single messages (offset, body, whether its own time is over) the newest for which there is room."""
    came: list[int] = []
    for offset, body, is_over in reversed(model):
        if not is_over and (len(came) == room or len(body) > room_bytes):
            break
        if not is_over:
            came.append(offset)
            room_bytes -= len(body)
    return sorted(came)


def test_the_newest_that_are_not_over_come_back_as_far_as_there_is_room(
    log: Log, make_stream: MakeStream
) -> None:
    rng, scenes = random.Random(1), []
    for _ in range(40):
        count = rng.choice((12, 200))
        most, most_bytes = rng.randint(count // 3, count), rng.choice((10_000, rng.randint(count, 2 * count)))
        stream = make_stream(max_messages=most, max_bytes=most_bytes)
        model = [(n, b"7" * rng.randint(1, 3), rng.random() < 0.3) for n in range(1, count + 1)]
        sent = [message(n, body=body, ttl_s=1 if is_over else None) for n, body, is_over in model]
        for first in range(0, count, 20):
            log.run(append(stream, sent[first : first + 20]))
        there = set(offsets(log, stream))
        taken = [each for each in model if each[0] in there and rng.random() < 0.9]
        if taken:
            scenes.append(
                (stream, most, most_bytes, delete(log, stream, *(each[0] for each in taken)), taken)
            )
            log.run(append(stream, [message(1000 + n) for n in range(rng.randint(1, 9))]))
    short = 0
    for stream, most, most_bytes, number, taken in scenes:
        _wait_for_its_end(log, stream)
        before = state(log, stream)
        back = fits(taken, most - before.messages, most_bytes - before.bytes)
        held = offsets(log, stream)
        if len(back) < len(taken):
            short += 0 < len(back) < sum(not is_over for *_, is_over in taken)
            with pytest.raises(errors.RemovalTaken) as refusal:
                log.run(undo.undo(stream, number))
            assert (refusal.value.left, refusal.value.messages) == (len(back), len(taken))
        if back:
            assert log.run(undo.undo(stream, number, partial=True)).messages == len(back)
        assert offsets(log, stream) == sorted(held + back)
    assert short >= 5, "room for some of those that could come"


@pytest.mark.parametrize("limit", [{"max_messages": 300}, {"max_bytes": 300}])
@pytest.mark.parametrize("partial", [False, True])
def test_nobody_loses_what_he_publishes_to_an_undo_that_goes_on(
    log: Log, make_stream: MakeStream, limit: dict[str, int], partial: bool
) -> None:
    stream = make_stream(**limit)
    fill(log, stream, 300)
    number = delete(log, stream, *range(1, 251))

    def publish(slice_: int) -> None:
        if slice_ <= 3:
            log.run(append(stream, [message(1000 + 10 * slice_ + n) for n in range(10)]))

    undoing = beside(undo.undo(stream, number, partial=partial), {"undo_delete"}, publish)
    if partial:
        assert log.run(undoing).messages == 220
    else:
        with pytest.raises(errors.DoneInPart) as ended:
            log.run(undoing)
        assert isinstance(ended.value.why, errors.RemovalTaken)
        assert (ended.value.messages, ended.value.why.left, ended.value.why.messages) == (220, 0, 30)
    there = offsets(log, stream)
    assert (len(there), there[-80:]) == (300, list(range(251, 331)))
    assert [each.number for each in log.run(removals.removals(stream))] == ([] if partial else [number])


def test_what_an_undo_passed_over_comes_once_others_are_over(log: Log, make_stream: MakeStream) -> None:
    """They were counted when it was looked at, and took room that they did not need."""
    stream = make_stream(max_messages=300)
    for first in range(1, 301, 100):
        log.run(append(stream, [message(n, ttl_s=1 if n > 280 else None) for n in range(first, first + 100)]))
    number = delete(log, stream, *range(1, 301))

    def publish(slice_: int) -> None:
        if slice_ == 1:
            log.run(append(stream, [message(1000 + n) for n in range(15)]))
            _wait_for_its_end(log, stream)

    undoing = beside(undo.undo(stream, number, partial=True), {"undo_delete"}, publish)
    assert log.run(undoing).messages == 280
    assert offsets(log, stream) == [*range(1, 281), *range(301, 316)]
    assert log.run(removals.removals(stream)) == []


@pytest.mark.parametrize("over", [undo.undo, undo.end], ids=["undone", "made final"])
def test_a_removal_that_is_over_while_it_goes_on_takes_nothing_more(
    log: Log, stream: str, over: Callable[[str, int], Op[object]]
) -> None:
    fill(log, stream, 300)
    removing = removals.delete(stream, range(1, 301), keep_ms=HOUR_MS, facts={})

    def end(slice_: int) -> None:
        if slice_ == 4:
            log.run(over(stream, 1))

    with pytest.raises(errors.DoneInPart) as ended:
        log.run(beside(removing, {"delete_aside"}, end))
    assert isinstance(ended.value.why, errors.RemovalOver)
    taken = 3 * removals.DELETE_SLICE
    assert (ended.value.messages, ended.value.bytes) == (taken, taken)
    left = range(1 if over is undo.undo else taken + 1, 301)
    assert offsets(log, stream) == list(left)
    assert (state(log, stream).messages, state(log, stream).bytes) == (len(left), len(left))
    assert log.run(removals.removals(stream)) == []
    assert log.run(removals.delete(stream, [300], keep_ms=HOUR_MS, facts={}))[0].messages == 1


def test_an_undo_brings_back_all_of_a_removal_that_goes_on(log: Log, stream: str) -> None:
    fill(log, stream, 300)
    number, more, refused = delete(log, stream, *range(1, 201)), iter(range(201, 301)), 0

    def delete_beside() -> Generator[Any, Any, None]:
        nonlocal refused
        undoing, reply = undo.undo(stream, number), None
        with contextlib.suppress(StopIteration):
            while True:
                reply = yield undoing.send(reply)
                try:
                    log.run(removals.delete(stream, [next(more)], keep_ms=HOUR_MS, facts={}, number=number))
                except errors.RemovalOver:
                    refused += 1

    log.run(delete_beside())
    assert 0 < refused < 300 - next(more), "what came before it began is a part of it"
    assert offsets(log, stream) == list(range(1, 301))
    assert log.run(removals.removals(stream)) == []


@pytest.mark.parametrize("filter_keys", [(), ("a",)], ids=["all", "filter"])
@pytest.mark.parametrize("pace", [7, 31, 90, 400])
def test_a_group_that_reads_while_a_removal_goes_on_gets_nothing_twice_after_the_undo(
    log: Log, stream: str, filter_keys: tuple[str, ...], pace: int
) -> None:
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=filter_keys, max_ack_pending=2000)))
    log.run(append(stream, [message(n, key="a") for n in range(1, 801)]))
    got: list[int] = []
    removing = removals.delete(stream, range(2, 801, 2), keep_ms=HOUR_MS, facts={})

    def read(count: int) -> bool:
        found = fetched(log, stream, "g", count)
        log.run(groups.ack(stream, "g", "offsets", found))
        got.extend(found)
        return bool(found)

    log.run(beside(removing, {"delete_aside"}, lambda _: read(pace)))
    log.run(undo.undo(stream, 1))
    while read(1000):
        pass
    stands = log.run(standing.inspect(stream, "g"))
    assert sorted(got) == list(range(1, 801))
    assert (stands.lag, stands.lost, stands.ack_pending) == (0, 0, 0)


@pytest.mark.parametrize("full", [{"discard": "new"}, {"discard": "old"}])
def test_what_comes_back_takes_the_place_of_nothing(
    log: Log, make_stream: MakeStream, full: dict[str, str]
) -> None:
    stream = make_stream(max_messages=5, **full)
    fill(log, stream, 5)
    number = delete(log, stream, 5)
    fill(log, stream, 1, first=6)
    for partial in (False, True):
        with pytest.raises(errors.RemovalTaken) as refusal:
            log.run(undo.undo(stream, number, partial=partial))
        assert (refusal.value.left, refusal.value.messages) == (0, 1)
    assert offsets(log, stream) == [1, 2, 3, 4, 6]


@pytest.mark.parametrize("limit", [{"max_messages": 120}, {"max_bytes": 249}])
def test_of_single_messages_the_newest_for_which_there_is_room_come_back(
    log: Log, make_stream: MakeStream, limit: dict[str, int]
) -> None:
    stream = make_stream(**limit)
    for first in range(1, 301, 10):
        log.run(append(stream, [message(n, body=b"12") for n in range(first, first + 10)]))
    number = delete(log, stream, *range(190, 301))
    log.run(append(stream, [message(n, body=b"12") for n in range(301, 319)]))
    left = log.run(stats.inspect(stream))
    room = 120 - left.messages if "max_messages" in limit else (249 - left.bytes) // 2
    with pytest.raises(errors.RemovalTaken) as refusal:
        log.run(undo.undo(stream, number))
    assert (refusal.value.left, refusal.value.messages) == (room, 111)
    assert 80 < room < 111, "more than go in one call"
    before = offsets(log, stream)
    assert log.run(undo.undo(stream, number, partial=True)) == trim.Removed(room, 2 * room)
    assert offsets(log, stream) == sorted([*range(301 - room, 301), *before])
    assert log.run(removals.removals(stream)) == []
    log.run(undo.end(stream))
    log.run(trim.drop(stream))
    after = state(log, stream)
    assert (stored(log, stream), after.messages, after.by_hand_messages) == (
        len(before) + room,
        len(before) + room,
        111 - room,
    )


def test_what_people_took_and_brought_back_is_counted_apart_from_what_limits_took(
    log: Log, make_stream: MakeStream
) -> None:
    def by_hand() -> tuple[int, int]:
        now = state(log, stream)
        return now.by_hand_messages, now.by_hand_bytes

    stream = make_stream(max_messages=50)
    for n in range(1, 61):
        log.run(append(stream, [message(n, body=b"123")]))
    assert by_hand() == (0, 0)
    log.run(trim.purge(stream, below=16))
    single = delete(log, stream, 20, 30)
    log.run(trim.delete(stream, [31]))
    whole = purge(log, stream, keep=10)
    assert by_hand() == (50 - 10, 3 * 40)
    log.run(undo.undo(stream, whole))
    log.run(undo.undo(stream, single))
    assert by_hand() == (5 + 1, 3 * 6)
    assert state(log, stream).messages == 50 - 6


def test_a_deletion_that_a_purge_below_it_does_not_reach_comes_back(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    number = delete(log, stream, 3)
    log.run(trim.purge(stream, below=3))
    log.run(trim.drop(stream))
    log.run(undo.end(stream))
    assert (offsets(log, stream), stored(log, stream)) == ([4, 5], 3)
    assert log.run(undo.undo(stream, number)).messages == 1
    assert (offsets(log, stream), state(log, stream).messages) == ([3, 4, 5], 3)


@pytest.mark.parametrize("limit", [{"max_messages": 3}, {"max_bytes": 12}])
def test_a_deletion_that_a_limit_takes_nothing_above_comes_back(
    log: Log, make_stream: MakeStream, limit: dict[str, int]
) -> None:
    stream = make_stream(**limit)
    fill(log, stream, 3, body=b"1234")
    number = delete(log, stream, 2)
    # The first goes, and what is set aside above it is not reached.
    fill(log, stream, 2, first=4, body=b"1234")
    log.run(trim.delete(stream, [5]))
    assert offsets(log, stream) == [3, 4]
    assert log.run(undo.undo(stream, number)).messages == 1
    assert (offsets(log, stream), state(log, stream).messages) == ([2, 3, 4], 3)


@pytest.mark.parametrize("keep", [2, 99])
def test_a_purge_that_takes_nothing_ends_no_removal(log: Log, stream: str, keep: int) -> None:
    fill(log, stream, 5)
    number = purge(log, stream, below=4)
    assert log.run(trim.purge(stream, keep=keep)).messages == 0
    assert log.run(undo.undo(stream, number)).messages == 3


def test_what_a_limit_has_passed_is_freed_before_its_time(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=10)
    fill(log, stream, 10)
    delete(log, stream, 5)
    fill(log, stream, 30, first=11)
    log.run(undo.end(stream))
    log.run(trim.drop(stream))
    assert (stored(log, stream), log.run(removals.removals(stream))) == (10, [])


def test_messages_whose_own_time_is_over_meanwhile_stay_away(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1), message(2, ttl_s=1), message(3)]))
    number = purge(log, stream)
    log.run(append(stream, [message(4)]))

    _wait_for_its_end(log, stream)
    with pytest.raises(errors.RemovalTaken) as refusal:
        log.run(undo.undo(stream, number))
    assert (refusal.value.left, refusal.value.messages) == (2, 3)
    log.run(undo.undo(stream, number, partial=True))
    assert (offsets(log, stream), state(log, stream).messages) == ([1, 3, 4], 3)


def test_single_messages_whose_own_time_is_over_meanwhile_stay_away_too(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1), message(2, ttl_s=1), message(3)]))
    number = delete(log, stream, 1, 2, 3)
    _wait_for_its_end(log, stream)
    with pytest.raises(errors.RemovalTaken) as refusal:
        log.run(undo.undo(stream, number))
    assert (refusal.value.left, refusal.value.messages) == (2, 3)
    assert log.run(undo.undo(stream, number, partial=True)).messages == 2
    assert (offsets(log, stream), state(log, stream).messages) == ([1, 3], 2)


@pytest.mark.parametrize("looked", [False, True])
def test_what_was_purged_for_a_while_and_is_over_by_its_own_time_is_lost_to_every_group(
    log: Log, stream: str, looked: bool
) -> None:
    log.run(groups.group_publish(stream, "all", Settings()))
    log.run(groups.group_publish(stream, "some", Settings(filter_keys=("a",))))
    log.run(append(stream, [*(message(n, key="a", ttl_s=1) for n in range(1, 11)), message(11, key="a")]))
    number = purge(log, stream)
    if looked:
        assert log.run(standing.inspect(stream, "some")).lost == 11
    _wait_for_its_end(log, stream)
    for back, lost in ((0, 11), (1, 10)):
        if back:
            assert log.run(undo.undo(stream, number, partial=True)).messages == back
        for name in ("all", "some"):
            stands = log.run(standing.inspect(stream, name))
            assert (name, stands.lost, stands.lag) == (name, lost, back)


def _wait_for_its_end(log: Log, stream: str) -> None:
    """Until every message that has a time of its own is over."""

    def is_over() -> bool:
        return log.run(trim.expire(stream)) >= 0 and not log.client.exists(keys.expiry(stream))

    until(is_over, within_s=5)


def test_a_group_finds_unread_what_it_had_not_read(log: Log, stream: str) -> None:
    fill(log, stream, 10)
    log.run(groups.group_publish(stream, "g", Settings()))
    assert fetched(log, stream, "g", 3) == [1, 2, 3]
    number = purge(log, stream)
    assert (lag(log, stream, "g"), fetched(log, stream, "g")) == (0, [])
    log.run(undo.undo(stream, number))
    found = log.run(standing.inspect(stream, "g"))
    assert (found.lag, found.lost, found.ack_pending) == (7, 0, 3)
    assert fetched(log, stream, "g") == [4, 5, 6, 7, 8, 9, 10]


def test_a_group_that_has_gone_on_gets_what_it_missed_and_nothing_twice(log: Log, stream: str) -> None:
    fill(log, stream, 600)
    log.run(groups.group_publish(stream, "g", Settings()))
    fetched(log, stream, "g", 3)
    number = purge(log, stream)
    fill(log, stream, 5, first=601)
    assert fetched(log, stream, "g", 4) == [601, 602, 603, 604]
    log.run(groups.ack(stream, "g", "up_to", [604]))
    log.run(undo.undo(stream, number))
    found = log.run(standing.inspect(stream, "g"))
    assert (found.lag, found.lost) == (598, 0)
    assert sorted(fetched(log, stream, "g")) == [*range(4, 601), 605]
    assert lag(log, stream, "g") == 0


def test_what_was_out_comes_again_unless_it_was_answered_meanwhile(log: Log, stream: str) -> None:
    fill(log, stream, 4)
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=100)))
    fetched(log, stream, "g")
    number = purge(log, stream)
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    assert log.run(groups.ack(stream, "g", "offsets", [2])) == 0  # it went; but it need not come again
    log.run(undo.undo(stream, number))
    again: list[int] = []

    def all_came() -> bool:
        again.extend(fetched(log, stream, "g"))
        return len(set(again)) >= 3

    until(all_came, within_s=5)
    assert set(again) == {1, 3, 4}


def test_what_was_out_and_comes_again_by_an_undo_was_not_removed_unacknowledged(
    log: Log, stream: str
) -> None:
    fill(log, stream, 400)
    log.run(groups.group_publish(stream, "g", Settings()))
    fetched(log, stream, "g")
    for named in (range(1, 201), range(0)):
        number = delete(log, stream, *named) if named else purge(log, stream)
        before = log.run(standing.inspect(stream, "g"))
        assert before.unfinished == 400 - before.ack_pending > 0
        log.run(undo.undo(stream, number))
        found = log.run(standing.inspect(stream, "g"))
        assert (found.ack_pending, found.unfinished, found.lost) == (400, 0, 0)


@pytest.mark.parametrize("answer", [groups.nack, functools.partial(groups.term, reason="torn"), groups.ack])
def test_a_late_answer_counts_nothing_a_second_time(log: Log, stream: str, answer: Any) -> None:
    fill(log, stream, 4)
    log.run(groups.group_publish(stream, "g", Settings()))
    fetched(log, stream, "g")
    purge(log, stream)
    assert log.run(standing.inspect(stream, "g")).unfinished == 4  # which has seen what went
    for _ in range(2):
        assert not log.run(answer(stream, "g", "offsets", [1, 2]))
        assert log.run(standing.inspect(stream, "g")).unfinished == 4


def test_leases_of_what_is_gone_for_good_are_forgotten(log: Log, stream: str) -> None:
    fill(log, stream, 4)
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=100)))
    fetched(log, stream, "g")
    number = purge(log, stream)
    until(
        lambda: not fetched(log, stream, "g") and log.run(standing.inspect(stream, "g")).ack_pending == 0,
        within_s=5,
    )
    log.run(undo.end(stream, number))
    assert not log.client.exists(keys.leases(stream, "g"))


def test_a_group_by_key_gets_what_it_missed_one_at_a_time(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key="a") for n in range(1, 5)]))
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True)))
    number = purge(log, stream)
    log.run(append(stream, [message(5, key="b")]))
    assert fetched(log, stream, "g") == [5]
    log.run(undo.undo(stream, number))
    seen = []
    while page := fetched(log, stream, "g"):
        seen.append(page)
        log.run(groups.ack(stream, "g", "offsets", page))
    assert seen == [[1], [2], [3], [4]]


def test_a_group_with_a_filter_gets_only_what_it_wants(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key="a" if n % 2 else "b") for n in range(1, 9)]))
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=("a",))))
    number = purge(log, stream)
    log.run(append(stream, [message(9, key="a")]))
    assert fetched(log, stream, "g") == [9]
    log.run(undo.undo(stream, number))
    assert (lag(log, stream, "g"), fetched(log, stream, "g")) == (4, [1, 3, 5, 7])


def test_a_message_deleted_before_it_was_delivered_is_delivered_after_the_undo(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    log.run(groups.group_publish(stream, "g", Settings()))
    number = delete(log, stream, 3)
    assert fetched(log, stream, "g") == [1, 2, 4, 5]
    log.run(undo.undo(stream, number))
    assert (lag(log, stream, "g"), fetched(log, stream, "g")) == (1, [3])


def test_the_newest_of_each_key_are_kept_after_an_undo_too(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=2)
    log.run(append(stream, [message(n, key="a") for n in (1, 2)]))
    number = purge(log, stream)
    log.run(append(stream, [message(3, key="a")]))
    log.run(undo.undo(stream, number))
    assert offsets(log, stream) == [2, 3]


def test_where_messages_are_kept_by_interest_what_every_group_has_done_goes_again(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    publish_settings(stream, retention="interest")
    fill(log, stream, 4)
    log.run(groups.group_publish(stream, "g", Settings()))
    assert fetched(log, stream, "g", 2) == [1, 2]
    log.run(groups.ack(stream, "g", "offsets", [1]))
    number = purge(log, stream)
    log.run(trim.release(stream))
    log.run(undo.undo(stream, number))
    log.run(trim.release(stream))
    assert (offsets(log, stream), lag(log, stream, "g")) == ([2, 3, 4], 2)


def test_the_history_may_copy_what_can_come_back(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(archive=True)
    fill(log, stream, 10)
    number = purge(log, stream)
    assert len(log.run(read.archive_range(stream, 1, 10, 100))) == 10
    log.run(config.archived_set(stream, 5))
    assert log.run(trim.drop(stream, hold_ms=0)) == trim.Dropped(0, 0)
    log.run(undo.end(stream, number))
    assert stored(log, stream) == 0


def test_what_lies_above_what_can_come_back_waits_for_the_history_only_from_then_on(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(archive=True, max_messages_per_key=1)
    fill(log, stream, 10)
    number = delete(log, stream, 4)
    log.run(append(stream, [message(n, key="k") for n in range(11, 14)]))
    log.run(config.archived_set(stream, 3))
    assert log.run(trim.drop(stream, hold_ms=0)) == trim.Dropped(0, 0)
    log.run(undo.end(stream, number))
    assert log.run(trim.drop(stream)) == trim.Dropped(0, 0), "its hour begins now"
    assert log.run(trim.drop(stream, hold_ms=0)) == trim.Dropped(entries=2, missed=2)


def test_a_stream_takes_a_hundred_removals_and_then_ends_the_oldest(log: Log, stream: str) -> None:
    fill(log, stream, 110)
    ended = [
        log.run(removals.delete(stream, [offset], keep_ms=60_000, facts={}))[0].ended
        for offset in range(1, 106)
    ]
    assert ended == [0] * 100 + [1, 2, 3, 4, 5]
    assert [each.number for each in log.run(removals.removals(stream))] == list(range(6, 106))
    log.run(undo.end(stream))
    assert log.run(removals.purge(stream, below=109, keep_ms=60_000, facts={}))[0].ended == 6


def test_the_oldest_of_a_hundred_that_something_else_has_ended_is_not_named(log: Log, stream: str) -> None:
    fill(log, stream, 103)
    for offset in range(1, 101):
        delete(log, stream, offset)
    log.run(trim.purge(stream, below=2))
    assert log.run(removals.delete(stream, [101], keep_ms=60_000, facts={}))[0].ended == 0


def test_a_removed_stream_leaves_nothing_of_them(log: Log, stream: str, unique: str) -> None:
    fill(log, stream, 5)
    delete(log, stream, 2)
    log.run(config.stream_remove(stream, workspace_id=1, name=unique))
    assert not log.client.exists(keys.aside(stream), keys.removals(stream), keys.gone(stream))


def test_what_a_purge_for_good_has_ended_does_not_come_back_with_the_last_undo(log: Log, stream: str) -> None:
    fill(log, stream, 20)
    _, ended = log.run(removals.purge(stream, below=6, keep_ms=60_000, facts={}))
    _, later = log.run(removals.delete(stream, [15], keep_ms=60_000, facts={}))
    log.run(trim.purge(stream, below=11))
    assert ended
    assert later
    assert log.run(undo.undo(stream, later)).messages == 1
    for partial in (False, True):
        with pytest.raises(errors.RemovalTaken):
            log.run(undo.undo(stream, ended, partial=partial))
    assert log.run(removals.removals(stream)) == []
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.first_offset) == (10, 11)


def test_counts_are_exact_where_what_comes_back_weighs_more_than_what_went_since_the_worker_came_by(
    log: Log, stream: str
) -> None:
    log.run(append(stream, [message(n, body=b"7" * (50 if n == 2 else 1)) for n in range(1, 7)]))
    number = delete(log, stream, 2)
    log.run(trim.delete(stream, [1]))
    log.run(trim.drop(stream))
    delete(log, stream, 3)
    delete(log, stream, 4)
    assert log.run(undo.undo(stream, number)).bytes == 50
    assert log.run(trim.delete(stream, [5])).messages == 1
    assert (state(log, stream).messages, state(log, stream).bytes) == (2, 51)
    assert offsets(log, stream) == [2, 6]


def test_a_purge_for_good_ends_only_what_it_reaches_of_a_range_that_was_set_aside(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(archive=True)
    fill(log, stream, 10)
    number = purge(log, stream)
    log.run(trim.purge(stream, below=4))
    (left,) = log.run(removals.removals(stream))
    assert (left.first, left.messages) == (4, 10)
    log.run(undo.end(stream))
    log.run(trim.drop(stream))
    assert stored(log, stream) == 7, "what was purged for good waits for no history"
    with pytest.raises(errors.RemovalTaken) as refusal:
        log.run(undo.undo(stream, number))
    assert (refusal.value.left, refusal.value.messages) == (7, 10)
    assert log.run(undo.undo(stream, number, partial=True)) == trim.Removed(7, 7)
    assert offsets(log, stream) == list(range(4, 11))


def test_an_undo_ends_nothing_of_single_messages_that_a_purge_has_reached_in_part(
    log: Log, stream: str
) -> None:
    fill(log, stream, 30)
    number = delete(log, stream, 5, 20)
    other = delete(log, stream, 25)
    log.run(trim.purge(stream, below=10))
    assert [each.first for each in log.run(removals.removals(stream))] == [10, 25]
    assert log.run(undo.undo(stream, other)).messages == 1
    assert log.run(undo.undo(stream, number, partial=True)).messages == 1
    assert offsets(log, stream) == list(range(10, 31))
