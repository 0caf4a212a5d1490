"""What the worker writes down."""

from collections.abc import Mapping

from streams import store
from streams.access import SYSTEM
from streams.log import memory
from streams.models import Group, Stream, Token
from streams.models.stream import Storage
from streams.selectors import moment, reachable_views
from streams.services.events import event_record
from streams.services.groups import group_delete
from streams.services.streams_told import streams_publish

INACTIVE_MARGIN_MS = 1_000
"""Within so long a web process has told of a poll that was opened or has ended (five times a second)."""


def tokens_note_used(used_ms: Mapping[int, int]) -> None:
    """Note when tokens were last used: token id → unix ms."""
    for token_id, at_ms in used_ms.items():
        Token.objects.filter(pk=token_id).update(last_used_at=moment(at_ms))


def memory_fill(*, again: bool = False) -> list[str]:
    """Begin every memory stream that its server does not hold; nothing is done while it holds them all.

    Args:
        again: tell it of all of them also then.

    Returns:
        The internal ids of the streams that were told.

    Raises:
        StoreUnavailable: the memory server does not answer; the next call does what is left.
    """
    life, is_filled = store.log().run(memory.life())
    if is_filled and not again:
        return []
    streams = list(Stream.objects.select_related("workspace").filter(storage=Storage.MEMORY))
    streams_publish(streams)
    store.log().run(memory.filled_set(life))
    return [stream.stream_id for stream in streams]


def process_restarted(name: str, *, note: str) -> None:
    """Record that a process had to be started again."""
    event_record(
        None,
        kind="process.restarted",
        actor=SYSTEM,
        after={"process": name, "note": note},
        summary=f"Process {name} was restarted{f': {note}' if note else ''}.",
    )


def store_promoted(epoch: int, *, is_another: bool) -> None:
    """Record that another server has taken the store's place.

    Args:
        is_another: it was promoted now; else it is one that knows less than is on record.
    """
    what = (
        "A replica was promoted to be the message store: what was acknowledged last may be missing"
        if is_another
        else "The message store is as it was before a promotion: what was acknowledged since may be missing"
    )
    event_record(
        None,
        kind="store.promoted",
        actor=SYSTEM,
        after={"epoch": epoch},
        summary=f"{what}, and its offsets may name other messages.",
    )


def groups_remove_inactive(*, with_memory: bool = True) -> list[str]:
    """Remove the groups that nobody has fetched from for as long as they are set to wait; returns their names.

    An open poll is activity, and so is the making of the group. They go ``INACTIVE_MARGIN_MS`` later, by when an open
    poll has been told of. Nobody knows who fetched from a stream in memory while its server does not answer.

    Args:
        with_memory: whether that server is asked.
    """
    removed = []
    timed = Group.objects.filter(inactive_after__isnull=False).select_related("stream__workspace")
    for view in reachable_views(timed, with_memory=with_memory):
        group = view.group
        quiet_ms = view.unfetched_ms - INACTIVE_MARGIN_MS
        if group.inactive_after is not None and quiet_ms > group.inactive_after * 1000:
            group_delete(
                group, actor=SYSTEM, why=f"no one had fetched from it for {group.inactive_after:g} s"
            )
            removed.append(group.name)
    return removed
