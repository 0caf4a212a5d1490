"""Streams that the log was not told of, because it was away after the database had them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import transaction

from streams import store
from streams.access import SYSTEM
from streams.log import config
from streams.log.client import Log
from streams.log.errors import StoreUnavailable
from streams.models import Stream, Workspace
from streams.services import streams as service
from streams.services import streams_told
from streams.services.stream_repairs import leftovers_remove, streams_repair
from tests.streams.api.conftest import Api


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Callable[[], int]], None]:
    """Does a call while the log cannot be told what it did; it is answered 503."""

    def call(act: Callable[[], int]) -> None:
        nobody = Log(f"unix://{tmp_path}/nobody.sock")
        with monkeypatch.context() as patch:
            patch.setattr(store, "log", lambda: nobody)
            assert act() == 503
        nobody.close()

    return call


def held(workspace: Workspace, name: str) -> dict[str, object]:
    """The settings that the log has; none where it does not know the stream."""
    stream = Stream.objects.get(workspace=workspace, name=name)
    return store.log().run(config.stream_settings(stream.stream_id)) or {}


def test_a_stream_whose_creation_was_answered_503_takes_messages_later(
    owner: Api, away: Callable[[Callable[[], int]], None]
) -> None:
    away(lambda: sent(owner, "POST", "streams/", {"name": "orders", "max_messages": 7}))
    assert held(owner.workspace, "orders") == {}
    assert "orders" in streams_repair(with_memory=True)
    assert held(owner.workspace, "orders")["max_messages"] == 7
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    assert store.log().run(config.stream_id_of(owner.workspace.pk, "orders")) == stream.stream_id
    assert "orders" not in streams_repair(with_memory=True)


def test_settings_whose_change_was_answered_503_are_told_later(
    owner: Api, away: Callable[[Callable[[], int]], None]
) -> None:
    owner.post("streams/", {"name": "orders", "max_messages": 7})
    assert "orders" not in streams_repair(with_memory=True)
    away(lambda: sent(owner, "PATCH", "streams/orders", {"max_messages": 3}))
    assert held(owner.workspace, "orders")["max_messages"] == 7
    assert "orders" in streams_repair(with_memory=True)
    assert held(owner.workspace, "orders")["max_messages"] == 3


def test_a_change_that_comes_while_the_log_is_told_is_told_too(
    owner: Api,
) -> None:
    owner.post("streams/", {"name": "orders", "max_messages": 7})
    stale = Stream.objects.select_related("workspace").get(workspace=owner.workspace, name="orders")
    changed = Stream.objects.get(pk=stale.pk)
    changed.max_messages, changed.is_told = 3, False
    changed.save()
    streams_told.streams_publish([stale])
    assert held(owner.workspace, "orders")["max_messages"] == 3
    assert "orders" not in streams_repair(with_memory=True)


def listed(workspace: Workspace) -> list[config.Registered]:
    """A workspace's streams in the log's registry."""
    return [each for each in store.log().run(config.streams()) if each.workspace_id == workspace.pk]


def test_a_stream_that_was_deleted_while_the_log_went_away_is_taken_out_later(
    owner: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("orders", "kept"):
        owner.post("streams/", {"name": name})
    owner.post("streams/orders/groups", {"name": "billing"})
    stream = Stream.objects.select_related("workspace").get(workspace=owner.workspace, name="orders")
    nobody, there = Log(f"unix://{tmp_path}/nobody.sock"), store.log()

    @transaction.atomic
    def delete() -> None:
        transaction.on_commit(lambda: patch.setattr(store, "log", lambda: nobody))
        service.stream_delete(stream, actor=SYSTEM)

    with monkeypatch.context() as patch, pytest.raises(StoreUnavailable):
        delete()
    nobody.close()
    assert there.run(config.stream_settings(stream.stream_id)) is not None
    assert leftovers_remove(listed(owner.workspace), with_memory=True) == ["orders"]
    assert [each.name for each in listed(owner.workspace)] == ["kept"]
    assert there.client.keys(f"okmq:{{{stream.stream_id}}}:*") == []
    assert there.run(config.names_in(owner.workspace.pk)).keys() == {"kept"}
    assert owner.post("streams/", {"name": "orders"}).json()["groups"] == 0


def sent(caller: Api, method: str, path: str, body: object) -> int:
    answer = caller.client.generic(
        method,
        f"/api/v1/{path}",
        json.dumps(body).encode(),
        content_type="application/json",
        headers={"authorization": caller.secret},
    )
    return answer.status_code


@pytest.mark.parametrize("is_prepared", [False, True], ids=["new", "of another installation"])
def test_beside_another_database_nothing_is_taken_out(owner: Api, is_prepared: bool) -> None:
    owner.post("streams/", {"name": "orders"})
    registered = listed(owner.workspace)
    with transaction.atomic():
        Stream.objects.all().delete()
        assert leftovers_remove([], with_memory=True) == []
        if is_prepared:
            Stream.objects.create(workspace=owner.workspace, name="elsewhere")
        assert leftovers_remove(registered, with_memory=True) == []
        transaction.set_rollback(True)
    assert listed(owner.workspace) == registered
