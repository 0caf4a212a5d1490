"""The lag of a group with a filter: counted once, kept by blocks, and exact whatever happens to the messages."""

import random
import re

import pytest

from streams.log import entries, groups, keys, lag, standing, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Settings
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import browse, fill, message
from tests.waiting import until

FILTER = ("a.>",)


def matches(log: Log, stream: str, *, after: int) -> list[int]:
    """Offsets of what the filter lets through, looked at one by one."""
    return [
        each.offset
        for each in browse(log, stream, start=after + 1)
        if each.key is not None and re.match(r"a\..", each.key)
    ]


def publish(log: Log, stream: str, *of_keys: str, first: int, ttl_s: int | None = None) -> None:
    batch = [message(first + n, key=key, ttl_s=ttl_s) for n, key in enumerate(of_keys)]
    log.run(append(stream, batch))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_it_equals_a_count_one_by_one(log: Log, make_stream: MakeStream, seed: int) -> None:
    chance = random.Random(seed)
    stream = make_stream()
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=FILTER, max_ack_pending=1_000_000)))
    last = 0
    for _ in range(40):
        match chance.randrange(5):
            case 0 | 1:
                count = chance.randint(1, 400)
                publish(log, stream, *chance.choices(["a.1", "a.2.3", "b"], k=count), first=last + 1)
                last += count
            case 2:
                log.run(groups.fetch(stream, "g", limit=chance.randint(1, 300)))
            case 3 if last:
                log.run(trim.delete(stream, [chance.randint(1, last) for _ in range(5)]))
            case 4 if last and chance.random() < 0.5:
                log.run(trim.purge(stream, below=chance.randint(1, last)))
            case 4 if last:
                log.run(groups.seek(stream, "g", next_offset=chance.randint(1, last + 1)))
        state = log.run(standing.inspect(stream, "g"))
        left = matches(log, stream, after=state.delivered_offset)
        assert state.lag == len(left)


def test_what_a_fetch_leaves_counts_matching_ones_only(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=FILTER)))
    publish(log, stream, "a.1", "b", "a.2", "b", "a.3", "b", first=1)
    fetched = log.run(groups.fetch(stream, "g", limit=1))
    assert fetched.left == 2
    assert log.run(groups.fetch(stream, "g", limit=5)).left == 0


def test_what_expires_leaves_the_lag(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=FILTER)))
    publish(log, stream, "a.1", "b", first=1)
    publish(log, stream, "a.1", first=3, ttl_s=1)
    assert log.run(standing.inspect(stream, "g")).lag == 2
    until(lambda: log.run(standing.inspect(stream, "g")).lag == 1, within_s=5)


def test_without_a_filter_what_expires_leaves_the_lag_at_once(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings()))
    publish(log, stream, "a", "a", first=1, ttl_s=1)
    publish(log, stream, "a", first=3)
    until(lambda: [each.offset for each in browse(log, stream)] == [3], within_s=5)
    assert log.run(standing.inspect(stream, "g")).lag == 1


def test_another_filter_is_counted_anew(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=FILTER)))
    # Counts are kept of whole blocks of 256.
    publish(log, stream, *["a.1", "b", "b"] * 300, first=1)
    assert log.run(standing.inspect(stream, "g")).lag == 300
    assert log.client.exists(keys.counted(stream, "g"))
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=("b",))))
    assert log.run(standing.inspect(stream, "g")).lag == 600


def test_the_oldest_message_of_a_filtered_group_is_one_that_matches(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=FILTER)))
    publish(log, stream, "b", first=1)
    until(lambda: fill(log, stream, 1, first=2)[0].duplicate)
    publish(log, stream, "a.1", first=3)
    wanted = next(each.timestamp_ms for each in browse(log, stream) if each.key == "a.1")
    assert log.run(standing.inspect(stream, "g")).oldest_ms == wanted


def test_counting_again_reads_little(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=FILTER)))
    for first in range(1, 20_001, 1000):
        publish(log, stream, *["a.1", "b"] * 500, first=first)
    assert log.run(lag.matching(stream, "g"))[0] == 10_000
    log.client.execute_command("CONFIG", "RESETSTAT")
    assert log.run(lag.matching(stream, "g"))[0] == 10_000
    log.run(trim.delete(stream, [10_001]))
    assert log.run(lag.matching(stream, "g"))[0] == 9_999
    text = log.client.execute_command("INFO", "commandstats").decode()
    ranges = re.search(r"cmdstat_xrange:calls=(\d+)", text)
    assert ranges, text
    assert int(ranges.group(1)) < 20
    assert entries.position(log.run(groups.fetch(stream, "g", limit=1)).deliveries[0].entry)[0] == 1
