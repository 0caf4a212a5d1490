"""The worker while the server of the streams in memory hangs or has gone: the others go on."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from streams.access import SYSTEM
from streams.log.append import append
from streams.log.client import Log
from streams.models import Alert, AlertRule, Group, Stream, Workspace
from streams.services import groups, streams, workspaces
from streams.upkeep import watching, worker
from tests import servers
from tests.streams.log.messages import message
from tests.streams.upkeep.test_worker import Watched, until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def workspace(both: Log) -> Workspace:
    """A stream of each kind with a message and a group that nobody fetches from, and a rule about both."""
    made = workspaces.workspace_create(name="halved", actor=SYSTEM)
    for name, kind in (("kept", {}), ("volatile", {"storage": "memory"})):
        stream, _ = streams.stream_create(made, name=name, settings=kind, actor=SYSTEM)
        groups.group_create(
            stream, name="g", settings={"start_from": "earliest", "inactive_after": 3600}, actor=SYSTEM
        )
        both.run(append(stream.stream_id, [message(1)]))
    AlertRule.objects.create(
        workspace=made, name="lags", stream="*", watch="lag", limit=0, clear=0, for_seconds=0
    )
    return made


def stop(running: servers.Store, how: signal.Signals) -> None:
    assert running.child.pid is not None
    os.kill(running.child.pid, how)


@pytest.mark.parametrize("is_halted", [True, False])
def test_groups_of_durable_streams_are_looked_at_while_the_other_server_is_away(
    durable: servers.Store,
    volatile: servers.Store,
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_halted: bool,
) -> None:
    kept, fleeting = (
        Stream.objects.get(workspace=workspace, name=name).stream_id for name in ("kept", "volatile")
    )
    monkeypatch.setattr(worker, "GROUPS_EVERY_S", 0)
    monkeypatch.setattr("streams.upkeep.alerting.EVERY_S", 0)

    async def run() -> None:
        seen = Watched(durable.url, tmp_path / "none", memory_url=volatile.url)
        seen.worker._watch = watching.Watch(seen.worker._log, every_s=0)
        working = asyncio.create_task(seen.worker.run())
        await until(lambda: {kept, fleeting} <= set(seen.groups))
        if is_halted:
            stop(volatile, signal.SIGSTOP)
        else:
            volatile.kill()
        try:
            seen.groups.clear()
            await until(lambda: seen.groups.count(kept) >= 6)
            seen.groups.clear()
            await until(lambda: seen.groups.count(kept) >= 3)
            assert fleeting not in seen.groups
        finally:
            if is_halted:
                stop(volatile, signal.SIGCONT)
            else:
                volatile.start()
        seen.groups.clear()
        await until(lambda: fleeting in seen.groups)
        seen.worker.stop()
        await working

    asyncio.run(run())
    assert Group.objects.filter(stream__workspace=workspace).count() == 2
    held = Alert.objects.filter(rule__workspace=workspace, ended_at=None).values_list("stream", flat=True)
    assert set(held) == ({"kept", "volatile"} if is_halted else {"kept"}), "the other one has lost its lag"
