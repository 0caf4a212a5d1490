"""Live numbers: the closed set of events that a page may be sent, and their way to the sockets.

Each event goes to one group of the channel layer (see ``live_feed``), and ``sockets.LiveSocket`` passes it on to the
pages that show it. A group is named by ids, so a name that was deleted and made again, or that stands in another
workspace, never reaches the wrong page.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from operator import attrgetter
from typing import Any, ClassVar

from channels.layers import get_channel_layer

from dashboard.languages import Said
from dashboard.live.unavailable import GroupAway, StreamAway
from dashboard.stream_rows import span_s
from streams.selectors import StreamView
from streams.services.open_pages import consumers_group, heard, stream_group
from streams.upkeep import processes
from streams.upkeep.processes import ProcessStatus
from streams.upkeep.sampling import Sample

SENT_AT_ONCE = 200

OVERVIEW, PROCESSES = "overview", "processes"
STREAM_PREFIX, GROUP_PREFIX, WORKSPACE_PREFIX = "stream:", "group:", "workspace:"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSampled:
    """How one stream stands; rates are per second, times unix ms, ``span_s`` is between the first and last message.

    While nobody samples, a page that asks is told of no rate.
    """

    kind: ClassVar[str] = "stream_sampled"
    stream_id: str
    workspace_id: int
    name: str
    at_ms: int
    offset: int
    first_offset: int
    messages: int
    bytes: int
    committed: int
    lag: int
    duplicates: int
    rate_in: float | None
    bytes_in: float | None
    rate_out: float | None
    first_ms: int | None
    last_ms: int | None
    span_s: float | None

    @property
    def topic(self) -> str:
        return f"{STREAM_PREFIX}{self.name}"

    @property
    def group(self) -> str:
        return stream_group(self.stream_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewSampled:
    """The sums over a workspace's streams; sent every second, so that silence means that the numbers are stale.

    ``beat`` counts up by one: a page that misses one asks how everything stands, since what changed in between was
    sent to nobody (the channel layer keeps nothing for a subscriber that is away, as when the store restarts).
    So many ``alerts`` fire by rules that are not muted; ``alerts_mark`` differs once others do, ``events_mark`` once
    something is on record that was not, and ``groups_mark`` once a group is in another status.
    They leave ``unavailable`` streams out, which ``left_out`` says in words (``said``: in other languages).
    ``narrowed_to``, which no page is told: the sums are of the streams inside these name patterns, for such people.
    """

    kind: ClassVar[str] = "overview_sampled"
    beat: int
    workspace_id: int
    at_ms: int
    streams: int
    messages: int
    bytes: int
    rate_in: float | None
    bytes_in: float | None
    rate_out: float | None
    last_ms: int | None
    alerts: int
    alerts_mark: str
    events_mark: int
    groups_mark: int
    unavailable: int
    left_out: str
    said: Said = field(default_factory=dict)
    narrowed_to: tuple[str, ...] = ()

    @property
    def topic(self) -> str:
        return OVERVIEW

    @property
    def group(self) -> str:
        return workspace_group(self.workspace_id, self.narrowed_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSilent:
    """For so long, since ``at_ms``, nobody has sampled: told to a page that begins to listen, which has
    missed no beat yet.
    """

    kind: ClassVar[str] = "worker_silent"
    at_ms: int
    silent_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesChanged:
    """What the supervisor says of the processes has this version; a page that shows another one asks for it."""

    kind: ClassVar[str] = "processes_changed"
    at_ms: int
    version: int

    @property
    def topic(self) -> str:
        return PROCESSES

    @property
    def group(self) -> str:
        return PROCESSES_GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstGroupSampled:
    """The group of a stream that is doing worst, on the topic of the stream; ``worst_state`` is the colour.

    ``said`` has the sentences in other languages, as in ``GroupSampled``.
    """

    kind: ClassVar[str] = "worst_group_sampled"
    stream_id: str
    stream: str
    at_ms: int
    worst: str
    worst_state: str
    worst_reason: str
    worst_lag_seconds: float | None
    said: Said

    @property
    def topic(self) -> str:
        return f"{STREAM_PREFIX}{self.stream}"

    @property
    def group(self) -> str:
        return stream_group(self.stream_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSampled:
    """How one consumer group stands; times are unix ms, ``state`` is the colour of the status.

    ``out_mark`` and ``dead_mark`` differ from those that a page was made with once what it lists in flight, or as
    dead letters, has changed; ``is_away`` is true of a ``GroupAway`` only. ``said`` has the fields that are sentences
    in each language but English; a page gets those of its own (``in_language``).
    """

    kind: ClassVar[str] = "group_sampled"
    stream_id: str
    group_id: int
    stream: str
    name: str
    at_ms: int
    status: str
    state: str
    reason: str
    lag: int
    lag_seconds: float
    ack_pending: int
    delivered: int
    ack_floor: int
    redelivered: int
    dead_letters: int
    lost: int
    members: int
    waiting: int
    ack_rate: float | None
    eta_seconds: float | None
    edge_seconds: float | None
    fetched_ms: int | None
    acked_ms: int | None
    judged_ms: int | None
    out_mark: str
    dead_mark: str
    said: Said
    is_away: bool = False

    @property
    def topic(self) -> str:
        return group_topic(self.stream, self.name)

    @property
    def group(self) -> str:
        return consumers_group(self.stream_id, self.name)


StreamTold = StreamSampled | StreamAway
Event = StreamTold | OverviewSampled | ProcessesChanged | WorstGroupSampled | GroupSampled | GroupAway


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """A page is of the workspace that its person looks at; told as ``Gone`` is."""

    kind: ClassVar[str] = "here"
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A page shows a stream or a consumer group that is not there; what is made again under its name has another id.

    Or it is of another workspace than its person looks at by now. A socket tells its own page of it, so it goes to no
    group.
    """

    kind: ClassVar[str] = "gone"
    at_ms: int
    stream_id: None = None
    group_id: None = None


PROCESSES_GROUP = "live.processes"


def group_topic(stream: str, name: str) -> str:
    """The topic of a consumer group; neither name can hold a slash."""
    return f"{GROUP_PREFIX}{stream}/{name}"


def workspace_topic(workspace_id: int) -> str:
    """The topic of the pages of a workspace."""
    return f"{WORKSPACE_PREFIX}{workspace_id}"


def workspace_group(workspace_id: int, streams: Collection[str] = ()) -> str:
    """The group of a workspace's sums, or of those of the streams inside some name patterns."""
    if not streams:
        return f"live.workspace.{workspace_id}"
    patterns = sha256(" ".join(sorted(set(streams))).encode()).hexdigest()
    return f"live.workspace.{workspace_id}.{patterns[:32]}"


def wire(event: Event | Here | Gone | WorkerSilent) -> dict[str, Any]:
    """The event as the browser gets it, with its kind."""
    told = {"kind": event.kind, **asdict(event)}
    told.pop("narrowed_to", None)
    return told


def in_language(event: dict[str, Any], language: str) -> dict[str, Any]:
    """An event on the wire as a page in this language gets it."""
    if "said" not in event:
        return event
    said: Said = event["said"]
    return {name: value for name, value in event.items() if name != "said"} | said.get(language, {})


async def send(event: Event) -> None:
    """Send an event to the pages that show its topic."""
    await get_channel_layer().group_send(
        event.group,
        {"type": "live.event", "topic": event.topic, "group": event.group, "event": wire(event)},
    )


async def send_many(events: Iterable[Event]) -> None:
    """Send those of these events that a page shows, a bounded number at a time.

    Thousands of streams may move in a second, and a page shows some dozens: to ask who listens is one call for a
    thousand. A page that begins to listen after that is told by its snapshot, which is taken later.
    """
    asked = list(events)
    shown = await heard(event.group for event in asked) if asked else set()
    waiting = [event for event in asked if event.group in shown]
    for first in range(0, len(waiting), SENT_AT_ONCE):
        await asyncio.gather(*(send(event) for event in waiting[first : first + SENT_AT_ONCE]))


def stream_sampled(
    view: StreamView,
    *,
    at_ms: int,
    rate_in: float | None = 0.0,
    bytes_in: float | None = 0.0,
    rate_out: float | None = 0.0,
) -> StreamSampled:
    """The event that tells how a stream stands; ``at_ms`` is from before it was looked at, as in a sample."""
    state = view.state
    return StreamSampled(
        stream_id=view.stream.stream_id,
        workspace_id=view.stream.workspace_id,
        name=view.stream.name,
        at_ms=at_ms,
        offset=state.offset,
        first_offset=state.first_offset,
        messages=state.messages,
        bytes=state.bytes,
        committed=state.committed_offset,
        lag=state.lag,
        duplicates=state.duplicates,
        rate_in=rate_in,
        bytes_in=bytes_in,
        rate_out=rate_out,
        first_ms=state.first_ms,
        last_ms=state.last_ms,
        span_s=span_s(state),
    )


_SAMPLED = tuple(each.name for each in fields(StreamSampled))
_told = attrgetter(*_SAMPLED)


def sampled(sample: Sample, **rates: float) -> StreamSampled:
    """The worker's sample as an event, perhaps with other rates than its own."""
    return StreamSampled(**{**dict(zip(_SAMPLED, _told(sample), strict=True)), **rates})


def processes_changed(listed: Sequence[ProcessStatus]) -> ProcessesChanged:
    """The supervisor's list as an event."""
    return ProcessesChanged(at_ms=int(time.time() * 1000), version=processes.version(listed))
