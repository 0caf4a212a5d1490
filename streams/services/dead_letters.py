"""Dead letters of a group: delivered again, or deleted; each time an event."""

from typing import Any

from streams.access import Actor
from streams.errors import refusal_of
from streams.log import dead_letters
from streams.log.errors import DoneInPart, GroupNotFound, LogError, StreamNotFound
from streams.log.notes import unsure
from streams.models import Group
from streams.services.events import event_record
from streams.services.on_record import on_record
from streams.services.summaries import counted, group_named, was

REPLAYED, DELETED = "group.dead_letters_replayed", "group.dead_letters_deleted"


def dead_letters_replay(group: Group, *, offsets: list[int] | None, actor: Actor) -> int:
    """Deliver dead letters again with a fresh count: those at the offsets, or all (None). Returns how many.

    Raises:
        Refusal: it was refused, or cut off, after some of them.
    """
    stream_id = group.stream.stream_id
    if offsets is None:
        replaying = dead_letters.replay_all(stream_id, group.name)
    else:
        replaying = dead_letters.replay(stream_id, group.name, offsets)
    with on_record(group.stream, kind=REPLAYED, actor=actor, asked={"count": 0}, group=group.name) as deed:
        try:
            count = deed.run(replaying)
        except DoneInPart as error:
            after = {"count": error.messages, **unsure(error.why)}
            _recorded(group, REPLAYED, error.messages, actor=actor, after=after)
            raise refusal_of(error, stream=group.stream.name, group=group.name) from None
        if count:
            _recorded(group, REPLAYED, count, actor=actor, after={"count": count})
    return count


def dead_letters_delete(group: Group, *, offset: int | None, actor: Actor) -> int:
    """Delete the dead letter at an offset, or all of them. Returns how many.

    Raises:
        Refusal: ``message_not_found`` when there is none at this offset.
    """
    try:
        with on_record(
            group.stream, kind=DELETED, actor=actor, asked={"offset": offset}, group=group.name
        ) as deed:
            count = deed.run(dead_letters.delete(group.stream.stream_id, group.name, offset=offset))
            _recorded(group, DELETED, count, actor=actor, before={"offset": offset, "count": count})
    except LogError as error:
        raise refusal_of(error, stream=group.stream.name) from None
    return count


def dead_letters_delete_these(group: Group, *, offsets: list[int], actor: Actor) -> int:
    """Delete the dead letters at these offsets; those that are gone are passed over. Returns how many."""
    first = {"offsets": offsets[:100]}
    with on_record(group.stream, kind=DELETED, actor=actor, asked=first, group=group.name) as deed:
        count = deed.run(dead_letters.delete_these(group.stream.stream_id, group.name, offsets))
        if count:
            _recorded(group, DELETED, count, actor=actor, before={**first, "count": count})
    return count


def dead_letters_erase(
    group: Group, *, erasure: int, actor: Actor, offset: int | None, key: str, up_to: int | None
) -> int:
    """Remove for good what a group keeps of a message or a key, up to an offset, also what was replayed: part of an
    erasure. Of the key nothing is told. Returns how many.
    """
    asked = {"erasure": erasure}
    wanted = dead_letters.erase(group.stream.stream_id, group.name, offset=offset, key=key, up_to=up_to)
    try:
        with on_record(group.stream, kind=DELETED, actor=actor, asked=asked, group=group.name) as deed:
            count = deed.run(wanted)
            if count:
                _recorded(group, DELETED, count, actor=actor, before={**asked, "count": count})
    except (StreamNotFound, GroupNotFound):  # deleted meanwhile, with its dead letters
        return 0
    return count


def _recorded(
    group: Group,
    kind: str,
    count: int,
    *,
    actor: Actor,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    done = "replayed" if kind == REPLAYED else "deleted"
    event_record(
        group.stream.workspace,
        kind=kind,
        actor=actor,
        stream=group.stream.name,
        group=group.name,
        before=before,
        after=after,
        summary=f"{counted(count, 'dead letter')} of {group_named(group)} {was(count)} {done}.",
    )
