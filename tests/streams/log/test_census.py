"""A census that is kept goes on with whatever happens to a stream, and counts as one that is made anew."""

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from streams.log import groups, keys, removals, trim, undo
from streams.log.append import Batch, append, append_each
from streams.log.census import Census
from streams.log.censuses import SAVED_FROM, Censuses
from streams.log.client import Log
from streams.log.errors import RemovalTaken, RemovedSince
from streams.log.groups import Settings
from streams.log.looking import MOST_PLAIN, Held, look
from streams.log.preview import Preview, preview
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import fill, message

ALL_S = 60.0


def ask(log: Log, stream: str, limits: dict[str, Any], held: Held | None = None, **groups_: Any) -> Preview:
    return log.run(preview(stream, limits, groups_, held=held, within_s=ALL_S))


def keyed(log: Log, stream: str, first: int, stop: int, *, of: int = 10) -> None:
    for at in range(first, stop, 1000):
        log.run(append(stream, [message(n, key=f"k.{n % of}") for n in range(at, min(at + 1000, stop))]))


def told_of_one_moment(log: Log, stream: str, limits: dict[str, Any], held: Held) -> tuple[Preview, Preview]:
    """By the census that is kept, and by a new one; nothing expired in between."""
    while True:
        before, kept, after = (ask(log, stream, limits, each, some=("a.*",)) for each in (None, held, None))
        if before == after:
            return kept, after


class Played:
    """One stream to which anything may happen."""

    def __init__(self, log: Log, stream: str, publish: Publish, chance: random.Random) -> None:
        self.log, self.stream, self.chance, self._publish = log, stream, chance, publish
        self.last, self.removed = 0, list[int]()
        self.returned = 0

    def publishes(self) -> None:
        count = self.chance.choice([1, 20, 700])
        names = [None, "a.x", "a.y", "b", f"new.{self.chance.randint(1, 30)}"]
        ttls = [None, None, None, 1000, 1]
        batch = [
            message(
                self.last + n,
                body=b"7" * self.chance.randint(1, 9),
                key=self.chance.choice(names),
                ttl_s=self.chance.choice(ttls),
            )
            for n in range(1, count + 1)
        ]
        self.log.run(append(self.stream, batch))
        self.last += count

    def deletes(self) -> None:
        low = self.chance.randint(1, self.last)
        span = range(low, min(self.last, low + self.chance.choice([1, 30, 600])) + 1)
        offsets = self.chance.sample(span, self.chance.randint(1, len(span)))
        if self.chance.random() < 0.5:
            self.log.run(trim.delete(self.stream, offsets))
            return
        number = self.log.run(removals.delete(self.stream, offsets, keep_ms=600_000, facts={}))[1]
        self.removed += [number] if number else []

    def purges(self) -> None:
        below = self.chance.randint(1, self.last // 2 + 1)
        if self.chance.random() < 0.3:
            self.log.run(trim.purge(self.stream, below=below))
            return
        number = self.log.run(removals.purge(self.stream, below=below, keep_ms=600_000, facts={}))[1]
        self.removed += [number] if number else []

    def brings_back(self) -> None:
        if self.removed:
            number = self.removed.pop()
            with suppress(RemovalTaken, RemovedSince):
                self.returned += self.log.run(undo.undo(self.stream, number)).messages

    def limits(self) -> None:
        self._publish(self.stream, max_messages_per_key=self.chance.choice([None, None, 40, 9]))
        self.log.run(trim.keep_newest_of_keys(self.stream))

    def expires(self) -> None:
        self.log.run(trim.expire(self.stream))
        self.log.run(trim.drop(self.stream))

    def is_read(self) -> None:
        got = self.log.run(groups.fetch(self.stream, "some", limit=self.chance.randint(1, 200))).deliveries
        offsets = [int(each.lease.split("-")[1]) for each in got]
        self.log.run(groups.ack(self.stream, "some", "offsets", offsets[::2]))

    def step(self) -> None:
        deeds: list[Callable[[], None]] = [
            *(self.publishes, self.publishes, self.deletes, self.purges, self.brings_back),
            *(self.brings_back, self.limits, self.expires, self.is_read),
        ]
        self.chance.choice(deeds)()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_one_that_is_kept_counts_as_one_that_is_new(
    log: Log, make_stream: MakeStream, publish_settings: Publish, seed: int
) -> None:
    chance, stream, held = random.Random(seed), make_stream(), Held()
    log.run(groups.group_publish(stream, "some", Settings(filter_keys=("a.*",))))
    played = Played(log, stream, publish_settings, chance)
    played.publishes()
    begun: set[int] = set()
    for _ in range(40):
        played.step()
        limits = {
            "max_messages_per_key": chance.choice([None, 1, 3, 20]),
            "max_messages": chance.choice([None, None, 300]),
            "retention": chance.choice(["limits", "interest"]),
        }
        kept, new = told_of_one_moment(log, stream, limits, held)
        assert kept == new, limits
        assert kept.is_complete
        begun.add(id(held.census))
    assert len(begun - {id(None)}) < 10, "it mostly began anew"


def test_what_came_back_counts_again(log: Log, stream: str) -> None:
    keyed(log, stream, 1, 3001)
    held, limit = Held(), {"max_messages_per_key": 100}
    assert ask(log, stream, limit, held).messages == 2000
    census = held.census
    number = log.run(removals.delete(stream, [*range(2991, 3001), 11, 21], keep_ms=60_000, facts={}))[1]
    assert ask(log, stream, limit, held).messages == 2988 - 1000
    assert number
    log.run(undo.undo(stream, number))
    assert ask(log, stream, limit, held).messages == 2000
    number = log.run(removals.purge(stream, below=1501, keep_ms=60_000, facts={}))[1]
    assert ask(log, stream, limit, held).messages == 500
    assert number
    log.run(undo.undo(stream, number))
    assert ask(log, stream, limit, held).messages == 2000
    assert held.census is census, "it began anew"


def test_as_many_of_a_key_as_may_be_asked_for_is_a_limit_like_others(log: Log, stream: str) -> None:
    keyed(log, stream, 1, 101)
    for most in (2**31 - 1, 2**31, 2**53 - 1, 10**15):
        assert ask(log, stream, {"max_messages_per_key": most}).messages == 0


@pytest.mark.parametrize("widest", [1, MOST_PLAIN + 1])
def test_sizes_of_wide_messages_are_told_by_the_store(log: Log, stream: str, widest: int) -> None:
    log.run(
        append(stream, [message(n, body=b"7" * widest, key="a" if n % 2 else None) for n in range(1, 1001)])
    )
    told = ask(log, stream, {"max_messages_per_key": 3})
    assert (told.messages, told.bytes, told.first_offset) == (497, 497 * widest, 2)


@pytest.mark.long
def test_where_somebody_publishes_all_the_time_it_is_exact_as_of_an_offset(
    log: Log, stream: str, redis_url: str
) -> None:
    keyed(log, stream, 1, 5001)
    log.run(groups.group_publish(stream, "some", Settings(filter_keys=("k.1",))))
    stop, held, other = threading.Event(), Held(), Log(redis_url)

    def publish() -> None:
        at = 5001
        while not stop.is_set():
            keyed(other, stream, at, at + 7)
            at += 7

    publisher = threading.Thread(target=publish)
    publisher.start()
    seen = set()
    try:
        for _ in range(50):
            told = ask(log, stream, {"max_messages_per_key": 3}, held)
            assert told.is_complete
            assert told.messages == told.as_of - 30
            seen.add(told.as_of)
            both = {"max_messages": 50, "max_messages_per_key": 1000}
            for limits in ({"max_messages": 50}, both):
                told = ask(log, stream, limits, held, some=("k.1",))
                assert (told.messages, told.first_offset) == (told.as_of - 50, told.as_of - 49), limits
            told = ask(log, stream, {**both, "retention": "interest"}, held, some=("k.1",))
            assert told.messages == told.as_of - 5
    finally:
        stop.set()
        publisher.join()
        other.close()
    assert len(seen) > 10


def test_another_stream_under_the_same_offsets_is_counted_anew(log: Log, stream: str) -> None:
    held = Held()
    keyed(log, stream, 1, 1001)
    assert ask(log, stream, {"max_messages_per_key": 1}, held).messages == 990
    settings = log.client.execute_command("HGET", keys.meta(stream), "settings")
    log.client.execute_command("UNLINK", *keys.all_of(stream))
    log.client.execute_command("HSET", keys.meta(stream), "settings", settings)
    keyed(log, stream, 2001, 3101, of=7)
    assert ask(log, stream, {"max_messages_per_key": 1}, held).messages == 1093


def test_a_stream_that_never_had_a_key_needs_no_look(log: Log, stream: str) -> None:
    fill(log, stream, 1000)
    for _ in range(20):
        fill(log, stream, 1000, first=1001)
    told = log.run(preview(stream, {"max_messages_per_key": 1}, {}, within_s=0, always=0))
    assert (told.messages, told.is_complete) == (0, True)


def test_the_first_key_is_noted_however_it_comes(log: Log, make_stream: MakeStream) -> None:
    alone, together = make_stream(), make_stream()
    fill(log, alone, 1)
    fill(log, together, 1)
    for n in (2, 3):
        log.run(append(alone, [message(n, key="a")]))
        log.run(append_each([Batch(together, is_unbounded=True, messages=[message(n, key="a")])]))
    for stream in (alone, together):
        assert ask(log, stream, {"max_messages_per_key": 1}).messages == 1


def test_it_is_written_down_and_read_again(log: Log, stream: str, tmp_path: Path) -> None:
    keyed(log, stream, 1, SAVED_FROM + 1)
    censuses = Censuses(tmp_path)
    limit = {"max_messages_per_key": 5}
    assert ask(log, stream, limit, censuses.of(stream)).messages == SAVED_FROM - 50
    log.run(trim.delete(stream, [SAVED_FROM - 1]))
    censuses.save(stream)
    keyed(log, stream, SAVED_FROM + 1, SAVED_FROM + 101)
    held = Censuses(tmp_path).of(stream)
    kept = held.census
    told = log.run(preview(stream, limit, {}, held=held, within_s=0, always=1))
    assert (told.messages, told.is_complete) == (SAVED_FROM + 100 - 1 - 50, True)
    assert held.census is kept is not None


def counted(first: int, count: int) -> Census:
    """Messages of five keys, as they are counted when they come."""
    census = Census(first)
    offsets = range(first, first + count)
    census.extend(first + count - 1, offsets, [1] * count, [b"k%d" % (n % 5) for n in offsets])
    return census


def test_what_is_written_beside_is_of_the_moment_in_which_it_was_begun(tmp_path: Path) -> None:
    censuses = Censuses(tmp_path)
    census = censuses.of("s").census = counted(1, SAVED_FROM)
    censuses.save("s", beside=True)
    census.extend(SAVED_FROM + 1, [SAVED_FROM + 1], [1], [b"later"])
    census.note_gone([0], [(1, 100)])
    censuses.settle()
    kept = Censuses(tmp_path).of("s").census
    assert kept is not None
    assert (kept.last, kept.messages, census.messages) == (SAVED_FROM, SAVED_FROM, SAVED_FROM - 99)
    assert kept.names() == b"\0".join([b"", b"k1", b"k2", b"k3", b"k4", b"k0"])


def test_one_is_written_at_a_time_and_the_last_one_is_waited_for(tmp_path: Path) -> None:
    censuses = Censuses(tmp_path)
    for name in ("a", "b"):
        censuses.of(name).census = counted(1, SAVED_FROM)
        censuses.save(name, beside=True)
    censuses.of("a").census = counted(1, SAVED_FROM + 5)
    censuses.save("a")
    kept = Censuses(tmp_path).of("a").census
    assert kept is not None
    assert kept.last == SAVED_FROM + 5


def test_what_an_end_left_half_written_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "s.17.new").write_bytes(b"half")
    Censuses(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_none_is_passed_over(log: Log, stream: str, tmp_path: Path) -> None:
    (tmp_path / f"{stream}.npz").write_bytes(b"PK nothing")
    keyed(log, stream, 1, 11)
    assert ask(log, stream, {"max_messages_per_key": 1}, Censuses(tmp_path).of(stream)).messages == 0


def test_of_too_many_messages_the_census_that_was_used_least_lately_goes(
    log: Log, make_stream: MakeStream
) -> None:
    censuses = Censuses(most=2500)
    streams = [make_stream() for _ in range(3)]
    for stream in streams:
        keyed(log, stream, 1, 1001)
        log.run(look(stream, censuses.of(stream), until_s=0, always=5000))
    censuses.of(streams[0])
    assert set(censuses) == {streams[0], streams[2]}
