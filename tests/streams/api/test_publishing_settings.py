"""What the log was told last is what the database holds, also when two change or delete at once."""

from collections.abc import Callable

import pytest

from streams import store
from streams.access import SYSTEM
from streams.log import config
from streams.models import Stream
from streams.services.streams import stream_change, stream_delete
from tests.streams.api.conftest import Api


def interrupted(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something else happen just before the next stream is published, once."""
    publish = config.streams_publish

    def publish_late(streams: object) -> object:
        monkeypatch.setattr(config, "streams_publish", publish)
        act()
        return publish(streams)  # type: ignore[arg-type]

    monkeypatch.setattr(config, "streams_publish", publish_late)


def test_a_later_change_wins(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.post("streams/", {"name": "orders"})
    stream = Stream.objects.get(workspace=owner.workspace)
    interrupted(monkeypatch, lambda: stream_change(stream, changes={"ttl": 7}, actor=SYSTEM))
    owner.patch("streams/orders", {"ttl": 5})
    settings = store.log().run(config.stream_settings(stream.stream_id))
    assert settings is not None
    assert settings["ttl"] == 7
    assert owner.get("streams/orders").json()["ttl"] == 7


def test_a_deleted_stream_does_not_come_back(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.post("streams/", {"name": "orders"})
    stream = Stream.objects.get(workspace=owner.workspace)
    interrupted(
        monkeypatch,
        lambda: stream_delete(Stream.objects.select_related("workspace").get(pk=stream.pk), actor=SYSTEM),
    )
    owner.call("PATCH", "streams/orders", {"ttl": 5})
    assert store.log().run(config.stream_settings(stream.stream_id)) is None
    assert store.log().run(config.names_in(owner.workspace.pk)) == {}
