"""How a group is stored, and that one of an earlier version goes on where it was."""

import pytest

from streams.log import errors, group_meta, groups, keys, pending, standing
from streams.log.client import Log
from streams.log.commands import Script, one
from streams.log.groups import Settings
from tests.streams.log.messages import fill

EARLIER = {
    "name": "g",
    "ack": "explicit",
    "ack_wait_ms": 30_000,
    "max_deliver": 5,
    "backoff": "1000,2000",
    "max_ack_pending": 1000,
    "ordered": 0,
    "delivered": 3,
    "generation": 1_700_000_000_000,
    "sequence": 3,
    "acked": 1,
    "made_ms": 12,
}
"""Of three messages given to a member one was acknowledged; what is not named was 0."""


@pytest.fixture
def earlier(log: Log, stream: str) -> str:
    """A group as the version before stored it, with two messages in flight."""
    fill(log, stream, 5)
    store(log, stream)
    for offset in (2, 3):
        log.client.execute_command("ZADD", keys.pending(stream, "g"), offset, offset)
        log.client.execute_command("ZADD", keys.due(stream, "g"), 2**52, offset)
        log.client.execute_command("HSET", keys.leases(stream, "g"), offset, f"1:{offset}:1700000000000:anna")
    return stream


def store(log: Log, stream: str, **fields: object) -> None:
    pairs = [part for pair in {**EARLIER, **fields}.items() for part in pair]
    log.client.execute_command("HSET", keys.group(stream, "g"), *pairs)
    log.client.execute_command("SADD", keys.groups(stream), "g")


def publish(log: Log, stream: str, settings: Settings) -> bool:
    return log.run(groups.group_publish(stream, "g", settings))


def test_a_group_of_an_earlier_version_goes_on_where_it_was(log: Log, earlier: str) -> None:
    assert not publish(log, earlier, Settings())
    state = log.run(standing.inspect(earlier, "g"))
    assert (state.delivered_offset, state.ack_floor, state.ack_pending, state.lag) == (3, 1, 2, 2)
    assert (state.acked, state.deliveries, state.lost, state.made_ms) == (1, 3, 0, 12)
    assert log.run(groups.ack(earlier, "g", "leases", ["1700000000000-2-2", "1700000000000-3-3"])) == 2
    fetched = log.run(groups.fetch(earlier, "g", limit=9))
    assert [delivery.lease for delivery in fetched.deliveries] == ["1700000000000-4-4", "1700000000000-5-5"]


def test_who_has_what_of_an_earlier_version_is_counted_once(log: Log, earlier: str) -> None:
    for _ in range(2):
        publish(log, earlier, Settings())
        members = log.run(pending.members(earlier, "g"))
        assert members == {"anna": pending.Member(messages=2, active_ms=1_700_000_000_000)}
    log.run(groups.ack(earlier, "g", "offsets", [2]))
    assert log.run(pending.members(earlier, "g"))["anna"].messages == 1


def test_a_filter_of_an_earlier_version_is_kept_until_the_new_one_counts(log: Log, stream: str) -> None:
    fill(log, stream, 4)
    store(log, stream, filter="^a$", seen=0, missed=2)
    publish(log, stream, Settings(filter_keys=("a",)))
    state = log.run(standing.inspect(stream, "g"))
    assert (state.lost, state.lag, state.delivered_offset) == (2, 0, 3)


def test_a_group_from_before_losses_were_counted_keeps_its_number(log: Log, stream: str) -> None:
    fill(log, stream, 4)
    store(log, stream, lost=7)
    publish(log, stream, Settings())
    assert log.run(standing.inspect(stream, "g")).lost == 7


def test_the_counters_are_in_the_order_in_which_the_scripts_write_them(log: Log, stream: str) -> None:
    publish(log, stream, Settings(max_deliver=3))
    fill(log, stream, 5)
    log.run(groups.fetch(stream, "g", limit=2))
    log.run(groups.pause(stream, "g", until_ms=2**40))
    held = group_meta.read(log.client.hmget(keys.group(stream, "g"), *group_meta.FIELDS))
    assert held is not None
    assert held.settings["max_deliver"] == 3
    assert (held.counters.delivered, held.counters.sequence, held.counters.paused_until) == (2, 2, 2**40)
    assert held.counters.retired_ms == -1


def test_a_group_that_is_not_there_is_nothing(log: Log, stream: str) -> None:
    assert group_meta.read(log.client.hmget(keys.group(stream, "g"), *group_meta.FIELDS)) is None
    assert log.run(standing.positions(stream, ["g"])) == [None]
    with pytest.raises(errors.GroupNotFound):
        log.run(one(Script("group_pause", [keys.group(stream, "g")], [keys.wake(stream), ""])))
