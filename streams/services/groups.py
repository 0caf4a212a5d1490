"""Consumer groups: made, changed, deleted, sought, paused. The log is told after the commit.

What the log was not told, because it went away or the process ended in between, the worker tells it within seconds
(``streams.services.group_repairs``).
"""

import copy
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction

from streams import moments, selectors, store
from streams.access import Actor
from streams.errors import Refusal
from streams.log import groups, lag, read, standing, stats
from streams.log.errors import StoreUnavailable, StreamNotFound
from streams.models import Group, Stream
from streams.services.events import event_record
from streams.services.group_losses import group_losses_close
from streams.services.on_record import Deed, on_record
from streams.services.open_pages import absent_group, consumers_group, look_again
from streams.services.replays import replays_overtaken
from streams.services.summaries import listed

logger = logging.getLogger(__name__)

SETTINGS = (
    "start_from",
    "start_offset",
    "start_timestamp",
    "ack",
    "ack_wait",
    "max_deliver",
    "backoff",
    "max_ack_pending",
    "filter_keys",
    "ordered_by_key",
    "inactive_after",
    "description",
)


def settings_of(group: Group) -> dict[str, Any]:
    """A group's settings by name."""
    return {field: getattr(group, field) for field in SETTINGS}


def group_create(
    stream: Stream, *, name: str, settings: Mapping[str, Any], actor: Actor, is_new_stream: bool = False
) -> tuple[Group, bool]:
    """Make a group; again with the same settings answers the one that is there, and the log is told of it again.

    Args:
        is_new_stream: whether the stream is being made in the same transaction: the log does not know it yet, and
            it holds nothing that a start could be looked up in.

    Returns:
        The group, and whether it was made now.

    Raises:
        Refusal: ``group_exists`` with other settings.
        StoreUnavailable: nothing was made, or the worker tells the log of it.
    """
    store.demand([stream.stream_id])
    make = partial(
        _group_create, stream, name=name, settings=settings, actor=actor, is_new_stream=is_new_stream
    )
    try:
        return make()
    except IntegrityError:
        # Somebody else made it after we looked: now it is there, so it is answered or refused.
        return make()


@transaction.atomic
def _group_create(
    stream: Stream, *, name: str, settings: Mapping[str, Any], actor: Actor, is_new_stream: bool
) -> tuple[Group, bool]:
    fresh = Group(stream=stream, name=name, **settings)
    _check(fresh)
    held = Group.objects.select_related("stream").filter(stream=stream, name=name).first()
    if held is not None:
        differs = [field for field in SETTINGS if getattr(held, field) != getattr(fresh, field)]
        if differs:
            raise Refusal(
                "group_exists",
                f"Group {name!r} exists with other settings.",
                group=name,
                differs=differs,
                err_code=10148,
            )
        transaction.on_commit(lambda: group_publish(held))
        return held, False
    fresh.begins_after = 0 if is_new_stream else _start(fresh)
    fresh.save(force_insert=True)
    if not is_new_stream:
        # Whatever the log still has under this name belongs to a group that was deleted.
        store.log().run(groups.group_remove(stream.stream_id, name))
    _recorded(fresh, "created", "was created", actor=actor, after=_plain(settings_of(fresh)))
    transaction.on_commit(lambda: group_publish(fresh))
    look_again([absent_group(stream.workspace_id, stream.name, name)])
    return fresh, True


def group_planned(stream: Stream, *, name: str, settings: Mapping[str, Any]) -> Group:
    """A group as it would be made now, to be asked about.

    Raises:
        Refusal: as making it would be refused.
    """
    planned = Group(stream=stream, name=name, **settings)
    _check(planned)
    planned.begins_after = _start(planned)
    return planned


def group_as_changed(group: Group, *, changes: Mapping[str, Any]) -> Group:
    """A group as it would be with other settings, to be asked about.

    Raises:
        Refusal: as changing it would be refused.
    """
    changed = copy.copy(group)
    for field, value in changes.items():
        setattr(changed, field, value)
    _check(changed)
    return changed


def group_change(group: Group, *, changes: Mapping[str, Any], actor: Actor) -> Group:
    """Change settings; those not named keep their values, and the position stays.

    Raises:
        StoreUnavailable: nothing was changed, or the worker tells the log of it.
    """
    store.demand([group.stream.stream_id])  # while the server is away the group stays as it is
    return _group_change(group, changes=changes, actor=actor)


@transaction.atomic
def _group_change(group: Group, *, changes: Mapping[str, Any], actor: Actor) -> Group:
    group = Group.objects.select_for_update().select_related("stream__workspace").get(pk=group.pk)
    before = settings_of(group)
    changed = {field: value for field, value in changes.items() if before[field] != value}
    for field, value in changed.items():
        setattr(group, field, value)
    _check(group)
    if changed:
        group.is_told = False
        group.save()
        _recorded(
            group,
            "changed",
            f"was changed: {listed(changed)}",
            actor=actor,
            before=_plain({field: before[field] for field in changed}),
            after=_plain(changed),
        )
    transaction.on_commit(lambda: group_publish(group))
    return group


def group_delete(group: Group, *, actor: Actor, why: str = "") -> None:
    """Delete a group with its dead letters; open polls on it end.

    Raises:
        StoreUnavailable: nothing was deleted.
    """
    store.demand([group.stream.stream_id])
    _group_delete(group, actor=actor, why=why)


@transaction.atomic
def _group_delete(group: Group, *, actor: Actor, why: str) -> None:
    stream_id, name = group.stream.stream_id, group.name
    before = _plain(settings_of(group))
    group_losses_close([group])
    replays_overtaken(group, actor=actor, why=f"Group {name} was deleted.")
    group.delete()
    _recorded(group, "deleted", f"was deleted{f', because {why}' if why else ''}", actor=actor, before=before)
    transaction.on_commit(lambda: _remove(stream_id, name))
    look_again([consumers_group(stream_id, name)])


def group_seek(group: Group, *, next_offset: int, actor: Actor, dry_run: bool = False) -> dict[str, int]:
    """Move a group's position; what is in flight is void, delivery counts start anew, dead letters stay.

    Returns:
        ``from`` and ``to``, the next offset before and after; ``messages``: how many stored matching messages are
        delivered, again as far as they were before, or skipped; ``skipped``: how many of them will not be, with what
        waits for its key and lies before ``to``.
    """
    stream_id = group.stream.stream_id
    state = store.log().run(standing.inspect(stream_id, group.name))
    before, after = state.delivered_offset + 1, _within(group, next_offset)
    low, high = sorted((before, after))
    between = store.log().run(lag.matching_count(stream_id, low, high, group.filter_keys))
    waiting = store.log().run(lag.parked(stream_id, group.name, below=low))
    told = {
        "from": before,
        "to": after,
        "messages": between + waiting,
        "skipped": between + waiting if after >= before else waiting,
    }
    if not dry_run:
        with _on_record(group, "sought", actor=actor, asked={"next": next_offset}) as deed:
            told["from"], told["to"] = deed.run(groups.seek(stream_id, group.name, next_offset=next_offset))
            before_it = {
                "next": told["from"],
                "in_flight": state.ack_pending,
                "waiting": waiting,
                "oldest": state.ack_floor + 1,
            }
            moved = f"was moved from offset {told['from']:,} to {told['to']:,}"
            _recorded(group, "sought", moved, actor=actor, before=before_it, after={"next": told["to"]})
            replays_overtaken(group, actor=actor, why=f"Group {group.name} was moved to another position.")
    return told


def group_pause(group: Group, *, until: datetime | None, actor: Actor) -> None:
    """Deliver nothing until a time, or until ``group_resume``; answers still count, leases run on."""
    until_ms = None if until is None else moments.unix_ms(until)
    asked = {"until": None if until is None else until.isoformat()}
    with _on_record(group, "paused", actor=actor, asked=asked) as deed:
        deed.run(groups.pause(group.stream.stream_id, group.name, until_ms=until_ms))
        end = "" if until is None else f" until {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        _recorded(group, "paused", f"was paused{end}", actor=actor, after=asked)


def group_resume(group: Group, *, actor: Actor) -> None:
    """Deliver again at once."""
    with _on_record(group, "resumed", actor=actor) as deed:
        deed.run(groups.resume(group.stream.stream_id, group.name))
        _recorded(group, "resumed", "was resumed", actor=actor)


def group_publish(group: Group) -> None:
    """Tell the log of a group and its settings; one that it does not have starts where it was made to start.

    A group that somebody else changed or deleted while the log was told is told of again, so that the last thing the
    log hears is what the database holds.
    """
    told = group
    while not _told(told):
        now = Group.objects.select_related("stream").filter(pk=told.pk).first()
        if now is None:
            group_remove_leftover(told.stream, told.name)
            return
        told = now


def _told(group: Group) -> bool:
    """Tell the log of a group; whether the database still held it so afterwards, or the stream is gone with it."""
    try:
        return _tell(group)
    except StreamNotFound:
        if Stream.objects.filter(pk=group.stream_id).exists():
            raise
        return True


def _tell(group: Group) -> bool:
    """Tell the log of a group; whether the database still held it so afterwards."""
    stream_id, delivered = group.stream.stream_id, group.begins_after
    if delivered:
        # A stream in memory may have begun anew since.
        delivered = min(delivered, store.log().run(read.position(stream_id)).last)
    store.log().run(groups.group_publish(stream_id, group.name, group.log_settings, delivered=delivered))
    store.log().run(
        stats.touch([stream_id])
    )  # what nobody wants any more goes, where that is how messages are kept
    same = Group.objects.filter(pk=group.pk, updated_at=group.updated_at)
    return same.exists() if group.is_told else bool(same.update(is_told=True))


def group_remove_leftover(stream: Stream, name: str) -> bool:
    """Take out of the log what it holds of a group that the database does not have; whether there is none by now."""
    at_name = Group.objects.select_related("stream").filter(stream__stream_id=stream.stream_id, name=name)
    if at_name.exists():
        return False
    store.log().run(groups.group_remove(stream.stream_id, name))
    made_meanwhile = at_name.first()
    if made_meanwhile is not None:
        group_publish(made_meanwhile)
    return made_meanwhile is None


def _remove(stream_id: str, name: str) -> None:
    """The group is deleted; where the log went away in this moment the worker removes what it has of it."""
    try:
        store.log().run(groups.group_remove(stream_id, name))
        store.log().run(stats.touch([stream_id]))
    except StoreUnavailable as error:
        logger.warning("Group %s is deleted, and removed from the store when it answers: %s", name, error)


def offset_of_position(
    stream: Stream,
    position: str,
    *,
    offset: int | None = None,
    timestamp: datetime | None = None,
    filter_keys: Sequence[str] = (),
) -> int:
    """The next offset that a position means: ``earliest``, ``latest``, ``last``, ``offset``, ``timestamp``.

    Args:
        filter_keys: ``last`` is the last message that one of these patterns matches.
    """
    at = store.log().run(read.position(stream.stream_id))
    match position:
        case "earliest":
            return at.floor
        case "latest":
            return at.last + 1
        case "last":
            return store.log().run(lag.last_matching(stream.stream_id, filter_keys))
        case "offset" if offset is not None:
            return max(at.floor, min(offset, at.last + 1))
        case "timestamp" if timestamp is not None:
            return selectors.offset_at(stream, timestamp)
        case _:
            raise Refusal("validation_error", f"{position}: Its value is missing.", fields=[position])


def _start(group: Group) -> int:
    """Up to which offset everything counts as delivered for a new group."""
    return (
        offset_of_position(
            group.stream,
            group.start_from,
            offset=group.start_offset,
            timestamp=group.start_timestamp,
            filter_keys=group.filter_keys,
        )
        - 1
    )


def _within(group: Group, next_offset: int) -> int:
    at = store.log().run(read.position(group.stream.stream_id))
    return max(at.floor, min(next_offset, at.last + 1))


def _check(group: Group) -> None:
    values = {"offset": group.start_offset, "timestamp": group.start_timestamp}
    for name, value in values.items():
        if (value is not None) != (group.start_from == name):
            sentence = f"start_from {str(group.start_from)!r} "
            sentence += f"takes no {name}." if value is not None else f"needs {name}."
            raise Refusal("validation_error", sentence, fields=[name], err_code=10094)
    if group.max_deliver != -1 and len(group.backoff) > group.max_deliver:
        raise Refusal(
            "validation_error",
            f"backoff has {len(group.backoff)} entries for {group.max_deliver} deliveries.",
            fields=["backoff"],
            err_code=10116,
        )


def _on_record(
    group: Group, what: str, *, actor: Actor, asked: Mapping[str, Any] | None = None
) -> AbstractContextManager[Deed]:
    return on_record(group.stream, kind=f"group.{what}", actor=actor, asked=asked or {}, group=group.name)


def _recorded(
    group: Group,
    what: str,
    became: str,
    *,
    actor: Actor,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """Record an event of the kind ``group.{what}``; ``became`` is what may follow the group's name."""
    event_record(
        group.stream.workspace,
        kind=f"group.{what}",
        actor=actor,
        stream=group.stream.name,
        group=group.name,
        before=before,
        after=after,
        summary=f"Group {group.name} of {group.stream.name} {became}.",
    )


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        field: value.isoformat() if isinstance(value, datetime) else value
        for field, value in settings.items()
    }
