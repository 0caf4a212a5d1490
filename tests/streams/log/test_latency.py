"""How long messages took from publish to acknowledgement: counted there, whatever the answer names."""

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from streams.log import append, groups, keys, latency, trim
from streams.log.client import Log, one
from streams.log.groups import Settings
from tests.streams.log.messages import message

HOUR_MS = 3_600_000
"""Of messages as old a place is two minutes wide: however busy the machine, they are acknowledged within it."""


def older(log: Log, stream: str, ages_ms: list[int]) -> None:
    """Store messages that were published so long ago, the oldest first."""
    log.run(append.append(stream, [message(n, key="k") for n in range(len(ages_ms))]))
    stored = log.run(one(("XRANGE", keys.log(stream), "-", "+")))
    log.run(one(("DEL", keys.log(stream))))
    now_ms = int(time.time() * 1000)
    for (position, fields), age_ms in zip(stored, ages_ms, strict=True):
        offset = position.partition(b"-")[0].decode()
        log.run(one(("XADD", keys.log(stream), f"{offset}-{now_ms - age_ms}", *fields)))


def age(number: int) -> int:
    """Ages in the middle of places, an hour or more, each in another one."""
    return latency.place_of(HOUR_MS + 131_072 * (4 + 2 * number)) + 60_000


def told(ages_ms: Iterable[int]) -> dict[int, int]:
    return Counter(map(latency.place_of, ages_ms))


Ack = Callable[[Log, str, int], object]


def by_neighbours(log: Log, stream: str, count: int) -> None:
    log.run(groups.ack(stream, "g", "offsets", list(range(1, count + 1))))


def by_scattered_offsets(log: Log, stream: str, count: int) -> None:
    log.run(groups.ack(stream, "g", "offsets", [*range(1, count + 1, 2)][::-1]))
    log.run(groups.ack(stream, "g", "offsets", [*range(2, count + 1, 2)]))


def one_by_one(log: Log, stream: str, count: int) -> None:
    for offset in range(count, 0, -1):
        log.run(groups.ack(stream, "g", "offsets", [offset]))


def up_to(log: Log, stream: str, count: int) -> None:
    log.run(groups.ack(stream, "g", "up_to", [count]))


@pytest.mark.parametrize("ack", [by_neighbours, by_scattered_offsets, one_by_one, up_to])
@pytest.mark.parametrize("wanted", [(), ("k",)], ids=["taken as a whole", "each on its own"])
def test_each_message_counts_once_under_its_time(
    log: Log, stream: str, ack: Ack, wanted: tuple[str, ...]
) -> None:
    ages = sorted((age(number) for number in (0, 0, 0, 1, 2, 2, 5, 7, 7, 9)), reverse=True)
    older(log, stream, ages)
    log.run(groups.group_publish(stream, "g", Settings(filter_keys=wanted)))
    assert len(log.run(groups.fetch(stream, "g", limit=100)).deliveries) == len(ages)
    ack(log, stream, len(ages))
    assert log.run(latency.acknowledged(stream, "g")) == told(ages)
    by_neighbours(log, stream, len(ages))
    assert log.run(latency.acknowledged(stream, "g")) == told(ages), "answered again it counts nothing"


def test_by_lease_too(log: Log, stream: str) -> None:
    ages = [age(3), age(3), age(0)]
    older(log, stream, ages)
    log.run(groups.group_publish(stream, "g", Settings(ack="all")))
    fetched = log.run(groups.fetch(stream, "g", limit=100)).deliveries
    log.run(groups.ack(stream, "g", "leases", [fetched[1].lease]))
    assert log.run(latency.acknowledged(stream, "g")) == told(ages[:2]), "it covers what is before it"


def test_what_went_while_it_was_out_counts_nothing(log: Log, stream: str) -> None:
    older(log, stream, [age(4), age(2), age(0)])
    log.run(groups.group_publish(stream, "g", Settings()))
    log.run(groups.fetch(stream, "g", limit=100))
    log.run(trim.delete(stream, [2]))
    by_neighbours(log, stream, 3)
    assert log.run(latency.acknowledged(stream, "g")) == told([age(4), age(0)])


def test_a_group_made_again_begins_anew(log: Log, stream: str) -> None:
    older(log, stream, [age(0)])
    log.run(groups.group_publish(stream, "g", Settings()))
    assert log.run(latency.acknowledged(stream, "g")) == {}
    log.run(groups.fetch(stream, "g", limit=100))
    by_neighbours(log, stream, 1)
    log.run(groups.group_remove(stream, "g"))
    log.run(groups.group_publish(stream, "g", Settings()))
    assert log.run(latency.acknowledged(stream, "g")) == {}


def looks(log: Log) -> int:
    """How often entries were read so far."""
    stats = log.client.execute_command("INFO", "commandstats").decode()
    found = re.search(r"^cmdstat_xrange:calls=(\d+)", stats, re.MULTILINE)
    return int(found[1]) if found else 0


def test_a_thousand_that_are_all_different_are_nearly_exact_for_a_few_looks(log: Log, stream: str) -> None:
    chance = random.Random(5)
    ages = sorted(
        (HOUR_MS + int(chance.paretovariate(0.6) * HOUR_MS) % 10**9 for _ in range(1000)), reverse=True
    )
    older(log, stream, ages)
    log.run(groups.group_publish(stream, "g", Settings()))
    log.run(groups.fetch(stream, "g", limit=1000))
    before = looks(log)
    by_neighbours(log, stream, 1000)
    assert looks(log) - before <= 32
    counted = log.run(latency.acknowledged(stream, "g"))
    assert sum(counted.values()) == 1000
    inside = sorted(place for place, count in counted.items() for _ in range(count))
    exact = ages[::-1]
    for at in (50, 250, 500, 750, 900, 990):
        assert exact[max(0, at - 64)] * 15 / 16 <= inside[at] <= exact[min(999, at + 64)] + 60_000


def test_places_are_at_most_a_16th_too_low() -> None:
    chance = random.Random(2)
    for ms in (*range(100), *(chance.randrange(2**40) for _ in range(1000))):
        assert ms * 15 / 16 <= latency.place_of(ms) <= ms
        assert ms >= 32 or latency.place_of(ms) == ms
