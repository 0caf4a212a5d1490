"""What a preview says is what then happens, to the message and the byte."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from streams.log import config, entries, groups, keys, read, removals, stats, trim, undo
from streams.log.append import append
from streams.log.client import Log
from streams.log.commands import one
from streams.log.entries import NewMessage
from streams.log.groups import Settings
from streams.log.lag import wanted_by
from streams.log.looking import Held
from streams.log.preview import Preview, Purge, preview
from tests.streams.log.conftest import DEFAULTS, MakeStream, Publish
from tests.streams.log.messages import browse, fill, message
from tests.waiting import until

STREAMS = 1000


def whole(log: Log, stream: str) -> dict[str, bytes]:
    """Everything that the store holds of a stream."""
    found = sorted(key for key in log.client.execute_command("KEYS", f"okmq:{{{stream}}}:*"))
    return {key.decode(): log.client.execute_command("DUMP", key) for key in found}


def effect_of(log: Log, stream: str, apply: Callable[[], None]) -> tuple[int, int, int, set[int]]:
    """What saving took away: messages, bytes, the first offset then, and which."""
    before, held = log.run(stats.inspect(stream)), {each.offset for each in browse(log, stream)}
    apply()
    log.run(trim.apply_limits(stream))
    log.run(trim.keep_newest_of_keys(stream))
    log.run(trim.release(stream))
    after, left = log.run(stats.inspect(stream)), {each.offset for each in browse(log, stream)}
    return before.messages - after.messages, before.bytes - after.bytes, after.first_offset, held - left


@dataclass
class Drawn:
    """A stream drawn at random: what its groups want (name → patterns) and have settled, where they have come to."""

    stream: str
    count: int
    wants: dict[str, tuple[str, ...]]
    acks: dict[str, str]
    settled: dict[str, set[int]] = field(default_factory=dict)
    made_s: float = field(default_factory=time.monotonic)

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.made_s

    def has_unread(self, name: str, offset: int, key: str | None) -> bool:
        is_wanted = not self.wants[name] or (key or "").startswith("a.")
        return is_wanted and offset not in self.settled[name]


def batch_of(chance: random.Random, first: int, *, ttls: Sequence[int | None]) -> list[NewMessage]:
    return [
        message(
            n,
            body=b"7" * chance.randint(1, 20),
            key=chance.choice([None, "a.x", "a.y", "b"]),
            ttl_s=chance.choice([None, None, *ttls]),
        )
        for n in range(first, first + chance.randint(0, 20))
    ]


def drawn(log: Log, chance: random.Random) -> Drawn:
    """A stream with its older half of messages."""
    stream = keys.stream_id()
    limits = {
        "max_messages_per_key": chance.choice([None, None, 4]),
        "max_messages": chance.choice([None, None, 30]),
        "archive": chance.random() < 0.3,
    }
    publish(log, stream, **limits)
    batch = batch_of(chance, 1, ttls=(1, 1000))
    if batch:
        log.run(append(stream, batch))
    wants = {"all": (), "some": ("a.*",), "loose": ()}
    names = chance.sample(sorted(wants), chance.randint(0, 3))
    acks = {name: "none" if name == "loose" else "explicit" for name in names}
    for name in names:
        log.run(groups.group_publish(stream, name, Settings(filter_keys=wants[name], ack=acks[name])))
    return Drawn(stream, len(batch), {name: wants[name] for name in names}, acks)


def publish(log: Log, stream: str, **settings: object) -> None:
    registered = config.Registered(
        stream_id=stream, name=stream, workspace="default", workspace_id=1, archive=False
    )
    log.run(config.stream_publish(registered, {**DEFAULTS, **settings}))


def filled_up(log: Log, chance: random.Random, each: Drawn) -> None:
    """The younger half, then groups that read and answer, then single deletions."""
    batch = batch_of(chance, each.count + 1, ttls=(1000,))
    if batch:
        log.run(append(each.stream, batch))
    each.count += len(batch)
    for name, ack in each.acks.items():
        got = log.run(groups.fetch(each.stream, name, limit=chance.randint(1, 30))).deliveries
        offsets = [entries.position(delivery.entry)[0] for delivery in got]
        done = offsets if ack == "none" else chance.sample(offsets, len(offsets) * chance.randint(0, 4) // 4)
        each.settled[name] = set(done)
        if ack == "explicit":
            log.run(groups.ack(each.stream, name, "offsets", sorted(done)))
    log.run(trim.delete(each.stream, chance.sample(range(1, 45), 6)))


@pytest.mark.long
@pytest.mark.long
@pytest.mark.timeout(600)
def test_on_a_thousand_random_streams_what_a_preview_says_is_what_then_goes(valkey_memory: str) -> None:
    chance, log = random.Random(3), Log(valkey_memory)
    streams = [drawn(log, chance) for _ in range(STREAMS)]
    until(lambda: streams[-1].age_s > 3)
    taken: Counter[str] = Counter()
    for each in streams:
        between_s = each.age_s / 2
        filled_up(log, chance, each)
        wanted: dict[str, Any] = {
            "ttl": chance.choice([None, None, max(1, round(between_s))]),
            "max_messages": chance.choice([None, chance.randint(1, 40)]),
            "max_bytes": chance.choice([None, chance.randint(1, 400)]),
            "max_messages_per_key": chance.choice([None, chance.randint(1, 5)]),
            "retention": chance.choice(["limits", "interest"]),
            "discard": chance.choice(["old", "new"]),
        }
        key_of = {found.offset: found.key for found in browse(log, each.stream)}
        told = log.run(preview(each.stream, wanted, each.wants))
        went = effect_of(log, each.stream, lambda: publish(log, each.stream, **wanted))  # noqa: B023
        assert (told.messages, told.bytes, told.first_offset) == went[:3], wanted
        left = browse(log, each.stream)
        assert told.oldest_ms == (left[0].timestamp_ms if left else None)
        assert told.unread == {
            name: sum(each.has_unread(name, offset, key_of[offset]) for offset in went[3])
            for name in each.wants
        }, wanted
        assert (told.as_of, told.is_complete) == (each.count, True)
        taken.update(name for name, value in wanted.items() if value is not None and went[0])
    assert min(taken[name] for name in ("ttl", "max_messages", "max_bytes", "max_messages_per_key")) > 100
    log.close()


def test_a_preview_changes_nothing(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=50)
    log.run(append(stream, [message(n, key=f"k{n % 3}") for n in range(1, 100)]))
    log.run(groups.group_publish(stream, "g", Settings()))
    before = whole(log, stream)
    told = log.run(preview(stream, {"max_messages": 5, "max_messages_per_key": 1}, {"g": ()}))
    assert (told.messages, told.unread) == (47, {"g": 47})
    assert whole(log, stream) == before


def test_what_a_preview_was_asked_of_holds_for_nobody_else(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=5)
    fill(log, stream, 5)
    assert log.run(preview(stream, {"max_messages": 1}, {})).messages == 4
    fill(log, stream, 3, first=6)
    assert log.run(stats.inspect(stream)).messages == 5


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


def test_too_much_to_look_at_is_said_and_the_next_question_goes_on(log: Log, stream: str) -> None:
    for first in (1, 1001):
        log.run(append(stream, [message(n, key="a") for n in range(first, first + 1000)]))
    limit, held = {"max_messages_per_key": 1}, Held()
    for seen in (500, 1000, 1500):
        told = log.run(preview(stream, limit, {}, held=held, within_s=0, always=1))
        assert (told.messages, told.bytes, told.is_complete) == (seen - 1, seen - 1, False)
        assert told.counted == seen / 2000
    told = log.run(preview(stream, limit, {}, held=held, within_s=0, always=1))
    assert (told.messages, told.first_offset, told.is_complete, told.counted) == (1999, 2000, True, 1.0)
    more = log.run(preview(stream, {"max_messages_per_key": 1500}, {}, held=held, within_s=0, always=0))
    assert (more.messages, more.is_complete) == (500, True)


def test_a_question_knows_what_came_and_went_since_the_last_one(log: Log, stream: str) -> None:
    def told(**limits: int) -> tuple[int, int, bool]:
        found = log.run(preview(stream, limits, {"some": ("b",)}, held=held, within_s=0, always=1))
        return found.messages, found.unread["some"], found.is_complete

    held = Held()
    log.run(groups.group_publish(stream, "some", Settings(filter_keys=("b",))))
    log.run(append(stream, [message(n, key="a") for n in range(1, 11)]))
    assert told(max_messages_per_key=4) == (6, 0, True)
    kept = held.census
    log.run(append(stream, [message(n, key=key) for n, key in ((11, "b"), (12, "a"), (13, "b"), (14, None))]))
    assert told(max_messages_per_key=4) == (7, 0, True)
    assert told(max_messages_per_key=1) == (11, 1, True)
    assert told(max_messages=2) == (12, 1, True)
    log.run(trim.delete(stream, [12, 3]))
    assert told(max_messages_per_key=4) == (5, 0, True)
    _, number = log.run(removals.delete(stream, [13], keep_ms=60_000, facts={}))
    assert told(max_messages_per_key=1) == (8, 0, True)
    assert number
    log.run(undo.undo(stream, number))
    assert told(max_messages_per_key=1) == (9, 1, True)
    log.run(trim.purge(stream, below=5))
    assert told(max_messages_per_key=1) == (6, 1, True)
    assert held.census is kept, "it began anew"


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


@pytest.mark.parametrize(
    ("patterns", "begins", "went", "unread"),
    [((), 0, 0, 6), ((), 7, 7, 0), (("a",), 0, 5, 3), (("a",), 7, 9, 0)],
)
def test_a_group_that_the_log_is_yet_to_hear_of_counts_from_where_it_begins(
    log: Log, stream: str, patterns: tuple[str, ...], begins: int, went: int, unread: int
) -> None:
    log.run(append(stream, [message(n, key="ab"[n % 2]) for n in range(10)]))
    groups_, held = {"new": patterns}, {"new": begins}
    told = log.run(preview(stream, {"retention": "interest"}, groups_, begins=held))
    assert (told.messages, told.unread, told.is_complete) == (went, {"new": 0}, True)
    assert log.run(preview(stream, {"max_messages": 4}, groups_, begins=held)).unread == {"new": unread}


@pytest.mark.parametrize(
    "limits",
    [
        {"max_messages": 50},
        {"max_bytes": 100},
        {"max_messages": 70, "retention": "interest"},
        {"max_messages": 100, "max_messages_per_key": 7},
    ],
    ids=str,
)
@pytest.mark.parametrize("out", [0, 30])
def test_groups_are_counted_as_of_the_same_offset_though_somebody_publishes_all_the_time(
    log: Log, stream: str, limits: dict[str, Any], out: int
) -> None:
    """A message comes before each call that the preview makes."""
    fill(log, stream, 300)
    filters: dict[str, tuple[str, ...]] = {"all": (), "some": ("a",)}
    for name, patterns in filters.items():
        log.run(groups.group_publish(stream, name, Settings(filter_keys=patterns, ack_wait_ms=600_000)))
        if out:
            log.run(groups.fetch(stream, name, limit=out))
    asked = preview(stream, limits, filters, within_s=5)
    reply, count = None, 300
    try:
        while True:
            command = asked.send(reply)
            count += 1
            log.run(append(stream, [message(count, key="ab"[count % 2])]))
            reply = log.run(one(command))
    except StopIteration as ended:
        told: Preview = ended.value
    assert told.is_complete
    assert told.as_of > 300
    gone = set(range(1, told.as_of + 1)) - kept(told.as_of, limits)
    assert told.messages == len(gone)
    assert told.unread["all"] == len(gone)
    assert told.unread["some"] == sum(offset > 300 and offset % 2 == 0 for offset in gone)


def kept(last: int, limits: dict[str, Any]) -> set[int]:
    """Which of the messages would remain: 300 without a key and then of two keys in turn, of one byte each."""
    left = list(range(1, last + 1))[-min(limits.get("max_messages", last), limits.get("max_bytes", last)) :]
    of_key = limits.get("max_messages_per_key", last)
    by_key = {parity: [n for n in left if n > 300 and n % 2 == parity][-of_key:] for parity in (0, 1)}
    return {n for n in left if n <= 300 or n in by_key[n % 2]}


def test_what_a_purge_would_take_is_what_it_takes(log: Log) -> None:
    """Of streams drawn at random: everything, below an offset, all but the newest, of some keys."""
    chance = random.Random(7)
    streams = [drawn(log, chance) for _ in range(100)]
    until(lambda: streams[-1].age_s > 1.5)  # what was published for a second is over
    taken: Counter[str] = Counter()
    ended = 0
    for each in streams:
        filled_up(log, chance, each)
        below = chance.choice([None, chance.randint(0, 50)])
        patterns = chance.choice([(), (), ("a.*",), ("b",)])
        purge = Purge(below=below, keep=chance.randint(0, 20 if not patterns else 5), keys=patterns)
        for first in sorted(chance.sample(range(1, 30), chance.randint(0, 2))):
            log.run(removals.purge(each.stream, below=first, keep_ms=3_600_000, facts={}))
        told = log.run(preview(each.stream, {}, each.wants, purge=purge))
        key_of = {found.offset: found.key for found in browse(log, each.stream)}
        before = log.run(stats.inspect(each.stream))
        if patterns:
            wanted = wanted_by(patterns)
            assert wanted is not None
            keep = None if below is not None else purge.keep
            found = log.run(trim.matching(each.stream, wanted, below=below, keep=keep))
            log.run(trim.purge_found(each.stream, found))
        else:
            aside = log.run(removals.removals(each.stream))
            purged = log.run(removals.purge_for_good(each.stream, below=below, keep=purge.keep))
            finals = tuple(held.number for held in aside if held.first < told.kept_from)
            assert purged.finals == finals, purge
            assert all(held.first >= told.kept_from for held in log.run(removals.removals(each.stream)))
            ended += len(finals)
        after, left = log.run(stats.inspect(each.stream)), browse(log, each.stream)
        went = key_of.keys() - {found.offset for found in left}
        assert (told.messages, told.bytes) == (len(went), before.bytes - after.bytes), purge
        assert (told.goes_from, told.goes_to) == (min(went, default=0), max(went, default=0)), purge
        assert told.first_offset == (left[0].offset if left else each.count + 1), purge
        assert told.oldest_ms == (left[0].timestamp_ms if left else None)
        assert told.unread == {
            name: sum(each.has_unread(name, offset, key_of[offset]) for offset in went) for name in each.wants
        }, purge
        assert (told.as_of, told.is_complete) == (each.count, True)
        limit = "below" if below is not None else "keep"
        taken[" ".join([*patterns, limit])] += bool(went)
    assert (
        min(taken[" ".join([*each, limit])] for each in ((), ("a.*",), ("b",)) for limit in ("below", "keep"))
        > 2
    )
    assert ended > 10
