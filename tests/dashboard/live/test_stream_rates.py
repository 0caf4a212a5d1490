"""How fast a stream moved in the last hours: its charts, their table, and what it costs to read."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from streams import selectors, store
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Rollup, RollupPosition, Run, Stream
from streams.selectors import METRICS_STREAM
from streams.services.streams import internal_stream
from tests.dashboard.conftest import MakeStream, sampled_ago, silence

PAGE = "/streams/orders/rates/"
FIGURES = {"name": "orders", "offset": 9, "messages": 9, "bytes": 90, "lag": 0, "committed": 9}


@pytest.fixture
def orders(make_stream: MakeStream) -> Stream:
    return make_stream("orders")


@pytest.fixture
def metrics(orders: Stream) -> Stream:
    return internal_stream(METRICS_STREAM, archive=False)


def sampled(metrics: Stream, *records: tuple[int, dict[str, Any]]) -> None:
    """Records of samples: when (unix ms), and the figures by stream."""
    messages = [
        NewMessage(id=f"{at_ms}-{number}", body=json.dumps({"at": at_ms, "streams": streams}).encode())
        for number, (at_ms, streams) in enumerate(records)
    ]
    store.log().run(append(metrics.stream_id, messages))


def moved(stream: Stream, rate: float) -> dict[str, Any]:
    return {stream.stream_id: {**FIGURES, "in": rate, "out": rate / 2, "bytes_in": rate * 10}}


def seed_on(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="rates" type="application/json">(.*?)</script>', page)
    assert found
    seed: dict[str, Any] = json.loads(found[1])
    return seed


def test_the_page_draws_what_came_in_and_what_was_done(
    viewer: Client, orders: Stream, metrics: Stream
) -> None:
    now_ms = int(time.time() * 1000) // 1000 * 1000
    sampled(metrics, (now_ms - 5000, moved(orders, 40)), (now_ms - 4000, moved(orders, 20)))
    seed = seed_on(viewer.get(PAGE).content.decode())
    assert seed["rate_in"][:3] == [4, 6, 6], "means of ten seconds, as the figures above"
    assert seed["rate_out"][:3] == [2, 3, 3]
    assert seed["bytes_in"][:3] == [40, 60, 60]
    assert (seed["step_s"], seed["window_s"]) == (1, 900)


def test_what_is_usual_stands_behind_the_live_chart_and_in_its_legend(
    viewer: Client, orders: Stream, metrics: Stream
) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    page = viewer.get(PAGE).content.decode()
    assert "usually" not in page
    for ago in (timedelta(weeks=weeks, hours=hours) for weeks in range(1, 5) for hours in (-1, 0, 1)):
        Rollup.objects.create(
            stream_id=orders.stream_id, step="hour", start=hour - ago, messages=36_000, bytes=1
        )
    run = Run.objects.create(job="rollup")
    RollupPosition.objects.create(stream_id=orders.stream_id, fresh_to=hour, run=run)
    for chosen in ("15m", "1h", "6h"):
        page = viewer.get(PAGE, {"range": chosen}).content.decode()
        assert re.search(rf'<span id="usual-fresh" class="faint small">[^#]*from run #{run.pk}\b', page)
        assert page.count('data-low="8.500000" data-high="11.500000"') == 1, (
            "behind messages, not behind bytes"
        )
        assert "unusual now: 0/s, usually 8.50/s to 11.5/s" in page
    now_ms = int(time.time() * 1000)
    sampled(metrics, (now_ms - 60_000, moved(orders, 9000)))
    (asks,) = re.findall(r'hx-get="(/streams/orders/rates/\?usual=1)"', page)
    answer = viewer.get(asks, headers={"HX-Request": "true"})
    part = answer.content.decode()
    assert re.search(r'<span id="usual" hx-swap-oob="true"[^>]*>usually 8.50/s to 11.5/s</span>', part)
    assert re.search(rf'<span id="usual-fresh" hx-swap-oob="true"[^>]*>[^#]*from run #{run.pk}\b', part)
    assert "<html" not in part
    assert "HX-Request" in answer.headers["Vary"]
    since = datetime.fromtimestamp(now_ms / 1000 - 300, UTC).isoformat()
    still = viewer.get(
        PAGE, {"since": since, "until": datetime.fromtimestamp(now_ms / 1000, UTC).isoformat()}
    )
    assert "usual" not in still.content.decode(), "a part of the past stands still"
    sampled_ago(ms=60_000)
    assert "usually" not in viewer.get(PAGE).content.decode(), "nobody counts what comes in now"
    sampled_ago(ms=-60_000)
    Stream.objects.filter(pk=orders.pk).update(archive=False)
    assert "usually" not in viewer.get(PAGE).content.decode(), "nobody counts what is usual"


def test_an_hour_is_drawn_by_steps_of_five_seconds(viewer: Client, orders: Stream, metrics: Stream) -> None:
    at_ms = int(time.time() * 1000) // 5000 * 5000 - 60_000
    sampled(metrics, (at_ms, moved(orders, 40)), (at_ms + 1000, moved(orders, 20)))
    seed = seed_on(viewer.get(PAGE + "?range=1h").content.decode())
    assert (seed["step_s"], seed["rate_in"][:3]) == (5, [6, 6, 0])


def test_the_table_says_the_mean_of_each_minute(viewer: Client, orders: Stream, metrics: Stream) -> None:
    at_ms = int(time.time() * 1000) // 60_000 * 60_000 - 120_000
    sampled(metrics, *((at_ms + 1000 * second, moved(orders, 60)) for second in range(30)))
    page = viewer.get(PAGE).content.decode()
    assert re.search(r"<td>\d\d:\d\d</td><td class=\"num\">30\.0/s</td><td class=\"num\">15\.0/s</td>", page)


def test_while_nobody_sampled_the_lines_have_a_gap_and_the_table_says_so(
    viewer: Client, orders: Stream, metrics: Stream
) -> None:
    at_ms = int(time.time() * 1000) // 60_000 * 60_000 - 600_000
    for first_ms in (at_ms, at_ms + 360_000):
        sampled(metrics, *((first_ms + 1000 * second, moved(orders, 60)) for second in range(60)))
    silence(since_s=at_ms / 1000 + 59, until_s=at_ms / 1000 + 360)
    page = viewer.get(PAGE).content.decode()
    seed = seed_on(page)
    drawn = dict(zip(seed["times"], seed["rate_in"], strict=True))
    found = [drawn[at_ms / 1000 + second] for second in (59, 60, 359, 360, 369)]
    assert found == [60, None, None, 60, 60]
    assert page.count("no samples</td>") == 5
    for asked in ("1h", "6h"):
        assert None in seed_on(viewer.get(f"{PAGE}?range={asked}").content.decode())["rate_in"]


def test_a_stream_at_rest_has_an_empty_chart_and_says_so(
    viewer: Client, orders: Stream, metrics: Stream
) -> None:
    page = viewer.get(PAGE + "?range=6h").content.decode()
    assert seed_on(page)["times"] == []
    assert "No traffic in this range." in page


def test_samples_are_read_from_the_newest_back_as_long_as_there_is_time(
    orders: Stream, metrics: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.selectors.samples.BACK_AT_ONCE", 2)
    now_ms = int(time.time() * 1000)
    sampled(metrics, *((now_ms - 1000 * ago, moved(orders, ago)) for ago in (5, 4, 3, 2, 1)))
    since_ms = now_ms - 60_000
    some, cut_ms = selectors.newest_samples(orders, since_ms=since_ms, seconds=0)
    assert [sample.messages_in for sample in some] == [2, 1]
    assert cut_ms is not None
    found, cut_ms = selectors.newest_samples(orders, since_ms=since_ms, seconds=60)
    assert [sample.messages_in for sample in found] == [5, 4, 3, 2, 1]
    assert cut_ms is None


def test_a_page_that_could_not_read_all_samples_says_from_when_it_did(
    viewer: Client, orders: Stream, metrics: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.selectors.samples.BACK_AT_ONCE", 1)
    monkeypatch.setattr("dashboard.live.stream_rates.LOOK_S", 0)
    now_ms = int(time.time() * 1000)
    sampled(metrics, (now_ms - 2000, moved(orders, 4)), (now_ms - 1000, moved(orders, 8)))
    assert "Only the samples since" in viewer.get(PAGE).content.decode()
