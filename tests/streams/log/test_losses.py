"""What groups lose: messages that a limit, an expiry, a deletion or a purge took before they were given them."""

import pytest

from streams.log import config, dead_letters, entries, groups, keys, read, removals, standing, trim, undo
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Settings
from streams.log.standing import GroupState
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import browse, fill, message
from tests.waiting import until

FILTERS: list[tuple[str, ...]] = [(), ("a.*",)]
filtered = pytest.mark.parametrize("patterns", FILTERS, ids=["all", "filtered"])


def group(log: Log, stream: str, *, delivered: int = 0, **settings: object) -> str:
    log.run(groups.group_publish(stream, "g", Settings(**settings), delivered=delivered))  # type: ignore[arg-type]
    return "g"


def mixed(log: Log, stream: str, count: int, *, first: int = 1, ttl_s: int | None = None) -> None:
    """Messages of the keys a.x (odd offsets) and b.x (even ones)."""
    for start in range(first, first + count, 1000):
        batch = [
            message(n, key="a.x" if n % 2 else "b.x", ttl_s=ttl_s)
            for n in range(start, min(start + 1000, first + count))
        ]
        log.run(append(stream, batch))


def stands(log: Log, stream: str) -> GroupState:
    return log.run(standing.inspect(stream, "g"))


def fetch(log: Log, stream: str, limit: int = 10_000) -> list[int]:
    found = log.run(groups.fetch(stream, "g", limit=limit))
    return [entries.position(each.entry)[0] for each in found.deliveries]


@filtered
@pytest.mark.parametrize("archive", [False, True])
def test_what_is_deleted_from_between_is_lost_at_once_and_once(
    log: Log, make_stream: MakeStream, patterns: tuple[str, ...], archive: bool
) -> None:
    stream = make_stream(archive=archive)
    group(log, stream, filter_keys=patterns)
    mixed(log, stream, 10)
    log.run(trim.delete(stream, [3, 4, 7]))
    lost = 2 if patterns else 3
    assert stands(log, stream).lost == lost
    fetch(log, stream)
    log.run(trim.purge(stream))
    assert stands(log, stream).lost == lost


@filtered
def test_what_a_purge_takes_is_lost_where_it_was_wanted(
    log: Log, stream: str, patterns: tuple[str, ...]
) -> None:
    group(log, stream, filter_keys=patterns)
    mixed(log, stream, 5000)
    log.run(trim.delete(stream, [1001, 1002]))
    fetch(log, stream, 3)
    log.run(trim.purge(stream, below=4501))
    state = stands(log, stream)
    delivered, wanted = 3, 2250 if patterns else 4500
    assert (state.lost, state.lag) == (wanted - delivered, 250 if patterns else 500)
    assert browse(log, stream)[0].offset == 4501


@filtered
def test_what_a_limit_hides_is_lost_also_after_it_went_physically(
    log: Log, make_stream: MakeStream, patterns: tuple[str, ...]
) -> None:
    stream = make_stream(max_messages=10, archive=True)
    group(log, stream, filter_keys=patterns)
    mixed(log, stream, 100)
    log.run(config.archived_set(stream, 100))
    log.run(trim.drop(stream))
    assert stands(log, stream).lost == (45 if patterns else 90)
    assert int(log.client.execute_command("XLEN", keys.log(stream))) == 10


@filtered
def test_what_expires_from_between_before_its_delivery_is_lost(
    log: Log, stream: str, patterns: tuple[str, ...]
) -> None:
    group(log, stream, filter_keys=patterns)
    mixed(log, stream, 1)
    mixed(log, stream, 2, first=2, ttl_s=1)
    mixed(log, stream, 1, first=4)
    until(lambda: len(browse(log, stream)) == 2)
    assert fetch(log, stream) == ([1] if patterns else [1, 4])
    lost = 1 if patterns else 2
    assert stands(log, stream).lost == lost
    log.run(trim.expire(stream))
    assert stands(log, stream).lost == lost


@filtered
@pytest.mark.parametrize("archive", [False, True])
def test_what_newer_messages_of_a_key_push_out_is_lost(
    log: Log, make_stream: MakeStream, patterns: tuple[str, ...], archive: bool
) -> None:
    stream = make_stream(max_messages_per_key=2, archive=archive)
    group(log, stream, filter_keys=patterns)
    mixed(log, stream, 10)
    assert stands(log, stream).lost == (3 if patterns else 6)
    assert len(fetch(log, stream)) == (2 if patterns else 4)
    mixed(log, stream, 10, first=11)
    assert stands(log, stream).lost == (6 if patterns else 12)


@filtered
def test_what_went_before_a_group_began_is_not_lost_to_it(
    log: Log, stream: str, patterns: tuple[str, ...]
) -> None:
    mixed(log, stream, 10)
    log.run(append(stream, [message(11, key="a.x", ttl_s=1), message(12)]))
    log.run(trim.delete(stream, [5, 6]))
    until(lambda: len(browse(log, stream)) == 9)
    group(log, stream, filter_keys=patterns)
    assert stands(log, stream).lost == 0
    fetch(log, stream)
    assert stands(log, stream).lost == 0


@filtered
def test_a_seek_neither_loses_nor_finds_anything(log: Log, stream: str, patterns: tuple[str, ...]) -> None:
    group(log, stream, filter_keys=patterns)
    mixed(log, stream, 10)
    log.run(trim.delete(stream, [7]))
    fetch(log, stream, 3)
    log.run(trim.delete(stream, [1]))
    for to in (11, 1, 4, 9, 2):
        log.run(groups.seek(stream, "g", next_offset=to))
        assert stands(log, stream).lost == 1
    log.run(trim.delete(stream, [3]))
    assert stands(log, stream).lost == 2


def test_a_changed_filter_keeps_what_was_counted_with_the_one_before(log: Log, stream: str) -> None:
    group(log, stream)
    mixed(log, stream, 20)
    lost = 0
    steps: list[tuple[tuple[str, ...], int]] = [((), 1), (("a.*",), 1), (("b.*",), 0), ((), 1), (("b.*",), 0)]
    for offset, (patterns, counts) in zip((3, 5, 7, 9, 11), steps, strict=True):
        group(log, stream, filter_keys=patterns)
        log.run(trim.delete(stream, [offset]))
        lost += counts
        assert stands(log, stream).lost == lost
    assert fetch(log, stream) == list(range(2, 21, 2))


def test_what_waits_to_be_counted_is_counted_before_it_goes_and_then_forgotten(log: Log, stream: str) -> None:
    group(log, stream, filter_keys=("a.*",))
    mixed(log, stream, 3000)
    log.run(trim.delete(stream, list(range(1, 2501))))
    assert int(log.client.execute_command("ZCARD", keys.went(stream))) == 2501
    log.run(trim.drop(stream))
    assert int(log.client.execute_command("ZCARD", keys.went(stream))) == 1
    assert stands(log, stream).lost == 1250


def test_a_stream_without_filters_notes_nothing(log: Log, stream: str) -> None:
    group(log, stream)
    mixed(log, stream, 10)
    log.run(trim.delete(stream, [3]))
    assert not log.client.execute_command("EXISTS", keys.went(stream))


def test_what_waits_for_its_key_and_goes_is_lost(log: Log, stream: str) -> None:
    group(log, stream, ordered_by_key=True)
    mixed(log, stream, 8)
    assert fetch(log, stream) == [1, 2]
    log.run(trim.delete(stream, [5]))
    assert stands(log, stream).lost == 1
    log.run(trim.purge(stream, below=4))
    assert (stands(log, stream).lost, stands(log, stream).ack_pending) == (2, 0)
    assert fetch(log, stream) == [4, 7]


@pytest.mark.parametrize("verb", ["ack", "nack", "working", "term"])
@pytest.mark.parametrize("how", ["purge", "delete", "limit", "expiry"])
@pytest.mark.parametrize("by_lease", [False, True])
def test_an_answer_to_what_went_does_nothing(
    log: Log, make_stream: MakeStream, publish_settings: Publish, verb: str, how: str, by_lease: bool
) -> None:
    stream = make_stream()
    group(log, stream)
    log.run(append(stream, [message(1), message(2, ttl_s=1 if how == "expiry" else None)]))
    fill(log, stream, 2, first=3)
    leases = [each.lease for each in log.run(groups.fetch(stream, "g", limit=10)).deliveries]
    gone = [1, 2] if how in ("purge", "limit") else [2]
    if how == "purge":
        log.run(trim.purge(stream, below=3))
    elif how == "delete":
        log.run(trim.delete(stream, [2]))
    elif how == "limit":
        publish_settings(stream, max_messages=2)
    else:
        until(lambda: len(browse(log, stream)) == 3)
    more = {"reason": "no"} if verb == "term" else {}
    named = ("leases", leases) if by_lease else ("offsets", [1, 2, 3, 4])
    left = [offset for offset in range(1, 5) if offset not in gone]
    told = log.run(getattr(groups, verb)(stream, "g", *named, **more))
    assert told == (left if verb == "term" else len(left))
    state = stands(log, stream)
    assert (state.ack_pending, state.dead_letters) == (
        0 if verb in ("ack", "term") else 4 - len(gone),
        4 - len(gone) if verb == "term" else 0,
    )


def test_what_went_is_out_no_more_and_makes_room_at_once(log: Log, stream: str) -> None:
    group(log, stream, max_ack_pending=3)
    fill(log, stream, 6)
    assert fetch(log, stream) == [1, 2, 3]
    log.run(trim.delete(stream, [2]))
    assert fetch(log, stream) == [4]
    log.run(trim.purge(stream, below=4))
    assert (stands(log, stream).ack_pending, stands(log, stream).unfinished) == (1, 3)


def test_a_lease_that_passed_on_is_no_matter_once_its_message_went(log: Log, stream: str) -> None:
    group(log, stream)
    fill(log, stream, 2)
    (first, _) = log.run(groups.fetch(stream, "g", limit=2)).deliveries
    log.run(groups.nack(stream, "g", "offsets", [1]))
    assert fetch(log, stream) == [1]
    log.run(trim.delete(stream, [1]))
    assert log.run(groups.ack(stream, "g", "leases", [first.lease])) == 0


def test_a_replayed_dead_letter_is_answered_though_the_stream_has_lost_it(log: Log, stream: str) -> None:
    group(log, stream)
    fill(log, stream, 2)
    fetch(log, stream)
    log.run(groups.term(stream, "g", "offsets", [1], reason=""))
    log.run(trim.purge(stream))
    log.run(dead_letters.replay_all(stream, "g"))
    assert stands(log, stream).ack_pending == 1
    assert fetch(log, stream) == [1]
    assert log.run(groups.ack(stream, "g", "offsets", [1, 2])) == 1


def test_pending_leaves_out_what_has_just_expired(log: Log, stream: str) -> None:
    group(log, stream)
    fill(log, stream, 2)
    log.run(append(stream, [message(3, ttl_s=1), message(4)]))

    def has_expired() -> bool:
        at = log.run(read.position(stream))
        return len(browse(log, stream)) == 3 and at.last == 4

    until(has_expired)
    assert log.run(groups.fetch(stream, "g", limit=1)).left == 2


def test_everything_up_to_an_offset_is_settled_in_slices(log: Log, stream: str) -> None:
    group(log, stream, max_ack_pending=10_000)
    fill(log, stream, 5000)
    assert len(fetch(log, stream)) == 5000
    assert log.run(groups.ack(stream, "g", "up_to", [4500])) == 4500
    assert stands(log, stream).ack_pending == 500


def test_a_cumulative_lease_settles_all_before_it_in_slices(log: Log, stream: str) -> None:
    group(log, stream, ack="all", max_ack_pending=10_000)
    fill(log, stream, 3000)
    deliveries = log.run(groups.fetch(stream, "g", limit=3000)).deliveries
    assert log.run(groups.ack(stream, "g", "leases", [deliveries[2499].lease])) == 2500
    assert stands(log, stream).ack_floor == 2500


@filtered
@pytest.mark.parametrize("by_purge", [False, True])
@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("goes_on", [False, True])
def test_what_is_brought_back_is_lost_no_more(
    log: Log, stream: str, patterns: tuple[str, ...], by_purge: bool, looks: bool, goes_on: bool
) -> None:
    group(log, stream, filter_keys=patterns)
    mixed(log, stream, 10)
    fetch(log, stream, 1)
    log.run(trim.delete(stream, [5]))
    if by_purge:
        _, number = log.run(removals.purge(stream, below=9, keep_ms=60_000, facts={}))
    else:
        _, number = log.run(removals.delete(stream, [2, 3, 4], keep_ms=60_000, facts={}))
    assert number
    if looks:
        assert stands(log, stream).lost > 1
    if goes_on:
        fetch(log, stream)
    log.run(undo.undo(stream, number))
    assert stands(log, stream).lost == 1
    fetch(log, stream)
    assert stands(log, stream).lost == 1
