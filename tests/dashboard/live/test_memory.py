"""Streams in memory on the pages: chosen, marked, and unknown while their server is away."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from dashboard.lists import bulk
from dashboard.live import rates, topics
from dashboard.live.live_events import StreamSampled
from dashboard.live.unavailable import StreamAway
from streams import store
from streams.access import SYSTEM
from streams.log.client import Log
from streams.models import Stream, Workspace
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The server of the streams in memory does not answer."""
    without = Log(settings.ENV.redis_url, memory_url=f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setattr(store, "log", lambda: without)
    yield
    monkeypatch.undo()
    without.close()


def test_a_stream_in_memory_is_made_by_the_form_and_marked_everywhere(owner: Client, unique: str) -> None:
    form = {"name": unique, "discard": "old", "storage": "memory"}
    assert owner.post("/streams/_new/", form).status_code == 302
    assert Stream.objects.get(name=unique).storage == "memory"
    for address in ("/streams/", f"/streams/{unique}/", f"/streams/{unique}/groups/"):
        assert "may be lost on restart" in owner.get(address).content.decode()
    assert "in memory – may be lost on restart" in owner.get(f"/streams/{unique}/settings/").content.decode()


def test_a_durable_one_is_not_marked(owner: Client, make_stream: MakeStream, unique: str) -> None:
    make_stream(unique)
    for address in ("/streams/", f"/streams/{unique}/settings/"):
        assert "may be lost" not in owner.get(address).content.decode()


def test_without_such_a_server_the_form_says_so_at_the_choice(
    owner: Client, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, memory_redis_url=None))
    answer = owner.post("/streams/_new/", {"name": unique, "discard": "old", "storage": "memory"})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["storage"]


def test_while_their_server_is_away_figures_are_unknown_and_never_nought(
    owner: Client,
    workspace: Workspace,
    make_stream: MakeStream,
    unique: str,
    request: pytest.FixtureRequest,
) -> None:
    stream = make_stream(unique, bodies=[b"1", b"2"], storage="memory", max_messages=4)
    kept = make_stream(f"{unique}-kept", bodies=[b"1"])
    for each in (stream, kept):
        group_create(each, name="readers", settings={}, actor=SYSTEM)
    request.getfixturevalue("away")
    page = owner.get("/streams/").content.decode()
    for field, style in (("messages", "count"), ("bytes", "size"), ("rate_in", "rate")):
        assert f'data-live="stream:{unique}" data-field="{field}" data-format="{style}">–<' in page
    assert 'data-state="unavailable"' in page
    assert f'data-live="stream:{unique}-kept" data-field="messages" data-format="count">1<' in page
    assert "used" not in owner.get("/streams/", {"name": unique}).context["page"].rows[0].retention.text
    told = topics.snapshots(topics.Topic(f"stream:{each.name}", "", each) for each in (stream, kept))
    sampled = {topic.stream: event for topic, event in told if isinstance(event, StreamSampled | StreamAway)}
    assert (sampled[stream].messages, sampled[kept].messages) == (None, 1)
    settings_page = owner.get(f"/streams/{unique}/settings/")
    assert settings_page.status_code == 200
    assert "removes all its messages" in settings_page.content.decode()
    assert (
        f'data-live="stream:{unique}" data-field="messages" data-format="count">–<'
        in settings_page.content.decode()
    )
    assert owner.get("/").status_code == 200


def test_while_their_server_is_away_a_deed_on_several_streams_is_done_to_the_others(
    make_stream: MakeStream, unique: str, request: pytest.FixtureRequest
) -> None:
    away = make_stream(unique, bodies=[b"1"], storage="memory")
    kept = make_stream(f"{unique}-kept", bodies=[b"1", b"2"])
    request.getfixturevalue("away")
    outcome = bulk.done(bulk.Preview(rates.rows([away, kept])), deed="purge", actor=SYSTEM, upto={})
    assert (outcome.streams, outcome.messages) == (1, 2)
    assert outcome.refused == [f"{unique}: The message store is not responding; try again."]


def test_while_their_server_is_away_their_messages_cannot_be_seen_for_now(
    owner: Client, make_stream: MakeStream, unique: str, request: pytest.FixtureRequest
) -> None:
    make_stream(unique, bodies=[b"1"], storage="memory")
    request.getfixturevalue("away")
    assert owner.get(f"/streams/{unique}/").status_code == 503
