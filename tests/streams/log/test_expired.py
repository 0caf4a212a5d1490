"""More messages that are over by their own time than one call takes: nothing goes in their place or counts them."""

import pytest

from streams.log import config, groups, keys, removals, standing, stats, trim, undo
from streams.log.append import append
from streams.log.client import Log
from streams.log.errors import StreamFull
from streams.log.groups import Settings
from streams.log.trim import Removed
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import browse, message, offsets
from tests.waiting import until

PAIRS = 3000
"""Of a message that stays and one that does not, next to each other: these go from between others."""

BODY = b"0123456789"


def pairs(log: Log, stream: str, *, keyed: bool = False) -> list[int]:
    """Fill a stream and wait until every other message is over; the offsets of those that stay."""
    batch = [
        message(n, body=BODY, ttl_s=1 if n % 2 == 0 else None, key=f"k.{(n + 1) // 2}" if keyed else None)
        for n in range(1, 2 * PAIRS + 1)
    ]
    for first in range(0, len(batch), 1000):
        log.run(append(stream, batch[first : first + 1000]))
    stay = list(range(1, 2 * PAIRS, 2))
    until(lambda: offsets(log, stream) == stay, within_s=10)
    return stay


@pytest.mark.long
def test_counts_leave_out_thousands_that_have_just_expired(log: Log, stream: str) -> None:
    stay = pairs(log, stream)
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes, state.lag) == (len(stay), len(stay) * len(BODY), len(stay))
    assert log.run(stats.inspect_many([stream]))[stream].messages == len(stay)


def test_a_call_that_may_begin_no_other_leaves_the_rest_to_the_next(log: Log, stream: str) -> None:
    pairs(log, stream)
    first = log.run(trim.expire_some(stream, until_s=0))
    assert 0 < first.messages < PAIRS
    assert not first.is_done
    assert 0 <= first.late_ms < 60_000
    assert first.messages + log.run(trim.expire(stream)) == PAIRS
    assert log.client.execute_command("XLEN", keys.log(stream)) == PAIRS
    assert log.client.execute_command("EXISTS", keys.expiry(stream)) == 0


def test_a_size_limit_waits_for_what_is_over_and_takes_nothing_in_its_place(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(max_bytes=2 * PAIRS * len(BODY))
    stay = pairs(log, stream)
    free = PAIRS * len(BODY)
    (wide,) = log.run(append(stream, [message(0, body=b"7" * (free - 5000))]))
    assert offsets(log, stream) == [*stay, wide.offset]
    log.run(trim.apply_limits(stream))
    assert offsets(log, stream) == [*stay, wide.offset]
    log.run(append(stream, [message(-1, body=b"7" * 8000)]))
    waiting, enforced = [*stay, wide.offset, wide.offset + 1], [*stay[300:], wide.offset, wide.offset + 1]
    seen = [waiting]
    while (
        seen[-1] == waiting and len(seen) < 1000
    ):  # a call takes what its budget allows, which on a slow machine is not all
        log.run(trim.apply_limits(stream))
        seen.append(offsets(log, stream))
    assert seen[-1] == enforced
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes) == (PAIRS - 300 + 2, 2 * PAIRS * len(BODY))


def test_a_full_stream_takes_what_is_over_first_and_then_refuses(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages=2 * PAIRS, discard="new")
    stay = pairs(log, stream)
    for first in range(0, PAIRS, 1000):
        log.run(append(stream, [message(9000 + n) for n in range(first, first + 1000)]))
    with pytest.raises(StreamFull):
        log.run(append(stream, [message(0)]))
    assert offsets(log, stream)[:PAIRS] == stay
    assert log.run(stats.inspect(stream)).messages == 2 * PAIRS


def test_a_limit_a_key_counts_nothing_that_is_over(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(max_messages_per_key=2)
    stay = pairs(log, stream, keyed=True)
    newer = log.run(append(stream, [message(9000, key="k.2900"), message(9001, key="k.2")]))
    log.run(trim.expire(stream))
    log.run(trim.keep_newest_of_keys(stream))
    assert offsets(log, stream) == [*stay, *(each.offset for each in newer)]
    log.run(append(stream, [message(9002, key="k.2"), message(9003, key="k.2")]))
    assert offsets(log, stream)[:2] == [1, 5]
    assert log.run(stats.inspect(stream)).messages == len(stay) - 1 + 3


def test_what_is_over_cannot_be_deleted_any_more(log: Log, stream: str) -> None:
    log.run(append(stream, [message(1), message(2, body=BODY, ttl_s=1), message(3)]))
    until(lambda: offsets(log, stream) == [1, 3], within_s=5)
    assert log.run(trim.delete(stream, [2, 3])) == Removed(1, 1)
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes, offsets(log, stream)) == (1, 1, [1])
    assert log.client.execute_command("XLEN", keys.log(stream)) == 1


@pytest.mark.parametrize("archive", [False, True])
def test_the_oldest_go_together_whatever_went_from_between_them(
    log: Log, make_stream: MakeStream, archive: bool
) -> None:
    stream = make_stream(archive=archive)
    log.run(append(stream, [message(n, body=BODY, ttl_s=2) for n in range(1, 1001)]))
    log.run(append(stream, [message(n, body=BODY) for n in range(1001, 1011)]))
    log.run(trim.delete(stream, [*range(250, 520), 700, 702, 1000]))
    until(lambda: offsets(log, stream) == list(range(1001, 1011)), within_s=10)
    assert log.run(trim.expire(stream)) == 1000 - 270 - 3
    log.run(trim.drop(stream, hold_ms=0))
    log.run(trim.drop(stream, hold_ms=0))
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes, state.first_offset) == (10, 10 * len(BODY), 1001)
    assert log.client.execute_command("XLEN", keys.log(stream)) == 10
    assert (
        log.client.execute_command("EXISTS", keys.expiry(stream), keys.gone(stream), keys.hidden(stream)) == 0
    )


def test_what_is_over_below_something_that_can_come_back_goes_alone(log: Log, stream: str) -> None:
    log.run(append(stream, [message(n, ttl_s=2) for n in range(1, 301)]))
    log.run(append(stream, [message(n) for n in range(301, 311)]))
    _, number = log.run(removals.delete(stream, [305], keep_ms=60_000, facts={}))
    until(lambda: 300 not in offsets(log, stream), within_s=10)
    assert log.run(trim.expire(stream)) == 300
    assert number
    log.run(undo.undo(stream, number))
    assert [each.offset for each in browse(log, stream)] == list(range(301, 311))
    assert log.run(stats.inspect(stream)).messages == 10


def test_groups_with_a_filter_count_what_was_over_before_they_got_it(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "some", Settings(filter_keys=("k.1", "k.2"))))
    log.run(groups.group_publish(stream, "all", Settings()))
    pairs(log, stream, keyed=True)
    log.run(trim.expire(stream))
    log.run(config.archived_set(stream, 0))
    log.run(trim.drop(stream))
    got = log.run(groups.fetch(stream, "some", limit=100)).deliveries
    assert [each.entry[1][3] for each in got] == [BODY, BODY]
    assert log.run(standing.inspect(stream, "some")).lost == 2
    assert log.run(standing.inspect(stream, "all")).lost == PAIRS
