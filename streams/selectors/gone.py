"""What lies behind a position and is no longer in the stream, and how the history would publish it again."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Q, Sum

from streams import store
from streams.log import meta, read
from streams.log.errors import LogError
from streams.models import Group, Rollup, RollupPosition, Stream
from streams.models.group import StartFrom
from streams.models.history import Step
from streams.selectors.messages import messages_from
from streams.selectors.pushed_out import PushedOut, pushed_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Messages between a position and the oldest one that the stream holds.

    Attributes:
        to_offset: the last offset that has gone.
        from_offset, since: the position; one of them.
        in_history: whether the history has something of the stream, so that a replay can publish it again.
        pushes_out: what the stream's own limits would take for that replay, where it is as large as it can be and its
            messages are as large as the stream's are on average; None where nobody can tell, or there is no replay.
    """

    to_offset: int
    from_offset: int | None = None
    since: datetime | None = None
    in_history: bool
    pushes_out: PushedOut | None = None


def gone_behind(
    group: Group, position: str, *, offset: int | None = None, timestamp: datetime | None = None
) -> Gone | None:
    """What its stream no longer holds of what lies behind a group's new position; None where that is within it.

    A time counts as such when it is before the oldest message held, and where none is held, before the last one that
    the history has counted.
    """
    log, stream = store.log(), group.stream
    floor = log.run(read.position(stream.stream_id)).floor
    if floor <= 1:
        return None
    if position == StartFrom.OFFSET and offset is not None and offset < floor:
        first, since = max(1, offset), None
    elif position == StartFrom.TIMESTAMP and timestamp is not None and _is_older(stream, floor, timestamp):
        first, since = None, timestamp
    else:
        return None
    counters = log.run(meta.counters_of([stream.stream_id])).get(stream.stream_id, meta.NEW)
    in_history = settings.ENV.history and counters.archived >= (first or 1)
    return Gone(
        to_offset=floor - 1,
        from_offset=first,
        since=since,
        in_history=in_history,
        pushes_out=_pushed_out(group, counters, first=first, since=since, floor=floor)
        if in_history
        else None,
    )


def _pushed_out(
    group: Group, counters: meta.Counters, *, first: int | None, since: datetime | None, floor: int
) -> PushedOut | None:
    stream = group.stream
    messages = floor - (first or 1)
    if since is not None:
        messages = max(0, messages - _counted_before(stream, since))
    size_bytes = messages * counters.cum // max(1, counters.last)
    try:
        return pushed_out(stream, messages=messages, size_bytes=size_bytes, rewound=group)
    except LogError:
        return None


def _counted_before(stream: Stream, moment: datetime) -> int:
    """How many messages the history has counted before the minute of a time; so many offsets at least lie before it."""
    day, hour, minute = (step.floor(moment) for step in (Step.DAY, Step.HOUR, Step.MINUTE))
    counted = Rollup.objects.filter(
        Q(step=Step.DAY, start__lt=day)
        | Q(step=Step.HOUR, start__gte=day, start__lt=hour)
        | Q(step=Step.MINUTE, start__gte=hour, start__lt=minute),
        stream_id=stream.stream_id,
    )
    return counted.aggregate(messages=Sum("messages"))["messages"] or 0


def _is_older(stream: Stream, floor: int, timestamp: datetime) -> bool:
    held = messages_from(stream, offset=floor, limit=1)
    if held:
        return timestamp.timestamp() * 1000 < held[0].timestamp_ms
    counted = RollupPosition.objects.filter(stream_id=stream.stream_id).first()
    return counted is not None and counted.fresh_to is not None and timestamp <= counted.fresh_to
