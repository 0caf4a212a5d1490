"""Streams in memory through the API: made, seen, refused, and while their server is away."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.utils import timezone

from streams import store
from streams.access import SYSTEM
from streams.errors import Refusal
from streams.log import groups, keys, memory, stats, trim
from streams.log.append import append
from streams.log.client import Log
from streams.models import Event, Group, Stream
from streams.services.removals import removals_record
from streams.services.streams import stream_change
from streams.services.upkeep import groups_remove_inactive, memory_fill
from streams.upkeep.alerting import Alerting
from tests.streams.api.conftest import Api, code, fields
from tests.streams.log.messages import browse, fill, message
from tests.waiting import until


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The server of the streams in memory does not answer."""
    without = Log(settings.ENV.redis_url, memory_url=f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setattr(store, "log", lambda: without)
    yield
    monkeypatch.undo()
    without.close()


@pytest.fixture
def held(owner: Api) -> Stream:
    """A stream in memory with three messages."""
    assert owner.post("streams/", {"name": "volatile", "storage": "memory"}).status_code == 201
    stream = Stream.objects.get(workspace=owner.workspace, name="volatile")
    fill(store.log(), stream.stream_id, 3)
    return stream


def lose_everything(url: str) -> None:
    """As a restart of their server does."""
    server = Log(url)
    server.client.execute_command("FLUSHALL")
    server.close()


def test_storage_is_chosen_at_creation_and_shown(owner: Api, held: Stream) -> None:
    shown = owner.get("streams/volatile").json()
    assert (shown["storage"], shown["messages"], shown["offset"]) == ("memory", 3, 3)
    assert keys.in_memory(held.stream_id)
    owner.post("streams/", {"name": "kept"})
    assert [each["storage"] for each in owner.get("streams/").json()] == ["durable", "memory"]


def test_storage_is_part_of_what_makes_a_stream_the_same(owner: Api, held: Stream) -> None:
    assert owner.post("streams/", {"name": "volatile", "storage": "memory"}).status_code == 200
    answer = owner.post("streams/", {"name": "volatile"})
    assert (answer.status_code, code(answer)) == (409, "stream_exists")
    assert answer.json()["error"]["details"]["differs"] == ["storage"]


@pytest.mark.parametrize("storage", ["memory", "durable"])
def test_storage_cannot_change(owner: Api, held: Stream, storage: str) -> None:
    answer = owner.patch("streams/volatile", {"storage": storage})
    assert (answer.status_code, code(answer), fields(answer)) == (400, "validation_error", ["storage"])


def test_no_caller_inside_changes_it_either(held: Stream) -> None:
    with pytest.raises(Refusal) as refused, transaction.atomic():
        stream_change(held, changes={"storage": "durable"}, actor=SYSTEM)
    assert (refused.value.code, refused.value.details["fields"]) == ("validation_error", ["storage"])
    assert Stream.objects.get(pk=held.pk).storage == "memory"


def test_a_limit_of_a_stream_in_memory_acts(owner: Api, held: Stream) -> None:
    assert owner.patch("streams/volatile", {"max_messages": 1}).json()["messages"] == 1


def test_a_deleted_one_leaves_nothing_on_either_server(owner: Api, held: Stream, valkey_memory: str) -> None:
    owner.post("streams/volatile/groups/", {"name": "readers"})
    assert owner.delete("streams/volatile").status_code == 204
    server = Log(valkey_memory)
    assert server.client.execute_command("KEYS", f"okmq:{{{held.stream_id}}}:*") == []
    server.close()
    assert owner.get("streams/volatile").status_code == 404


def test_without_such_a_server_it_is_refused_in_a_sentence(
    owner: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, memory_redis_url=None))
    answer = owner.post("streams/", {"name": "volatile", "storage": "memory"})
    assert (answer.status_code, code(answer), fields(answer)) == (400, "validation_error", ["storage"])
    assert "OKMQ_MEMORY_REDIS_URL" in answer.json()["error"]["message"]
    assert not Stream.objects.filter(workspace=owner.workspace).exists()


def test_while_their_server_is_away_the_durable_ones_are_served(
    owner: Api, held: Stream, request: pytest.FixtureRequest
) -> None:
    owner.post("streams/", {"name": "kept"})
    request.getfixturevalue("away")
    kept, volatile = owner.get("streams/").json()
    assert (kept["name"], kept["messages"]) == ("kept", 0)
    assert (volatile["name"], volatile["messages"], volatile["offset"]) == ("volatile", None, None)
    ready = Client().get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert "in memory" in ready.json()["checks"]["memory"]


@pytest.mark.parametrize("path", ["streams/volatile", "streams/volatile/retention/forecast"])
def test_one_whose_figures_nobody_knows_is_not_told_of_alone(
    owner: Api, held: Stream, request: pytest.FixtureRequest, path: str
) -> None:
    request.getfixturevalue("away")
    ask = owner.client.post if path.endswith("forecast") else owner.client.get
    answer = ask(f"/api/v1/{path}", content_type="application/json", headers={"authorization": owner.secret})
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    assert answer.headers["Retry-After"] == "1"


def test_one_that_is_about_to_be_begun_again_is_not_told_of_either(
    owner: Api, held: Stream, valkey_memory: str
) -> None:
    lose_everything(valkey_memory)
    answer = owner.client.get("/api/v1/streams/volatile", headers={"authorization": owner.secret})
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    memory_fill()
    assert owner.get("streams/volatile").json()["messages"] == 0


def test_groups_of_durable_ones_are_removed_meanwhile_as_set(
    owner: Api, held: Stream, request: pytest.FixtureRequest
) -> None:
    owner.post("streams/", {"name": "kept"})
    for name in ("volatile", "kept"):
        owner.post(f"streams/{name}/groups/", {"name": "readers", "inactive_after": 1})
    request.getfixturevalue("away")
    until(lambda: groups_remove_inactive() == ["readers"], within_s=5)
    left = Group.objects.filter(stream__workspace=owner.workspace)
    assert list(left.values_list("stream__name", flat=True)) == ["volatile"]


def test_a_call_that_needs_their_server_is_refused_for_now(
    owner: Api, held: Stream, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("away")
    answer = owner.client.delete("/api/v1/streams/volatile", headers={"authorization": owner.secret})
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    assert Stream.objects.filter(pk=held.pk).exists()


def test_what_was_lost_is_an_event_and_the_stream_goes_on_above_it(
    owner: Api, held: Stream, valkey_memory: str
) -> None:
    owner.post("streams/volatile/groups/", {"name": "readers"})
    store.log().run(memory.held_set({held.stream_id: memory.Held(3, 2)}))
    lose_everything(valkey_memory)
    assert held.stream_id in memory_fill()
    assert memory_fill() == []
    shown = owner.get("streams/volatile").json()
    assert (shown["messages"], shown["lag"], shown["groups"]) == (0, 0, 1)
    assert shown["offset"] >= 3
    (stored,) = store.log().run(append(held.stream_id, [message(1)]))
    assert stored.offset == shown["offset"] + 1
    assert owner.get("streams/volatile/groups/readers").json()["lag"] == 1
    (event,) = Event.objects.filter(workspace=owner.workspace.name, kind="stream.memory_lost")
    assert (event.stream, event.after) == ("volatile", {"messages": 3, "offset": shown["offset"]})
    (gap,) = Event.objects.filter(workspace=owner.workspace.name, kind="history.gap")
    assert (gap.stream, gap.after) == ("volatile", {"messages": 2})
    removals_record(store.log().run(stats.inspect_many([held.stream_id])))
    assert not Event.objects.filter(workspace=owner.workspace.name, kind="stream.expired").exists()


def test_offsets_that_were_left_out_after_a_loss_are_no_rate_that_an_alert_is_about(
    owner: Api, held: Stream, valkey_memory: str
) -> None:
    rule = {"name": "fast", "stream": "volatile", "watch": "rate_above", "limit": 10, "for_seconds": 0}
    assert owner.post("alerts/rules/", rule).status_code == 201
    alerting = Alerting()
    alerting.look(now_s=0)
    lose_everything(valkey_memory)
    alerting.forget(memory_fill())
    for now_s in (10, 20):
        alerting.look(now_s=now_s)
    assert owner.get("alerts/").json() == []
    fill(store.log(), held.stream_id, 300)
    alerting.look(now_s=30)
    assert [each["value"] for each in owner.get("alerts/").json()] == [30.0]


def test_alerts_about_groups_whose_server_is_away_go_on_until_their_value_is_known(
    owner: Api, held: Stream, request: pytest.FixtureRequest
) -> None:
    owner.post("streams/volatile/groups/", {"name": "readers", "start_from": "earliest"})
    owner.post("streams/volatile/groups/", {"name": "gone", "start_from": "earliest"})
    rules = ({"watch": "lag", "limit": 2}, {"watch": "no_consumer", "limit": 0})
    for rule in rules:
        made = {"name": rule["watch"], "stream": "volatile", "group": "*", "for_seconds": 0, **rule}
        owner.post("alerts/rules/", made)
    alerting = Alerting()
    alerting.look(now_s=0)
    began = {(each["rule"], each["group"]) for each in owner.get("alerts/?state=firing").json()}
    assert began == {(watch, group) for watch in ("lag", "no_consumer") for group in ("readers", "gone")}
    request.getfixturevalue("away")
    for now_s in (10, 20):
        alerting.look(now_s=now_s)
    Alerting().look(now_s=30)  # a new worker knows no more of them
    assert {(each["rule"], each["group"]) for each in owner.get("alerts/?state=firing").json()} == began
    Group.objects.filter(stream=held, name="gone").delete()
    alerting.look(now_s=40)
    left = {(each["rule"], each["group"]) for each in owner.get("alerts/?state=firing").json()}
    assert left == {("lag", "readers"), ("no_consumer", "readers")}, "what is no more ends them at once"


def test_until_they_are_begun_again_its_groups_are_not_said_to_be_deleted(
    owner: Api, held: Stream, valkey_memory: str
) -> None:
    owner.post("streams/volatile/groups/", {"name": "readers"})
    lose_everything(valkey_memory)
    for path in ("streams/volatile/groups/readers", "streams/volatile/groups/"):
        answer = owner.client.get(f"/api/v1/{path}", headers={"authorization": f"Bearer {owner.secret}"})
        assert (answer.status_code, code(answer)) == (503, "store_unavailable"), path
    memory_fill()
    assert owner.get("streams/volatile/groups/readers").json()["lag"] == 0
    assert owner.get("streams/volatile/groups/other").status_code == 404


def test_after_a_loss_it_is_known_since_when_nobody_fetches(
    owner: Api, held: Stream, valkey_memory: str
) -> None:
    for name in ("never", "once"):
        owner.post("streams/volatile/groups/", {"name": name, "inactive_after": 3600})
    store.log().run(groups.fetch(held.stream_id, "once", limit=1))
    Group.objects.filter(stream=held).update(created_at=timezone.now() - timedelta(days=2))
    lose_everything(valkey_memory)
    memory_fill()
    assert groups_remove_inactive() == [], "they were used, as far as anybody knows"
    rule = {"name": "none", "stream": "volatile", "group": "*", "watch": "no_consumer", "limit": 0.05}
    owner.post("alerts/rules/", rule | {"for_seconds": 0})
    alerting, seconds = Alerting(), itertools.count(0, 10)

    def fires() -> bool:
        alerting.look(now_s=next(seconds))
        return {each["group"] for each in owner.get("alerts/?state=firing").json()} == {"never", "once"}

    until(fires)


def test_a_loss_of_what_nobody_had_counted_is_an_event_too(
    owner: Api, held: Stream, valkey_memory: str
) -> None:
    lose_everything(valkey_memory)
    memory_fill()
    offset = owner.get("streams/volatile").json()["offset"]
    (event,) = Event.objects.filter(workspace=owner.workspace.name, kind="stream.memory_lost")
    assert event.after == {"messages": 0, "offset": offset}
    assert f"lost 0 messages, as last counted, and continues above offset {offset:,}" in event.summary


def test_a_new_stream_has_lost_nothing(owner: Api, held: Stream) -> None:
    memory_fill(again=True)
    assert not Event.objects.filter(workspace=owner.workspace.name, kind="stream.memory_lost").exists()


def test_after_a_loss_the_newest_of_each_key_are_kept_again(owner: Api, valkey_memory: str) -> None:
    owner.post("streams/", {"name": "latest", "storage": "memory", "max_messages_per_key": 1})
    stream_id = Stream.objects.get(workspace=owner.workspace, name="latest").stream_id
    store.log().run(append(stream_id, [message(n, key="a") for n in range(3)]))
    assert owner.get("streams/latest").json()["messages"] == 1
    lose_everything(valkey_memory)
    memory_fill()
    stored = store.log().run(append(stream_id, [message(n, key="ab"[n % 2]) for n in range(5)]))
    shown = owner.get("streams/latest").json()
    assert (shown["messages"], shown["keys_count"]) == (2, 2)
    kept = browse(store.log(), stream_id)
    assert [each.offset for each in kept] == [each.offset for each in stored[-2:]]


def test_after_a_loss_messages_go_by_interest_again(owner: Api, valkey_memory: str) -> None:
    owner.post("streams/", {"name": "work", "storage": "memory", "retention": "interest"})
    owner.post("streams/work/groups/", {"name": "readers"})
    stream_id = Stream.objects.get(workspace=owner.workspace, name="work").stream_id
    for _ in range(2):
        lose_everything(valkey_memory)
        memory_fill()
        fill(store.log(), stream_id, 3)
        taken = store.log().run(groups.fetch(stream_id, "readers", limit=2)).deliveries
        store.log().run(groups.ack(stream_id, "readers", "leases", [each.lease for each in taken]))
        store.log().run(trim.release(stream_id))
        assert owner.get("streams/work").json()["messages"] == 1


def test_a_change_before_the_worker_came_records_the_loss_too(
    owner: Api, held: Stream, valkey_memory: str
) -> None:
    store.log().run(memory.held_set({held.stream_id: memory.Held(3, 3)}))
    lose_everything(valkey_memory)
    assert owner.patch("streams/volatile", {"ttl": 60}).json()["messages"] == 0
    memory_fill()
    assert Event.objects.filter(workspace=owner.workspace.name, kind="stream.memory_lost").count() == 1
    assert store.log().run(stats.inspect(held.stream_id)).offset >= 3
