"""The analytics process without its threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from okmq.analytics.process import Analytics
from streams import store
from streams.models import Stream, Workspace
from tests.spark.published import Published


@contextmanager
def inside(published: Published, settings: Any, folder: Path) -> Iterator[Analytics]:
    """The process's inside, on the store of a test and a history of its own."""
    settings.ENV = replace(
        settings.ENV,
        redis_url=published.url,
        data_dir=folder,
        history=True,
        history_url=str(folder / "history"),
        history_every_s=3600,
    )
    store.log.cache_clear()
    yield Analytics(settings.ENV, stop=threading.Event())
    store.log.cache_clear()


def in_workspace(published: Published) -> Published:
    """What is published, in a workspace that the database knows."""
    return replace(published, workspace_id=Workspace.objects.create(name=published.workspace).pk)


def known(published: Published, name: str) -> str:
    """A stream that the database has, too: of others nothing is counted; its internal id."""
    workspace, _ = Workspace.objects.get_or_create(name=published.workspace)
    made = Stream.objects.create(workspace=workspace, name=name, stream_id=published.stream(name))
    return made.stream_id


def work(analytics: Analytics) -> None:
    """Do what is queued, lane by lane, until nothing is."""
    while any(lane.step() for lane in analytics.lanes):
        continue


def due(analytics: Analytics) -> None:
    """Make the schedule's next look due, and do what it finds."""
    analytics.next_schedule = 0
    analytics.look()
    work(analytics)
