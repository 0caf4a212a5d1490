"""What other limits would take from a stream."""

from collections.abc import Mapping
from typing import Any

from streams import store
from streams.log.preview import WITHIN_S, Preview
from streams.log.questions import ask
from streams.models import Group, Stream

LIMITS = ("ttl", "max_messages", "max_bytes", "max_messages_per_key", "retention")


def retention_preview(
    stream: Stream, changes: Mapping[str, Any], *, without: Group | None = None, within_s: float | None = None
) -> Preview:
    """What would go if these settings were saved, over those that the stream has, with the groups of the database.

    Args:
        without: a group that would be deleted.
        within_s: how long to look at messages, where arithmetic does not do; None is ``WITHIN_S``.
    """
    limits = {name: changes.get(name, getattr(stream, name)) for name in LIMITS}
    rows = [group for group in stream.groups.all() if group != without]
    groups = {group.name: group.filter_keys for group in rows}
    begins = {group.name: group.begins_after for group in rows if not group.is_told}
    within_s = WITHIN_S if within_s is None else within_s
    return ask(store.log(), stream.stream_id, limits, groups, begins=begins, within_s=within_s)
