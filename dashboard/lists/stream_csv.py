"""The list of streams as a file."""

from collections.abc import Iterator
from typing import Any

from dashboard import exports, formats
from dashboard.lists.stream_list import ListQuery, order_of, used_of
from dashboard.live import rates
from streams import selectors
from streams.access import Caller
from streams.log.stats import Figures
from streams.models import Stream
from streams.selectors import JudgedGroup

COLUMNS = (
    "name",
    "messages",
    "bytes",
    "lag",
    "last_write",
    "ttl",
    "max_messages",
    "max_bytes",
    "labels",
    "created",
    "used",
    "rate_in",
    "bytes_in",
    "rate_out",
    "groups",
    "worst_group",
    "worst_status",
    "in_flight",
    "dead_letters",
)
"""``used`` is the part of the tighter limit (0 to 1), rates are per second, and what nobody knows is empty."""


def lines_of(caller: Caller, query: ListQuery) -> Iterator[str]:
    """The whole list that matches, in its order: one plain read of each stream, and of each group."""
    found = query.streams(caller)
    by_name = selectors.stream_figures(found)
    groups = selectors.groups_of_streams(found)
    away = selectors.ids_away([name.stream_id for name, _ in by_name])
    figures = {name.pk: None if name.stream_id in away else each for name, each in by_name}
    moving = rates.moving_now() if selectors.sampling().is_going_on else None
    there = found.in_bulk()
    yield exports.csv_line(COLUMNS)
    for pk in order_of(found, query, by_name=by_name, groups=groups):
        if pk not in there or pk not in figures:  # deleted or made since the first was read
            continue
        stream, held = there[pk], figures[pk]
        rate = None if moving is None or held is None else moving.get(stream.stream_id, rates.AT_REST)
        values = (
            *_standing(stream, held),
            *(("", "", "") if rate is None else (rate.rate_in, rate.bytes_in, rate.rate_out)),
            *_groups(groups.get(pk, [])),
        )
        yield exports.csv_line([_written(value) for value in values])


def _standing(stream: Stream, held: Figures | None) -> tuple[Any, ...]:
    limits = {"max_messages": stream.max_messages, "max_bytes": stream.max_bytes}
    return (
        stream.name,
        *(("", "", "") if held is None else (held.messages, held.bytes, held.lag)),
        formats.iso_local(held.last_ms) if held is not None and held.last_ms else "",
        stream.ttl,
        *limits.values(),
        " ".join(f"{label}:{value}" for label, value in sorted(stream.labels.items())),
        formats.iso_local(int(stream.created_at.timestamp() * 1000)),
        used_of(held, **limits) if held is not None and any(limits.values()) else "",
    )


def _groups(groups: list[JudgedGroup]) -> tuple[Any, ...]:
    """How many there are, which is doing worst, and what they come to."""
    if not groups:
        return (0, "", "", 0, 0)
    sums = selectors.sums_of(groups)
    return (len(groups), groups[0].name, groups[0].verdict.status, sums.pending, sums.dead_letters)


def _written(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
