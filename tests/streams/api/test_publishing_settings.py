"""What the log was told last is what the database holds, also when two change or delete at once."""

from collections.abc import Callable
from typing import Any

import pytest

from streams import store
from streams.access import SYSTEM
from streams.log import config, stats, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Group, Stream
from streams.services.groups import group_publish
from streams.services.streams import stream_change, stream_delete
from streams.services.streams_told import streams_publish
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


@pytest.mark.parametrize("limit", [{"max_messages_per_key": 1}, {"retention": "interest"}], ids=str)
def test_one_that_is_deleted_while_many_are_told_keeps_no_other_from_its_limits(
    owner: Api, monkeypatch: pytest.MonkeyPatch, limit: dict[str, object]
) -> None:
    for name in ("first", "second"):
        owner.post("streams/", {"name": name})
    rows = {each.name: each for each in Stream.objects.filter(workspace=owner.workspace)}
    messages = [NewMessage(id=f"m{n}", body=b"1", key="k") for n in range(3)]
    store.log().run(append(rows["second"].stream_id, messages))
    for name in rows:
        owner.post(f"streams/{name}/groups/", {"name": "g", "start_from": "latest"})
    Stream.objects.filter(workspace=owner.workspace).update(**limit)
    told = list(Stream.objects.filter(workspace=owner.workspace).select_related("workspace").order_by("name"))
    acts: dict[str, Callable[..., object]] = {
        "keep_newest_of_keys": trim.keep_newest_of_keys,
        "release": trim.release,
    }

    def late(name: str) -> Callable[..., object]:
        def act(stream_id: str, **asked: Any) -> object:
            if stream_id == rows["first"].stream_id and Stream.objects.filter(stream_id=stream_id).exists():
                stream_delete(told[0], actor=SYSTEM)
            return acts[name](stream_id, **asked)

        return act

    for name in acts:
        monkeypatch.setattr(trim, name, late(name))
    streams_publish(told)
    assert Stream.objects.filter(workspace=owner.workspace).get().name == "second"
    left = store.log().run(stats.inspect(rows["second"].stream_id)).messages
    assert left == (1 if "max_messages_per_key" in limit else 0)


def test_a_group_that_went_with_its_stream_is_told_to_nobody(owner: Api) -> None:
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/orders/groups/", {"name": "g"})
    group = Group.objects.select_related("stream__workspace").get(stream__workspace=owner.workspace)
    stream_delete(group.stream, actor=SYSTEM)
    group_publish(group)
    assert store.log().run(config.names_in(owner.workspace.pk)) == {}
