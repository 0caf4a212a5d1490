"""The newest messages of each key are kept: at once, exactly, whatever else takes messages away."""

import random

import msgspec
import pytest

from streams.log import config, errors, groups, keys, meta, read, removals, search, stats, trim, undo
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage, position
from streams.log.groups import Settings
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import message, offsets
from tests.waiting import until


def of_keys(*named: str, first: int = 1) -> list[NewMessage]:
    return [message(n, key=key) for n, key in enumerate(named, first)]


def stored(log: Log, stream: str) -> list[int]:
    """The offsets of all entries that are physically there."""
    found = log.client.execute_command("XRANGE", keys.log(stream), "-", "+")
    return [position(entry)[0] for entry in found]


def _now_ms(log: Log) -> int:
    return int(log.client.time()[0]) * 1000


def _exactly_ms(log: Log) -> int:
    seconds, microseconds = log.client.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


def test_the_newest_of_a_key_pushes_out_the_oldest(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=2)
    log.run(append(stream, of_keys("a", "b", "a")))
    log.run(append(stream, of_keys("a", "b", first=4)))
    assert offsets(log, stream) == [2, 3, 4, 5]


def test_a_batch_pushes_out_what_it_brings_itself(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=1)
    log.run(append(stream, [message(n, key="a", body=b"x" * n) for n in range(1, 6)]))
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes, state.first_offset) == (1, 5, 5)


def test_messages_without_a_key_are_not_limited(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=1)
    log.run(append(stream, [message(1), message(2, key="a"), message(3), message(4, key="a")]))
    assert offsets(log, stream) == [1, 3, 4]


def test_keys_that_begin_alike_are_counted_apart(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=1)
    log.run(append(stream, of_keys("a", "a.b", "a.", "ab", "a")))
    assert offsets(log, stream) == [2, 3, 4, 5]


def test_a_deleted_message_makes_room_for_an_older_one(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=2)
    log.run(append(stream, of_keys("a", "a")))
    log.run(trim.delete(stream, [2]))
    log.run(append(stream, of_keys("a", first=3)))
    assert offsets(log, stream) == [1, 3]


def test_an_expired_message_makes_room_before_the_worker_comes(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=2)
    log.run(append(stream, [message(1, key="a"), message(2, key="a", ttl_s=1)]))
    until(lambda: offsets(log, stream) == [1], within_s=5)
    log.run(append(stream, of_keys("a", first=3)))
    assert offsets(log, stream) == [1, 3]


def test_what_its_time_took_makes_room_once_in_a_stream_that_refuses(
    log: Log, make_stream: MakeStream, publish_settings: Publish
) -> None:
    limits = {"max_messages_per_key": 1, "max_messages": 3, "discard": "new"}
    stream = make_stream(**limits)
    log.run(append(stream, of_keys("a")))
    ends_ms = log.run(stats.inspect(stream)).last_ms or 0
    until(lambda: _exactly_ms(log) > ends_ms + 2_000)
    log.run(append(stream, of_keys("b", "c", first=2)))
    publish_settings(stream, **limits, ttl=2)  # of which nobody has taken notice
    with pytest.raises(errors.StreamFull):
        log.run(append(stream, of_keys("a", "d", first=4)))
    assert offsets(log, stream) == [2, 3]
    log.run(append(stream, of_keys("a", first=4)))
    assert offsets(log, stream) == [2, 3, 4]


def test_a_full_stream_that_refuses_takes_what_replaces_a_message_of_its_key(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_messages_per_key=1, max_messages=2, max_bytes=4, discard="new")
    log.run(append(stream, [message(1, key="a", body=b"11"), message(2, key="b", body=b"22")]))
    log.run(append(stream, [message(3, key="a", body=b"33")]))
    with pytest.raises(errors.StreamFull):
        log.run(append(stream, of_keys("c", first=4)))
    assert offsets(log, stream) == [2, 3]


def test_a_limit_on_a_stream_that_is_there_acts_on_what_it_holds(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    log.run(append(stream, [message(n, key=f"k{n % 7}") for n in range(1, 1001)]))
    publish_settings(stream, max_messages_per_key=2)
    assert log.run(trim.keep_newest_of_keys(stream))[0].messages == 986
    assert offsets(log, stream) == list(range(987, 1001))


def test_a_limit_that_is_set_counts_nothing_that_is_over_by_its_own_time(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    log.run(append(stream, [*of_keys("a", "a"), message(3, key="a", ttl_s=1)]))
    until(lambda: offsets(log, stream) == [1, 2], within_s=5)
    publish_settings(stream, max_messages_per_key=1)
    log.run(trim.keep_newest_of_keys(stream))
    assert offsets(log, stream) == [2]


def test_what_is_over_while_a_limit_is_applied_counts_for_no_key(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    log.run(append(stream, [*of_keys("a", "a"), message(3, key="a", ttl_s=1)]))
    publish_settings(stream, max_messages_per_key=1)
    until(lambda: offsets(log, stream) == [1, 2], within_s=5)
    log.run(trim.keep_newest_of_keys(stream))
    assert offsets(log, stream) == [2]


def test_a_limit_that_is_applied_in_part_goes_on_where_it_stopped(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    many = 8000
    for first in range(1, many, 1000):
        named = [(n, "once" if n == 1 else f"k{n % 5}") for n in range(first, first + 1000)]
        log.run(append(stream, [message(n, key=key) for n, key in named]))
    publish_settings(stream, max_messages_per_key=1)
    went, is_done = log.run(trim.keep_newest_of_keys(stream, until_s=0))
    assert not is_done
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.limit_pending) == (many - went.messages, many - went.messages - 5)
    assert 0 < went.messages < many - 5
    assert offsets(log, stream)[-6:] == [many - went.messages - 5, *range(many - 4, many + 1)]
    log.run(append(stream, of_keys("k0", "new", first=many + 1)))
    assert log.run(trim.keep_newest_of_keys(stream))[1]
    assert log.run(stats.inspect(stream)).limit_pending == 0
    assert offsets(log, stream) == [1, *range(many - 4, many), many + 1, many + 2]


@pytest.mark.parametrize("keys_", [1, 300, 2500])
@pytest.mark.parametrize("keep", [1, 3])
def test_a_limit_keeps_the_newest_of_each_however_the_keys_follow_each_other(
    log: Log, stream: str, publish_settings: Publish, keys_: int, keep: int
) -> None:
    chance = random.Random(f"{keys_} {keep}")
    of = {n: f"k{chance.randrange(keys_)}" for n in range(1, 5001)}
    for first in range(1, 5001, 1000):
        log.run(append(stream, [message(n, key=of[n]) for n in range(first, first + 1000)]))
    deleted = chance.sample(range(1, 5001), 300)
    log.run(trim.delete(stream, deleted))
    newest: dict[str, list[int]] = {}
    for n in sorted(of.keys() - set(deleted), reverse=True):
        newest.setdefault(of[n], []).append(n)
    kept = sorted(n for found in newest.values() for n in found[:keep])
    publish_settings(stream, max_messages_per_key=keep)
    went, is_done = log.run(trim.keep_newest_of_keys(stream))
    assert (went.messages, is_done) == (5000 - 300 - len(kept), True)
    log.run(trim.drop(stream))
    assert stored(log, stream) == kept


def test_what_lies_below_the_newest_of_every_key_goes_at_once(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    many = 20_000
    for first in range(1, many, 1000):
        log.run(append(stream, [message(n, key=f"k{n % 7}") for n in range(first, first + 1000)]))
    publish_settings(stream, max_messages_per_key=2)
    went, is_done = log.run(trim.push_out_some(stream))
    assert (went.messages, is_done) == (many - 14, True)
    assert log.run(trim.drop(stream)).entries == many - 100
    assert stored(log, stream) == offsets(log, stream) == list(range(many - 13, many + 1))


def test_what_a_host_of_the_version_before_published_without_a_key_stays(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    log.run(append(stream, [message(n, key="a" if n > 1 else None) for n in range(1, 500)]))
    counters = msgspec.msgpack.decode(log.client.hget(keys.meta(stream), meta.COUNTERS))
    of_before = meta.Counters.__struct_fields__.index("loose")  # what comes after them it dropped
    log.client.hset(keys.meta(stream), meta.COUNTERS, msgspec.msgpack.encode(counters[:of_before]))
    publish_settings(stream, max_messages_per_key=1)
    log.run(trim.keep_newest_of_keys(stream))
    assert offsets(log, stream) == [1, 499]


@pytest.mark.parametrize("seed", range(12))
def test_a_limit_on_what_is_there_never_takes_what_it_would_keep(
    log: Log, stream: str, publish_settings: Publish, seed: int
) -> None:
    """Some messages have no key, some newest ones of a key are gone, some can come back, some are over."""
    chance = random.Random(seed)
    named = [f"k{n}" for n in range(chance.randint(1, 12))]
    keyless = chance.choice([0, 0, 300])
    of = {n: chance.choice([None, *named]) if n <= keyless else chance.choice(named) for n in range(1, 1501)}
    over = chance.choice([[], chance.sample(range(1, 1501), 5)])
    batch = [message(n, key=key, ttl_s=1 if n in over else None) for n, key in of.items()]
    for first in (0, 500, 1000):
        log.run(append(stream, batch[first : first + 500]))
    if over:
        until(lambda: log.client.zcount(keys.expiry(stream), 0, _now_ms(log)) == len(over), within_s=5)
    held = of.keys() - set(over)
    if chance.random() < 0.5:
        below = chance.randint(1, 600)
        log.run(trim.purge(stream, below=below))
        held = {n for n in held if n >= below}
    for lowest in chance.sample([1, 1, 1400], chance.randint(0, 2)):
        deleted = chance.sample(sorted(n for n in held if n >= lowest), 3)
        log.run(trim.delete(stream, deleted))
        held -= set(deleted)
    aside = chance.choice([[], chance.sample(sorted(held), 4)])
    number = log.run(removals.delete(stream, aside, keep_ms=3_600_000, facts={}))[1] if aside else 0
    held -= set(aside)

    def newest(most: int) -> list[int]:
        found: dict[str | None, list[int]] = {}
        for n in sorted(held, reverse=True):
            found.setdefault(of[n], []).append(n)
        return sorted(n for key, at in found.items() for n in at[: None if key is None else most])

    for most in (3, 1):
        publish_settings(stream, max_messages_per_key=most)
        while not log.run(trim.push_out_some(stream))[1]:
            pass
        held = set(newest(most))
        assert offsets(log, stream) == sorted(held)
        assert log.run(stats.inspect(stream)).messages == len(held)
    if number:
        log.run(undo.undo(stream, number, partial=True))
        held = set(aside) | held
        held = set(newest(1))
        assert offsets(log, stream) == sorted(held)
    log.run(trim.expire(stream))
    log.run(undo.end(stream))
    log.run(trim.drop(stream))
    assert stored(log, stream) == sorted(held)
    known = {int(offset) for offset in log.client.hvals(keys.by_key(stream))}
    assert known == {max(n for n in held if of[n] == key) for key in {of[n] for n in held} - {None}} & known


def test_a_limit_can_be_lowered_raised_and_taken_away(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    def settle(limit: int | None) -> list[int]:
        publish_settings(stream, max_messages_per_key=limit)
        log.run(trim.keep_newest_of_keys(stream))
        return offsets(log, stream)

    log.run(append(stream, of_keys(*"aaaaa")))
    assert settle(3) == [3, 4, 5]
    assert settle(4) == [3, 4, 5]
    assert settle(1) == [5]
    assert settle(None) == [5]
    log.run(append(stream, of_keys(*"aaa", first=6)))
    assert settle(2) == [7, 8]


def test_the_history_gets_what_was_pushed_out(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=1, archive=True)
    log.run(append(stream, of_keys("a", "b", "a", "c", "a")))
    assert offsets(log, stream) == [2, 4, 5]
    log.run(groups.group_publish(stream, "g", Settings()))
    fetched = log.run(groups.fetch(stream, "g", limit=10)).deliveries
    assert [each.lease.split("-")[1] for each in fetched] == ["2", "4", "5"]
    assert log.client.execute_command("XLEN", keys.log(stream)) == 5
    log.run(config.archived_set(stream, 3))
    assert log.run(trim.drop(stream)) == trim.Dropped(entries=2, missed=0)
    assert log.client.execute_command("XLEN", keys.log(stream)) == 3


def test_what_the_history_does_not_get_in_time_is_counted(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=1, archive=True)
    log.run(append(stream, of_keys("b", "a", "a", "a")))
    assert log.run(trim.drop(stream)).entries == 0
    assert log.run(trim.drop(stream, hold_ms=0)) == trim.Dropped(entries=2, missed=2)
    assert offsets(log, stream) == [1, 4]


def test_what_expires_by_itself_is_kept_for_the_history_too(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(archive=True)
    log.run(append(stream, [message(1), message(2, ttl_s=1), message(3)]))
    until(lambda: log.run(trim.expire(stream)) == 1, within_s=5)
    assert log.run(stats.inspect(stream)).messages == 2
    assert log.run(trim.drop(stream)).entries == 0
    log.run(config.archived_set(stream, 3))
    assert log.run(trim.drop(stream)).entries == 1


def test_what_went_takes_room_by_what_is_left_not_by_what_went(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=1)
    log.run(append(stream, of_keys("seldom")))
    for first in range(2, 5000, 1000):
        log.run(append(stream, [message(n, key="often") for n in range(first, first + 1000)]))
    assert log.run(stats.inspect(stream)).messages == 2
    assert log.client.execute_command("ZCARD", keys.gone(stream)) < 2 * 5000 / 256 + 4
    log.run(trim.delete(stream, [1]))
    log.run(trim.drop(stream))
    assert log.client.execute_command("ZCARD", keys.gone(stream)) == 0


@pytest.mark.long
def test_counts_and_bytes_are_exact_over_many_blocks(log: Log, stream: str) -> None:
    chance = random.Random(7)
    held = {n: 1 + n % 3 for n in range(1, 70_001)}
    for first in range(1, 70_001, 1000):
        log.run(append(stream, [message(n, body=b"7" * held[n]) for n in range(first, first + 1000)]))
    gone = [*range(300, 900), *range(65_536, 67_500), *chance.sample(range(1024, 65_536), 3000)]
    chance.shuffle(gone)
    log.run(trim.delete(stream, gone))
    for offset in gone:
        del held[offset]
    for below in (2, 256, 300, 512, 899, 1000, 2048, 65_536, 67_000, 68_001):
        went = [held.pop(n) for n in list(held) if n < below]
        assert log.run(trim.purge(stream, below=below)) == trim.Removed(len(went), sum(went))
        state = log.run(stats.inspect(stream))
        assert (state.messages, state.bytes, state.first_offset) == (
            len(held),
            sum(held.values()),
            min(held),
        )
    kept = sorted(held)[-500:]
    log.run(trim.purge(stream, keep=500))
    assert offsets(log, stream) == kept
    assert log.client.execute_command("ZCOUNT", keys.gone(stream), 0, kept[0]) == 0


def test_bytes_stay_exact_when_what_went_meets_what_lies_below_the_floor(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, body=b"7" * n) for n in range(1, 10)]))
    log.run(trim.delete(stream, [2]))
    for offset in (1, 3, 5, 4):
        log.run(trim.delete(stream, [offset]))
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes, state.first_offset) == (4, 6 + 7 + 8 + 9, 6)


def test_what_the_history_waits_for_is_not_found_and_not_counted(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=1, archive=True)
    log.run(append(stream, of_keys("a", "b", "a", "c", "a")))
    at = log.run(read.position(stream))
    found = log.run(search.search(stream, at, start=1, stop=None, limit=10)).found
    assert [position(entry)[0] for entry in found] == [2, 4, 5]
    assert log.run(search.counts_between(stream, [1, 4, 6])) == [1, 2]
