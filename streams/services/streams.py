"""Streams: made, changed, deleted. The database is the truth; the log is told after the commit, or by the worker."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction

from streams import store
from streams.access import Actor
from streams.errors import Refusal, stream_not_found
from streams.log import config, keys, stats
from streams.log.client import Servers, one
from streams.models import (
    DEFAULT_WORKSPACE,
    POLICY_LIMITS,
    Event,
    Group,
    RemovalCount,
    Rollup,
    RollupPosition,
    StandingRollup,
    Stream,
    Workspace,
)
from streams.models.stream import Storage
from streams.services.erasures import erasures_spare
from streams.services.events import event_of, events_append
from streams.services.group_losses import group_losses_close
from streams.services.limits import resettled, settled
from streams.services.open_pages import absent_group, consumers_group, look_again, stream_group
from streams.services.removals import removals_close
from streams.services.streams_told import SETTINGS, settings_of, streams_publish
from streams.services.summaries import listed
from streams.services.workspace_lock import workspace_held

DELETED_AT_ONCE = 200

ONE_WAY = ("deny_delete", "deny_purge", "sealed")
CHANGEABLE_WHEN_SEALED = frozenset({"description", "labels", "sealed"})
RESERVED_NAMES = frozenset({"find"})


def stream_create(
    workspace: Workspace, *, name: str, settings: Mapping[str, Any], actor: Actor
) -> tuple[Stream, bool]:
    """Make a stream; again with the same settings answers the one that is there.

    Args:
        settings: validated values of ``SETTINGS``; what is missing gets its default.

    Returns:
        The stream, and whether it was made now.

    Raises:
        Refusal: ``stream_exists`` with other settings, ``quota_exceeded`` above the plan's cap.
    """
    made = streams_create(workspace, wanted=[(name, settings)], actor=actor)
    return made[0]


def streams_create(
    workspace: Workspace,
    *,
    wanted: Sequence[tuple[str, Mapping[str, Any]]],
    actor: Actor,
) -> list[tuple[Stream, bool]]:
    """Make several streams, all or none; see ``stream_create``. Refusals tell of each in ``details.errors``."""
    try:
        return _streams_create(workspace, wanted=wanted, actor=actor)
    except IntegrityError:
        # Somebody else made one of them after we looked: now it is there, so it is answered or refused.
        return _streams_create(workspace, wanted=wanted, actor=actor)


@transaction.atomic
def _streams_create(
    workspace: Workspace, *, wanted: Sequence[tuple[str, Mapping[str, Any]]], actor: Actor
) -> list[tuple[Stream, bool]]:
    workspace = workspace_held(workspace)
    there = {
        stream.name: stream
        for stream in Stream.objects.select_related("workspace").filter(
            workspace=workspace, name__in=[name for name, _ in wanted]
        )
    }
    made: list[tuple[Stream, bool]] = []
    refusals: list[tuple[int, Refusal]] = []
    for index, (name, settings) in enumerate(wanted):
        try:
            fresh = _stream(workspace, name=name, settings=settled(workspace, settings))
            made.append(_held_or_fresh(there.get(name), fresh))
        except Refusal as refusal:
            refusals.append((index, refusal))
    if refusals:
        raise _first_of(refusals, many=len(wanted) > 1)
    created = [stream for stream, is_new in made if is_new]
    Stream.objects.bulk_create(created)
    RemovalCount.objects.bulk_create([RemovalCount(stream=stream) for stream in created])
    events_append(
        [
            event_of(
                workspace,
                kind="stream.created",
                actor=actor,
                stream=stream.name,
                after=settings_of(stream),
                summary=f"Stream {stream.name} was created.",
            )
            for stream in created
        ]
    )
    # Those that were there are told again too: had the log not answered the first time, this call mends it.
    transaction.on_commit(lambda: streams_publish([stream for stream, _ in made]))
    look_again(absent_group(workspace.pk, stream.name) for stream in created)
    return made


def _stream(workspace: Workspace, *, name: str, settings: Mapping[str, Any]) -> Stream:
    """A new row; its internal id says where the stream is stored."""
    in_memory = settings.get("storage") == Storage.MEMORY
    if in_memory and not store.has_memory():
        raise Refusal(
            "validation_error",
            "storage: This installation has no server for streams in memory; see OKMQ_MEMORY_REDIS_URL.",
            fields=["storage"],
        )
    return Stream(workspace=workspace, name=name, stream_id=keys.stream_id(memory=in_memory), **settings)


def _held_or_fresh(held: Stream | None, fresh: Stream) -> tuple[Stream, bool]:
    if held is None:
        return fresh, True
    if settings_of(held) == settings_of(fresh):
        return held, False
    raise Refusal(
        "stream_exists",
        f"Stream {held.name!r} exists with other settings.",
        stream=held.name,
        differs=sorted(field for field in SETTINGS if getattr(held, field) != getattr(fresh, field)),
        err_code=10058,
    )


def _first_of(refusals: Sequence[tuple[int, Refusal]], *, many: bool) -> Refusal:
    """The first refusal of a call; where several streams were wanted, each one's place and reason in it."""
    _, first = refusals[0]
    if many:
        first.details["errors"] = [
            {"index": index, "field": refusal.details.get("cap", "name"), "message": str(refusal)}
            for index, refusal in refusals
        ]
    return first


@transaction.atomic
def stream_change(stream: Stream, *, changes: Mapping[str, Any], actor: Actor) -> Stream:
    """Change settings; those not named keep their values. A tighter limit acts at once.

    Raises:
        Refusal: as ``stream_row_change``.
    """
    stream, events = stream_row_change(stream, changes=changes, actor=actor)
    events_append(events)
    transaction.on_commit(lambda: streams_publish([stream]))
    return stream


def stream_row_change(
    stream: Stream, *, changes: Mapping[str, Any], actor: Actor
) -> tuple[Stream, list[Event]]:
    """Change a stream's row alone, within a transaction; the caller records the events, and after the commit tells
    the log of the stream.

    Raises:
        Refusal: ``operation_denied`` for switching a one-way switch off or changing a sealed stream,
            ``quota_exceeded`` above the plan's cap, ``validation_error`` for another storage, ``stream_not_found``
            when it has been deleted meanwhile.
    """
    name = stream.name
    if {"policy", *POLICY_LIMITS}.intersection(changes):
        workspace_held(stream.workspace)  # first, as whoever changes the plan does
    held = (
        Stream.objects.select_for_update(of=("self",))
        .select_related("workspace")
        .filter(pk=stream.pk)
        .first()
    )
    if held is None:
        raise stream_not_found(name)
    stream, before = held, settings_of(held)
    changed = changes_of(stream, changes)
    for field, value in changed.items():
        setattr(stream, field, value)
    if not changed:
        return stream, []
    stream.is_told = False
    stream.save()
    event = event_of(
        stream.workspace,
        kind="stream.changed",
        actor=actor,
        stream=stream.name,
        before={field: before[field] for field in changed},
        after=changed,
        summary=f"Stream {stream.name} was changed: {listed(changed)}.",
    )
    return stream, [event]


def changes_of(stream: Stream, changes: Mapping[str, Any], *, is_held: bool = True) -> dict[str, Any]:
    """The settings that would be others, under the stream's policy and the plan, if these were saved.

    Args:
        is_held: as of ``resettled``; not where this is only a look.

    Raises:
        Refusal: ``operation_denied``, ``quota_exceeded`` and ``validation_error`` as ``stream_row_change``.
    """
    before, wanted = settings_of(stream), resettled(stream, changes, is_held=is_held)
    changed = {field: value for field, value in wanted.items() if before[field] != value}
    if "storage" in changed:
        raise Refusal(
            "validation_error", "storage: The storage of a stream cannot be changed.", fields=["storage"]
        )
    for switch in ONE_WAY:
        if before[switch] and changed.get(switch) is False:
            raise Refusal(
                "operation_denied",
                f"{switch} cannot be switched off again.",
                switch=switch,
                fields=[switch],
            )
    if before["sealed"] and not CHANGEABLE_WHEN_SEALED.issuperset(changed):
        raise Refusal(
            "operation_denied",
            f"Stream {stream.name!r} is sealed: it is read-only.",
            err_code=10109,
        )
    return changed


def stream_delete(stream: Stream, *, actor: Actor) -> None:
    """Delete a stream with its messages and rollups; a stream made again under the name has nothing of it.

    Raises:
        StoreUnavailable: nothing was deleted, or the worker takes out what is left.
    """
    store.demand([stream.stream_id])
    streams_delete([stream], actor=actor)


@transaction.atomic
def streams_delete(streams: Sequence[Stream], *, actor: Actor) -> None:
    """Delete streams, all of them or none.

    The caller has asked whether their servers answer (``store.demand``): while one is away, a stream stays whole and
    can be deleted later.
    """
    if not streams:
        return
    _rows_held(streams)
    erasures_spare(streams)
    states: dict[str, stats.State] = {}
    shown: list[str] = []
    for first in range(0, len(streams), DELETED_AT_ONCE):
        ids = [each.stream_id for each in streams[first : first + DELETED_AT_ONCE]]
        states |= removals_close(ids)
        groups = Group.objects.filter(stream__stream_id__in=ids).select_related("stream")
        shown += [consumers_group(each.stream.stream_id, each.name) for each in groups]
        group_losses_close(groups)
        Rollup.objects.filter(stream_id__in=ids).delete()
        RollupPosition.objects.filter(stream_id__in=ids).delete()
        StandingRollup.objects.filter(stream_id__in=ids).delete()
        Stream.objects.filter(stream_id__in=ids).delete()
    events_append(
        [
            event_of(
                each.workspace,
                kind="stream.deleted",
                actor=actor,
                stream=each.name,
                before=settings_of(each),
                after=_gone_with(states.get(each.stream_id)),
                summary=f"Stream {each.name} was deleted with all its messages.",
            )
            for each in streams
        ]
    )
    gone = [(each.stream_id, each.workspace_id, each.name) for each in streams]
    # Should the store go away now, the worker takes out what is left (``stream_repairs``).
    transaction.on_commit(lambda: store.log().run(config.streams_remove(gone)))
    look_again([*shown, *(stream_group(each.stream_id) for each in streams)])


def _rows_held(streams: Sequence[Stream]) -> None:
    """Lock streams and their groups before the first event is recorded, as whoever changes one does."""
    of = [each.pk for each in streams]
    for rows in (Stream.objects.filter(pk__in=of), Group.objects.filter(stream__in=of)):
        list(rows.select_for_update(of=("self",)).order_by("pk").values_list("pk"))


def _gone_with(state: stats.State | None) -> dict[str, Any] | None:
    return None if state is None else {"messages": state.messages, "bytes": state.bytes}


def internal_stream(name: str, **settings: Any) -> Stream:
    """One of the system's own streams, in the default workspace; its name begins with an underscore.

    In a cluster it lies where the names and tokens lie: it is there as long as anything is.
    """
    workspace = Workspace.objects.get(name=DEFAULT_WORKSPACE)
    stream_id, *_ = store.log().run(one(Servers()))
    stream, _ = Stream.objects.get_or_create(
        workspace=workspace,
        name=name,
        defaults={"internal": True, "stream_id": stream_id, **settings},
    )
    streams_publish([stream])
    return stream
