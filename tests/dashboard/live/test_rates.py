"""How fast streams move: what the worker sampled in the last minute, read once, and the sums of a workspace."""

import re
import time
from typing import Any

import pytest
from django.test import Client

from dashboard.live import rates
from dashboard.live.lately import Lately
from dashboard.live.means import Course, Moved, means
from streams import selectors, store
from streams.log import flow
from streams.log.flow import Flow
from streams.models import Stream, Workspace
from streams.selectors import METRICS_STREAM
from streams.services.streams import internal_stream
from tests.dashboard.conftest import MakeStream, sampled_ago, sees_all, silence
from tests.dashboard.moving import sampled


@pytest.fixture
def metrics(workspace: Workspace) -> Stream:
    return internal_stream(METRICS_STREAM, archive=False)


def test_the_samples_of_the_last_minute_come_by_stream(metrics: Stream, make_stream: MakeStream) -> None:
    orders, clicks, now = make_stream("orders"), make_stream("clicks"), time.time()
    sampled(metrics, at_s=now - 2, moved={orders: 3, clicks: 9})
    sampled(metrics, at_s=now - 1, moved={orders: 4})
    found = Lately().since([orders.stream_id, "nothing"], since_s=now - 60)
    assert {each: [moved.rate_in for moved in points] for each, points in found.items()} == {
        orders.stream_id: [3, 4]
    }


def test_a_record_is_taken_apart_once(
    metrics: Stream, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, now, taken = make_stream("orders"), time.time(), list[int]()
    read_on = selectors.samples_read_on

    def counting(*args: Any, **named: Any) -> Any:
        found = read_on(*args, **named)
        taken.append(len(found[0]))
        return found

    monkeypatch.setattr(selectors, "samples_read_on", counting)
    lately = Lately()
    for second in range(3):
        sampled(metrics, at_s=now - 3 + second, moved={orders: second})
        course = lately.since([orders.stream_id], since_s=now - 60)[orders.stream_id]
        assert [moved.rate_in for moved in course] == list(range(second + 1))
    assert taken == [1, 1, 1]


def test_samples_that_begin_anew_are_not_mixed_with_those_before(
    metrics: Stream, make_stream: MakeStream
) -> None:
    orders, now, lately = make_stream("orders"), time.time(), Lately()
    sampled(metrics, at_s=now - 2, moved={orders: 3})
    assert lately.means()[orders.stream_id].rate_in == 0.3
    metrics.delete()
    assert lately.means() == {}
    sampled(internal_stream(METRICS_STREAM, archive=False), at_s=now - 1, moved={orders: 5})
    course = lately.since([orders.stream_id], since_s=now - 60)[orders.stream_id]
    assert [moved.rate_in for moved in course] == [5]


def test_a_rate_of_long_ago_is_not_the_rate_now(metrics: Stream, make_stream: MakeStream) -> None:
    orders, now = make_stream("orders"), time.time()
    sampled(metrics, at_s=now - 20, moved={orders: 3})
    assert Lately().means() == {}
    row = rates.rows([orders])[0]
    assert row.rates.rate_in == 0
    assert max(row.rates.last_minute) == 0.3


def test_the_sums_of_a_workspace_are_its_chart_and_its_rate(
    metrics: Stream, workspace: Workspace, owner: Client
) -> None:
    now = int(time.time())
    # Samples began when the stream of samples was made.
    Stream.objects.filter(pk=metrics.pk).update(created_at="2020-01-01T00:00Z")
    for ago_s in (600, 30, 1):
        store.log().run(flow.note({workspace.pk: Flow((now - ago_s) * 1000, ago_s, 2 * ago_s, 0)}))
    series = rates.workspace_series(sees_all(workspace))
    sampled_at = dict(zip(series.times, series.rate_in, strict=True))
    assert [sampled_at[now - ago_s] for ago_s in (600, 30, 1)] == [600, 30, 1]
    assert sampled_at[now - 600 + 1] == 0, "silence is nought"
    drawn = dict(zip(series.means.times, series.means.rate_in, strict=True))
    assert [drawn[now - 600 + later_s] for later_s in (-1, 0, 9, 10)] == [0, 60, 60, 0]
    assert owner.get("/").context["totals"].rate_in == 0.1


@pytest.mark.parametrize("into_s", [0, 1, 10, 59])
def test_what_comes_once_a_minute_has_the_same_mean_at_any_second_of_it(
    metrics: Stream, workspace: Workspace, into_s: int
) -> None:
    Stream.objects.filter(pk=metrics.pk).update(created_at="2020-01-01T00:00Z")
    minute_s = int(time.time()) // 60 * 60
    for minutes_ago in range(20, -1, -1):
        at_ms = (minute_s - 60 * minutes_ago) * 1000
        store.log().run(flow.note({workspace.pk: Flow(at_ms, 600, 1, 0)}))
    series = rates.workspace_series(sees_all(workspace), now_s=minute_s + into_s)
    assert series.mean_in == pytest.approx(10)


def test_what_goes_out_stands_beside_what_comes_in(
    metrics: Stream, workspace: Workspace, make_stream: MakeStream, owner: Client
) -> None:
    orders, now = make_stream("orders"), time.time()
    sampled(metrics, at_s=now, moved={orders: 8})
    store.log().run(flow.note({workspace.pk: Flow(int(now * 1000), 8, 16, 1)}))
    assert rates.rows([orders])[0].rates.rate_out == 0.1
    answer = owner.get("/live/now/?topic=overview&topic=stream:orders").json()
    told = {row["topic"]: row["event"] for row in answer["events"]}
    assert (told["overview"]["rate_in"], told["overview"]["rate_out"]) == (0.8, 0.1)
    assert (told["stream:orders"]["rate_in"], told["stream:orders"]["rate_out"]) == (0.8, 0.1)


def test_a_stream_that_is_published_to_in_batches_has_one_rate_everywhere(
    metrics: Stream, workspace: Workspace, make_stream: MakeStream, owner: Client
) -> None:
    orders, now = make_stream("orders"), int(time.time())
    Stream.objects.filter(pk=metrics.pk).update(created_at="2020-01-01T00:00Z")
    for ago_s in range(30, -1, -1):
        sampled(metrics, at_s=now - ago_s, moved={orders: 4 + 4 * (ago_s % 2)})
        store.log().run(flow.note({workspace.pk: Flow((now - ago_s) * 1000, 4 + 4 * (ago_s % 2), 0, 0)}))
    row = rates.rows([orders])[0]
    answer = owner.get("/live/now/?topic=overview&topic=stream:orders").json()
    told = {each["topic"]: each["event"]["rate_in"] for each in answer["events"]}
    assert (told["overview"], told["stream:orders"], row.rates.rate_in) == (6, 6, 6)
    assert set(row.rates.last_minute[-15:-5]) == {6}
    assert set(rates.workspace_series(sees_all(workspace)).means.rate_in[-15:-5]) == {6}


def test_what_nobody_samples_is_not_known(metrics: Stream, make_stream: MakeStream, owner: Client) -> None:
    orders, now = make_stream("orders"), int(time.time())
    sampled(metrics, at_s=now - 20, moved={orders: 5})
    sampled_ago(ms=20_000)
    row = rates.rows([orders])[0]
    assert (row.rates.rate_in, row.rates.rate_out, row.rates.last_minute[-1]) == (None, None, 0.5)
    events = owner.get("/live/now/?topic=overview&topic=stream:orders").json()["events"]
    told = {each["event"]["kind"]: each["event"] for each in events}
    assert told["overview_sampled"]["rate_in"] is told["stream_sampled"]["rate_in"] is None
    assert told["worker_silent"]["silent_ms"] >= 20_000
    assert told["worker_silent"]["at_ms"] == told["overview_sampled"]["at_ms"], (
        "both say when it sampled last"
    )
    assert events[-1]["event"]["kind"] != "overview_sampled", "a page would take it for a beat"
    page = owner.get("/").content.decode()
    assert re.search(r"data-live-age>2\d s<", page), "also without a script"


def test_while_nobody_sampled_a_workspace_has_no_rate(
    metrics: Stream, workspace: Workspace, make_stream: MakeStream, owner: Client
) -> None:
    make_stream("orders")
    now = int(time.time())
    Stream.objects.filter(pk=metrics.pk).update(created_at="2020-01-01T00:00Z")
    for ago_s in (*range(660, 600, -1), *range(300, 0, -1)):
        store.log().run(flow.note({workspace.pk: Flow((now - ago_s) * 1000, 8, 80, 0)}))
    silence(since_s=now - 601, until_s=now - 300)
    series = rates.workspace_series(sees_all(workspace), now_s=now - 1)
    sampled_at = dict(zip(series.times, series.rate_in, strict=True))
    assert [sampled_at[now - ago_s] for ago_s in (700, 650, 600, 301, 300)] == [0, 8, None, None, 8]
    drawn = dict(zip(series.means.times, series.means.rate_in, strict=True))
    assert [drawn[now - ago_s] for ago_s in (601, 600, 301, 300)] == [8, None, None, 8]
    assert series.mean_in == pytest.approx(8 * 360 / 600)
    assert None in [minute.rate_in for minute in series.by_minute]
    page = owner.get("/").content.decode()
    assert "no samples</td>" in page
    told = re.search(r"no samples ([\d:]{8}) – ([\d:]{8})", page)
    assert told is not None
    assert page.count("null") >= 200, "a gap of the lines"


def test_a_rate_that_is_known_of_less_than_half_of_the_time_is_not_judged(
    metrics: Stream, workspace: Workspace
) -> None:
    now = int(time.time())
    Stream.objects.filter(pk=metrics.pk).update(created_at="2020-01-01T00:00Z")
    silence(since_s=now - 500, until_s=now - 10)
    assert rates.workspace_series(sees_all(workspace), now_s=now).mean_in is None


def test_a_worker_that_was_started_again_within_seconds_leaves_no_gap_and_no_dip(
    metrics: Stream, workspace: Workspace, make_stream: MakeStream
) -> None:
    orders, now = make_stream("orders"), int(time.time())
    Stream.objects.filter(pk=metrics.pk).update(created_at="2020-01-01T00:00Z")
    for ago_s in (*range(60, 20, -1), *range(13, -1, -1)):
        sampled(metrics, at_s=now - ago_s, moved={orders: 8})
        store.log().run(flow.note({workspace.pk: Flow((now - ago_s) * 1000, 8, 80, 0)}))
    silence(since_s=now - 21, until_s=now - 13)
    assert set(rates.workspace_series(sees_all(workspace), now_s=now).means.rate_in[-40:]) == {8}
    assert set(rates.rows([orders])[0].rates.last_minute[-40:]) == {8}


def test_a_sparkline_begins_after_a_silence(metrics: Stream, make_stream: MakeStream) -> None:
    orders, now = make_stream("orders"), int(time.time())
    for ago_s in (*range(60, 50, -1), *range(15, -1, -1)):
        sampled(metrics, at_s=now - ago_s, moved={orders: 8})
    silence(since_s=now - 51, until_s=now - 15)
    last_minute = rates.rows([orders])[0].rates.last_minute
    assert 14 <= len(last_minute) <= 18
    assert set(last_minute[:14]) == {8}


def test_a_mean_is_of_what_is_known() -> None:
    assert means([4.0] * 10 + [None] * 10 + [6.0])[9:] == [4.0, *[None] * 10, 6.0]
    assert means([4.0] * 10 + [None] * 9 + [6.0])[9:] == [*[4.0] * 10, 6.0], "too short for a gap"
    assert means([10.0, 0.0, None]) == [1.0, 1.0, 1.111], "before the first it was at rest"
    assert means([None, 9.0]) == [None, 1.0]
    assert means([3.0, None, 5.0], step_s=30) == [3.0, None, 5.0]


def test_a_mean_counts_a_sample_for_as_long_as_it_took() -> None:
    course = Course([Moved(at_s, 10, 0, 0) for at_s in (100, 101, 104)] + [Moved(105, 0, 0, 0)])
    assert course.mean(105).rate_in == 5, "one second at rest before the first, one, and three"
    assert course.mean(112).rate_in == 2, "two of the three seconds are within"
    assert course.mean(114).rate_in == 0


def test_a_flow_keeps_a_bounded_number(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "MOST", 5)
    for at_ms in range(9):
        store.log().run(flow.note({workspace.pk: Flow(at_ms, 1, 1, 1)}))
    assert [each.at_ms for each in selectors.flow_of(sees_all(workspace))[0]] == [4, 5, 6, 7, 8]
