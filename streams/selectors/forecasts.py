"""Where a stream is going: when it comes to its limits, and when its groups fall off the edge."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from streams import health, store
from streams.errors import refusal_of
from streams.forecasts import Going, Outlook, Seen, fall, forecast, reading_of
from streams.health import Health
from streams.log import healths
from streams.log.client import Op
from streams.log.commands import Steady
from streams.log.errors import LogError
from streams.log.inflow import LEAST_MS, Inflow, inflow
from streams.log.preview import Preview
from streams.models import Stream
from streams.models.stream import Discard
from streams.selectors.groups import GroupView, group_views
from streams.selectors.retention import LIMITS, retention_preview
from streams.selectors.samples import sample_about
from streams.selectors.streams import stream_known
from streams.verdicts import STALE_MS

SPANS_S = (3600, 1800, 900, 600, 300, 120, 60, 30, 15, 8, 4)
"""How long ago a sample is looked for, the longest first; one of a stream that was at rest is not there."""

NAMES_AT_ONCE = 500
"""A database bounds how many values one statement takes."""


class Standing(NamedTuple):
    """How a group stands, as ``reading_of`` takes it."""

    window: Sequence[Seen]
    behind: int
    behind_s: float


def retention_outlook(
    stream: Stream, changes: Mapping[str, Any], *, preview: Preview | None = None, with_groups: bool = True
) -> Outlook:
    """What is foreseen of a stream with these settings over those that it has, at the rate of the last hour at most.

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
        came = _came_lately(stream)
        state, over_s = stream_known(stream).state, came.over_ms / 1000
        standing = _standing(stream, first=state.first_offset, last=state.offset) if with_groups else {}
    except LogError as error:
        raise refusal_of(error, stream=stream.name) from None
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
        falls={
            name: fall(
                going,
                reading_of(each.window, behind=each.behind, behind_s=each.behind_s, rate_in=going.rate_in),
            )
            for name, each in standing.items()
        },
    )


def _came_lately(stream: Stream) -> Inflow:
    """What was published lately: over an hour, or since the first message; where limits have taken the messages that
    tell it, over as long as the worker's samples reach back.

    Raises:
        LogError: the stream's server does not answer.
    """
    came = store.log().run(inflow(stream.stream_id))
    if came.is_whole:
        return came
    shortest_ms = 0 if came.messages == 0 else came.over_ms
    spans = [span_s * 1000 for span_s in SPANS_S if span_s * 1000 > shortest_ms]
    since = sample_about(stream, [came.now_ms - span_ms for span_ms in spans])
    if since is None or since.appended is None or not since.offset <= came.offset:
        return came
    size, over_ms = came.appended_bytes - since.appended, came.now_ms - since.at_ms
    if size < 0 or over_ms < shortest_ms:  # it began anew since
        return came
    return replace(came, messages=came.offset - since.offset, bytes=size, over_ms=max(LEAST_MS, over_ms))


def _standing(stream: Stream, *, first: int, last: int) -> dict[str, Standing]:
    """By name, how each group stands: as the worker saw it within the last seconds; closely where it did not.

    Raises:
        LogError: the stream's server does not answer.
    """
    names = list(stream.groups.order_by("name").values_list("name", flat=True))

    def kept() -> Op[tuple[int, list[bytes | None]]]:
        now_ms: int = yield Steady()
        return now_ms, (yield from healths.many([(stream.stream_id, name) for name in names]))

    now_ms, held = store.log().run(kept())
    found: dict[str, Standing | None] = {
        name: _seen(health.read(each), now_ms=now_ms, first=first, last=last)
        for name, each in zip(names, held, strict=True)
    }
    unseen = [name for name, each in found.items() if each is None]
    for at in range(0, len(unseen), NAMES_AT_ONCE):
        part = stream.groups.filter(name__in=unseen[at : at + NAMES_AT_ONCE])
        found |= {view.group.name: _looked_at(view, last=last) for view in group_views(part)}
    return {name: each for name, each in found.items() if each is not None}


def _seen(watched: Health | None, *, now_ms: int, first: int, last: int) -> Standing | None:
    """From what the worker keeps of a group; None where that is too old, or says too little."""
    if watched is None:
        return None
    newest = watched.samples[-1]
    has_rested = newest.is_at_rest and newest.offset == last
    if newest.offset is None or not (has_rested or now_ms - newest.at_ms <= STALE_MS):
        return None
    is_open = bool(newest.lag or newest.pending)
    since_s = max(0, now_ms - newest.at_ms) / 1000
    return Standing(
        _window(watched),
        max(0, last - max(newest.floor, first - 1)) if is_open else 0,  # limits may have taken some since
        newest.lag_ms / 1000 + since_s if is_open else 0.0,
    )


def _looked_at(view: GroupView, *, last: int) -> Standing:
    return Standing(
        _window(view.watched) if view.watched else [], max(0, last - view.state.ack_floor), view.lag_seconds
    )


def _window(watched: Health) -> list[Seen]:
    return [
        Seen(
            each.at_ms / 1000,
            each.lag + each.pending,
            each.lag_ms / 1000,
            each.removed,
            each.lag + each.pending if each.offset is None else max(0, each.offset - each.floor),
        )
        for each in watched.samples
    ]
