"""Telling the log of streams, so that the last thing it hears is what the database holds."""

import time
from collections.abc import Sequence
from typing import Any

from django.db.models import F
from django.db.models.functions import Greatest

from streams import store
from streams.log import config, stats, trim
from streams.log.errors import Damaged, StreamNotFound
from streams.models import Stream
from streams.models.stream import Retention, Storage
from streams.services import offsets_reserved
from streams.services.memory import memory_begin

SETTINGS = ("storage", "policy", *config.SETTINGS, "description", "labels", "keys")
"""What a person sets of a stream: what the log acts on, and what only the rest does."""

PAGES_AT_ONCE = 150
"""What a change to interest looks through before it is answered (4,500 messages); the worker goes on with the rest."""

TOLD_AT_ONCE = 1000
"""Streams that the database is asked of together after the log was told: as many as one call makes."""


def settings_of(stream: Stream) -> dict[str, Any]:
    """A stream's settings by name."""
    return {field: getattr(stream, field) for field in SETTINGS}


def streams_publish(streams: Sequence[Stream], *, archived: offsets_reserved.Archived = dict) -> None:
    """Tell the log of these streams and their settings; the worker then applies limits that became tighter.

    A stream that somebody else changed or deleted while the log was told is told of again, so that the last thing
    the log hears is what the database holds. One that the log had lost goes on above every offset that it gave.

    Args:
        archived: as of ``offsets_reserved``.

    Raises:
        Damaged: what the log holds of one of them; it was told of all others.
    """
    lost, damaged = offsets_reserved.begin_anew(streams, archived=archived), dict[str, Damaged]()
    until_s = time.monotonic() + trim.AT_ONCE_S
    for first in range(0, len(streams), TOLD_AT_ONCE):
        told = list(streams[first : first + TOLD_AT_ONCE])
        while told:
            damaged |= _tell(told, until_s=until_s)
            told = _changed_meanwhile([each for each in told if each.stream_id not in damaged])
    if lost:
        offsets_reserved.tell_of(lost, streams)
    for error in damaged.values():
        raise error


def _tell(told: Sequence[Stream], *, until_s: float) -> dict[str, Damaged]:
    """Tell the log of streams once; internal id → why, of those of which it could not be told."""
    log = store.log()
    damaged = log.run(config.streams_publish([(registered(each), settings_of(each)) for each in told]))
    for each in told:
        if each.stream_id in damaged:
            continue
        try:
            _settle(each, until_s=until_s)
        except StreamNotFound:
            continue  # deleted meanwhile
        except Damaged as error:
            damaged[each.stream_id] = error
    log.run(stats.touch([each.stream_id for each in told]))
    return damaged


def _settle(stream: Stream, *, until_s: float) -> None:
    """What the log has heard of a stream takes effect at once, as far as that goes quickly."""
    if stream.storage == Storage.MEMORY:
        memory_begin(stream, told=registered(stream), settings=settings_of(stream))
    if stream.max_messages_per_key is not None:
        store.log().run(trim.keep_newest_of_keys(stream.stream_id, until_s=until_s))
    if stream.retention == Retention.INTEREST:
        store.log().run(trim.release(stream.stream_id, pages=PAGES_AT_ONCE))


def _changed_meanwhile(told: Sequence[Stream]) -> list[Stream]:
    """Those of the streams whose settings are others by now; those that have gone are taken out of the log.

    It is noted of those that nobody changed since that the log knows them as they are.
    """
    if not told:
        return []
    ids, as_of = [each.stream_id for each in told], max(each.updated_at for each in told)
    Stream.objects.filter(stream_id__in=ids, updated_at__lte=as_of, is_told=False).update(
        is_told=True, offsets_reserved=Greatest(F("offsets_reserved"), offsets_reserved.BLOCK)
    )
    now = {
        each.stream_id: each for each in Stream.objects.select_related("workspace").filter(stream_id__in=ids)
    }
    for each in told:
        if each.stream_id not in now:
            _remove(each.stream_id, workspace_id=each.workspace_id, name=each.name)
    return [
        now[each.stream_id]
        for each in told
        if each.stream_id in now and settings_of(now[each.stream_id]) != settings_of(each)
    ]


def _remove(stream_id: str, *, workspace_id: int, name: str) -> None:
    store.log().run(config.stream_remove(stream_id, workspace_id=workspace_id, name=name))


def registered(stream: Stream) -> config.Registered:
    """The stream as the log's registry lists it."""
    return config.Registered(
        stream_id=stream.stream_id,
        name=stream.name,
        workspace=stream.workspace.name,
        workspace_id=stream.workspace_id,
        archive=stream.archive,
        internal=stream.internal,
    )
