"""Recording what went of streams: by hand, from the data plane's notes, and by retention, in summary."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from streams import store
from streams.access import SYSTEM, Actor
from streams.log import stats
from streams.log.notes import UNKNOWN, Note, is_later, uncounted
from streams.log.stats import State
from streams.models import Event, EventHead, RemovalCount, Retention, Stream, Token, Workspace
from streams.services.events import event_of, events_append, head_locked
from streams.services.history import missed_by_history
from streams.services.summaries import UNSURE, counted, finals_said, not_known, was

PERIOD = timedelta(hours=1)
"""Retention makes at most one event of what it removed in so long, and one of what of that the history did not get."""

MOST_OFFSETS = 100
"""Offsets, and removals, that one event lists; the rest is in its count."""

PILED = ("message.deleted", "group.terminated")
"""Kinds of which notes by the same caller become one event."""

COUNTED = (
    "messages",
    "bytes",
    "appended_bytes",
    "first_offset",
    "told_at",
    "missed",
    "missed_at",
)
LIMITS = ("ttl", "max_messages", "max_bytes", "max_messages_per_key")


@transaction.atomic
def notes_record(left: Sequence[tuple[str, Note]]) -> int:
    """Make events of notes; a note that has become one already is passed over. Returns how many events.

    Notes of the same deed to the same stream by the same caller become one event.
    """
    head = head_locked()
    fresh = [note for note_id, note in left if is_later(note_id, head.noted)]
    together: dict[tuple[Any, ...], list[Note]] = {}
    for note in fresh:
        together.setdefault(_deed_of(note), []).append(note)
    actors = _actors({note.token_id for note in fresh})
    workspaces = Workspace.objects.in_bulk({note.workspace_id for note in fresh})
    events = [
        _event(
            some,
            actor=some[0].actor or actors[some[0].token_id],
            workspace=workspaces.get(some[0].workspace_id),
        )
        for some in together.values()
    ]
    events_append(events)
    EventHead.objects.update(noted=left[-1][0])
    return len(events)


def _deed_of(note: Note) -> tuple[Any, ...]:
    """What notes of one event share; for good and for a while are two deeds, and what ends others is its own."""
    is_piled = note.kind in PILED and "ended" not in note.after
    asked = note.after.get("reason"), "removal" in note.after
    single = "" if is_piled else note.deed or id(note)
    return (note.kind, note.stream_id, note.group, note.token_id, note.actor, note.address, *asked, single)


def _actors(token_ids: Iterable[int]) -> dict[int, str]:
    names = dict(Token.objects.filter(pk__in=list(token_ids)).values_list("pk", "name"))
    return {each: f"token {names[each]}" if each in names else f"token {each}, revoked" for each in token_ids}


def _event(some: Sequence[Note], *, actor: str, workspace: Workspace | None) -> Event:
    first = some[0]
    after: dict[str, Any] = dict(first.after)
    unsure = ""
    if any(UNKNOWN.items() <= note.after.items() for note in some):
        unsure = UNSURE
    if "offsets" in after:
        offsets = sorted({offset for note in some for offset in note.after["offsets"]})
        after |= {"offsets": offsets[:MOST_OFFSETS], "count": sum(note.after["count"] for note in some)}
    if first.kind in PILED and "removal" in after and len(some) > 1:
        del after["removal"]
        after["removals"] = sorted({note.after["removal"] for note in some})[:MOST_OFFSETS]
    match first.kind:
        case "stream.purged":
            messages = sum(note.messages for note in some)
            if len(some) > 1:
                for note in some:
                    after |= note.after
                after |= {"messages": messages, "bytes": sum(note.bytes for note in some)}
            summary = _done(first, messages, "purged", unsure) + finals_said(after)
        case "message.deleted":
            summary = _done(first, after["count"], "deleted", unsure)
        case "group.terminated":
            made = "made a dead letter" if after["count"] == 1 else "made dead letters"
            summary = _done(first, after["count"], made, unsure)
        case _:
            summary = not_known(first.kind, first.stream, first.group)
    return event_of(
        workspace,
        kind=first.kind,
        actor=Actor(actor, first.address),
        stream=first.stream,
        group=first.group,
        after=uncounted(after) if unsure else after,
        summary=summary,
    )


def _done(note: Note, messages: int, done: str, unsure: str) -> str:
    if unsure and not messages:
        return not_known(note.kind, note.stream, note.group)
    whose = f"group {note.group} of {note.stream}" if note.group else note.stream
    return f"{counted(messages)} of {whose} {was(messages)} {done}{unsure}."


@transaction.atomic
def removals_record(states: Mapping[str, State]) -> set[str]:
    """Record what retention removed of streams, at most once a ``PERIOD`` each; returns those that are up to date.

    Args:
        states: internal id → how the stream stands.
    """
    held = _held(states)
    head_locked()
    return _record(held, states, period=PERIOD)


@transaction.atomic
def removals_close(stream_ids: Sequence[str]) -> dict[str, State]:
    """Record what retention removed of streams that are about to be deleted and no event tells of yet.

    Returns:
        How those stand that the log knows.
    """
    held = _held(stream_ids)
    head_locked()
    states = store.log().run(stats.inspect_many(stream_ids, strict=True))
    _record(held, states, period=timedelta())
    return states


def _held(stream_ids: Iterable[str]) -> list[Stream]:
    """The rows of streams, locked before the chain's head, as by who changes them."""
    rows = Stream.objects.select_for_update(of=("self",), no_key=True).select_related("workspace")
    return list(rows.filter(stream_id__in=list(stream_ids), internal=False).order_by("pk"))


def _record(streams: Sequence[Stream], states: Mapping[str, State], *, period: timedelta) -> set[str]:
    counts = {count.stream_id: count for count in RemovalCount.objects.filter(stream__in=streams)}
    now = timezone.now()
    settled, events, changed = set(states), [], dict[int, RemovalCount]()
    for stream in streams:
        state, count = states.get(stream.stream_id), counts.get(stream.pk)
        if state is None:
            continue  # the log does not know it (any more)
        if count is None or state.appended_bytes < count.appended_bytes:
            # Its past is not known: it was there before this was counted, or it has lost everything and began anew.
            removals_begin_anew(stream, state)
            continue
        missed = state.missed - count.missed
        if missed > 0 and _waits(count.missed_at, now, period):
            settled.discard(stream.stream_id)
        elif missed > 0:
            events.append(missed_by_history(stream, messages=missed, why="removed"))
            count.missed, count.missed_at = state.missed, now
            changed[stream.pk] = count
        standing = _standing(state)
        messages, size = standing["messages"] - count.messages, standing["bytes"] - count.bytes
        if messages <= 0:
            continue
        if _waits(count.told_at, now, period):
            settled.discard(stream.stream_id)
            continue
        events.append(_expired(stream, count, state, messages=messages, size=size))
        for field, value in (standing | {"told_at": now}).items():
            setattr(count, field, value)
        changed[stream.pk] = count
    RemovalCount.objects.bulk_update(changed.values(), COUNTED)
    events_append(events)
    return settled


def _waits(told_at: datetime | None, now: datetime, period: timedelta) -> bool:
    """Whether what an event told of last is too near for the next one."""
    return told_at is not None and now < told_at + period


def removals_begin_anew(stream: Stream, state: State) -> None:
    """Count from this state on: what went before was not retention's doing."""
    RemovalCount.objects.update_or_create(stream=stream, defaults=_standing(state) | {"missed": state.missed})


def _standing(state: State) -> dict[str, Any]:
    """A count as of this state: what is gone in all, less what people took away, retention removed."""
    return {
        "messages": state.by_retention_messages,
        "bytes": state.appended_bytes - state.bytes - state.by_hand_bytes,
        "appended_bytes": state.appended_bytes,
        "first_offset": state.first_offset,
    }


def _expired(stream: Stream, count: RemovalCount, state: State, *, messages: int, size: int) -> Event:
    limits = {name: getattr(stream, name) for name in LIMITS if getattr(stream, name) is not None}
    if stream.retention == Retention.INTEREST:
        limits["retention"] = stream.retention
    since = (count.told_at or stream.created_at).isoformat(timespec="milliseconds")
    return event_of(
        stream.workspace,
        kind="stream.expired",
        actor=SYSTEM,
        stream=stream.name,
        before={"first_offset": count.first_offset},
        after={
            "first_offset": state.first_offset,
            "messages": messages,
            "bytes": size,
            "since": since,
            "limits": limits,
        },
        summary=f"Retention removed {counted(messages)} of {stream.name}, {size:,} bytes.",
    )
