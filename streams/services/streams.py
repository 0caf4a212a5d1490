"""Streams: made, changed, deleted. The database is the truth; the log is told after the commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from streams import store
from streams.access import Actor
from streams.errors import Refusal
from streams.log import config, keys, stats
from streams.models import DEFAULT_WORKSPACE, Rollup, RollupPosition, Stream, Workspace
from streams.services.events import event_record

SETTINGS = (
    "ttl",
    "max_messages",
    "max_bytes",
    "discard",
    "max_message_bytes",
    "dedup_window",
    "archive",
    "deny_delete",
    "deny_purge",
    "sealed",
    "description",
    "labels",
    "keys",
)
ONE_WAY = ("deny_delete", "deny_purge", "sealed")
CHANGEABLE_WHEN_SEALED = frozenset({"description", "labels", "sealed"})
RESERVED_NAMES = frozenset({"find"})


def settings_of(stream: Stream) -> dict[str, Any]:
    """A stream's settings by name."""
    return {field: getattr(stream, field) for field in SETTINGS}


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


@transaction.atomic
def streams_create(
    workspace: Workspace,
    *,
    wanted: Sequence[tuple[str, Mapping[str, Any]]],
    actor: Actor,
) -> list[tuple[Stream, bool]]:
    """Make several streams, all or none; see ``stream_create``."""
    there = {
        stream.name: stream
        for stream in Stream.objects.filter(workspace=workspace, name__in=[name for name, _ in wanted])
    }
    made: list[tuple[Stream, bool]] = []
    for name, settings in wanted:
        fresh = Stream(workspace=workspace, name=name, **_within_plan(workspace, settings))
        held = there.get(name)
        if held is None:
            made.append((fresh, True))
        elif settings_of(held) == settings_of(fresh):
            made.append((held, False))
        else:
            raise Refusal(
                "stream_exists",
                f"Stream {name!r} exists with other settings.",
                stream=name,
                differs=sorted(field for field in SETTINGS if getattr(held, field) != getattr(fresh, field)),
                err_code=10058,
            )
    for stream, is_new in made:
        if is_new:
            stream.save(force_insert=True)
            event_record(
                workspace,
                kind="stream.created",
                actor=actor,
                stream=stream.name,
                after=settings_of(stream),
                summary=f"Stream {stream.name} was created.",
            )
    created = [stream for stream, is_new in made if is_new]
    transaction.on_commit(lambda: streams_publish(created))
    return made


@transaction.atomic
def stream_change(stream: Stream, *, changes: Mapping[str, Any], actor: Actor) -> Stream:
    """Change settings; those not named keep their values. A tighter limit acts at once.

    Raises:
        Refusal: ``operation_denied`` for switching a one-way switch off or changing a sealed stream,
            ``quota_exceeded`` above the plan's cap.
    """
    stream = Stream.objects.select_for_update().select_related("workspace").get(pk=stream.pk)
    before = settings_of(stream)
    changed = {field: value for field, value in changes.items() if before[field] != value}
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
    for field, value in _within_plan(stream.workspace, changed, new=False).items():
        setattr(stream, field, value)
    stream.save()
    if changed:
        event_record(
            stream.workspace,
            kind="stream.changed",
            actor=actor,
            stream=stream.name,
            before={field: before[field] for field in changed},
            after={field: getattr(stream, field) for field in changed},
            summary=f"Stream {stream.name}: {', '.join(sorted(changed))} changed.",
        )
    transaction.on_commit(lambda: streams_publish([stream]))
    return stream


@transaction.atomic
def stream_delete(stream: Stream, *, actor: Actor) -> None:
    """Delete a stream with its messages and rollups; a stream made again under the name has nothing of it."""
    stream_id, workspace_id, name = stream.stream_id, stream.workspace_id, stream.name
    event_record(
        stream.workspace,
        kind="stream.deleted",
        actor=actor,
        stream=name,
        before=settings_of(stream),
        summary=f"Stream {name} was deleted with all its messages.",
    )
    Rollup.objects.filter(stream_id=stream_id).delete()
    RollupPosition.objects.filter(stream_id=stream_id).delete()
    stream.delete()
    transaction.on_commit(
        lambda: store.log().run(config.stream_remove(stream_id, workspace_id=workspace_id, name=name))
    )


def streams_publish(streams: Sequence[Stream]) -> None:
    """Tell the log of these streams and their settings; the worker then applies limits that became tighter."""
    for stream in streams:
        store.log().run(config.stream_publish(registered(stream), settings_of(stream)))
    if streams:
        store.log().run(stats.touch([stream.stream_id for stream in streams]))


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


def internal_stream(name: str, **settings: Any) -> Stream:
    """One of the system's own streams, in the default workspace; its name begins with an underscore."""
    workspace = Workspace.objects.get(name=DEFAULT_WORKSPACE)
    stream, _ = Stream.objects.get_or_create(
        workspace=workspace,
        name=name,
        defaults={"internal": True, "stream_id": keys.stream_id(), **settings},
    )
    streams_publish([stream])
    return stream


def _within_plan(workspace: Workspace, settings: Mapping[str, Any], *, new: bool = True) -> dict[str, Any]:
    """The settings with the plan's age limit applied: its default where none is said, its longest for null."""
    bounded, cap = dict(settings), workspace.cap
    if "ttl" not in bounded:
        return {**bounded, "ttl": cap.default_ttl} if new else bounded
    if cap.longest_ttl is not None:
        if bounded["ttl"] is None:
            bounded["ttl"] = cap.longest_ttl
        elif bounded["ttl"] > cap.longest_ttl:
            raise Refusal(
                "quota_exceeded",
                f"Plan {workspace.plan!r} keeps messages for {cap.longest_ttl} seconds at most.",
                fields=["ttl"],
                cap="ttl",
                allowed=cap.longest_ttl,
            )
    return bounded
