"""What a group lets go of for good as a person moves it or settles what it has in flight: where messages are kept by
interest, those that no group wants any more then.
"""

from collections.abc import Sequence

import msgspec

from streams.log.preview import Preview, Supposed
from streams.models import Group
from streams.models.stream import Retention
from streams.selectors.groups import group_view
from streams.selectors.retention import retention_preview


def let_go_by_seek(group: Group, *, next_offset: int) -> Preview | None:
    """What goes once a group is moved, beyond what goes anyway; None where nothing can.

    Args:
        next_offset: within what the stream holds, as ``group_seek`` tells it.
    """
    if group.stream.retention != Retention.INTEREST:
        return None
    state = group_view(group).state
    has_something_out = state.ack_pending > 0 or group.ordered_by_key
    if next_offset <= state.delivered_offset + 1 and not has_something_out:
        return None
    return _let_go(group, Supposed(group=group.name, delivered=next_offset - 1))


def let_go_by_answers(group: Group, *, offsets: Sequence[int]) -> Preview | None:
    """What goes once these offsets, ascending, are acknowledged or terminated; the rest as of ``let_go_by_seek``."""
    if group.stream.retention != Retention.INTEREST:
        return None
    return _let_go(group, Supposed(group=group.name, answered=tuple(offsets)))


def _let_go(group: Group, supposed: Supposed) -> Preview:
    told = retention_preview(group.stream, {}, supposed=supposed)
    return msgspec.structs.replace(
        told, messages=told.messages - told.already, bytes=told.bytes - told.already_bytes
    )
