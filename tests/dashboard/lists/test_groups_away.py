"""Groups of a stream in memory while its server is away: listed, and nothing is promised of what it held."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from streams import store
from streams.log.client import Log
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import make_group

WHY = "The server of its stream is not responding; how it stands is not known."
KEPT, LOST = "Nothing is lost", "what its server held is lost if that has to be restarted"


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


@pytest.fixture
def groups(make_stream: MakeStream) -> None:
    """Two groups of a stream in memory, and two of one on disk."""
    for stream, storage in ("kept", "durable"), ("volatile", "memory"):
        made = make_stream(stream, storage=storage, bodies=[b"1"])
        for name in (f"{stream}-a", f"{stream}-b"):
            make_group(made, name)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Call it to have the server of the streams in memory away, or with ``all`` both of them."""
    opened: list[Log] = []

    def leave(*, both: bool = False) -> None:
        nobody = f"unix://{tmp_path}/nobody.sock"
        opened.append(Log(nobody if both else settings.ENV.redis_url, memory_url=nobody))
        monkeypatch.setattr(store, "log", lambda: opened[-1])

    yield leave
    monkeypatch.undo()
    for log in opened:
        log.close()


def test_groups_whose_server_is_away_stay_in_the_list_and_say_so(
    viewer: Client, groups: None, away: Callable[..., None]
) -> None:
    assert WHY not in text_of(viewer.get("/groups/"))
    away()
    for headers in ({}, {"HX-Request": "true"}):
        answer = viewer.get("/groups/?group=-", headers=headers)
        told = text_of(answer)
        assert told.count(WHY) == 2
        assert "1–4 of 4" in told
        for name in ("kept-a", "kept-b", "volatile-a", "volatile-b"):
            stream = name.partition("-")[0]
            assert f'href="/streams/{stream}/groups/{name}/"' in answer.content.decode()


def test_of_what_a_memory_server_held_nobody_says_that_it_is_not_lost(
    viewer: Client, groups: None, away: Callable[..., None]
) -> None:
    away()
    told = viewer.get("/streams/volatile/groups/volatile-a/")
    assert (told.status_code, LOST in text_of(told), KEPT in text_of(told)) == (503, True, False)
    assert viewer.get("/streams/kept/groups/kept-a/").status_code == 200
    away(both=True)
    told = viewer.get("/streams/kept/groups/kept-a/")
    assert (told.status_code, LOST in text_of(told), KEPT in text_of(told)) == (503, False, True)
