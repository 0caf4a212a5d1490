"""What a preview says is what then happens, to the message and the byte."""

import random
from collections.abc import Callable
from typing import Any

from streams.log import groups, keys, read, stats, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Settings
from streams.log.preview import Preview, preview
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import browse, fill, message

STREAMS = 150


def whole(log: Log, stream: str) -> dict[str, bytes]:
    """Everything that the store holds of a stream."""
    found = sorted(key for key in log.client.execute_command("KEYS", f"okmq:{{{stream}}}:*"))
    return {key.decode(): log.client.execute_command("DUMP", key) for key in found}


def effect_of(log: Log, stream: str, apply: Callable[[], None]) -> tuple[int, int, int, set[int]]:
    before, held = log.run(stats.inspect(stream)), {each.offset for each in browse(log, stream)}
    apply()
    log.run(trim.apply_limits(stream))
    log.run(trim.keep_newest_of_keys(stream))
    after, left = log.run(stats.inspect(stream)), {each.offset for each in browse(log, stream)}
    return before.messages - after.messages, before.bytes - after.bytes, after.first_offset, held - left


def test_what_a_preview_says_is_what_then_goes(
    log: Log, make_stream: MakeStream, publish_settings: Publish
) -> None:
    chance = random.Random(3)
    for n in range(STREAMS):
        stream = make_stream(max_messages_per_key=chance.choice([None, 4]), archive=chance.random() < 0.3)
        count = chance.randint(0, 40)
        batch = [
            message(k, body=b"7" * chance.randint(1, 20), key=chance.choice([None, "a.x", "a.y", "b"]))
            for k in range(1, count + 1)
        ]
        if batch:
            log.run(append(stream, batch))
        filters = {"all": (), "some": ("a.*",)}
        settled: dict[str, set[int]] = {}
        for name, patterns in filters.items():
            log.run(groups.group_publish(stream, name, Settings(filter_keys=patterns)))
            got = log.run(groups.fetch(stream, name, limit=chance.randint(1, 30))).deliveries
            offsets = [int(each.lease.split("-")[1]) for each in got]
            settled[name] = set(chance.sample(offsets, len(offsets) // 2))
            log.run(groups.ack(stream, name, "offsets", sorted(settled[name])))
        log.run(trim.delete(stream, chance.sample(range(1, 45), 6)))
        wanted: dict[str, Any] = {
            "max_messages": chance.choice([None, chance.randint(1, 40)]),
            "max_bytes": chance.choice([None, chance.randint(1, 400)]),
            "max_messages_per_key": chance.choice([None, chance.randint(1, 5)]),
        }
        key_of = {each.offset: each.key for each in browse(log, stream)}
        told = log.run(preview(stream, wanted, filters))
        went = effect_of(log, stream, lambda: publish_settings(stream, **wanted))  # noqa: B023
        assert (told.messages, told.bytes, told.first_offset) == went[:3], (n, wanted)
        for name in filters:
            unread = {
                offset
                for offset in went[3] - settled[name]
                if name == "all" or (key_of[offset] or "").startswith("a.")
            }
            assert told.unread[name] == len(unread), (n, name, wanted)
        assert (told.as_of, told.is_complete) == (count, True)


def test_a_preview_changes_nothing(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=50)
    log.run(append(stream, [message(n, key=f"k{n % 3}") for n in range(1, 100)]))
    log.run(groups.group_publish(stream, "g", Settings()))
    before = whole(log, stream)
    told = log.run(preview(stream, {"max_messages": 5, "max_messages_per_key": 1}, {"g": ()}))
    assert (told.messages, told.unread) == (47, {"g": 47})
    assert whole(log, stream) == before


def test_the_time_of_what_would_be_the_oldest_is_told(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    kept = log.run(preview(stream, {"max_messages": 1}, {}))
    assert (kept.first_offset, kept.oldest_ms) == (3, browse(log, stream)[2].timestamp_ms)
    at = log.run(read.position(stream))
    assert log.run(preview(stream, {}, {})) == Preview(
        messages=0,
        bytes=0,
        first_offset=1,
        oldest_ms=browse(log, stream)[0].timestamp_ms,
        unread={},
        as_of=at.last,
        is_complete=True,
    )


def test_too_much_to_look_at_is_said(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key="a") for n in range(1, 1001)]))
    log.run(append(stream, [message(n, key="a") for n in range(1001, 1201)]))
    told = log.run(preview(stream, {"max_messages_per_key": 1}, {}, within_s=0, always=1))
    assert (told.messages, told.is_complete) == (999, False)
    told = log.run(preview(stream, {"max_messages_per_key": 1}, {}, within_s=0, always=2000))
    assert (told.messages, told.is_complete) == (1199, True)


def test_what_goes_by_interest_is_told_by_arithmetic_where_no_group_has_a_filter(
    log: Log, make_stream: MakeStream, publish_settings: Publish
) -> None:
    chance = random.Random(5)
    for n in range(40):
        stream = make_stream(max_messages=chance.choice([None, 12]), archive=chance.random() < 0.3)
        for name in ("a", "b"):
            ordered = chance.random() < 0.3
            log.run(groups.group_publish(stream, name, Settings(ordered_by_key=ordered)))
        batch = [message(k, body=b"7" * k, key=chance.choice([None, "x", "y"])) for k in range(1, 20)]
        log.run(append(stream, batch[: chance.randint(1, 19)]))
        for name in ("a", "b"):
            got = log.run(groups.fetch(stream, name, limit=chance.randint(1, 25))).deliveries
            offsets = [int(each.lease.split("-")[1]) for each in got]
            log.run(groups.ack(stream, name, "offsets", chance.sample(offsets, len(offsets) * 2 // 3)))
        log.run(trim.delete(stream, chance.sample(range(1, 20), 4)))
        wanted = {"retention": "interest", "max_messages": chance.choice([None, 8])}
        told = log.run(preview(stream, wanted, {"a": (), "b": ()}, within_s=0, always=0))

        def apply(stream: str = stream, wanted: dict[str, Any] = wanted) -> None:
            publish_settings(stream, **wanted)
            log.run(trim.release(stream))

        went = effect_of(log, stream, apply)
        assert (told.messages, told.bytes, told.first_offset) == went[:3], (n, wanted)
        assert told.is_complete, "nothing had to be looked at"


def test_a_group_that_the_log_does_not_know_is_left_out(log: Log, stream: str) -> None:
    fill(log, stream, 2)
    assert log.run(preview(stream, {"max_messages": 1}, {"gone": ()})).unread == {}
    assert not log.client.execute_command("EXISTS", keys.group(stream, "gone"))
