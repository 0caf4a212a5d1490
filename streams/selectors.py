"""Reading: rows together with how they stand in the log."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db.models import Count, Q, QuerySet, Sum, Value
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import StrIndex

from streams import naming, store
from streams.access import Caller
from streams.errors import Refusal, group_not_found
from streams.log import entries, groups, read, stats
from streams.log.client import Op
from streams.log.entries import Message
from streams.log.errors import GroupNotFound, StreamNotFound
from streams.log.groups import DeadLetter, GroupState
from streams.log.stats import State
from streams.models import (
    DEFAULT_WORKSPACE,
    Event,
    Group,
    Rollup,
    RollupPosition,
    Run,
    Stream,
    Token,
    Workspace,
)

QUIET_MS = 60_000
"""A group that has neither fetched nor answered for so long is not being worked on."""

METRICS_STREAM = "_metrics"
"""The internal stream that the worker appends a sample of all streams to, every second."""


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream's row, how it stands, and how many consumer groups it has."""

    stream: Stream
    state: State
    groups: int = 0

    @property
    def first_timestamp(self) -> datetime | None:
        return moment(self.state.first_ms)

    @property
    def last_timestamp(self) -> datetime | None:
        return moment(self.state.last_ms)


@dataclass(frozen=True, slots=True)
class Member:
    """A consumer with messages in flight."""

    name: str
    ack_pending: int
    last_active: datetime | None


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group's row and how it stands.

    Attributes:
        waiting: open polls.
        members: consumers with messages in flight, by name.
    """

    group: Group
    state: GroupState
    waiting: int
    members: list[Member]

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest message that is not acknowledged; 0 when all are."""
        if self.state.oldest_ms is None or not (self.state.lag or self.state.ack_pending):
            return 0.0
        return max(0.0, (self.state.now_ms - self.state.oldest_ms) / 1000)

    @property
    def paused_until(self) -> datetime | None:
        until_ms = self.state.paused_until_ms
        return moment(until_ms) if until_ms is not None and until_ms > 0 else None

    @property
    def status(self) -> str:
        """``paused``, ``stalled`` (something to do and nobody there), ``lagging``, ``idle`` or ``ok``."""
        active_ms = max(self.state.fetched_ms or 0, self.state.acked_ms or 0)
        is_quiet = not self.waiting and self.state.now_ms - active_ms > QUIET_MS
        if self.state.paused_until_ms is not None:
            return "paused"
        if self.state.lag or self.state.ack_pending:
            return "stalled" if is_quiet else "lagging" if self.state.lag else "ok"
        return "idle" if is_quiet else "ok"


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
    groups_of = Counter(Group.objects.filter(stream__in=streams).values_list("stream_id", flat=True))
    return [
        StreamView(stream, states.get(stream.stream_id, stats.EMPTY), groups_of[stream.pk])
        for stream in streams
    ]


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
        # LIKE is blind to case on SQLite; names are not.
        found = found.alias(at=StrIndex("name", Value(name))).filter(at__gt=0)
    for number, (label, value) in enumerate(labels):
        # Not as a keyword: a label's name may look like a look-up.
        found = found.alias(**{f"label_{number}": KeyTransform(label, "labels")})
        found = found.filter(**{f"label_{number}": value})
    if caller.streams:
        found = found.filter(_inside(caller.streams, "name"))
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


def streams_matching(caller: Caller, key: str) -> list[StreamView]:
    """The streams whose key patterns match a key; a stream without patterns matches none."""
    patterns = streams_of(caller).exclude(keys=[]).values_list("pk", "keys")
    found = [pk for pk, its_patterns in patterns if naming.matches_any(key, its_patterns)]
    # In slices: a database bounds how many values one statement takes.
    rows = [
        stream
        for n in range(0, len(found), 500)
        for stream in streams_of(caller).filter(pk__in=found[n : n + 500])
    ]
    return stream_views(sorted(rows, key=lambda stream: stream.name))


def group_views(stream: Stream, groups_: Sequence[Group]) -> list[GroupView]:
    """Groups of one stream, and how they stand; those that the log no longer has are left out."""

    def op() -> Op[list[GroupView]]:
        found = []
        open_polls = None
        for group in groups_:
            try:
                state = yield from groups.inspect(stream.stream_id, group.name, filter_keys=group.filter_keys)
            except (GroupNotFound, StreamNotFound):
                continue
            members = yield from groups.members(stream.stream_id, group.name)
            if open_polls is None:
                open_polls = yield from groups.waiting(now_ms=state.now_ms)
            found.append(
                GroupView(
                    group,
                    state,
                    open_polls.get((stream.stream_id, group.name), 0),
                    [Member(name, count, moment(last)) for name, (count, last) in sorted(members.items())],
                )
            )
        return found

    return store.log().run(op())


def group_view(group: Group) -> GroupView:
    """One group, and how it stands.

    Raises:
        Refusal: ``group_not_found`` when the log no longer has it.
    """
    found = group_views(group.stream, [group])
    if not found:
        raise group_not_found(group.name)
    return found[0]


def dead_letters(group: Group, *, start: int = 0, limit: int = 100) -> list[DeadLetter]:
    """A group's dead letters from an offset on, in offset order."""
    return store.log().run(groups.dead_letters(group.stream.stream_id, group.name, start=start, limit=limit))


def overview(caller: Caller) -> Overview:
    """Totals over the streams that a caller may see."""
    ids = list(streams_of(caller).values_list("stream_id", flat=True))
    states = store.log().run(stats.inspect_many(ids)).values()
    return Overview(
        streams=len(ids),
        messages=sum(state.messages for state in states),
        bytes=sum(state.bytes for state in states),
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
    """The newest events of a workspace, newest first."""
    return list(_events(workspace, stream=stream, kind=kind).order_by("-id")[:limit])


def events_page(
    caller: Caller, *, after: int | None, limit: int, stream: str = "", kind: str = ""
) -> tuple[list[Event], bool]:
    """Events that a caller may see, ascending by id: those after an id, or the newest; and whether more came later.

    A narrowed caller sees those of its streams only.
    """
    found = _events(caller.workspace, stream=stream, kind=kind)
    if caller.streams:
        found = found.filter(_inside(caller.streams, "stream")).exclude(stream="")
    if after is None:
        return list(found.order_by("-id")[:limit])[::-1], False
    rows = list(found.filter(id__gt=after).order_by("id")[: limit + 1])
    return rows[:limit], len(rows) > limit


def _events(workspace: Workspace, *, stream: str, kind: str) -> QuerySet[Event]:
    """Events of a workspace. Those of none, of the whole system, are shown in the default one."""
    mine = Q(workspace=workspace)
    if workspace.name == DEFAULT_WORKSPACE:
        mine |= Q(workspace=None)
    found = Event.objects.select_related("workspace").filter(mine)
    if stream:
        found = found.filter(stream=stream)
    if kind:
        found = found.filter(kind=kind)
    return found


def tokens_page(workspace: Workspace, *, after: int, limit: int) -> tuple[list[Token], bool]:
    """A page of a workspace's tokens, oldest first, and whether there are more."""
    found = Token.objects.select_related("workspace").filter(workspace=workspace, id__gt=after)
    rows = list(found.order_by("id")[: limit + 1])
    return rows[:limit], len(rows) > limit


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """A workspace and how many streams it has."""

    name: str
    plan: str
    streams: int
    created_at: datetime


def workspaces_page(*, after: str, limit: int) -> tuple[list[WorkspaceView], bool]:
    """A page of all workspaces by name, and whether there are more."""
    rows = list(_workspaces_counted().filter(name__gt=after)[: limit + 1])
    return [_workspace_view(row) for row in rows[:limit]], len(rows) > limit


def workspace_view(workspace: Workspace) -> WorkspaceView:
    """One workspace with its count of streams."""
    return _workspace_view(_workspaces_counted().get(pk=workspace.pk))


def workspace_named(name: str) -> Workspace:
    """Raises Refusal ``workspace_not_found``."""
    found = Workspace.objects.filter(name=name).first() if naming.is_name(name) else None
    if found is None:
        raise Refusal("workspace_not_found", "There is no such workspace.", workspace=name)
    return found


def _workspaces_counted() -> QuerySet[Any]:
    return (
        Workspace.objects.alias()
        .annotate(stream_count=Count("streams", filter=Q(streams__internal=False)))
        .order_by("name")
    )


def _workspace_view(row: Any) -> WorkspaceView:
    return WorkspaceView(row.name, row.plan, row.stream_count, row.created_at)


def runs_page(*, before: int | None, limit: int) -> tuple[list[Run], bool]:
    """A page of runs, newest first, those before an id, and whether there are more."""
    found = Run.objects.order_by("-id")
    if before is not None:
        found = found.filter(id__lt=before)
    rows = list(found[: limit + 1])
    return rows[:limit], len(rows) > limit


def runs_latest(*, limit: int = 20) -> list[Run]:
    """The newest runs of the history jobs, newest first."""
    return list(Run.objects.order_by("-id")[:limit])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How a stream stood at a moment (unix ms), and its rates a second since the sample before."""

    at_ms: int
    offset: int
    messages: int
    bytes: int
    lag: int
    messages_in: float
    bytes_in: float


class _SampledStream(msgspec.Struct):
    offset: int
    messages: int
    bytes: int
    lag: int
    messages_in: float = msgspec.field(name="in", default=0.0)
    bytes_in: float = 0.0


class _SampledSecond(msgspec.Struct):
    at: int
    streams: dict[str, msgspec.Raw]


_decode_second = msgspec.json.Decoder(_SampledSecond).decode
_decode_sampled = msgspec.json.Decoder(_SampledStream).decode


def recent_samples(stream: Stream, since_ms: int) -> list[Sample]:
    """The worker's samples of a stream since a moment (unix ms), oldest first, from the internal stream of samples.

    A second in which the stream did not change may have no sample.
    """
    held = Stream.objects.filter(name=METRICS_STREAM, internal=True).first()
    if held is None:
        return []
    log, wanted = store.log(), stream.stream_id.encode()
    samples = []
    offset = log.run(read.offset_at(held.stream_id, since_ms))
    while page := messages_from(held, offset=offset, limit=read.PAGE):
        offset = page[-1].offset + 1
        for message in page:
            if wanted in message.body:
                second = _decode_second(message.body)
                found = second.streams.get(stream.stream_id)
                if found is not None:
                    samples.append(Sample(at_ms=second.at, **msgspec.structs.asdict(_decode_sampled(found))))
    return samples


def metrics_points(stream: Stream, *, since_ms: int, now_ms: int, step_s: int) -> list[Sample]:
    """One sample a step, from the first that is known until now: how the stream stood at its end, mean rates in it.

    A step in which nothing moved has no sample of its own: the stream stood as before, at rest.
    """
    step_ms = step_s * 1000
    steps: dict[int, list[Sample]] = {}
    for sample in recent_samples(stream, since_ms):
        steps.setdefault(sample.at_ms // step_ms, []).append(sample)
    points: list[Sample] = []
    for number in range(min(steps, default=0), now_ms // step_ms + 1) if steps else ():
        inside = steps.get(number, [])
        last = inside[-1] if inside else points[-1]
        in_messages = sum(sample.messages_in for sample in inside) / step_s
        in_bytes = sum(sample.bytes_in for sample in inside) / step_s
        points.append(
            replace(
                last,
                at_ms=number * step_ms,
                messages_in=round(in_messages, 3),
                bytes_in=round(in_bytes, 3),
            )
        )
    return points


def _inside(patterns: Iterable[str], column: str) -> Q:
    """The rows whose column matches one of the patterns that narrow a caller."""
    inside = Q(pk__in=[])
    for pattern in patterns:
        regex = "^" + ".*".join(_literal(part) for part in pattern.split("*")) + "$"
        inside |= Q(**{f"{column}__regex": regex})
    return inside


def _literal(text: str) -> str:
    """A part of a stream name pattern, safe inside a regular expression of any database."""
    return "".join(char if char.isalnum() or char == "_" else "\\" + char for char in text)
