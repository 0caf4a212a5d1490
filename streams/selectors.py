"""Reading: rows together with how they stand in the log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet, Sum

from streams import store
from streams.access import Caller
from streams.log import entries, read, stats
from streams.log.entries import Message
from streams.log.stats import State
from streams.models import Event, Rollup, RollupPosition, Run, Stream, Workspace


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream's row and how it stands."""

    stream: Stream
    state: State

    @property
    def first_timestamp(self) -> datetime | None:
        return moment(self.state.first_ms)

    @property
    def last_timestamp(self) -> datetime | None:
        return moment(self.state.last_ms)


@dataclass(frozen=True, slots=True)
class Overview:
    """A workspace in figures."""

    streams: int
    messages: int
    bytes: int


def moment(unix_ms: int | None) -> datetime | None:
    """Unix milliseconds as a time in UTC."""
    return None if unix_ms is None else datetime.fromtimestamp(unix_ms / 1000, UTC)


def stream_view(stream: Stream) -> StreamView:
    """One stream with its state."""
    return stream_views([stream])[0]


def stream_views(streams: Sequence[Stream]) -> list[StreamView]:
    """Streams with their states, in one round trip."""
    states = store.log().run(stats.inspect_many([stream.stream_id for stream in streams]))
    return [StreamView(stream, states.get(stream.stream_id, stats.EMPTY)) for stream in streams]


def streams_of(
    caller: Caller,
    *,
    name: str = "",
    labels: Iterable[tuple[str, str]] = (),
    internal: bool = False,
) -> QuerySet[Stream]:
    """The streams that a caller may see, by name.

    Args:
        name: a part of the name, as written.
        labels: label and value pairs, all of which must hold.
    """
    found = Stream.objects.filter(workspace=caller.workspace).select_related("workspace").order_by("name")
    if not internal:
        found = found.filter(internal=False)
    if name:
        found = found.filter(name__contains=name)
    for label, value in labels:
        found = found.filter(**{f"labels__{label}": value})
    if caller.streams:
        inside = Q(pk__in=[])
        for pattern in caller.streams:
            inside |= Q(name__regex="^" + ".*".join(_literal(part) for part in pattern.split("*")) + "$")
        found = found.filter(inside)
    return found


def streams_page(
    caller: Caller, *, after: str = "", limit: int = 100, **filters: Any
) -> tuple[list[StreamView], bool]:
    """A page of streams by name, those after a name, and whether there are more."""
    found = streams_of(caller, **filters)
    if after:
        found = found.filter(name__gt=after)
    rows = list(found[: limit + 1])
    return stream_views(rows[:limit]), len(rows) > limit


def overview(caller: Caller) -> Overview:
    """Totals over the streams that a caller may see."""
    views = stream_views(list(streams_of(caller)))
    return Overview(
        streams=len(views),
        messages=sum(view.state.messages for view in views),
        bytes=sum(view.state.bytes for view in views),
    )


def messages_from(stream: Stream, *, offset: int, limit: int) -> list[Message]:
    """Visible messages from an offset on, ascending; looking moves nothing."""

    def op() -> Any:
        at = yield from read.position(stream.stream_id)
        return (yield from read.forward(stream.stream_id, at, offset, limit))

    return [entries.parse(entry) for entry in store.log().run(op())]


def messages_before(stream: Stream, *, offset: int | None, limit: int) -> list[Message]:
    """The newest visible messages below an offset (the very newest when None), ascending."""

    def op() -> Any:
        at = yield from read.position(stream.stream_id)
        return (
            yield from read.backward(stream.stream_id, at, at.last + 1 if offset is None else offset, limit)
        )

    return [entries.parse(entry) for entry in store.log().run(op())]


def offset_at(stream: Stream, time: datetime) -> int:
    """The first visible offset at or after a time; the next offset when there is none."""
    return store.log().run(read.offset_at(stream.stream_id, int(time.timestamp() * 1000)))


def message_at(stream: Stream, offset: int) -> Message:
    """The message at an offset; raises the log's MessageNotFound."""
    return entries.parse(store.log().run(read.message(stream.stream_id, offset)))


def history_points(
    stream: Stream,
    *,
    step: str,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Rollup]:
    """What Spark computed for a stream, by time; ``since`` inclusive, ``until`` exclusive."""
    points = Rollup.objects.filter(stream_id=stream.stream_id, step=step)
    if since is not None:
        points = points.filter(start__gte=since)
    if until is not None:
        points = points.filter(start__lt=until)
    return list(points.order_by("start"))


def history_position(stream: Stream) -> RollupPosition | None:
    """How far the rollups of a stream have come, and by which run."""
    return RollupPosition.objects.select_related("run").filter(stream_id=stream.stream_id).first()


def history_totals(stream: Stream) -> tuple[int, int]:
    """Messages and bytes of all time in the rollups."""
    sums = Rollup.objects.filter(stream_id=stream.stream_id, step="day").aggregate(
        Sum("messages"), Sum("bytes")
    )
    return sums["messages__sum"] or 0, sums["bytes__sum"] or 0


def events_latest(workspace: Workspace, *, stream: str = "", kind: str = "", limit: int = 20) -> list[Event]:
    """The newest events of a workspace, newest first; those of the whole system are among them."""
    found = Event.objects.filter(Q(workspace=workspace) | Q(workspace=None))
    if stream:
        found = found.filter(stream=stream)
    if kind:
        found = found.filter(kind=kind)
    return list(found.order_by("-id")[:limit])


def runs_latest(*, limit: int = 20) -> list[Run]:
    """The newest runs of the history jobs, newest first."""
    return list(Run.objects.order_by("-id")[:limit])


def _literal(text: str) -> str:
    """A part of a stream name pattern, safe inside a regular expression of any database."""
    return "".join(char if char.isalnum() or char == "_" else "\\" + char for char in text)
