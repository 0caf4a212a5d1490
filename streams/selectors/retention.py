"""What other limits would take from a stream."""

from collections.abc import Mapping
from typing import Any

from streams import store
from streams.log.preview import WITHIN_S, Preview
from streams.log.questions import ask
from streams.models import Stream

LIMITS = ("ttl", "max_messages", "max_bytes", "max_messages_per_key", "retention")


def retention_preview(
    stream: Stream, changes: Mapping[str, Any], *, within_s: float | None = None
) -> Preview:
    """What would go if these settings were saved, over those that the stream has.

    Args:
        within_s: how long to look at messages, where arithmetic does not do; None is ``WITHIN_S``.
    """
    limits = {name: changes.get(name, getattr(stream, name)) for name in LIMITS}
    groups = {group.name: group.filter_keys for group in stream.groups.all()}
    within_s = WITHIN_S if within_s is None else within_s
    return ask(store.log(), stream.stream_id, limits, groups, within_s=within_s)
