"""The worker while a server takes nothing more: what makes room on it goes on, and so does everything else."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from streams.access import SYSTEM
from streams.log import config, keys, lineage, memory, stats
from streams.log.append import append
from streams.log.client import Log, one
from streams.log.memory import Held
from streams.models import Event, Stream, Workspace
from streams.services import streams, workspaces
from streams.services.installation import configuration_republish
from tests import servers
from tests.product import free_port
from tests.streams.log.messages import fill, message
from tests.streams.upkeep.test_worker import Watched, until
from tests.waiting import until as until_now

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = {"dedup_window": 60, "max_message_bytes": 1_048_576, "discard": "old"}


@pytest.fixture
def workspace(both: Log) -> Workspace:
    """A stream of each kind, with five messages."""
    made = workspaces.workspace_create(name="full", actor=SYSTEM)
    for name, kind in (("kept", "durable"), ("volatile", "memory")):
        settings = {"storage": kind, "archive": False}
        stream, _ = streams.stream_create(made, name=name, settings=settings, actor=SYSTEM)
        fill(both, stream.stream_id, 5)
    return made


def limit(log: Log, workspace: Workspace, name: str) -> str:
    """Have a stream keep one message, the rest being hidden, and answer its internal id."""
    row = Stream.objects.get(workspace=workspace, name=name)
    registered = config.Registered(
        stream_id=row.stream_id,
        name=name,
        workspace=workspace.name,
        workspace_id=workspace.pk,
        archive=False,
    )
    settings = {**SETTINGS, "max_messages": 1}
    if keys.in_memory(row.stream_id):
        log.run(memory.begin(registered, settings, {}))
    else:
        log.run(config.stream_publish(registered, settings))
    return row.stream_id


def fill_up(server: servers.Store) -> None:
    with closing(Log(server.url)) as log:
        log.client.execute_command("CONFIG", "SET", "maxmemory", "1")


def work_until(seen: Watched, condition: Callable[[], bool]) -> None:
    """Let a worker work until something is so."""

    async def run() -> None:
        working = asyncio.create_task(seen.worker.run())
        await until(condition)
        seen.worker.stop()
        await working

    asyncio.run(run())


def stored(server: servers.Store, stream_id: str) -> int:
    with closing(Log(server.url)) as log:
        return int(log.client.execute_command("XLEN", keys.log(stream_id)))


def test_what_streams_in_memory_hold_is_noted_and_a_full_durable_store_gets_room(
    both: Log, durable: servers.Store, volatile: servers.Store, workspace: Workspace, tmp_path: Path
) -> None:
    kept = limit(both, workspace, "kept")
    fleeting = Stream.objects.get(workspace=workspace, name="volatile").stream_id
    fill_up(durable)
    published = iter(range(6, 1_000_000))

    def is_done() -> bool:
        both.run(append(fleeting, [message(next(published))]))
        both.run(stats.touch([fleeting]))  # so that every tick has a sample of it
        return stored(durable, kept) == 1

    work_until(Watched(durable.url, tmp_path / "none", memory_url=volatile.url), is_done)
    held = both.run(memory.held_take(fleeting))
    assert isinstance(held, Held)
    assert held.messages >= 5


def test_a_full_memory_server_is_not_away_and_its_limits_make_room(
    both: Log,
    durable: servers.Store,
    volatile: servers.Store,
    workspace: Workspace,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fleeting = limit(both, workspace, "volatile")
    fill_up(volatile)
    seen = Watched(durable.url, tmp_path / "none", memory_url=volatile.url)
    work_until(seen, lambda: stored(volatile, fleeting) == 1)
    assert "does not answer" not in caplog.text


def test_a_promotion_onto_a_full_store_is_recorded_once_and_noted(
    both: Log, durable: servers.Store, volatile: servers.Store, workspace: Workspace, tmp_path: Path
) -> None:
    both.run(one(("REPLICAOF", "127.0.0.1", free_port())))
    until_now(lambda: both.run(lineage.look()).is_replica)
    both.run(one(("REPLICAOF", "NO", "ONE")))
    kept = limit(both, workspace, "kept")
    fill_up(durable)
    seen = Watched(durable.url, tmp_path / "none", memory_url=volatile.url)

    def is_noted() -> bool:
        both.run(stats.touch([kept]))
        found = both.run(lineage.look())
        return (found.noted, found.fresh) == (1, "") and len(seen.samples) > 2

    work_until(seen, is_noted)
    assert stored(durable, kept) == 1
    assert Event.objects.filter(kind="store.promoted").count() == 1


def test_a_start_on_a_full_store_tells_it_of_everything_again(
    both: Log, durable: servers.Store, workspace: Workspace
) -> None:
    fill_up(durable)
    told, _ = configuration_republish()
    assert told == Stream.objects.count()
    for row in Stream.objects.filter(workspace=workspace):
        assert both.run(stats.inspect(row.stream_id)).messages == 5
