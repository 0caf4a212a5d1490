"""What a group has in flight, as a list: bounded, filtered, and looked at without a change."""

import pytest

from streams.log import groups, pending
from streams.log.client import Log
from streams.log.errors import GroupNotFound
from streams.log.groups import Settings
from streams.log.pending import Wanted
from tests.streams.log.messages import fill


@pytest.fixture
def out(log: Log, stream: str) -> str:
    """A stream whose group has five messages out, two of them with another consumer."""
    log.run(groups.group_publish(stream, "g", Settings()))
    fill(log, stream, 6)
    log.run(groups.fetch(stream, "g", limit=3, consumer="a"))
    log.run(groups.fetch(stream, "g", limit=2, consumer="b"))
    return stream


def offsets(log: Log, stream: str, **wanted: object) -> list[int]:
    found, _ = log.run(pending.page(stream, "g", wanted=Wanted(**wanted)))  # type: ignore[arg-type]
    return [row.offset for row in found]


def test_it_goes_on_where_a_page_ended(log: Log, out: str) -> None:
    first, following = log.run(pending.page(out, "g", limit=2))
    assert following is not None
    rest, end = log.run(pending.page(out, "g", start=following, limit=10))
    assert [row.offset for row in (*first, *rest)] == [1, 2, 3, 4, 5]
    assert end is None


def test_a_filter_looks_past_a_slice_that_holds_nothing(
    log: Log, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "SLICE", 2)
    assert offsets(log, out, consumer="b") == [4, 5]


def test_it_is_filtered_by_consumer_deliveries_and_age(log: Log, out: str) -> None:
    log.run(groups.nack(out, "g", "offsets", [2]))
    log.run(groups.fetch(out, "g", limit=1, consumer="c"))
    assert offsets(log, out, deliveries=2) == [2]
    assert offsets(log, out, consumer="a") == [1, 3]
    assert offsets(log, out, before_ms=1) == []


def test_what_went_out_more_than_once_is_counted_by_who_has_it(log: Log, out: str) -> None:
    log.run(groups.nack(out, "g", "offsets", [1, 2, 4]))
    log.run(groups.fetch(out, "g", limit=2, consumer="c"))
    log.run(groups.fetch(out, "g", limit=1, consumer="a"))
    assert log.run(pending.again(out, "g")) == ({"c": 2, "a": 1}, True)
    log.run(groups.ack(out, "g", "offsets", [1]))
    assert log.run(pending.again(out, "g")).by_consumer == {"c": 1, "a": 1}


def test_it_is_counted_among_so_many_of_the_lowest_offsets(
    log: Log, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "SLICE", 2)
    log.run(groups.nack(out, "g", "offsets", [1, 5]))
    log.run(groups.fetch(out, "g", limit=2, consumer="c"))
    assert log.run(pending.again(out, "g", most=4)) == ({"c": 1}, False)
    assert log.run(pending.again(out, "g", most=6)) == ({"c": 2}, True)


def test_a_lease_that_is_told_settles_its_delivery(log: Log, out: str) -> None:
    (first, *_), _ = log.run(pending.page(out, "g"))
    assert log.run(groups.ack(out, "g", "leases", [first.lease])) == 1
    assert offsets(log, out) == [2, 3, 4, 5]


def test_there_is_none_of_a_group_that_is_not(log: Log, stream: str) -> None:
    with pytest.raises(GroupNotFound):
        log.run(pending.page(stream, "nope"))


@pytest.mark.long
def test_of_very_many_who_have_nothing_out_the_idlest_are_forgotten(log: Log, stream: str) -> None:
    log.run(groups.group_publish(stream, "g", Settings()))
    for n in range(1_040):
        log.run(groups.fetch(stream, "g", limit=1, consumer=f"c{n}"))
    fill(log, stream, 1)
    log.run(groups.fetch(stream, "g", limit=1, consumer="fresh"))
    log.run(groups.ack(stream, "g", "offsets", [1]))
    held = log.run(pending.members(stream, "g"))
    assert held["fresh"].messages == 0
    assert 900 <= len(held) <= pending.IDLE_LISTED
    forgotten = {f"c{n}" for n in range(1_040)} - held.keys()
    assert {"c1039", "c1000"} <= held.keys()
    assert max(int(name[1:]) for name in forgotten) < 200
