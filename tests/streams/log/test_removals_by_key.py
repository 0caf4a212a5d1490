"""What was out, or waited for its key, comes back after an undo where it was in its key's order."""

from collections.abc import Generator
from typing import Any, Literal

import pytest

from streams.log import dead_letters, entries, groups, keys, removals, standing, trim, undo
from streams.log.append import append
from streams.log.client import Log, Op
from streams.log.groups import Settings
from tests.streams.log.messages import message

HOUR_MS = 3_600_000


def purge(log: Log, stream: str) -> int:
    return log.run(removals.purge(stream, keep_ms=HOUR_MS, facts={}))[1] or 0


def delete(log: Log, stream: str, *named: int) -> int:
    return log.run(removals.delete(stream, named, keep_ms=HOUR_MS, facts={}))[1] or 0


def fetched(log: Log, stream: str, name: str, limit: int = 1000) -> list[int]:
    found = log.run(groups.fetch(stream, name, limit=limit)).deliveries
    return [entries.position(each.entry)[0] for each in found]


def _by_key(log: Log, stream: str, *of_keys: str, **settings: object) -> None:
    log.run(append(stream, [message(n, key=key) for n, key in enumerate(of_keys, start=1)]))
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True, **settings)))  # type: ignore[arg-type]


def _look(log: Log, stream: str) -> None:
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0


def test_a_key_waits_for_what_was_out_when_it_went_and_came_back(log: Log, stream: str) -> None:
    _by_key(log, stream, "z", "k", "z", "k", "z", "k", ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1, 2]
    number = purge(log, stream)
    _look(log, stream)
    log.run(groups.ack(stream, "g", "offsets", [1]))
    log.run(undo.undo(stream, number))
    assert fetched(log, stream, "g") == [3]
    log.run(groups.ack(stream, "g", "offsets", [3]))
    assert fetched(log, stream, "g") == [5]
    log.run(groups.ack(stream, "g", "offsets", [2]))
    assert fetched(log, stream, "g") == [4]


def test_what_came_back_goes_behind_what_its_key_has_out_and_before_what_waits(log: Log, stream: str) -> None:
    _by_key(log, stream, "k", "k", "k", ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1]
    number = delete(log, stream, 1)
    _look(log, stream)
    assert fetched(log, stream, "g") == [2]
    log.run(undo.undo(stream, number))
    assert fetched(log, stream, "g") == []
    log.run(groups.ack(stream, "g", "offsets", [2]))
    assert fetched(log, stream, "g") == [1]
    log.run(groups.ack(stream, "g", "offsets", [1]))
    assert fetched(log, stream, "g") == [3]


def test_a_replayed_dead_letter_gives_its_turn_back_to_what_was_out(log: Log, stream: str) -> None:
    _by_key(log, stream, "k", "k", ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1]
    log.run(groups.term(stream, "g", "offsets", [1], reason=""))
    assert fetched(log, stream, "g") == [2]
    log.run(dead_letters.replay(stream, "g", [1]))
    number = delete(log, stream, 2)
    assert log.run(standing.inspect(stream, "g")).ack_pending == 1
    log.run(undo.undo(stream, number))
    assert fetched(log, stream, "g") == []
    log.run(groups.ack(stream, "g", "offsets", [2]))
    assert fetched(log, stream, "g") == [1]


def test_several_of_a_key_that_were_out_come_again_in_order(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key="k") for n in range(1, 13)]))
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=60_000)))
    assert fetched(log, stream, "g", 11) == list(range(1, 12))
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True, ack_wait_ms=60_000)))
    number = delete(log, stream, *range(1, 12))
    _look(log, stream)
    log.run(undo.undo(stream, number))
    assert fetched(log, stream, "g") == []
    log.run(groups.nack(stream, "g", "offsets", list(range(1, 12))))
    seen = []
    while page := fetched(log, stream, "g"):
        seen.append(page)
        log.run(groups.ack(stream, "g", "offsets", page))
    assert seen == [[n] for n in range(1, 13)]


def test_what_waited_for_its_key_waits_again(log: Log, stream: str) -> None:
    _by_key(log, stream, "k", "k", "k", ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1]
    number = purge(log, stream)
    assert fetched(log, stream, "g", 10) == []  # which counts what waited as lost
    log.run(undo.undo(stream, number))
    found = log.run(standing.inspect(stream, "g"))
    assert (found.lag, found.lost, found.ack_pending) == (2, 0, 1)
    for offset in (1, 2, 3):
        log.run(groups.ack(stream, "g", "offsets", [offset]))
        assert fetched(log, stream, "g") == ([offset + 1] if offset < 3 else [])


@pytest.mark.long
def test_very_many_of_a_key_that_were_deleted_come_back_in_order(log: Log, stream: str) -> None:
    """More than one call brings back."""
    _by_key(log, stream, *["k"] * 200, ack_wait_ms=60_000)
    number = delete(log, stream, *range(1, 201))
    log.run(append(stream, [message(201, key="other")]))
    assert fetched(log, stream, "g") == [201]
    log.run(undo.undo(stream, number))
    seen = []
    while page := fetched(log, stream, "g"):
        seen += page
        log.run(groups.ack(stream, "g", "offsets", page))
    assert seen == list(range(1, 201))


def in_turn(log: Log, stream: str) -> list[int]:
    """What comes, one after another, each answered before the next is asked for."""
    seen = []
    while page := fetched(log, stream, "g"):
        seen += page
        log.run(groups.ack(stream, "g", "offsets", page))
    return seen


@pytest.mark.parametrize("ack", ["explicit", "all"])
def test_what_comes_back_unread_goes_before_what_waits_for_its_key(
    log: Log, stream: str, ack: Literal["explicit", "all"]
) -> None:
    _by_key(log, stream, *"kkkkkkkk", ack=ack, ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1]
    _, number = log.run(removals.purge(stream, below=5, keep_ms=HOUR_MS, facts={}))
    assert fetched(log, stream, "g") == [5]
    log.run(undo.undo(stream, number or 0))
    assert fetched(log, stream, "g") == []
    log.run(groups.ack(stream, "g", "offsets", [1]))
    log.run(groups.ack(stream, "g", "offsets", [5]))
    assert in_turn(log, stream) == [2, 3, 4, 6, 7, 8]


def test_single_ones_that_come_back_unread_stand_in_the_order_of_their_key(log: Log, stream: str) -> None:
    _by_key(log, stream, *"kkzkkkkkkkkkk", ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1, 3]
    number = delete(log, stream, 2, 4, 8, 9, 10)
    other = delete(log, stream, 5, 6)
    log.run(groups.ack(stream, "g", "offsets", [1]))
    assert fetched(log, stream, "g") == [7]  # which passes over what has gone
    log.run(undo.undo(stream, number))
    log.run(undo.undo(stream, other))
    assert fetched(log, stream, "g") == []
    log.run(groups.ack(stream, "g", "offsets", [7]))
    assert in_turn(log, stream) == [2, 4, 5, 6, 8, 9, 10, 11, 12, 13]


@pytest.mark.long
def test_very_many_of_a_key_that_come_back_unread_stand_in_its_order(log: Log, stream: str) -> None:
    """More than one call gives back."""
    log.run(append(stream, [message(n, key="kz"[n % 2]) for n in range(1, 3001)]))
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True, ack_wait_ms=600_000)))
    assert fetched(log, stream, "g") == [1, 2]
    _, number = log.run(removals.purge(stream, below=2991, keep_ms=HOUR_MS, facts={}))
    assert fetched(log, stream, "g") == [2991, 2992]
    log.run(undo.undo(stream, number or 0))
    log.run(groups.ack(stream, "g", "offsets", [1, 2, 2991, 2992]))
    seen = in_turn(log, stream)
    assert sorted(seen) == [*range(3, 2991), *range(2993, 3001)]
    for parity in (0, 1):
        of_key = [n for n in seen if n % 2 == parity]
        assert of_key == sorted(of_key)


@pytest.mark.parametrize("is_looked_at", [False, True])
def test_what_two_removals_kept_away_one_after_another_is_not_lost(
    log: Log, stream: str, is_looked_at: bool
) -> None:
    _by_key(log, stream, *"kkkkk", ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1]
    single = delete(log, stream, 3)
    for offset, following in ((1, 2), (2, 4)):  # which passes over what has gone
        log.run(groups.ack(stream, "g", "offsets", [offset]))
        assert fetched(log, stream, "g") == [following]
    purged = purge(log, stream)
    if is_looked_at:
        _look(log, stream)
    log.run(undo.undo(stream, purged))
    log.run(undo.undo(stream, single))
    log.run(groups.ack(stream, "g", "offsets", [4]))
    assert in_turn(log, stream) == [3, 5]
    found = log.run(standing.inspect(stream, "g"))
    assert (found.lag, found.lost, found.ack_pending) == (0, 0, 0)


def test_what_was_kept_away_before_a_seek_counts_no_more(log: Log, stream: str) -> None:
    _by_key(log, stream, *"kkk", ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1]
    number = purge(log, stream)
    log.run(groups.seek(stream, "g", next_offset=1))
    log.run(undo.undo(stream, number))
    log.run(groups.seek(stream, "g", next_offset=1))
    assert in_turn(log, stream) == [1, 2, 3]
    before = log.run(standing.inspect(stream, "g"))
    log.run(undo.undo(stream, purge(log, stream)))
    assert fetched(log, stream, "g") == []
    after = log.run(standing.inspect(stream, "g"))
    assert (after.lag, after.lost) == (before.lag, before.lost) == (0, 2)  # it had sought past two


def test_what_is_gone_for_good_is_remembered_no_more(log: Log, stream: str) -> None:
    _by_key(log, stream, *"kkk", ack_wait_ms=60_000)
    assert fetched(log, stream, "g") == [1]
    purge(log, stream)
    assert log.client.zcard(keys.parked_aside(stream, "g")) == 2
    log.run(undo.end(stream, 1))
    assert not log.client.exists(keys.parked_aside(stream, "g"))


@pytest.mark.parametrize("is_looked_at", [False, True])
def test_what_goes_again_and_again_is_lost_once_to_a_filter(
    log: Log, stream: str, is_looked_at: bool
) -> None:
    log.run(append(stream, [message(n, key=key) for n, key in enumerate(("a", "a", "b"), start=1)]))
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=("a",))))
    for _ in range(3):
        log.run(undo.undo(stream, delete(log, stream, 1, 2)))
        if is_looked_at:
            assert log.run(standing.inspect(stream, "g")).lost == 0
    assert log.run(standing.inspect(stream, "g")).lost == 0
    log.run(trim.delete(stream, [1, 2]))
    assert log.run(standing.inspect(stream, "g")).lost == 2


@pytest.mark.parametrize("most", [1, 2])
def test_one_that_was_out_for_the_last_time_does_not_come_again(log: Log, stream: str, most: int) -> None:
    _by_key(log, stream, *"kkk", max_deliver=most, ack_wait_ms=60_000)
    for _ in range(most - 1):
        assert fetched(log, stream, "g") == [1]
        log.run(groups.nack(stream, "g", "offsets", [1]))
    assert fetched(log, stream, "g") == [1]
    number = delete(log, stream, 1)
    _look(log, stream)
    assert fetched(log, stream, "g") == [2]
    log.run(undo.undo(stream, number))
    log.run(groups.ack(stream, "g", "offsets", [2]))
    assert in_turn(log, stream) == [3]
    (letter,) = log.run(dead_letters.page(stream, "g"))
    assert (letter.offset, letter.deliveries) == (1, most)


@pytest.mark.parametrize("then", [("a",), ("a", "b"), ()])
@pytest.mark.parametrize("since", [("a",), ("a", "b"), ()])
@pytest.mark.parametrize("is_purged", [False, True])
@pytest.mark.parametrize("has_gone_on", [False, True])
def test_what_comes_back_is_lost_no_more_whatever_filter_came_since(
    log: Log, stream: str, then: tuple[str, ...], since: tuple[str, ...], is_purged: bool, has_gone_on: bool
) -> None:
    log.run(append(stream, [message(n, key=key) for n, key in enumerate("abba", start=1)]))
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=then)))
    number = purge(log, stream) if is_purged else delete(log, stream, 1, 2, 3, 4)
    wanted = sum(not then or key in then for key in "abba")
    assert log.run(standing.inspect(stream, "g")).lost == wanted
    if has_gone_on:
        log.run(append(stream, [message(5, key="a")]))
        assert fetched(log, stream, "g") == [5]
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=since)))
    assert log.run(standing.inspect(stream, "g")).lost == wanted
    log.run(undo.undo(stream, number))
    assert log.run(standing.inspect(stream, "g")).lost == 0
    came = [offset for offset in fetched(log, stream, "g") if offset < 5]
    assert came == [n for n, key in enumerate("abba", start=1) if not since or key in since]
    assert log.run(standing.inspect(stream, "g")).lost == 0


def test_what_came_back_before_a_group_took_turns_takes_turns(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key="kz"[n % 2]) for n in range(1, 9)]))
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=60_000)))
    number = purge(log, stream)
    log.run(append(stream, [message(9, key="k")]))
    assert fetched(log, stream, "g") == [9]
    log.run(undo.undo(stream, number))
    assert fetched(log, stream, "g", 1) == [1]
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True, ack_wait_ms=60_000)))
    assert fetched(log, stream, "g") == []
    log.run(groups.ack(stream, "g", "offsets", [1]))
    assert fetched(log, stream, "g") == [3]
    log.run(groups.ack(stream, "g", "offsets", [3, 9]))
    assert fetched(log, stream, "g") == [2, 5]
    log.run(groups.ack(stream, "g", "offsets", [2, 5]))
    assert in_turn(log, stream) == [4, 7, 6, 8]


def fetched_between(log: Log, stream: str, op: Op[Any], got: list[int]) -> Generator[Any, Any, None]:
    """An undo beside a member that fetches after each of its commands, and answers nothing."""
    reply = None
    while True:
        try:
            command = op.send(reply)
        except StopIteration:
            return
        reply = yield command
        got += fetched(log, stream, "g")


def test_a_fetch_in_the_middle_of_an_undo_finds_the_turns_of_keys_taken(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True, ack_wait_ms=HOUR_MS)))
    log.run(append(stream, [message(n, key="a") for n in range(1, 5)]))
    assert fetched(log, stream, "g") == [1]
    number = purge(log, stream)
    assert fetched(log, stream, "g") == []
    got: list[int] = []
    log.run(fetched_between(log, stream, undo.undo(stream, number), got))
    assert set(got) <= {1}


def test_what_a_fetch_got_in_the_middle_of_an_undo_does_not_come_back_once_more(
    log: Log, stream: str
) -> None:
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True, ack_wait_ms=HOUR_MS)))
    log.run(append(stream, [message(1, key="a"), message(2, key="a"), message(3, key="b")]))
    assert fetched(log, stream, "g") == [1, 3]
    log.run(groups.ack(stream, "g", "offsets", [1, 3]))
    for number in (1, 2):
        assert purge(log, stream) == number
        got: list[int] = []
        log.run(fetched_between(log, stream, undo.undo(stream, number), got))
        assert got == ([2] if number == 1 else [])
        log.run(groups.ack(stream, "g", "offsets", got))
    stands = log.run(standing.inspect(stream, "g"))
    assert (stands.lag, stands.ack_pending, stands.lost) == (0, 0, 0)
