"""What is asked of a store that hangs is asked where nobody else waits: before the database is held for writing."""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from streams import store
from streams.access import SYSTEM, Actor
from streams.errors import Refusal
from streams.log import connecting, keys, notes
from streams.log.append import append
from streams.log.client import Log
from streams.log.errors import StoreUnavailable
from streams.models import Event, Group, Stream, Token, Workspace
from streams.services import groups, messages, removals, streams, tokens, workspaces
from tests import servers
from tests.streams.log.messages import message

pytestmark = pytest.mark.django_db(transaction=True)

LONG_ENOUGH_S = 0.25
"""For whoever writes; a lock that is held while the store is asked lasts four times as long."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[servers.Store]:
    """A store of the test's own, which is given up after a second."""
    monkeypatch.setattr(connecting, "ANSWER_TIMEOUT_S", 4 * LONG_ENOUGH_S)
    with servers.store(tmp_path) as running:
        log = Log(running.url)
        monkeypatch.setattr(store, "log", lambda: log)
        yield running
        log.close()


@pytest.fixture
def workspace(server: servers.Store) -> Workspace:
    made = workspaces.workspace_create(name="hanging", actor=SYSTEM)
    stream, _ = streams.stream_create(made, name="orders", settings={}, actor=SYSTEM)
    groups.group_create(stream, name="billing", settings={}, actor=SYSTEM)
    tokens.token_create(made, name="shop", scopes=["read"], actor=SYSTEM)
    return made


def stream() -> Stream:
    return Stream.objects.select_related("workspace").get(workspace__name="hanging")


def group() -> Group:
    return Group.objects.select_related("stream__workspace").get(stream__workspace__name="hanging")


def token() -> Token:
    return Token.objects.select_related("workspace").get(name="shop")


DEEDS: dict[str, Callable[[], object]] = {
    "a stream is deleted": lambda: streams.stream_delete(stream(), actor=SYSTEM),
    "a workspace is deleted": lambda: workspaces.workspace_delete(stream().workspace, actor=SYSTEM),
    "a group is made": lambda: groups.group_create(stream(), name="b", settings={}, actor=SYSTEM),
    "a group is changed": lambda: groups.group_change(group(), changes={"ack_wait": 9}, actor=SYSTEM),
    "a group is deleted": lambda: groups.group_delete(group(), actor=SYSTEM),
    "a token is made": lambda: tokens.token_create(
        stream().workspace, name="till", scopes=["read"], actor=SYSTEM
    ),
    "a token is revoked": lambda: tokens.token_revoke(token(), actor=SYSTEM),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_while_a_store_that_hangs_is_asked_others_can_write(
    server: servers.Store, workspace: Workspace, deed: str
) -> None:
    before, pid = rows(workspace), server.child.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(refused, DEEDS[deed])
            writes = 0
            while not asked.done():
                write()
                writes += 1
            assert asked.result()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert writes > 1
    assert rows(workspace) == before


@pytest.mark.parametrize("undo_s", [0, 3600])
@pytest.mark.parametrize("kind", ["stream.purged", "message.deleted"])
def test_what_a_person_takes_away_is_on_record_where_the_answer_is_lost(
    server: servers.Store,
    workspace: Workspace,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: str,
    undo_s: int,
) -> None:
    taken_by: dict[str, Callable[..., object]] = {
        "stream.purged": messages.stream_purge,
        "message.deleted": partial(messages.message_delete, offset=1),
    }
    with (
        servers.store(tmp_path / "volatile", fsync=None) as volatile,
        closing(Log(server.url, memory_url=volatile.url)) as both,
    ):
        settings.ENV = replace(settings.ENV, undo_s=undo_s, memory_redis_url=volatile.url)
        monkeypatch.setattr(store, "log", lambda: both)
        fleeting, _ = streams.stream_create(
            workspace, name="ticks", settings={"storage": "memory"}, actor=SYSTEM
        )
        both.run(append(fleeting.stream_id, [message(1)]))
        # What hangs is the server of its messages only; the other one hears of what is begun.
        Log(volatile.url).client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        with pytest.raises(Refusal, match="store"):
            taken_by[kind](fleeting, actor=Actor("ann"))
        begun, signed_ms = both.client.zrange(keys.BEGUN, 0, -1, withscores=True)
        both.client.zadd(keys.BEGUN, {begun: float(signed_ms) - notes.GIVEN_UP_AFTER_MS - 1})
        both.run(notes.give_up())
        removals.notes_record(both.run(notes.take()))
        event = Event.objects.get(workspace="hanging", kind=kind, after__outcome="unknown")
    assert (event.actor, event.stream) == ("ann", "ticks")
    asked = "Messages of stream ticks were to be " + kind.partition(".")[2]
    assert event.summary == f"{asked}; whether it happened is unknown."


def refused(act: Callable[[], object]) -> bool:
    try:
        act()
    except StoreUnavailable:
        return True
    finally:
        connections.close_all()
    return False


def write() -> None:
    """Hold the database for writing once, as every change does."""
    other = sqlite3.connect(connection.settings_dict["NAME"], timeout=LONG_ENOUGH_S, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()


def rows(workspace: Workspace) -> list[int]:
    of_workspace = (workspace.streams, workspace.tokens, Group.objects.filter(stream__workspace=workspace))
    return [each.count() for each in of_workspace]
