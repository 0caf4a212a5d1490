"""Whichever server stands in the store's place, an epoch is never told twice and never goes back."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from streams import store
from streams.log import lineage
from streams.log.client import AsyncLog, Log, one
from streams.log.config import Registered, stream_publish
from streams.models import Event, Stream, Workspace
from streams.upkeep.promotions import Promotions
from tests import servers
from tests.product import free_port
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

Lead = Callable[[servers.Store], None]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[str], servers.Store]]:
    """Makes servers of which none knows the others, as replicas do that have one primary in common."""
    with ExitStack() as stack:
        yield lambda name: stack.enter_context(servers.store(tmp_path / name))


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> Lead:
    """Has the address of the store lead to a server, where a worker looks."""

    def to(server: servers.Store) -> None:
        async def look() -> None:
            log = AsyncLog(server.url)
            promotions = Promotions(log)
            for _ in range(3):
                await promotions.look()
            await log.close()

        with closing(Log(server.url)) as log:
            monkeypatch.setattr(store, "log", lambda: log)
            asyncio.run(look())

    return to


def promote(server: servers.Store) -> None:
    with closing(Log(server.url)) as log:
        log.run(one(("REPLICAOF", "127.0.0.1", free_port())))
        until(lambda: log.run(lineage.look()).is_replica)
        log.run(one(("REPLICAOF", "NO", "ONE")))


def epoch(server: servers.Store) -> int:
    with closing(Log(server.url)) as log:
        found = log.run(lineage.look())
    assert found.fresh == ""
    return found.epoch


def recorded() -> list[int]:
    events = Event.objects.filter(kind="store.promoted").order_by("pk")
    return [int((each.after or {})["epoch"]) for each in events]


def test_each_server_in_the_store_s_place_begins_an_epoch_above_all_on_record(
    made: Callable[[str], servers.Store], lead: Lead
) -> None:
    first, second, third = (made(name) for name in "abc")
    lead(first)
    assert (epoch(first), recorded()) == (0, [])
    promote(second)
    lead(second)
    assert (epoch(second), recorded()) == (1, [1])
    promote(third)
    lead(third)
    assert (epoch(third), recorded()) == (2, [1, 2])
    lead(first)
    assert (epoch(first), recorded()) == (3, [1, 2, 3])
    last = Event.objects.filter(kind="store.promoted").latest("pk")
    assert last.summary.startswith("The message store is as it was before a promotion")
    lead(first)
    assert recorded() == [1, 2, 3]
    lead(second)
    assert (epoch(second), recorded()[-1]) == (4, 4)


def test_a_store_that_was_emptied_begins_none_before_it_is_told_again(
    made: Callable[[str], servers.Store], lead: Lead
) -> None:
    workspace = Workspace.objects.create(name="own")
    row = Stream.objects.create(
        workspace=workspace, name="metrics", internal=True, is_told=True, offsets_reserved=10
    )
    server = made("a")
    promote(server)
    registered = Registered(
        stream_id=row.stream_id, name=row.name, workspace="own", workspace_id=workspace.pk, archive=False
    )
    with closing(Log(server.url)) as log:
        log.run(stream_publish(registered, {"dedup_window": 60, "max_message_bytes": 9, "discard": "old"}))
    lead(server)
    assert recorded() == [1]
    emptied = made("b")
    lead(emptied)
    assert (epoch(emptied), recorded()) == (0, [1])


def test_a_replica_is_left_alone_until_it_is_promoted(
    made: Callable[[str], servers.Store], lead: Lead
) -> None:
    promoted, waiting = made("a"), made("b")
    promote(promoted)
    lead(promoted)
    with closing(Log(waiting.url)) as log:
        log.run(one(("REPLICAOF", "127.0.0.1", free_port())))
        until(lambda: log.run(lineage.look()).is_replica)
    lead(waiting)
    assert recorded() == [1]
