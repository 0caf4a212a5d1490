"""The demonstration that a button starts: live traffic into a stream of its own, bounded in rate, time and size."""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from streams import store
from streams.access import SYSTEM, Actor
from streams.log.append import append_told
from streams.log.entries import NewMessage
from streams.log.errors import LogError, StreamNotFound
from streams.models import DemoRun, Stream, Workspace
from streams.services.events import event_record
from streams.services.streams import stream_create
from streams.services.summaries import counted

STREAM = "demo"
A_SECOND = 20
LASTS = timedelta(minutes=15)
SETTINGS = {
    "description": "Departures from New York's airports in 2013 (nycflights13), as if they left now.",
    "max_messages": 50_000,
    "labels": {"demo": "yes"},
}

Departures = Callable[[int, int], Sequence[tuple[str, bytes]]]
"""A rank and a count → key and body (JSON) of so many departures from there on, around the year's end."""

log = logging.getLogger(__name__)


@transaction.atomic
def demo_start(workspace: Workspace, *, actor: Actor) -> DemoRun:
    """Begin a demonstration, or let the one under way last as long again.

    Raises:
        Refusal: ``stream_exists`` when a stream of the name is somebody's own; what ``stream_create`` refuses.
    """
    stream = Stream.objects.filter(workspace=workspace, name=STREAM, labels__demo="yes").first()
    if stream is None:
        stream, _ = stream_create(workspace, name=STREAM, settings=SETTINGS, actor=actor)
    run, is_new = DemoRun.objects.update_or_create(
        stream=stream, defaults={"ends_at": timezone.now() + LASTS}
    )
    if is_new:
        event_record(
            workspace,
            kind="demo.started",
            actor=actor,
            stream=STREAM,
            summary=f"The demo publishes {A_SECOND} messages per second for {LASTS.seconds // 60} minutes.",
        )
    return run


@transaction.atomic
def demo_stop(workspace: Workspace, *, actor: Actor) -> None:
    """End the workspace's demonstration; its stream stays. One that has ended is no fault."""
    for run in DemoRun.objects.select_related("stream").filter(stream__workspace=workspace):
        _end(run, actor=actor)


def demos_feed(departures: Departures) -> int:
    """Publish a second's worth into each demonstration, and end those whose time is over; how many go on.

    Ids are of the run and the rank, so two that feed at once store nothing twice.
    """
    left = 0
    for run in DemoRun.objects.select_related("stream__workspace"):
        if run.ends_at <= timezone.now():
            _end(run, actor=SYSTEM)
            continue
        first = run.published
        messages = [
            NewMessage(id=f"demo-{run.pk}-{first + place}", key=key, body=body)
            for place, (key, body) in enumerate(departures(first, A_SECOND))
        ]
        stream_id = run.stream.stream_id
        try:
            store.log().run(append_told(stream_id, messages))
        except StreamNotFound:
            continue  # deleted at this moment; its row goes with it
        except LogError as error:
            log.warning("The demo waits: %s", error)
        else:
            DemoRun.objects.filter(pk=run.pk).update(published=first + len(messages))
        left += 1
    return left


@transaction.atomic
def _end(run: DemoRun, *, actor: Actor) -> None:
    ended, _ = DemoRun.objects.filter(pk=run.pk).delete()
    if ended:
        event_record(
            run.stream.workspace,
            kind="demo.ended",
            actor=actor,
            stream=run.stream.name,
            summary=f"The demo has ended after {counted(run.published)}.",
        )
