"""What is wrong with a stream is found, what follows from its messages is put right, and what is right is let be."""

import random
import tracemalloc
from collections.abc import Callable

import msgspec
import pytest

from streams.log import (
    config,
    entries,
    fsck,
    fsck_groups,
    groups,
    keys,
    meta,
    trim,
)
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Settings
from streams.log.read import position
from tests.streams.log.checked import break_due, looked_at, mended, whats
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import fill, message, offsets


def counters_set(log: Log, stream: str, **wrong: int) -> None:
    packed = log.client.execute_command("HGET", keys.meta(stream), meta.COUNTERS)
    changed = msgspec.structs.replace(meta.unpack(packed), **wrong)
    log.client.execute_command("HSET", keys.meta(stream), meta.COUNTERS, meta.pack(changed))


@pytest.fixture
def lived_in(log: Log, make_stream: MakeStream) -> str:
    """A stream with keys, expiries, single deletions, a floor, an undo, and a group with everything in flight."""
    stream = make_stream(archive=True)
    batch = [
        message(n, key=f"k.{n % 5}", ttl_s=1000 if n % 7 == 0 else None, body=b"1" * (1 + n % 9))
        for n in range(1, 301)
    ]
    log.run(groups.group_publish(stream, "g", Settings(max_ack_pending=1000)))
    log.run(append(stream, batch))
    log.run(trim.purge(stream, below=20))
    log.run(trim.delete(stream, [30, 31, 32, 290]))
    taken = log.run(groups.fetch(stream, "g", limit=100)).deliveries
    log.run(groups.ack(stream, "g", "offsets", [entries.position(each.entry)[0] for each in taken[::3]]))
    log.run(append(stream, [message(n) for n in range(301, 330)]))
    return stream


def test_a_stream_that_was_used_in_every_way_agrees(log: Log, lived_in: str) -> None:
    assert whats(log, lived_in) == []
    assert looked_at(log, lived_in).messages == len(offsets(log, lived_in))


def test_an_empty_stream_agrees(log: Log, stream: str) -> None:
    assert whats(log, stream) == []


def test_there_is_nothing_to_say_of_a_stream_that_is_not_there(log: Log) -> None:
    assert log.run(fsck.look(keys.stream_id())) is None


def break_counters(log: Log, stream: str) -> None:
    counters_set(log, stream, messages=7, bytes=8)


def break_last(log: Log, stream: str) -> None:
    counters_set(log, stream, last=200, messages=1, bytes=1)


def break_ids(log: Log, stream: str) -> None:
    for bucket in (0, 1):
        log.client.execute_command("HDEL", keys.ids(stream, bucket), "id-100", "id-101")


def break_key(log: Log, stream: str) -> None:
    log.client.execute_command("HSET", keys.by_key(stream), "k.1", 21)


def break_expiry(log: Log, stream: str) -> None:
    log.client.execute_command("ZREM", keys.expiry(stream), 77)


def break_committed(log: Log, stream: str) -> None:
    counters_set(log, stream, committed=999, archived=9999)


def break_floor_sum(log: Log, stream: str) -> None:
    counters_set(log, stream, floor_cum=777)


def break_figures(log: Log, stream: str) -> None:
    counters_set(log, stream, duplicates=-5, widest=1)


def break_ids_of_nothing(log: Log, stream: str) -> None:
    log.client.execute_command("HSET", keys.ids(stream, 0), "nobody", 9999)
    log.client.execute_command("HSET", keys.ids(stream, 1), "another", 150)


def break_key_beyond(log: Log, stream: str) -> None:
    log.client.execute_command("HSET", keys.by_key(stream), "k.1", 9999, "k.none", 9998)


def break_expiry_of_nothing(log: Log, stream: str) -> None:
    log.client.execute_command("ZADD", keys.expiry(stream), 1 << 42, 9999, 1 << 42, 150)


BREAKS: list[tuple[Callable[[Log, str], None], set[str]]] = [
    (break_counters, {"messages", "bytes"}),
    (break_last, {"last", "messages", "bytes", "last_id", "cum"}),
    (break_ids, {"id id-100", "id id-101"}),
    (break_key, {"key k.1"}),
    (break_expiry, {"expiry 77"}),
    (break_committed, {"committed", "archived"}),
    (break_floor_sum, {"floor_cum"}),
    (break_figures, {"duplicates", "widest"}),
    (break_ids_of_nothing, {"id nobody", "id another"}),
    (break_key_beyond, {"key k.1", "key k.none"}),
    (break_expiry_of_nothing, {"expiry 150", "expiry 9999"}),
]


@pytest.mark.parametrize(("damage", "expected"), BREAKS, ids=[damage.__name__ for damage, _ in BREAKS])
def test_what_follows_from_the_messages_is_put_right(
    log: Log, lived_in: str, damage: Callable[[Log, str], None], expected: set[str]
) -> None:
    before = looked_at(log, lived_in).right.counters
    damage(log, lived_in)
    found = set(whats(log, lived_in))
    assert found
    assert found <= expected
    assert mended(log, lived_in)
    assert whats(log, lived_in) == []
    after = looked_at(log, lived_in).right.counters
    assert (after.last, after.messages, after.bytes, after.cum) == (
        before.last,
        before.messages,
        before.bytes,
        before.cum,
    )


def test_what_a_key_that_is_often_used_pushed_out_is_not_remembered_one_by_one(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_messages_per_key=1)
    log.run(append(stream, [message(0, key="quiet")]))
    for first in range(1, 60_000, 1000):
        log.run(append(stream, [message(n, key="hot") for n in range(first, first + 1000)]))
    log.client.unlink(keys.ids(stream, 0), keys.ids(stream, 1))  # these are remembered, each
    tracemalloc.start()
    try:
        looked = looked_at(log, stream)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert looked.messages == 2
    assert all(each.what.startswith("id ") for each in looked.findings)
    assert peak_bytes < 1_000_000


def test_a_gap_without_a_trace_is_told_and_noted_in_parts_that_scripts_can_read(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream()
    fill(log, stream, 1000, body=b"12")
    lost = log.client.execute_command("XRANGE", keys.log(stream), 301, 700)
    log.client.execute_command("XDEL", keys.log(stream), *(entry for entry, _ in lost))
    looked = looked_at(log, stream)
    (missing,) = (each.sentence for each in looked.findings if each.what == "missing")
    assert missing == "the message at 301 and 399 more is not there"
    assert looked.right.gone == [(301, 511, 800), (512, 700, 0)]
    assert mended(log, stream)
    assert whats(log, stream) == []
    assert log.run(trim.purge(stream, below=801)).messages == 400
    assert whats(log, stream) == []


def test_what_would_never_come_again_comes_again(log: Log, lived_in: str) -> None:
    break_due(log, lived_in)
    (found,) = whats(log, lived_in)
    assert found.startswith("group g: ")
    assert mended(log, lived_in)
    assert whats(log, lived_in) == []
    assert log.run(groups.fetch(lived_in, "g", limit=1)).deliveries[0].deliveries == 2


def test_what_is_gone_without_a_trace_is_not_counted_and_what_is_right_stays_so(
    log: Log, lived_in: str
) -> None:
    before = looked_at(log, lived_in).right.counters
    readable = len(offsets(log, lived_in))
    log.client.execute_command("DEL", keys.gone(lived_in))
    assert {each.what for each in looked_at(log, lived_in).findings} == {"missing"}
    assert mended(log, lived_in)
    assert whats(log, lived_in) == []
    after = looked_at(log, lived_in).right.counters
    assert (after.messages, after.bytes) == (before.messages, before.bytes)
    assert after.messages == readable
    # Whatever goes now is counted as it would have been.
    log.run(trim.purge(lived_in, below=300))
    assert whats(log, lived_in) == []


def test_the_first_message_that_is_gone_without_a_trace_is_the_first_no_longer(
    log: Log, lived_in: str
) -> None:
    for offset in (20, 21):
        ((entry, _),) = log.client.execute_command("XRANGE", keys.log(lived_in), offset, offset)
        log.client.execute_command("XDEL", keys.log(lived_in), entry)
    assert mended(log, lived_in)
    assert whats(log, lived_in) == []
    assert log.run(position(lived_in)).floor == 22


def test_counters_that_are_gone_begin_by_the_messages(log: Log, lived_in: str) -> None:
    before = looked_at(log, lived_in).right.counters
    log.client.execute_command("HDEL", keys.meta(lived_in), meta.COUNTERS)
    assert [each.is_whole for each in log.run(config.lost([lived_in]))] == [False]
    log.run(config.streams_anew({lived_in: 1_000_000}))
    assert log.run(config.lost([lived_in])) == []
    assert mended(log, lived_in)
    assert whats(log, lived_in) == []
    after = looked_at(log, lived_in).right.counters
    for name in ("last", "messages", "bytes", "floor", "floor_cum", "cum", "last_id"):
        assert getattr(after, name) == getattr(before, name), name
    (appended,) = log.run(append(lived_in, [message(5000)]))
    assert appended.offset == 330


def test_a_log_that_gave_offsets_and_holds_none_goes_on_above_them(log: Log, stream: str) -> None:
    fill(log, stream, 10)
    log.run(trim.purge(stream))
    log.client.execute_command("DEL", keys.meta(stream))
    log.run(config.streams_anew({stream: 1_000_000}))
    counters = meta.unpack(log.client.execute_command("HGET", keys.meta(stream), meta.COUNTERS))
    assert (counters.last, counters.floor, counters.messages) == (10, 11, 0)


def test_a_message_that_is_gone_without_a_trace_is_told_and_nothing_can_be_done(
    log: Log, lived_in: str
) -> None:
    ((entry, _),) = log.client.execute_command("XRANGE", keys.log(lived_in), 150, 150)
    log.client.execute_command("XDEL", keys.log(lived_in), entry)
    missing = [each for each in looked_at(log, lived_in).findings if each.what == "missing"]
    assert [each.sentence for each in missing] == ["the message at 150 is not there"]
    assert not missing[0].derivable


def test_nothing_is_put_right_that_changed_since_it_was_looked_at(log: Log, lived_in: str) -> None:
    break_counters(log, lived_in)
    looked = looked_at(log, lived_in)
    fill(log, lived_in, 1, first=900)
    assert not log.run(fsck.mend(lived_in, looked))
    assert set(whats(log, lived_in)) >= {"messages"}


def test_publishing_goes_on_where_the_messages_end(log: Log, lived_in: str) -> None:
    break_last(log, lived_in)
    assert mended(log, lived_in)
    (appended,) = log.run(append(lived_in, [message(5000)]))
    assert appended.offset == 330
    assert log.run(position(lived_in)).last == 330


def test_keys_of_no_stream_are_found_and_taken_away(log: Log, stream: str) -> None:
    nobody = keys.stream_id()
    log.client.execute_command("SET", f"okmq:{{{nobody}}}:left", "1")
    found = log.run(fsck_groups.strangers())
    assert nobody in found
    assert stream not in found
    assert log.run(fsck_groups.strangers_remove(nobody)) == 1
    assert nobody not in log.run(fsck_groups.strangers())


def test_whatever_is_done_to_a_stream_it_agrees(log: Log, make_stream: MakeStream) -> None:
    """At random, looked at after every step."""
    chance = random.Random(5)
    stream = make_stream(max_messages=chance.choice([None, 40]), archive=chance.random() < 0.5)
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=100)))
    number = 0
    for _ in range(120):
        match chance.randrange(6):
            case 0 | 1:
                fresh = [message(number + n, key=f"k.{n}") for n in range(chance.randint(1, 9))]
                number += len(fresh)
                log.run(append(stream, fresh))
            case 2:
                log.run(groups.fetch(stream, "g", limit=chance.randint(1, 20)))
            case 3:
                log.run(groups.ack(stream, "g", "up_to", [chance.randint(1, number + 1)]))
            case 4:
                there = offsets(log, stream)
                if there:
                    log.run(trim.delete(stream, [chance.choice(there)]))
            case _:
                log.run(trim.purge(stream, below=chance.randint(1, number // 2 + 1)))
        assert whats(log, stream) == []
