import random
from typing import Any

import pytest

from streams.log import config, entries, errors, groups, keys, meta, removals, stats, trim, undo
from streams.log.append import append
from streams.log.client import Log, Script
from streams.log.entries import Entry
from streams.log.groups import Settings
from streams.log.read import after_committed
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import browse, fill, message, offsets
from tests.waiting import Stopwatch, until


def test_a_purge_of_everything_keeps_the_next_offset(log: Log, stream: str) -> None:
    fill(log, stream, 5)
    assert log.run(trim.purge(stream)).messages == 5
    assert fill(log, stream, 1, first=6)[0].offset == 6


@pytest.mark.parametrize(("below", "left"), [(0, [1, 2, 3]), (1, [1, 2, 3]), (3, [3]), (4, []), (99, [])])
def test_below_is_exclusive_and_never_moves_the_next_offset(
    log: Log, stream: str, below: int, left: list[int]
) -> None:
    fill(log, stream, 3)
    assert log.run(trim.purge(stream, below=below)).messages == 3 - len(left)
    assert offsets(log, stream) == left
    assert fill(log, stream, 1, first=4)[0].offset == 4


@pytest.mark.parametrize(("keep", "left"), [(0, []), (2, [4, 5]), (9, [1, 2, 4, 5])])
def test_keep_counts_messages_not_offsets(log: Log, stream: str, keep: int, left: list[int]) -> None:
    fill(log, stream, 5)
    log.run(trim.delete(stream, [3]))
    log.run(trim.purge(stream, keep=keep))
    assert offsets(log, stream) == left


@pytest.mark.parametrize("way", ["for good", "for a while"])
@pytest.mark.parametrize(("keep", "left"), [(3, [1, 2, 4]), (1, [4]), (0, [])])
def test_a_purge_neither_keeps_nor_counts_what_is_over_by_its_own_time(
    log: Log, stream: str, keep: int, left: list[int], way: str
) -> None:
    log.run(
        append(
            stream,
            [message(1), message(2), message(3, ttl_s=1), message(4), message(5, ttl_s=1)],
        )
    )
    until(lambda: offsets(log, stream) == [1, 2, 4], within_s=5)
    if way == "for good":
        removed = log.run(trim.purge(stream, keep=keep))
    else:
        removed, _ = log.run(removals.purge(stream, keep=keep, keep_ms=60_000, facts={}))
    assert offsets(log, stream) == left
    assert removed == trim.Removed(3 - len(left), 3 - len(left))


def test_a_limit_that_is_set_counts_nothing_that_is_over_by_its_own_time(
    log: Log, stream: str, publish_settings: Publish
) -> None:
    log.run(append(stream, [message(1), message(2), *(message(n, ttl_s=1) for n in range(3, 203))]))
    until(lambda: offsets(log, stream) == [1, 2], within_s=5)
    publish_settings(stream, max_messages=2)
    log.run(trim.apply_limits(stream))
    assert offsets(log, stream) == [1, 2]


def test_a_batch_pushes_nothing_out_while_enough_is_over_by_its_own_time(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_messages=202)
    log.run(append(stream, [message(1), *(message(n, ttl_s=1) for n in range(2, 202)), message(202)]))
    until(lambda: offsets(log, stream) == [1, 202], within_s=5)
    fill(log, stream, 200, first=203)
    assert offsets(log, stream) == [1, *range(202, 403)]


def test_a_deleted_message_leaves_a_gap_and_its_bytes_are_taken_off(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1), message(2, body=b"12345"), message(3)]))
    assert log.run(trim.delete(stream, [2, 2, 77])) == trim.Removed(1, 5)
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes, state.lag, offsets(log, stream)) == (2, 2, 2, [1, 3])


def test_a_key_pattern_purges_what_matches(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, key="odd" if n % 2 else "even") for n in range(1, 8)]))

    def odd(entry: object) -> bool:
        return b"odd" in entry[1]  # type: ignore[index]

    found = log.run(trim.matching(stream, odd, keep=1))
    assert log.run(trim.purge_found(stream, found)).messages == 3
    assert offsets(log, stream) == [2, 4, 6, 7]


class Watched(Log):
    """Notes the bytes that each answer brings, and how many offsets each call deletes."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.answered_bytes: list[int] = []
        self.deleted: list[int] = []

    def _send(self, command: Any) -> Any:
        reply = super()._send(command)
        if isinstance(command, Script) and command.name in ("delete", "delete_aside"):
            self.deleted.append(sum(str(each).isdigit() for each in command.args))
        elif isinstance(command, tuple) and command[0] == "XRANGE":
            self.answered_bytes.append(sum(len(entry[1][3]) for entry in reply))
        return reply


@pytest.mark.parametrize("aside", [False, True])
def test_a_purge_by_key_looks_at_and_deletes_no_more_at_once_than_others_can_wait_for(
    redis_url: str, log: Log, make_stream: MakeStream, aside: bool
) -> None:
    stream, watched = make_stream(max_message_bytes=300_000), Watched(redis_url)
    of = {n: "ab"[n % 3 == 0] for n in range(1, 31)}
    log.run(append(stream, [message(n, key=key, body=b"7" * 300_000) for n, key in of.items()]))

    def is_a(entry: Entry) -> bool:
        return entries.key(entry) == b"a"

    found = watched.run(trim.matching(stream, is_a, keep=2))
    if aside:
        removed, _ = watched.run(removals.purge_found(stream, found, keep_ms=60_000, facts={}))
    else:
        removed = watched.run(trim.purge_found(stream, found))
    watched.close()
    assert (removed.messages, offsets(log, stream)) == (18, [*range(3, 28, 3), 28, 29, 30])
    assert max(watched.answered_bytes) <= trim.LOOK_BYTES
    assert sum(watched.answered_bytes) <= 31 * 300_000
    assert max(watched.deleted) <= 3 + 4 * aside  # other numbers among its arguments


def test_a_purge_by_key_comes_through_many_that_are_not_wanted(log: Log, stream: str) -> None:
    for first in range(1, 2001, 1000):
        log.run(append(stream, [message(n, key=f"k{n % 700}") for n in range(first, first + 1000)]))

    def seldom(entry: Entry) -> bool:
        return entries.key(entry) in (b"k1", b"k2")

    assert log.run(trim.matching(stream, seldom, below=1402)).offsets == [1, 2, 701, 702, 1401]
    assert log.run(trim.matching(stream, seldom, keep=1)).offsets == [1, 2, 701, 702, 1401]
    assert log.run(trim.purge_found(stream, log.run(trim.matching(stream, seldom)))).messages == 6


@pytest.mark.parametrize("switch", ["deny_purge", "sealed"])
def test_a_forbidden_purge_removes_nothing(log: Log, make_stream: MakeStream, switch: str) -> None:
    stream = make_stream()
    fill(log, stream, 3)
    registered = config.Registered(
        stream_id=stream, name="n", workspace="default", workspace_id=1, archive=False
    )
    log.run(
        config.stream_publish(
            registered, {"dedup_window": 60, "max_message_bytes": 100, "discard": "old", switch: True}
        )
    )
    with pytest.raises((errors.OperationDenied, errors.StreamSealed)):
        log.run(trim.purge(stream))
    assert offsets(log, stream) == [1, 2, 3]


def test_what_is_too_old_is_hidden_at_once_from_reads_and_counts(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(ttl=1)
    fill(log, stream, 3)
    until(lambda: not offsets(log, stream), within_s=5)
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes, state.lag, state.first_offset) == (0, 0, 0, 4)
    assert log.run(after_committed(stream, 10)) == []


def test_what_was_too_old_does_not_come_back_with_a_longer_time_to_live(
    log: Log, make_stream: MakeStream, publish_settings: Publish
) -> None:
    stream = make_stream(ttl=1)
    fill(log, stream, 2)
    until(lambda: not offsets(log, stream), within_s=5)
    publish_settings(stream)
    assert offsets(log, stream) == []
    assert log.run(stats.inspect(stream)).messages == 0


def test_a_message_with_its_own_time_to_live_goes_alone(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1), message(2, ttl_s=1), message(3)]))
    until(lambda: offsets(log, stream) == [1, 3], within_s=5)
    assert log.run(trim.expire(stream)) == 1
    assert log.run(stats.inspect(stream)).messages == 2
    assert log.client.execute_command("XLEN", keys.log(stream)) == 2


def test_what_a_limit_hides_is_kept_for_the_history_until_it_has_it(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_messages=1, archive=True)
    fill(log, stream, 5)
    assert log.run(trim.drop(stream)).entries == 0
    log.run(config.archived_set(stream, 2))
    assert log.run(trim.drop(stream)).entries == 2
    assert offsets(log, stream) == [5]
    assert log.run(trim.drop(stream, hold_ms=0)) == trim.Dropped(entries=2, missed=2)


def test_a_history_that_keeps_up_misses_nothing_of_a_stream_in_which_something_always_waits(
    log: Log, make_stream: MakeStream
) -> None:
    stream, watch, last = make_stream(max_messages=1, archive=True), Stopwatch(), 0
    while watch.elapsed_s < 1:
        last = fill(log, stream, 5, first=last + 1)[-1].offset
        assert log.run(trim.drop(stream, hold_ms=300)).missed == 0
        log.run(config.archived_set(stream, last - 1))


def test_of_what_waits_for_the_history_only_what_has_waited_for_long_goes(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_messages=1, archive=True)
    fill(log, stream, 5)
    assert log.run(trim.drop(stream, hold_ms=2000)).entries == 0
    since_ms = server_ms(log)
    until(lambda: server_ms(log) - since_ms >= 2000)
    fill(log, stream, 3, first=6)
    gone = log.run(trim.drop(stream, hold_ms=2000))
    assert gone == trim.Dropped(entries=4, missed=4)


def test_what_waits_between_others_goes_when_it_has_waited(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=1, archive=True)
    fill(log, stream, 1)
    log.run(append(stream, [message(n, key="a") for n in range(10, 14)]))
    assert log.run(trim.drop(stream)).entries == 0
    assert log.run(trim.drop(stream, hold_ms=0)) == trim.Dropped(entries=3, missed=3)
    assert offsets(log, stream) == [1, 5]
    log.run(append(stream, [message(20, key="a")]))
    assert log.run(trim.drop(stream)).entries == 0, "a wait of its own"


def server_ms(log: Log) -> int:
    seconds, micros = log.client.execute_command("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def test_what_a_person_purged_is_not_kept_for_the_history(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(archive=True)
    fill(log, stream, 5)
    log.run(trim.purge(stream, below=4))
    assert log.client.execute_command("XLEN", keys.log(stream)) == 2


@pytest.mark.parametrize(
    ("purged", "stored"), [({"below": 1}, 5), ({"keep": 99}, 5), ({"below": 5}, 4), ({"keep": 0}, 3)]
)
@pytest.mark.parametrize("way", ["for good", "for a while"])
def test_a_purge_frees_nothing_of_what_a_limit_took_and_the_history_has_not(
    log: Log, make_stream: MakeStream, purged: dict[str, int], stored: int, way: str
) -> None:
    stream = make_stream(max_messages=2, archive=True)
    fill(log, stream, 5)
    if way == "for good":
        log.run(trim.purge(stream, **purged))
    else:
        log.run(removals.purge(stream, keep_ms=0, facts={}, **purged))
        log.run(undo.end(stream))
    for _ in range(2):
        log.run(trim.drop(stream))
        assert log.client.execute_command("XLEN", keys.log(stream)) == stored
    log.run(config.archived_set(stream, 1))
    assert log.run(trim.drop(stream)) == trim.Dropped(entries=1, missed=0)
    assert log.run(trim.drop(stream, hold_ms=0)) == trim.Dropped(entries=2, missed=2)


def test_a_purge_counts_nothing_that_is_over_by_the_limits_of_its_stream(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(ttl=1)
    fill(log, stream, 3)
    until(lambda: not offsets(log, stream), within_s=5)
    assert log.run(trim.purge(stream, keep=1)).messages == 0


def test_a_key_is_forgotten_with_its_last_message(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1, key="a"), message(2, key="b"), message(3, key="a")]))
    log.run(trim.purge(stream, below=3))
    assert log.run(stats.inspect(stream)).keys_count == 1


def test_a_key_is_forgotten_with_its_last_message_when_that_is_deleted(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1, key="a"), message(2, key="b")]))
    log.run(trim.delete(stream, [1]))
    assert log.run(stats.inspect(stream)).keys_count == 1


def test_many_single_deletions_do_not_stop_the_floor(log: Log, stream: str) -> None:
    fill(log, stream, 5000, body=b"12")
    log.run(trim.delete(stream, list(range(2, 5000, 2))))
    assert log.run(trim.purge(stream, below=4999)) == trim.Removed(2499, 4998)
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes) == (2, 4)
    assert log.client.execute_command("ZCARD", keys.gone(stream)) == 0


def test_the_bytes_of_what_is_left_are_the_bytes_counted(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=7)
    for n in range(1, 30):
        log.run(append(stream, [message(n, body=b"x" * n)]))
        if n % 3 == 0:
            log.run(trim.delete(stream, [n - 1]))
    state, held = log.run(stats.inspect(stream)), browse(log, stream)
    assert (state.messages, state.bytes) == (len(held), sum(len(each.body) for each in held))


@pytest.mark.parametrize("edge", [256**2, 256**3])
def test_gaps_are_counted_across_blocks_of_every_size(log: Log, make_stream: MakeStream, edge: int) -> None:
    chance, first = random.Random(edge), edge - 600
    stream = make_stream()
    began = meta.Counters(last=first - 1, floor=first)
    log.client.execute_command("HSET", keys.meta(stream), meta.COUNTERS, meta.pack(began))
    bodies = {offset: b"7" * chance.randint(1, 9) for offset in range(first, first + 1000)}
    log.run(append(stream, [message(offset, body=body) for offset, body in bodies.items()]))
    whole = set(range(edge - 300, edge + 290))
    for gone in (whole, set(chance.sample(sorted(bodies.keys() - whole), 200))):
        assert log.run(trim.delete(stream, sorted(gone))).messages == len(gone)
        bodies = {offset: body for offset, body in bodies.items() if offset not in gone}
    for below in (first + 130, edge - 310, edge - 290, edge, edge + 1, edge + 289, edge + 300):
        state = log.run(stats.inspect(stream))
        assert (state.messages, state.bytes) == (len(bodies), sum(map(len, bodies.values())))
        assert (state.first_offset, offsets(log, stream)) == (min(bodies), sorted(bodies))
        went = {offset: body for offset, body in bodies.items() if offset < below}
        removed = log.run(trim.purge(stream, below=below))
        assert removed == trim.Removed(len(went), sum(map(len, went.values())))
        bodies = {offset: body for offset, body in bodies.items() if offset >= below}


def test_a_slice_of_a_purge_that_a_filtered_group_counts_holds_the_server_for_milliseconds(
    log: Log, stream: str
) -> None:
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=("a.*",))))
    for first in range(1, 10_001, 1000):
        log.run(append(stream, [message(n, key=f"a.{n}") for n in range(first, first + 1000)]))
    calls, spent_us = _server_time(log)
    assert log.run(trim.purge(stream)).messages == 10_000
    calls_after, spent_after_us = _server_time(log)
    assert (spent_after_us - spent_us) / (calls_after - calls) < 25_000
    assert (
        calls_after - calls > 10_000 / 400
    )  # what the group counts; what goes takes as many as its time asks for
    assert log.client.execute_command("EXISTS", keys.by_key(stream)) == 0


def _server_time(log: Log) -> tuple[int, int]:
    """Calls of our functions so far, and what they took together in µs; not the waits between them."""
    text: str = log.client.execute_command("INFO", "commandstats").decode()
    (line,) = [line for line in text.splitlines() if line.startswith("cmdstat_fcall:")]
    fields = dict(field.split("=") for field in line.partition(":")[2].strip().split(","))
    return int(fields["calls"]), int(fields["usec"])
