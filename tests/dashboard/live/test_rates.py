"""How fast streams move: what the worker sampled in the last minute, read once, and the sums of a workspace."""

import time
from typing import Any

import pytest
from django.test import Client

from dashboard.live import rates
from dashboard.live.lately import Lately
from streams import selectors, store
from streams.log import flow
from streams.log.flow import Flow
from streams.models import Stream, Workspace
from streams.selectors import METRICS_STREAM
from streams.services.streams import internal_stream
from tests.dashboard.conftest import MakeStream
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
        points = lately.since([orders.stream_id], since_s=now - 60)[orders.stream_id]
        assert [moved.rate_in for moved in points] == list(range(second + 1))
    assert taken == [1, 1, 1]


def test_samples_that_begin_anew_are_not_mixed_with_those_before(
    metrics: Stream, make_stream: MakeStream
) -> None:
    orders, now, lately = make_stream("orders"), time.time(), Lately()
    sampled(metrics, at_s=now - 2, moved={orders: 3})
    assert lately.newest(within_s=60)[orders.stream_id].rate_in == 3
    metrics.delete()
    assert lately.newest(within_s=60) == {}
    sampled(internal_stream(METRICS_STREAM, archive=False), at_s=now - 1, moved={orders: 5})
    points = lately.since([orders.stream_id], since_s=now - 60)[orders.stream_id]
    assert [moved.rate_in for moved in points] == [5]


def test_a_rate_of_long_ago_is_not_the_rate_now(metrics: Stream, make_stream: MakeStream) -> None:
    orders, now = make_stream("orders"), time.time()
    sampled(metrics, at_s=now - 20, moved={orders: 3})
    assert Lately().newest() == {}
    row = rates.rows([orders])[0]
    assert row.rates.rate_in == 0
    assert 3 in row.rates.last_minute


def test_the_sums_of_a_workspace_are_its_chart_and_its_rate(
    metrics: Stream, workspace: Workspace, owner: Client
) -> None:
    now_ms = int(time.time() * 1000)
    # Samples began when the stream of samples was made.
    Stream.objects.filter(pk=metrics.pk).update(created_at="2020-01-01T00:00Z")
    for ago_s in (600, 30, 1):
        store.log().run(flow.note({workspace.pk: Flow(now_ms - ago_s * 1000, ago_s, 2 * ago_s, 0)}))
    series = rates.workspace_series(workspace)
    told = dict(zip(series.times, series.rate_in, strict=True))
    assert [told[(now_ms - ago_s * 1000) / 1000] for ago_s in (600, 30, 1)] == [600, 30, 1]
    assert told[(now_ms - 600_000) / 1000 + 1] == 0, "silence is drawn as nought"
    assert owner.get("/").context["totals"].rate_in == 1


def test_what_goes_out_stands_beside_what_comes_in(
    metrics: Stream, workspace: Workspace, make_stream: MakeStream, owner: Client
) -> None:
    orders, now = make_stream("orders"), time.time()
    sampled(metrics, at_s=now, moved={orders: 8})
    store.log().run(flow.note({workspace.pk: Flow(int(now * 1000), 8, 16, 1)}))
    assert rates.rows([orders])[0].rates.rate_out == 1
    answer = owner.get("/live/now/?topic=overview&topic=stream:orders").json()
    told = {row["topic"]: row["event"] for row in answer["events"]}
    assert (told["overview"]["rate_in"], told["overview"]["rate_out"]) == (8, 1)
    assert (told["stream:orders"]["rate_in"], told["stream:orders"]["rate_out"]) == (8, 1)


def test_a_flow_keeps_a_bounded_number(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "MOST", 5)
    for at_ms in range(9):
        store.log().run(flow.note({workspace.pk: Flow(at_ms, 1, 1, 1)}))
    assert [each.at_ms for each in selectors.flow_of(workspace)] == [4, 5, 6, 7, 8]
