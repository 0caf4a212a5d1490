"""The worker's lease: one holds it."""

from streams.log import keys, lease
from streams.log.client import Log
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
