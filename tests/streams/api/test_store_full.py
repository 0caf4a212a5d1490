"""A message store whose memory is used up: settings reach it, and the probe tells."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from streams import store
from streams.log import config
from streams.log.client import Log
from streams.models import Stream
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
