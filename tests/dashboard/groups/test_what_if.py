"""What a group's page says of its backlog at another rate, held against what a queue that is played through does."""

import re

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from dashboard.groups.what_if import Outlook, incoming_of, since_the_last_seek
from streams.models import Group
from streams.verdicts import Sample
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import BODIES, PAGE, fetched, make_group
from tests.dashboard.verdicts import judged

RATES = st.integers(0, 40)


def outlook(backlog: int, incoming: float, acks: float, **more: float | None) -> Outlook:
    figures = {"edge_seconds": None, "consumers": 2, "asked": None, **more}
    return Outlook(backlog=backlog, incoming=incoming, acks=acks, **figures)  # type: ignore[arg-type]


@given(backlog=st.integers(0, 500), incoming=RATES, acks=RATES)
def test_the_backlog_is_gone_when_it_is(backlog: int, incoming: int, acks: int) -> None:
    left, seconds = backlog, 0
    while left > 0 and seconds < 1000:
        left, seconds = left + incoming - acks, seconds + 1
    told = outlook(backlog, incoming, 1.0).seconds_at(acks)
    if left > 0:
        assert told is None or told > 1000
    else:
        assert told is not None
        assert seconds - 1 < told <= seconds or told == seconds == 0


@given(backlog=st.integers(1, 500), incoming=RATES, edge=st.integers(1, 1000))
def test_at_the_rate_that_loses_nothing_it_is_gone_at_the_edge(
    backlog: int, incoming: int, edge: int
) -> None:
    told = outlook(backlog, incoming, 1.0, edge_seconds=edge)
    assert told.rate_in_time is not None
    assert told.seconds_at(told.rate_in_time) == pytest.approx(edge)
    assert not outlook(backlog, incoming, 1.0, edge_seconds=edge, asked=told.rate_in_time * 1.01).is_too_late
    assert outlook(backlog, incoming, 1.0, edge_seconds=edge, asked=told.rate_in_time * 0.99).is_too_late


def test_consumers_are_whole_and_enough() -> None:
    told = outlook(10, 5.0, 4.0)
    assert [told.consumers_at(rate) for rate in (0.0, 2.0, 4.0, 4.1, 20.0)] == [0, 1, 2, 3, 10]
    assert outlook(10, 5.0, 0.0).consumers_at(20.0) is None
    assert outlook(10, 5.0, 4.0, consumers=0).consumers_at(20.0) is None


def sample(
    at_s: int,
    *,
    lag: int = 0,
    pending: int = 0,
    acked: int = 0,
    dead: int = 0,
    removed: int = 0,
    generation: int = 1,
) -> Sample:
    return Sample(
        at_ms=at_s * 1000,
        lag=lag,
        pending=pending,
        held=0,
        floor=0,
        deliveries=0,
        acked=acked,
        redelivered=0,
        dead=dead,
        removed=removed,
        polls=0,
        fetched_ms=0,
        acked_ms=0,
        generation=generation,
    )


def test_what_came_in_is_told_by_where_it_went() -> None:
    before = sample(0, lag=100, pending=5, acked=50, dead=1, removed=2)
    after = sample(10, lag=90, pending=8, acked=90, dead=3, removed=4)
    assert incoming_of([before, after]) == pytest.approx((90 + 8 + 90 + 3 + 4 - 158) / 10)


def test_what_a_seek_brought_back_did_not_come_in() -> None:
    samples = [sample(0, lag=0), sample(10, lag=5_000, generation=2), sample(20, lag=5_010, generation=2)]
    assert incoming_of(since_the_last_seek(samples)) == pytest.approx(1.0)


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    return make_group(make_stream("orders", bodies=BODIES))


def panel(owner: Client, asked: str = "") -> str:
    """The words of the panel, tags taken out; empty where there is none."""
    page = owner.get(f"{PAGE}{asked}").content.decode()
    found = re.search(r'<section class="panel" id="what-if">(.*?)</section>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", found[1]).split()) if found else ""


def test_a_group_that_falls_behind_says_what_it_takes(owner: Client, billing: Group) -> None:
    fetched(billing, limit=2)
    judged(billing.stream, "billing", "slow", lag=len(BODIES) - 2, pending=2, acked=(0, 20, 40))
    said = panel(owner)
    assert "2.00/s in, 2.00/s acknowledged: never, it stays as it is" in said
    assert "To keep up more than 2.00/s" in said
    assert "To lose nothing" not in said
    said = panel(owner, "?acks=2.5")
    assert f"At 2.50/s gone in {2 * len(BODIES)} s" in said


def test_an_edge_says_which_rate_loses_nothing(owner: Client, make_stream: MakeStream) -> None:
    group = make_group(make_stream("orders", bodies=BODIES, ttl=3600))
    judged(group.stream, "billing", "slow", lag=len(BODIES), acked=(0, 20, 40))
    said = panel(owner, "?acks=2.0001")
    assert "then it is gone before the retention edge in" in said
    assert "too late for all" in said
    assert "too late for all" not in panel(owner, "?acks=50")


def test_nothing_is_said_where_nothing_waits_or_nobody_sampled(owner: Client, billing: Group) -> None:
    assert panel(owner) == ""
    assert "There are too few samples of this group yet." in panel(owner, "?acks=5")


@pytest.mark.parametrize("wrong", ["-1", "fast", "nan", "inf", "1e9", "", "%00"])
def test_a_rate_that_is_none_is_refused_in_its_place(owner: Client, billing: Group, wrong: str) -> None:
    judged(billing.stream, "billing", "slow", lag=5, acked=(0, 20, 40))
    answer = owner.get(f"{PAGE}?acks={wrong}")
    assert answer.status_code == 422
    assert 'id="id_acks_error"' in answer.content.decode()
