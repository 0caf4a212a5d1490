"""What a group has out is held against itself, put right, and let be where it is right."""

import contextlib
import random
from collections.abc import Callable

import msgspec
import pytest

from streams.log import (
    dead_letters,
    entries,
    fsck_groups,
    group_meta,
    groups,
    keys,
    removals,
    standing,
    trim,
    undo,
)
from streams.log.append import append
from streams.log.client import Log
from streams.log.errors import LogError
from streams.log.groups import Settings
from tests.streams.log.checked import break_due, mended, whats
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import fill, message, offsets


def group_set(log: Log, stream: str, field: str, value: int) -> None:
    held = log.client.execute_command("HGET", keys.group(stream, "g"), group_meta.COUNTERS)
    counters = msgspec.msgpack.decode(held)
    counters[group_meta.Counters.__struct_fields__.index(field)] = value
    packed = msgspec.msgpack.encode(counters)
    log.client.execute_command("HSET", keys.group(stream, "g"), group_meta.COUNTERS, packed)


def break_position(log: Log, stream: str) -> None:
    group_set(log, stream, "delivered", 20)


def break_position_beyond(log: Log, stream: str) -> None:
    group_set(log, stream, "delivered", 5000)


def break_acked(log: Log, stream: str) -> None:
    group_set(log, stream, "acked", 4000)


def break_pending(log: Log, stream: str) -> None:
    (first, *_) = log.client.execute_command("ZRANGE", keys.pending(stream, "g"), 0, -1)
    log.client.execute_command("ZREM", keys.pending(stream, "g"), first)


def break_lease(log: Log, stream: str) -> None:
    (first, *_) = log.client.execute_command("ZRANGE", keys.pending(stream, "g"), 0, -1)
    log.client.execute_command("HDEL", keys.leases(stream, "g"), first)


def break_runs(log: Log, stream: str) -> None:
    log.client.execute_command("DEL", keys.runs(stream, "g"))


@pytest.mark.parametrize(
    "damage",
    [break_position, break_position_beyond, break_acked, break_pending, break_lease, break_runs, break_due],
)
def test_what_a_group_has_out_is_put_right(
    log: Log, make_stream: MakeStream, damage: Callable[[Log, str], None]
) -> None:
    """Ten were delivered alone, again, and twenty together; five of these were acknowledged."""
    stream = make_stream()
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=600_000)))
    fill(log, stream, 60)
    log.run(groups.fetch(stream, "g", limit=10))
    log.run(groups.nack(stream, "g", "offsets", list(range(1, 11))))
    log.run(groups.fetch(stream, "g", limit=10))
    log.run(groups.fetch(stream, "g", limit=20))
    log.run(groups.ack(stream, "g", "offsets", [11, 12, 13, 14, 15]))
    before = log.run(standing.inspect(stream, "g"))
    assert whats(log, stream) == []
    damage(log, stream)
    assert whats(log, stream)
    assert mended(log, stream)
    assert whats(log, stream) == []
    after = log.run(standing.inspect(stream, "g"))
    assert after.ack_pending == before.ack_pending
    if damage is not break_position_beyond:
        assert after.delivered_offset == before.delivered_offset


def test_a_replayed_dead_letter_that_waits_for_its_turn_is_right(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key="k") for n in (1, 2)]))
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True)))
    log.run(groups.fetch(stream, "g", limit=10))
    log.run(groups.term(stream, "g", "offsets", [1], reason=""))
    log.run(groups.fetch(stream, "g", limit=10))
    log.run(dead_letters.replay(stream, "g", [1]))
    assert whats(log, stream) == []
    assert log.run(fsck_groups.mend(stream)) == 0
    log.run(groups.ack(stream, "g", "offsets", [2]))
    assert whats(log, stream) == []
    assert log.run(fsck_groups.mend(stream)) == 0
    taken = log.run(groups.fetch(stream, "g", limit=10)).deliveries
    assert [entries.position(each.entry)[0] for each in taken] == [1]


def test_the_head_of_a_key_that_would_never_come_again_is_found(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key="k") for n in (1, 2)]))
    log.run(groups.group_publish(stream, "g", Settings(ordered_by_key=True)))
    log.run(groups.fetch(stream, "g", limit=10))
    log.client.execute_command("DEL", keys.due(stream, "g"))
    assert whats(log, stream) == ["group g: due 1"]
    assert log.run(fsck_groups.mend(stream)) == 1


def test_whatever_is_done_to_groups_they_agree(log: Log, make_stream: MakeStream) -> None:
    """At random, also with what is removed for a while and comes back, looked at after every step."""
    for seed in range(4):
        whatever(
            log, make_stream(archive=seed % 2 == 0, max_messages=[None, 60][seed // 2]), random.Random(seed)
        )


DEEDS = (
    *("append", "append", "fetch", "fetch", "ack", "nack", "term", "replay", "seek", "delete", "purge"),
    *("aside", "aside", "undo", "end", "drop", "told"),
)


def whatever(log: Log, stream: str, chance: random.Random) -> None:
    names, number = ("plain", "ordered", "filtered"), 0
    settings = {
        "plain": Settings(max_deliver=3, backoff_ms=(1, 50)),
        "ordered": Settings(ordered_by_key=True, max_deliver=2),
        "filtered": Settings(filter_keys=("k.1", "k.2"), ack_wait_ms=100),
    }
    for name in names:
        log.run(groups.group_publish(stream, name, settings[name]))
    for step in range(150):
        name = chance.choice(names)
        there = offsets(log, stream)
        some = sorted(chance.sample(there, min(len(there), chance.randint(1, 5))))
        what = chance.choice(DEEDS)
        if what == "append":
            fresh = [
                message(number + n, key=f"k.{n % 4}", ttl_s=1000 if chance.random() < 0.1 else None)
                for n in range(chance.randint(1, 9))
            ]
            number += len(fresh)
            log.run(append(stream, fresh))
        elif what == "fetch":
            log.run(groups.fetch(stream, name, limit=chance.randint(1, 20)))
        elif what in {"ack", "nack", "term"} and some:
            more = {"reason": ""} if what == "term" else {}
            log.run(getattr(groups, what)(stream, name, "offsets", some, **more))
        elif what == "replay":
            log.run(dead_letters.replay_all(stream, name))
        elif what == "seek":
            log.run(groups.seek(stream, name, next_offset=chance.randint(1, number + 1)))
        elif what in {"delete", "aside"} and some:
            if what == "delete":
                log.run(trim.delete(stream, some))
            else:
                log.run(removals.delete(stream, some, keep_ms=3_600_000, facts={}))
        elif what == "purge" and some:
            log.run(removals.purge(stream, below=some[0], keep_ms=3_600_000, facts={}))
        elif what == "undo":
            with contextlib.suppress(LogError):  # what limits took since does not come back
                for each in log.run(removals.removals(stream))[:1]:
                    log.run(undo.undo(stream, each.number, partial=True))
        elif what == "end":
            log.run(undo.end(stream))
        elif what == "drop":
            log.run(trim.drop(stream, hold_ms=0))
        elif what == "told":
            log.run(groups.group_publish(stream, name, settings[name]))
        assert whats(log, stream) == [], (step, what, name)
