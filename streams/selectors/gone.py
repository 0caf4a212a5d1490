"""What lies behind a position and is no longer in the stream, and how much of it the history may bring the group."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Q, Sum

from streams import store
from streams.log import aside, meta, read
from streams.models import Group, Rollup, Stream
from streams.models.group import StartFrom
from streams.models.history import Step
from streams.selectors.messages import messages_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Messages between a position and the oldest one that the stream holds.

    Attributes:
        to_offset: the last offset that has gone.
        from_offset, since: the position; one of them.
        in_history: whether the history has something of it, or waits for it, so that a replay can bring it: it reads
            what waits from the stream itself.
        messages: how many these are at most; a count of the replay tells.
    """

    to_offset: int
    from_offset: int | None = None
    since: datetime | None = None
    in_history: bool
    messages: int


def gone_behind(
    group: Group, position: str, *, offset: int | None = None, timestamp: datetime | None = None
) -> Gone | None:
    """What its stream no longer holds of what lies behind a group's new position; None where that is within it.

    A time counts as such when it is before the oldest message held, and where none is held, before the last one that
    came.
    """
    log, stream = store.log(), group.stream
    counters = log.run(meta.counters_of([stream.stream_id])).get(stream.stream_id, meta.NEW)
    floor = counters.floor
    if floor <= 1:
        return None
    if position == StartFrom.OFFSET and offset is not None and offset < floor:
        first, since = max(1, offset), None
    elif position == StartFrom.TIMESTAMP and timestamp is not None and _is_older(stream, counters, timestamp):
        first, since = None, timestamp
    else:
        return None
    in_history = settings.ENV.history and (
        counters.archived >= (first or 1) or (stream.archive and _waits(stream, counters, first=first or 1))
    )
    messages = floor - (first or 1)
    if since is not None:
        messages = max(0, messages - _counted_before(stream, since))
    return Gone(to_offset=floor - 1, from_offset=first, since=since, in_history=in_history, messages=messages)


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


def _waits(stream: Stream, counters: meta.Counters, *, first: int) -> bool:
    """Whether something that limits took, from an offset on and below the floor, stands there still for the history.

    Of what stands there between two purges the first so many are looked at.
    """
    log, start = store.log(), max(first, counters.archived + 1)
    taken = log.run(meta.taken_of({stream.stream_id: counters})).get(stream.stream_id, [])
    for each in [*taken, range(counters.floor, counters.floor)]:
        if start < each.start:
            page = log.run(read.archive_range(stream.stream_id, start, each.start - 1, read.PAGE))
            away = log.run(aside.set_aside(stream.stream_id, start, each.start - 1))
            if not all(map(away, page)):
                return True
        start = max(start, each.stop)
    return False


def _is_older(stream: Stream, counters: meta.Counters, timestamp: datetime) -> bool:
    held = messages_from(stream, offset=counters.floor, limit=1)
    at_ms = timestamp.timestamp() * 1000
    return at_ms < held[0].timestamp_ms if held else at_ms <= counters.last_ms
