"""However much one call of a client is about, nobody else waits for more than a slice of it."""

import statistics
from collections.abc import Iterator

import pytest

from streams.log import config, entries, groups, keys, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Settings
from tests.streams.log.conftest import DEFAULTS
from tests.streams.log.messages import message
from tests.streams.log.weighed import Weighed

MANY = 10_000

MOST = 3
"""So many times the server's processor time for the append of a batch of 1000, for which everybody waits anyway, may
the longest call take: most take less than that append."""


@pytest.fixture
def weighed(valkey_memory: str) -> Iterator[Weighed]:
    log = Weighed(valkey_memory)
    yield log
    log.close()


@pytest.mark.long
@pytest.mark.parametrize("filter_keys", [(), (">",)], ids=["runs", "separate"])
def test_no_call_takes_much_longer_than_a_publish_takes(
    valkey_memory: str, weighed: Weighed, filter_keys: tuple[str, ...], unique: str
) -> None:
    stream = config.Registered(
        stream_id=keys.stream_id(), name=unique, workspace="default", workspace_id=1, archive=False
    )
    with_library = Log(valkey_memory)
    with_library.run(config.stream_publish(stream, DEFAULTS))
    with_library.close()
    for first in range(0, MANY, 1000):
        weighed.run(append(stream.stream_id, [message(n, key=f"k.{n}") for n in range(first, first + 1000)]))
    batch_ms = statistics.median(weighed.took_ms)
    settings = Settings(max_ack_pending=MANY, ack_wait_ms=600_000, max_deliver=-1, filter_keys=filter_keys)
    weighed.run(groups.group_publish(stream.stream_id, "g", settings))
    on = stream.stream_id, "g"
    every = list(range(1, MANY + 1))
    took: dict[str, float] = {}

    def longest_of(what: str) -> None:
        took[what] = max(weighed.took_ms)
        weighed.took_ms.clear()

    weighed.run(groups.fetch(*on, limit=MANY))
    weighed.took_ms.clear()
    assert weighed.run(groups.working(*on, "offsets", every)) == MANY
    longest_of("working")
    assert weighed.run(groups.nack(*on, "offsets", every)) == MANY
    longest_of("nack")
    again = weighed.run(groups.fetch(*on, limit=MANY))
    assert sorted(entries.position(each.entry)[0] for each in again.deliveries) == every
    longest_of("fetch of what is due")
    leases = [each.lease for each in sorted(again.deliveries, key=lambda each: entries.position(each.entry))]
    assert weighed.run(groups.give_back(*on, leases[::4])) == MANY / 4
    longest_of("give back")
    assert len(weighed.run(groups.term(*on, "leases", leases[1::4], reason="no"))) == MANY / 4
    longest_of("term by lease")
    assert len(weighed.run(groups.term(*on, "offsets", every[2::4], reason="no"))) == MANY / 4
    longest_of("term")
    assert weighed.run(groups.ack(*on, "leases", leases[3::4])) == MANY / 4
    longest_of("ack by lease")
    assert len(weighed.run(groups.fetch(*on, limit=MANY)).deliveries) == MANY / 4
    weighed.took_ms.clear()
    assert weighed.run(groups.ack(*on, "offsets", every)) == MANY / 4
    longest_of("ack")
    assert {what: f"{ms:.1f} ms" for what, ms in took.items() if ms > MOST * batch_ms} == {}, batch_ms


@pytest.mark.parametrize("number_of_keys", [1, 1000, MANY // 2, MANY])
def test_no_call_that_applies_a_limit_a_key_takes_much_longer_than_a_publish_takes(
    valkey_memory: str, weighed: Weighed, number_of_keys: int, unique: str
) -> None:
    stream = config.Registered(
        stream_id=keys.stream_id(), name=unique, workspace="default", workspace_id=1, archive=False
    )
    with_library = Log(valkey_memory)
    with_library.run(config.stream_publish(stream, DEFAULTS))
    each = MANY // number_of_keys
    for first in range(0, MANY, 1000):
        batch = [message(n, key=f"k.{n // each}") for n in range(first, first + 1000)]
        weighed.run(append(stream.stream_id, batch))
    batch_ms = statistics.median(weighed.took_ms)
    weighed.took_ms.clear()
    with_library.run(config.stream_publish(stream, {**DEFAULTS, "max_messages_per_key": 1}))
    with_library.close()
    went, is_done = weighed.run(trim.keep_newest_of_keys(stream.stream_id))
    assert (went.messages, is_done) == (MANY - number_of_keys, True)
    assert max(weighed.took_ms) <= MOST * batch_ms, batch_ms
