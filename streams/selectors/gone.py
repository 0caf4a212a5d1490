"""What lies behind a position and is no longer in the stream, and how the history would publish it again."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from streams import store
from streams.log import meta, read
from streams.models import RollupPosition, Stream
from streams.models.group import StartFrom
from streams.selectors.messages import messages_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Messages between a position and the oldest one that the stream holds.

    Attributes:
        to_offset: the last offset that has gone.
        from_offset, since: the position; one of them.
        in_history: whether the history has something of the stream, so that a replay can publish it again.
    """

    to_offset: int
    from_offset: int | None = None
    since: datetime | None = None
    in_history: bool


def gone_behind(
    stream: Stream, position: str, *, offset: int | None = None, timestamp: datetime | None = None
) -> Gone | None:
    """What the stream no longer holds of what lies behind a position; None where the position is within it.

    A time counts as such when it is before the oldest message held, and where none is held, before the last one that
    the history has counted.
    """
    log = store.log()
    floor = log.run(read.position(stream.stream_id)).floor
    if floor <= 1:
        return None
    if position == StartFrom.OFFSET and offset is not None and offset < floor:
        first, since = max(1, offset), None
    elif position == StartFrom.TIMESTAMP and timestamp is not None and _is_older(stream, floor, timestamp):
        first, since = None, timestamp
    else:
        return None
    archived = log.run(meta.counters_of([stream.stream_id])).get(stream.stream_id, meta.NEW).archived
    return Gone(
        to_offset=floor - 1,
        from_offset=first,
        since=since,
        in_history=settings.ENV.history and archived >= (first or 1),
    )


def _is_older(stream: Stream, floor: int, timestamp: datetime) -> bool:
    held = messages_from(stream, offset=floor, limit=1)
    if held:
        return timestamp.timestamp() * 1000 < held[0].timestamp_ms
    counted = RollupPosition.objects.filter(stream_id=stream.stream_id).first()
    return counted is not None and counted.fresh_to is not None and timestamp <= counted.fresh_to
