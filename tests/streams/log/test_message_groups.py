"""How groups stand to one message, in every state that a message can be in."""

import pytest

from streams.log import dead_letters, entries, groups, message_groups, read, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage
from streams.log.errors import GroupNotFound
from streams.log.groups import Settings
from streams.log.message_groups import Standing
from tests.streams.log.messages import fill


def stands(log: Log, stream: str, offset: int, group: str = "g") -> Standing:
    message = entries.parse(log.run(read.message(stream, offset)))
    return log.run(message_groups.standing(stream, group, message))


def test_what_the_group_has_not_come_to_says_how_much_is_before_it(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings()))
    fill(log, stream, 6)
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(trim.delete(stream, [3]))
    assert [stands(log, stream, offset).before for offset in (2, 4, 6)] == [0, 1, 3]
    assert {stands(log, stream, offset).state for offset in (2, 4, 6)} == {"to_come"}


@pytest.mark.parametrize("limit", [1, 3])
def test_what_is_out_says_who_has_it_and_when_it_comes_again(log: Log, stream: str, limit: int) -> None:
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=30_000)))
    fill(log, stream, 3)
    log.run(groups.fetch(stream, "g", limit=limit, consumer="a"))
    found = stands(log, stream, 1)
    assert (found.state, found.deliveries, found.consumer, found.before) == ("in_flight", 1, "a", 0)
    assert found.at_ms is not None
    assert 25_000 < found.due_in_ms <= 30_000
    log.run(groups.nack(stream, "g", "offsets", [1]))
    log.run(groups.fetch(stream, "g", limit=1, consumer="b"))
    again = stands(log, stream, 1)
    assert (again.state, again.deliveries, again.consumer) == ("in_flight", 2, "b")


def test_what_was_acknowledged_is_passed_and_so_is_what_was_there_before_the_group(
    log: Log, stream: str
) -> None:
    fill(log, stream, 3)
    log.run(groups.group_publish(stream, "g", Settings()))
    log.run(groups.group_publish(stream, "late", Settings(), delivered=2))
    log.run(groups.fetch(stream, "g", limit=2))
    log.run(groups.ack(stream, "g", "offsets", [2]))
    states = [stands(log, stream, offset).state for offset in (1, 2, 3)]
    assert states == ["in_flight", "passed", "to_come"]
    assert [stands(log, stream, offset, "late").state for offset in (2, 3)] == ["passed", "to_come"]


def test_a_key_that_the_filter_leaves_out_is_told_before_and_behind_the_group(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=("a.>",))))
    keys = ["b", "a.1", None, "b"]
    log.run(append(stream, [NewMessage(id=f"m{n}", body=b"1", key=key) for n, key in enumerate(keys)]))
    log.run(groups.fetch(stream, "g", limit=1))
    states = [stands(log, stream, offset).state for offset in (1, 2, 3, 4)]
    assert states == ["filtered", "in_flight", "filtered", "filtered"]


def test_a_later_one_of_a_key_that_is_out_is_held_back(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True)))
    log.run(append(stream, [NewMessage(id=f"m{n}", body=b"1", key="k") for n in range(2)]))
    log.run(groups.fetch(stream, "g", limit=2))
    assert [stands(log, stream, offset).state for offset in (1, 2)] == ["in_flight", "held_back"]


def test_a_dead_letter_says_why_and_one_that_is_replayed_is_to_come_again(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings()))
    fill(log, stream, 1)
    log.run(groups.fetch(stream, "g", limit=1, consumer="a"))
    log.run(groups.term(stream, "g", "offsets", [1], reason="no such customer"))
    found = stands(log, stream, 1)
    assert (found.state, found.deliveries, found.reason, found.consumer) == (
        "dead_letter",
        1,
        "no such customer",
        "",
    )
    log.run(dead_letters.replay(stream, "g", [1]))
    assert stands(log, stream, 1).state == "in_flight"


def test_the_last_delivery_is_told_of_one_message_and_of_a_whole_run(log: Log, stream: str) -> None:
    fill(log, stream, 2)
    for name, limit in (("one", 1), ("run", 2)):
        log.run(groups.group_publish(stream, name, Settings(max_deliver=1)))
        log.run(groups.fetch(stream, name, limit=limit))
        assert stands(log, stream, 1, name).is_last
    log.run(groups.group_publish(stream, "more", Settings(max_deliver=2)))
    log.run(groups.fetch(stream, "more", limit=1))
    assert not stands(log, stream, 1, "more").is_last
    log.run(groups.nack(stream, "more", "offsets", [1]))
    log.run(groups.fetch(stream, "more", limit=1))
    assert stands(log, stream, 1, "more").is_last


def test_after_a_seek_back_over_a_dead_letter_the_message_is_to_come(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings()))
    fill(log, stream, 2)
    log.run(groups.fetch(stream, "g", limit=2))
    log.run(groups.term(stream, "g", "offsets", [2], reason=""))
    log.run(groups.seek(stream, "g", next_offset=1))
    assert (stands(log, stream, 2).state, stands(log, stream, 2).before) == ("to_come", 1)


def test_a_replayed_one_behind_another_of_its_key_is_held_back(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True)))
    log.run(append(stream, [NewMessage(id=f"m{n}", body=b"1", key="k") for n in range(2)]))
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(groups.term(stream, "g", "offsets", [1], reason=""))
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(dead_letters.replay(stream, "g", [1]))
    assert [stands(log, stream, offset).state for offset in (1, 2)] == ["held_back", "in_flight"]


def test_of_a_group_that_is_not_there_nothing_is_told(log: Log, stream: str) -> None:
    fill(log, stream, 1)
    with pytest.raises(GroupNotFound):
        stands(log, stream, 1)
