"""Where a stream is going: when it comes to its limits, and when its groups fall off the edge."""

from collections.abc import Mapping
from typing import Any

from streams import store
from streams.errors import refusal_of
from streams.forecasts import Fall, Going, Outlook, fall, forecast, reading_of
from streams.log.errors import LogError
from streams.log.inflow import inflow
from streams.log.preview import Preview
from streams.models import Stream
from streams.models.stream import Discard
from streams.selectors.groups import GroupView, group_views
from streams.selectors.retention import LIMITS, retention_preview
from streams.selectors.streams import stream_view


def retention_outlook(
    stream: Stream, changes: Mapping[str, Any], *, preview: Preview | None = None, with_groups: bool = True
) -> Outlook:
    """What is foreseen of a stream with these settings over those that it has, at the rate of the last hour.

    Args:
        preview: what these settings would take away, where that is known already.
        with_groups: whether each group is looked at.

    Raises:
        Refusal: the stream's server does not answer.
    """
    settings = {name: changes.get(name, getattr(stream, name)) for name in (*LIMITS, "discard")}
    # What the limits as they are take has gone: nothing has to be looked at to show where a stream is going.
    taken = preview or (retention_preview(stream, changes) if changes else None)
    try:
        came = store.log().run(inflow(stream.stream_id))
        groups = group_views(stream.groups.all() if with_groups else [])
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None
    state, over_s = stream_view(stream).state, came.over_ms / 1000
    oldest_ms = taken.oldest_ms if taken else state.first_ms
    going = Going(
        messages=max(0, state.messages - (taken.messages if taken else 0)),
        bytes=max(0, state.bytes - (taken.bytes if taken else 0)),
        rate_in=came.messages / over_s,
        bytes_in=came.bytes / over_s,
        oldest_s=None if oldest_ms is None else max(0, came.now_ms - oldest_ms) / 1000,
        ttl=settings["ttl"],
        max_messages=settings["max_messages"],
        max_bytes=settings["max_bytes"],
        refuses=settings["discard"] == Discard.NEW,
    )
    return Outlook(
        rate_in=going.rate_in,
        bytes_in=going.bytes_in,
        over_s=over_s,
        forecast=forecast(going),
        falls={view.group.name: _fall(going, view, last=state.offset) for view in groups},
    )


def _fall(going: Going, view: GroupView, *, last: int) -> Fall | None:
    samples = view.watched.samples if view.watched else []
    reading = reading_of(
        [(each.at_ms / 1000, each.lag + each.pending, each.lag_ms / 1000) for each in samples],
        behind=max(0, last - view.state.ack_floor),
        behind_s=view.lag_seconds,
        rate_in=going.rate_in,
    )
    return fall(going, reading)
