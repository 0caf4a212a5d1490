"""The worker's lease: one holds it, and tells when it sampled."""

from collections.abc import Iterator

import pytest

from streams.log import keys, lease
from streams.log.client import Log
from streams.services.installation import METRICS_TTL_S
from tests.waiting import until


def test_one_holds_it_until_it_gives_it_back(log: Log) -> None:
    log.client.delete(keys.WORKER_LEASE)
    assert log.run(lease.worker_hold("one", for_ms=60_000))
    assert not log.run(lease.worker_hold("other", for_ms=60_000))
    log.run(lease.worker_release("other"))
    assert not log.run(lease.worker_hold("other", for_ms=60_000))
    assert log.run(lease.worker_hold("one", for_ms=60_000))
    log.run(lease.worker_release("one"))
    assert log.run(lease.worker_hold("other", for_ms=60_000))
    log.run(lease.worker_release("other"))


def test_one_that_is_not_kept_ends_by_itself(log: Log) -> None:
    log.client.delete(keys.WORKER_LEASE)
    assert log.run(lease.worker_hold("one", for_ms=50))
    assert until(lambda: log.run(lease.worker_hold("other", for_ms=60_000)), within_s=5)
    log.run(lease.worker_release("other"))


def test_when_the_holder_sampled_last_outlives_the_lease(log: Log) -> None:
    log.client.delete(keys.WORKER_LEASE, keys.SAMPLED)
    assert log.run(lease.worker_hold("one", for_ms=60_000))
    assert log.run(lease.sampled_ms()) is None
    assert log.run(lease.worker_hold("one", for_ms=60_000, sampled_ms=1_795_244_753_000))
    assert not log.run(lease.worker_hold("other", for_ms=60_000, sampled_ms=7))
    log.run(lease.worker_release("one"))
    assert log.run(lease.sampled_ms()) == 1_795_244_753_000
    log.client.delete(keys.SAMPLED)


@pytest.fixture
def clean(log: Log) -> Iterator[None]:
    """A store in which nobody has sampled."""
    left = (keys.WORKER_LEASE, keys.SAMPLED, keys.SILENCES)
    log.client.delete(*left)
    yield
    log.client.delete(*left)


def hold(log: Log, owner: str, sampled_ms: int) -> None:
    assert log.run(lease.worker_hold(owner, for_ms=60_000, sampled_ms=sampled_ms))


@pytest.mark.usefixtures("clean")
def test_where_rounds_of_samples_lie_far_apart_nobody_counted(log: Log) -> None:
    for sampled_ms in (1_000, 2_000, 5_000, 305_000, 306_000, 309_001):
        hold(log, "one", sampled_ms)
    assert log.run(lease.silences(since_ms=0)) == [(5_000, 305_000), (306_000, 309_001)]
    assert log.run(lease.silences(since_ms=305_000)) == [(306_000, 309_001)]


@pytest.mark.usefixtures("clean")
def test_a_silence_is_as_long_whoever_ends_it(log: Log) -> None:
    hold(log, "one", 1_000)
    log.client.delete(keys.WORKER_LEASE)
    hold(log, "other", 61_000)
    assert log.run(lease.silences(since_ms=0)) == [(1_000, 61_000)]


@pytest.mark.usefixtures("clean")
def test_one_that_hung_while_another_sampled_takes_nothing_back(log: Log) -> None:
    hold(log, "hung", 1_000)
    log.client.delete(keys.WORKER_LEASE)
    hold(log, "other", 2_000)
    log.run(lease.worker_release("other", sampled_ms=3_000))
    hold(log, "hung", 1_000)
    assert log.run(lease.sampled_ms()) == 3_000
    hold(log, "hung", 4_000)
    assert log.run(lease.silences(since_ms=0)) == []


@pytest.mark.usefixtures("clean")
def test_a_clock_that_was_set_back_is_believed(log: Log) -> None:
    hold(log, "one", 900_000)
    hold(log, "one", 1_000)
    assert log.run(lease.sampled_ms()) == 1_000


@pytest.mark.usefixtures("clean")
def test_silences_are_kept_as_long_as_samples(log: Log) -> None:
    assert lease.SILENCES_KEPT_MS == METRICS_TTL_S * 1000
    hold(log, "one", 1_000)
    hold(log, "one", 11_000)
    hold(log, "one", 11_000 + lease.SILENCES_KEPT_MS)
    assert [each.until_ms for each in log.run(lease.silences(since_ms=0))] == [
        11_000 + lease.SILENCES_KEPT_MS
    ]
