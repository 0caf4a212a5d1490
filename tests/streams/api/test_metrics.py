"""``/metrics``: valid OpenMetrics, true figures, and to each caller only what they may see."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from okmq.web.openmetrics import Family, labels_of, text_of
from okmq.web.traffic import Traffic
from streams import store
from streams.log import config, groups, keys, traffic
from streams.log.append import append
from streams.log.client import AsyncLog, Log
from streams.log.entries import NewMessage
from streams.log.traffic import Durations, Kind
from streams.models import Group, Membership, Replay, Run, Stream, Workspace
from tests import servers
from tests.exchanges import ended
from tests.streams.api.conftest import Api, caller, code
from tests.waiting import Stopwatch

SCRAPE_GIVEN_UP_S = 10.0
"""What Prometheus waits unless it is told otherwise (``scrape_timeout``)."""


def scraped(api: Api | None = None, client: Client | None = None) -> dict[str, Metric]:
    """The families, read by Prometheus's own strict parser."""
    headers = {"authorization": api.secret} if api else {}
    answer = (client or Client()).get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.content
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    return {family.name: family for family in parsed(answer.content.decode())}


def parsed(text: str) -> list[Metric]:
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def samples(families: dict[str, Metric], name: str, **labels: str) -> list[float]:
    """The values of one name, where the labels hold."""
    return [
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def stream_of(api: Api, name: str = "orders", **more: Any) -> Stream:
    assert api.post("streams/", {"name": name, **more}).status_code == 201
    return Stream.objects.get(workspace=api.workspace, name=name)


def publish(stream: Stream, count: int, *, first: int = 0) -> None:
    batch = [NewMessage(id=f"m{n}", body=b'"12345678"') for n in range(first, first + count)]
    store.log().run(append(stream.stream_id, batch))


def test_a_stream_is_told_in_figures(owner: Api) -> None:
    stream = stream_of(owner, max_messages=4, max_bytes=1000, ttl=3600)
    publish(stream, 6)
    publish(stream, 1, first=5)
    found = scraped(owner)
    of = {"workspace": owner.workspace.name, "stream": "orders"}
    figures = {
        "redis_stream_length": 4,
        "redis_stream_groups": 0,
        "okmq_stream_bytes": 40,
        "okmq_stream_published_total": 6,
        "okmq_stream_published_bytes_total": 60,
        "okmq_stream_duplicates_total": 1,
        "okmq_stream_first_offset": 3,
        "okmq_stream_last_offset": 6,
        "okmq_stream_committed_offset": 0,
        "okmq_stream_lag": 4,
    }
    assert {name: samples(found, name, **of) for name in figures} == {
        name: [value] for name, value in figures.items()
    }
    assert samples(found, "okmq_stream_retention_ratio", limit="messages", **of) == [1]
    assert samples(found, "okmq_stream_retention_ratio", limit="bytes", **of) == [0.04]
    [age] = samples(found, "okmq_stream_retention_ratio", limit="age", **of)
    assert 0 <= age < 0.02


def test_a_stream_without_limits_has_no_ratio(owner: Api) -> None:
    stream_of(owner)
    assert samples(scraped(owner), "okmq_stream_retention_ratio", stream="orders") == []


def test_where_the_history_ends_is_told_of_streams_that_it_copies(owner: Api) -> None:
    stream_of(owner, "copied")
    stream_of(owner, "not-copied", archive=False)
    found = scraped(owner)
    assert samples(found, "okmq_stream_archived_offset", stream="copied") == [0]
    assert samples(found, "okmq_stream_archived_offset", stream="not-copied") == []


def test_a_group_is_told_in_figures(owner: Api) -> None:
    stream = stream_of(owner)
    owner.post("streams/orders/groups/", {"name": "billing"})
    publish(stream, 5)
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=2, consumer="one"))
    found = scraped(owner)
    of = {"workspace": owner.workspace.name, "stream": "orders", "group": "billing"}
    figures = {
        "redis_stream_group_lag": 3,
        "redis_stream_group_messages_pending": 2,
        "redis_stream_group_consumers": 1,
        "okmq_group_redelivered_total": 0,
        "okmq_group_lost_total": 0,
        "okmq_group_dead_letters": 0,
        "okmq_group_acked_total": 0,
    }
    assert {name: samples(found, name, **of) for name in figures} == {
        name: [value] for name, value in figures.items()
    }
    [lag_seconds] = samples(found, "okmq_group_lag_seconds", **of)
    assert samples(found, "okmq_group_oldest_pending_seconds", **of) == [lag_seconds]
    assert samples(found, "okmq_group_status", **of) == [1]
    assert samples(found, "okmq_group_health", health="unknown", **of) == [1]
    assert samples(found, "okmq_group_eta_seconds", **of) == []


def test_a_group_that_the_log_has_lost_is_left_out(owner: Api) -> None:
    stream = stream_of(owner)
    owner.post("streams/orders/groups/", {"name": "billing"})
    store.log().run(groups.group_remove(stream.stream_id, "billing"))
    assert Group.objects.filter(stream=stream).exists()
    assert samples(scraped(owner), "redis_stream_group_lag", stream="orders") == []


def test_a_stream_that_the_log_has_lost_is_left_out(owner: Api) -> None:
    stream = stream_of(owner)
    gone = config.stream_remove(stream.stream_id, workspace_id=owner.workspace.pk, name="orders")
    store.log().run(gone)
    assert samples(scraped(owner), "redis_stream_length", stream="orders") == []


def test_a_stranger_sees_nothing_of_it(owner: Api, stranger: Api) -> None:
    stream_of(owner)
    stream_of(stranger, "theirs")
    found = scraped(stranger)
    assert {sample.labels["workspace"] for family in found.values() for sample in family.samples} == {
        stranger.workspace.name
    }


def test_a_narrowed_token_sees_its_streams(owner: Api) -> None:
    stream_of(owner, "a-1")
    stream_of(owner, "b-1")
    owner.post("streams/b-1/groups/", {"name": "billing"})
    found = scraped(caller(owner.workspace, scopes=["read"], streams=["a-*"]))
    assert {sample.labels["stream"] for family in found.values() for sample in family.samples} == {"a-1"}


def test_who_rules_all_sees_all_and_the_service(ruler: Api, owner: Api) -> None:
    stream_of(owner)
    found = scraped(ruler)
    assert samples(found, "redis_stream_length", workspace=owner.workspace.name) == [0]
    assert samples(found, "okmq_store_up", store="durable") == [1]
    assert samples(found, "okmq_store_durability", durability="fsync") == [1]
    assert samples(found, "okmq_store_memory_bytes", store="durable")[0] > 0


def test_how_long_the_worker_has_been_silent_is_told(ruler: Api) -> None:
    held = store.log().client
    held.delete(keys.SAMPLED)
    assert "okmq_worker_silent_seconds" not in {
        sample.name for family in scraped(ruler).values() for sample in family.samples
    }
    held.set(keys.SAMPLED, int(time.time() * 1000) - 90_000)
    (silent_s,) = samples(scraped(ruler), "okmq_worker_silent_seconds")
    held.delete(keys.SAMPLED)
    assert 90 <= silent_s < 120


def test_runs_that_failed_since_the_last_that_succeeded_are_told_by_kind(ruler: Api) -> None:
    assert samples(scraped(ruler), "okmq_history_runs_failing") == [0, 0, 0]
    now = timezone.now()
    for state in ("failed", "succeeded", "failed", "failed"):
        Run.objects.create(job="rollup", state=state, finished_at=now)
    assert samples(scraped(ruler), "okmq_history_runs_failing", run="rollup") == [2]
    assert samples(scraped(ruler), "okmq_history_runs_failing", run="archive") == [0]


def test_replays_that_failed_are_told_of_their_stream(owner: Api, stranger: Api, ruler: Api) -> None:
    stream = stream_of(owner)
    stream_of(stranger)
    known = {
        "source": "orders",
        "source_id": stream.stream_id,
        "target": "orders",
        "target_id": stream.stream_id,
    }
    Replay.objects.create(
        workspace=owner.workspace, state="failed", requested_by="ann", finished_at=timezone.now(), **known
    )
    of = {"workspace": owner.workspace.name, "stream": "orders"}
    for api in (owner, ruler):
        assert samples(scraped(api), "okmq_stream_replays_failing", **of) == [1]
    assert samples(scraped(stranger), "okmq_stream_replays_failing") == [0]
    assert samples(scraped(ruler), "okmq_stream_replays_failing", workspace=stranger.workspace.name) == [0]


@pytest.mark.parametrize(
    "name",
    [
        "okmq_store_up",
        "okmq_http_request_seconds",
        "okmq_process_up",
        "okmq_worker_silent_seconds",
        "okmq_history_runs_failing",
    ],
)
def test_an_admin_of_another_workspace_sees_nothing_of_the_service(owner: Api, name: str) -> None:
    assert name not in scraped(owner)


def test_the_scope_is_needed(owner: Api) -> None:
    for api, status, wanted in (
        (caller(owner.workspace, scopes=["publish"]), 403, "forbidden"),
        (None, 401, "unauthorized"),
    ):
        answer = Client().get("/metrics", headers={"authorization": api.secret} if api else {})
        assert (answer.status_code, code(answer)) == (status, wanted)


def test_both_slash_forms_and_no_unknown_parameter(owner: Api) -> None:
    assert Client().get("/metrics/", headers={"authorization": owner.secret}).status_code == 200
    answer = Client().get("/metrics?name=x", headers={"authorization": owner.secret})
    assert (answer.status_code, code(answer)) == (400, "validation_error")
    answer = Client().post("/metrics", headers={"authorization": owner.secret})
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_a_logged_in_person_needs_no_token(owner: Api, unique: str) -> None:
    stream_of(owner)
    person = get_user_model().objects.create_user(username=unique)
    Membership.objects.create(user=person, workspace=owner.workspace, role="viewer")
    browser = Client()
    browser.force_login(person)
    assert samples(scraped(client=browser), "redis_stream_length", stream="orders") == [0]


def test_where_it_is_public_anybody_sees_everything(
    ruler: Api, owner: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, public_metrics=True))
    stream_of(owner)
    found = scraped()
    assert samples(found, "redis_stream_length", workspace=owner.workspace.name) == [0]
    assert samples(found, "okmq_store_up", store="durable") == [1]


def test_a_public_page_still_knows_a_wrong_token(ruler: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, public_metrics=True))
    assert Client().get("/metrics", headers={"authorization": "okmq_wrong"}).status_code == 401


def test_while_the_store_is_away_that_is_told(ruler: Api, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("away")
    found = scraped(ruler)
    assert samples(found, "okmq_store_up", store="durable") == [0]


def test_a_store_that_hangs_is_told_before_a_scrape_is_given_up(
    ruler: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with servers.store(tmp_path) as hanging:
        held = Log(hanging.url)
        monkeypatch.setattr(settings, "ENV", replace(settings.ENV, redis_url=hanging.url))
        monkeypatch.setattr(store, "log", lambda: held)
        pid = hanging.child.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
        watch = Stopwatch()
        try:
            found = scraped(ruler)
        finally:
            took_s = watch.elapsed_s
            os.kill(pid, signal.SIGCONT)
            held.close()
    assert samples(found, "okmq_store_up", store="durable") == [0]
    assert took_s < SCRAPE_GIVEN_UP_S


def test_without_the_memory_server_the_durable_streams_are_told(
    ruler: Api, owner: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, storage in (("kept", "durable"), ("fleeting", "memory")):
        stream_of(owner, name, storage=storage)
        owner.post(f"streams/{name}/groups/", {"name": "billing"})
    durable = Log(settings.ENV.redis_url)
    monkeypatch.setattr(store, "log", lambda: durable)
    found = scraped(ruler)
    of = {"workspace": owner.workspace.name}
    assert samples(found, "redis_stream_length", **of) == [0]
    assert samples(found, "redis_stream_group_lag", stream="kept", **of) == [0]
    durable.close()


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    nobody = Log(f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setattr(store, "log", lambda: nobody)
    yield
    nobody.close()


HOSTILE = 'a"b\\c\nd{e="f"} 1\\n\u2028é'


def test_a_hostile_name_stays_inside_its_label(ruler: Api, owner: Api) -> None:
    Workspace.objects.filter(pk=owner.workspace.pk).update(name=HOSTILE[:50])
    stream_of(owner)
    assert samples(scraped(ruler), "redis_stream_length", workspace=HOSTILE) == [0]


def test_label_values_come_back_as_they_were() -> None:
    family = Family("x", "gauge", "About it.")
    family.add(labels_of(name=HOSTILE, other=""), 1)
    [read] = parsed(text_of([family]))
    assert read.samples[0].labels == {"name": HOSTILE, "other": ""}


async def test_requests_are_counted_over_all_processes(valkey: str, unique: str) -> None:
    kind = Kind("GET", f"/{unique}", 200)
    for _ in range(2):
        process = Traffic()
        process.start(AsyncLog(valkey))
        for seconds in (0.001, 0.002, 99.0):
            process.note(ended(route=kind.route, status=200, seconds=seconds))
        await process.stop()
    counted = store.log().run(traffic.total())[kind]
    assert counted.buckets == [2, 2, *[0] * 12, 2]
    assert counted.sum_us == 2 * 99_003_000


async def test_what_a_store_that_is_away_missed_is_told_later(
    tmp_path: Any, valkey: str, unique: str
) -> None:
    kind = Kind("other", f"/{unique}", 200)
    process = Traffic()
    process.start(AsyncLog(f"unix://{tmp_path}/nobody.sock"))
    process.note(ended(method="BREW", route=kind.route, status=200))
    await process.tell()
    await process.stop()
    process.start(AsyncLog(valkey))
    await process.stop()
    assert sum(store.log().run(traffic.total())[kind].buckets) == 1


def test_durations_are_a_histogram(ruler: Api, unique: str) -> None:
    durations = Durations()
    durations.buckets[0], durations.buckets[-1], durations.sum_us = 3, 2, 70_500_000
    store.log().run(traffic.told({Kind("POST", f"/{unique}", 201): durations}))
    found = scraped(ruler)
    of = {"method": "POST", "route": f"/{unique}", "status": "201"}
    assert samples(found, "okmq_http_request_seconds_bucket", le="0.001", **of) == [3]
    assert samples(found, "okmq_http_request_seconds_bucket", le="30.0", **of) == [3]
    assert samples(found, "okmq_http_request_seconds_bucket", le="+Inf", **of) == [5]
    assert samples(found, "okmq_http_request_seconds_count", **of) == [5]
    assert samples(found, "okmq_http_request_seconds_sum", **of) == [70.5]
