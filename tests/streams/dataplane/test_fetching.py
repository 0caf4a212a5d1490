"""Who begins or ceases to fetch from a group, though nothing is there, has it sampled; who goes on does not."""

import pytest

from streams.dataplane import fetching
from streams.log import stats
from streams.log.client import Log
from tests.streams.dataplane.conftest import Stream
from tests.streams.dataplane.test_grouping import Group, group  # noqa: F401
from tests.waiting import until


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "EVERY_S", 0.5)


def is_touched(log: Log, stream: Stream) -> bool:
    return stream.stream_id in log.run(stats.take_touched(100_000))


def test_a_fetch_of_nothing_touches_its_stream_when_it_begins_and_when_nobody_fetches_any_more(
    log: Log,
    stream: Stream,
    group: Group,  # noqa: F811
    brief: None,
) -> None:
    log.run(stats.take_touched(100_000))
    assert group.fetch() == []
    until(lambda: is_touched(log, stream))
    until(lambda: is_touched(log, stream))
    assert not is_touched(log, stream)


def test_who_goes_on_is_told_once() -> None:
    seen = fetching.Fetching()
    seen.note("s", "g")
    assert [seen.changed([]), seen.changed([("s", "g")]), seen.changed([])] == [{"s"}, set(), set()]
