"""A message store whose memory is used up: settings reach it, and the probe tells."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from streams import store
from streams.log import config
from streams.log.client import Log
from streams.models import Stream, Token
from tests import servers
from tests.streams.api.conftest import Api


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Log]:
    """A store of the test's own, to be filled."""
    with servers.store(tmp_path) as running:
        log = Log(running.url)
        monkeypatch.setattr(store, "log", lambda: log)
        yield log
        log.close()


def test_streams_are_changed_and_made_on_a_full_store_and_the_probe_says_that_it_is_full(
    owner: Api, own: Log
) -> None:
    owner.post("streams/", {"name": "orders"})
    assert Client().get("/readyz").json()["checks"]["log"] == "ok"
    own.client.execute_command("CONFIG", "SET", "maxmemory", "1mb")
    tighter = {"max_messages": 2, "max_messages_per_key": 1, "keys": ["a.>"]}
    assert owner.patch("streams/orders", tighter).status_code == 200
    assert owner.post("streams/", {"name": "more"}).status_code == 201
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    told = own.run(config.stream_settings(stream.stream_id))
    assert told is not None
    assert {name: told[name] for name in tighter} == tighter
    probe = Client().get("/readyz")
    assert (probe.status_code, probe.json()["status"]) == (200, "degraded")
    assert probe.json()["checks"]["log"] == "The message store is full."


def test_a_token_is_made_on_a_full_store(owner: Api, own: Log) -> None:
    owner.post("streams/", {"name": "orders"})  # the store knows the scripts
    own.client.execute_command("CONFIG", "SET", "maxmemory", "1mb")
    made = owner.post("tokens/", {"name": "late", "scopes": ["read"]})
    assert made.status_code == 201
    token = Token.objects.get(workspace=owner.workspace, name="late")
    grant = own.run(config.token_grant(token.digest))
    assert grant is not None
    assert grant.id == token.pk


def test_the_probe_says_that_the_server_of_the_streams_in_memory_is_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("durable", "memory"):
        (tmp_path / name).mkdir()
    with servers.store(tmp_path / "durable") as durable, servers.store(tmp_path / "memory") as memory:
        log = Log(durable.url, memory_url=memory.url)
        monkeypatch.setattr(store, "log", lambda: log)
        monkeypatch.setattr(store, "has_memory", lambda: True)
        assert Client().get("/readyz").json()["checks"]["memory"] == "ok"
        alone = Log(memory.url)
        alone.client.execute_command("CONFIG", "SET", "maxmemory", "1mb")
        probe = Client().get("/readyz")
        alone.close()
        log.close()
    assert (probe.status_code, probe.json()["status"]) == (200, "degraded")
    assert probe.json()["checks"] == {
        "log": "ok",
        "database": "ok",
        "worker": "ok",
        "memory": "The server of the streams in memory is full.",
    }
