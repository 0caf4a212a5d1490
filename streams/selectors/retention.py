"""What other limits, or a purge, would take from a stream."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from streams import store
from streams.log.preview import WITHIN_S, Preview, Purge, Supposed
from streams.log.questions import ask
from streams.models import Group, Stream

LIMITS = ("ttl", "max_messages", "max_bytes", "max_messages_per_key", "retention")


def retention_preview(
    stream: Stream,
    changes: Mapping[str, Any],
    *,
    without: Collection[Group] = (),
    instead: Group | None = None,
    supposed: Supposed | None = None,
    among: Sequence[int] = (),
    within_s: float | None = None,
) -> Preview:
    """What would go if these settings were saved, over those that the stream has, with the groups of the database.

    Args:
        without: groups that would be deleted.
        instead: a group as it would be, in the place of the one that has its name now, if any.
        supposed: how a group would stand otherwise.
        among: ascending offsets of which is asked how many go.
        within_s: how long to look at messages, where arithmetic does not do; None is ``WITHIN_S``.
    """
    limits = {name: changes.get(name, getattr(stream, name)) for name in LIMITS}
    rows = [group for group in stream.groups.all() if group not in without]
    if instead is not None:
        rows = [*(group for group in rows if group.name != instead.name), instead]
    groups = {group.name: group.filter_keys for group in rows}
    begins = {group.name: group.begins_after for group in rows if not group.is_told}
    within_s = WITHIN_S if within_s is None else within_s
    return ask(
        store.log(),
        stream.stream_id,
        limits,
        groups,
        begins=begins,
        supposed=supposed,
        among=among,
        within_s=within_s,
    )


def purge_preview(stream: Stream, purge: Purge, *, within_s: float | None = None) -> Preview:
    """What would go by this purge now, with the groups of the database; ``within_s`` as of ``retention_preview``."""
    rows = list(stream.groups.all())
    groups = {group.name: group.filter_keys for group in rows}
    begins = {group.name: group.begins_after for group in rows if not group.is_told}
    within_s = WITHIN_S if within_s is None else within_s
    return ask(store.log(), stream.stream_id, {}, groups, begins=begins, purge=purge, within_s=within_s)
