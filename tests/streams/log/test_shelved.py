"""What was out when it went for a while, and answers that cover it until it comes back."""

import statistics
from typing import Literal

import pytest

from streams.log import config, entries, groups, keys, removals, standing, trim, undo
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Settings
from tests.streams.log.conftest import DEFAULTS
from tests.streams.log.messages import fill, message
from tests.streams.log.weighed import Weighed
from tests.waiting import until


@pytest.mark.parametrize("ack", ["explicit", "all"])
@pytest.mark.parametrize("is_looked_at", [False, True])
def test_an_answer_up_to_an_offset_counts_for_what_went_for_a_while(
    log: Log, stream: str, ack: Literal["explicit", "all"], is_looked_at: bool
) -> None:
    fill(log, stream, 1500)
    log.run(groups.group_publish(stream, "g", Settings(ack=ack, max_ack_pending=2000)))
    log.run(groups.fetch(stream, "g", limit=1500))
    _, number = log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
    if is_looked_at:
        assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    assert log.run(groups.ack(stream, "g", "up_to", [1400])) == 0
    log.run(undo.undo(stream, number or 0))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 100


@pytest.mark.parametrize("by", ["offsets", "leases"])
def test_an_answer_that_covers_what_is_before_it_counts_for_what_went_for_a_while(
    log: Log, stream: str, by: Literal["offsets", "leases"]
) -> None:
    fill(log, stream, 6)
    log.run(groups.group_publish(stream, "g", Settings(ack="all")))
    taken = log.run(groups.fetch(stream, "g", limit=5)).deliveries
    _, number = log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    fourth = taken[3].lease if by == "leases" else entries.position(taken[3].entry)[0]
    assert log.run(groups.ack(stream, "g", by, [fourth])) == 0
    log.run(undo.undo(stream, number or 0))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 1


def out_then_gone(log: Log, stream: str, count: int) -> int:
    """Messages that are out when they go for a while; the number of the removal."""
    fill(log, stream, count)
    log.run(groups.group_publish(stream, "g", Settings(max_ack_pending=2000)))
    log.run(groups.fetch(stream, "g", limit=count))
    _, number = log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
    assert number
    return number


@pytest.mark.parametrize("is_looked_at", [False, True])
def test_what_was_ended_while_it_was_gone_does_not_come_again(
    log: Log, stream: str, is_looked_at: bool
) -> None:
    number = out_then_gone(log, stream, 3)
    if is_looked_at:
        log.run(standing.inspect(stream, "g"))
    assert log.run(groups.term(stream, "g", "offsets", [1, 2], reason="bad")) == []
    log.run(undo.undo(stream, number))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 1


@pytest.mark.parametrize("is_looked_at", [False, True])
def test_what_was_given_back_while_it_was_gone_comes_at_once(
    log: Log, stream: str, is_looked_at: bool
) -> None:
    number = out_then_gone(log, stream, 3)
    if is_looked_at:
        log.run(standing.inspect(stream, "g"))
    assert log.run(groups.nack(stream, "g", "offsets", [2])) == 0
    assert log.run(groups.nack(stream, "g", "offsets", [3], delay_ms=3_600_000)) == 0
    log.run(undo.undo(stream, number))
    again = log.run(groups.fetch(stream, "g", limit=3)).deliveries
    assert [entries.position(each.entry)[0] for each in again] == [2]


def test_leases_of_what_went_for_good_are_forgotten(log: Log, stream: str) -> None:
    number = out_then_gone(log, stream, 300)
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    assert log.client.hlen(keys.leases(stream, "g")) == 300
    assert log.run(undo.end(stream, number)) == 1
    assert log.client.exists(keys.leases(stream, "g"), keys.shelved(stream, "g")) == 0


def test_what_went_for_a_while_before_it_was_remembered_is_found_at_a_start(log: Log, stream: str) -> None:
    number = out_then_gone(log, stream, 3)
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    log.client.delete(keys.shelved(stream, "g"))
    log.run(groups.group_publish(stream, "g", Settings(max_ack_pending=2000)))
    log.run(groups.ack(stream, "g", "up_to", [2]))
    log.run(undo.undo(stream, number))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 1


def test_an_answer_costs_no_more_because_something_went_for_a_while(valkey_memory: str, unique: str) -> None:
    weighed = Weighed(valkey_memory)
    stream = config.Registered(
        stream_id=keys.stream_id(), name=unique, workspace="default", workspace_id=1, archive=False
    )
    with_library = Log(valkey_memory)
    with_library.run(config.stream_publish(stream, DEFAULTS))
    with_library.close()
    for first in range(0, 10_000, 1000):
        weighed.run(append(stream.stream_id, [message(n, key="k") for n in range(first, first + 1000)]))
    on = stream.stream_id, "g"
    settings = Settings(max_ack_pending=10_000, ack_wait_ms=600_000, filter_keys=(">",))
    weighed.run(groups.group_publish(*on, settings))
    weighed.run(groups.fetch(*on, limit=10_000))

    def median_ms(offsets: range) -> float:
        weighed.took_ms.clear()
        for upto in offsets:
            assert weighed.run(groups.ack(*on, "up_to", [upto])) == 1
        return statistics.median(weighed.took_ms)

    before = median_ms(range(1, 30))
    weighed.run(removals.delete(stream.stream_id, [5_000], keep_ms=3_600_000, facts={}))
    weighed.run(standing.inspect(*on))
    assert median_ms(range(30, 60)) <= 5 * before
    weighed.close()


@pytest.mark.parametrize("earlier", [[3], [1, 2, 4]])
def test_what_an_earlier_removal_keeps_away_stays_away_when_a_later_one_is_undone(
    log: Log, stream: str, earlier: list[int]
) -> None:
    fill(log, stream, 5)
    log.run(groups.group_publish(stream, "g", Settings()))
    log.run(groups.fetch(stream, "g", limit=5))
    _, first = log.run(removals.delete(stream, earlier, keep_ms=3_600_000, facts={}))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 5 - len(earlier)
    _, second = log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    log.run(undo.undo(stream, second or 0))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 5 - len(earlier)
    stayed = [offset for offset in range(1, 6) if offset not in earlier]
    assert log.run(groups.ack(stream, "g", "offsets", stayed)) == len(stayed)
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    log.run(undo.undo(stream, first or 0))
    assert log.run(standing.inspect(stream, "g")).ack_pending == len(earlier)


def test_what_came_back_and_went_again_is_out_no_more(log: Log, stream: str) -> None:
    """Both times nobody looks between coming back and going."""
    fill(log, stream, 5)
    log.run(groups.group_publish(stream, "g", Settings()))
    log.run(groups.fetch(stream, "g", limit=5))
    for _ in range(2):
        _, number = log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
        assert log.run(standing.inspect(stream, "g")).ack_pending == 0
        log.run(undo.undo(stream, number or 0))
    log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0


def test_what_is_gone_for_good_is_due_no_more(log: Log, stream: str) -> None:
    """It was out when it went, and the removal ended before it would have come again."""
    fill(log, stream, 5)
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=200)))
    log.run(groups.fetch(stream, "g", limit=2))
    log.run(removals.delete(stream, [1], keep_ms=3_600_000, facts={}))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 1
    log.run(undo.end(stream, 1))
    assert not log.client.zscore(keys.due(stream, "g"), 1)
    came: list[int] = []

    def all_came() -> bool:
        came.extend(
            entries.position(each.entry)[0] for each in log.run(groups.fetch(stream, "g", limit=5)).deliveries
        )
        return {2, 3, 4, 5} <= set(came)

    until(all_came)
    assert 1 not in came


def test_a_place_that_nobody_holds_a_lease_of_is_passed_over(log: Log, stream: str) -> None:
    """As a version before this one could leave it."""
    fill(log, stream, 3)
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=60_000)))
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(trim.delete(stream, [1]))
    log.run(standing.inspect(stream, "g"))
    log.client.zadd(keys.due(stream, "g"), {"1": 0})
    found = log.run(groups.fetch(stream, "g", limit=5)).deliveries
    assert [entries.position(each.entry)[0] for each in found] == [2, 3]
    assert not log.client.zscore(keys.due(stream, "g"), 1)


def test_what_went_before_a_seek_and_comes_back_is_not_lost(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    log.run(groups.group_publish(stream, "g", Settings()))
    log.run(groups.fetch(stream, "g", limit=5))
    log.run(groups.ack(stream, "g", "up_to", [5]))
    log.run(removals.delete(stream, [3], keep_ms=3_600_000, facts={}))
    log.run(groups.seek(stream, "g", next_offset=1))
    log.run(groups.group_publish(stream, "new", Settings()))
    log.run(undo.undo(stream, 1))
    for name in ("g", "new"):
        found = log.run(standing.inspect(stream, name))
        assert (found.lag, found.lost) == (5, 0), name
        assert len(log.run(groups.fetch(stream, name, limit=5)).deliveries) == 5
        assert log.run(standing.inspect(stream, name)).lost == 0
