"""Live numbers: the closed set of events that a page may be sent, and their way to the sockets.

Each event goes to one group of the channel layer (see ``live_feed``), and ``sockets.LiveSocket`` passes it on to the
pages that show it. A group is named by ids, so a name that was deleted and made again, or that stands in another
workspace, never reaches the wrong page.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from operator import attrgetter
from typing import Any, ClassVar

from channels.layers import get_channel_layer

from streams import store
from streams.log import listeners
from streams.selectors import StreamView
from streams.upkeep.processes import ProcessStatus
from streams.upkeep.sampling import Sample

SENT_AT_ONCE = 200

OVERVIEW, PROCESSES, STREAM_PREFIX, GROUP_PREFIX = "overview", "processes", "stream:", "group:"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSampled:
    """How one stream stands; rates are per second, times unix ms."""

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
    rate_in: float
    bytes_in: float
    rate_out: float
    first_ms: int | None
    last_ms: int | None

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
    """

    kind: ClassVar[str] = "overview_sampled"
    beat: int
    workspace_id: int
    at_ms: int
    streams: int
    messages: int
    bytes: int
    rate_in: float
    bytes_in: float
    rate_out: float
    last_ms: int | None

    @property
    def topic(self) -> str:
        return OVERVIEW

    @property
    def group(self) -> str:
        return workspace_group(self.workspace_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process as the page lists it; ``sentence`` tells what happened to it."""

    name: str
    state: str
    restarts: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesChanged:
    """The processes that the supervisor keeps."""

    kind: ClassVar[str] = "processes_changed"
    at_ms: int
    processes: tuple[Process, ...]

    @property
    def topic(self) -> str:
        return PROCESSES

    @property
    def group(self) -> str:
        return PROCESSES_GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstGroupSampled:
    """The group of a stream that is doing worst, on the topic of the stream; ``worst_state`` is the colour."""

    kind: ClassVar[str] = "worst_group_sampled"
    stream_id: str
    stream: str
    at_ms: int
    worst: str
    worst_state: str
    worst_reason: str
    worst_lag_seconds: float | None

    @property
    def topic(self) -> str:
        return f"{STREAM_PREFIX}{self.stream}"

    @property
    def group(self) -> str:
        return stream_group(self.stream_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSampled:
    """How one consumer group stands; times are unix ms, ``state`` is the colour of the status."""

    kind: ClassVar[str] = "group_sampled"
    stream_id: str
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

    @property
    def topic(self) -> str:
        return group_topic(self.stream, self.name)

    @property
    def group(self) -> str:
        return consumers_group(self.stream_id, self.name)


Event = StreamSampled | OverviewSampled | ProcessesChanged | WorstGroupSampled | GroupSampled
PROCESSES_GROUP = "live.processes"


def stream_group(stream_id: str) -> str:
    """The group of one stream; ids are 12 characters from a-z and 2-7."""
    return f"live.stream.{stream_id}"


def group_topic(stream: str, name: str) -> str:
    """The topic of a consumer group; neither name can hold a slash."""
    return f"{GROUP_PREFIX}{stream}/{name}"


def consumers_group(stream_id: str, name: str) -> str:
    """The group of the pages that show one consumer group."""
    return f"live.consumers.{stream_id}.{name}"


def workspace_group(workspace_id: int) -> str:
    """The group of a workspace's sums."""
    return f"live.workspace.{workspace_id}"


def wire(event: Event) -> dict[str, Any]:
    """The event as the browser gets it, with its kind."""
    return {"kind": event.kind, **asdict(event)}


async def send(event: Event) -> None:
    """Send an event to the pages that show its topic."""
    await get_channel_layer().group_send(
        event.group, {"type": "live.event", "topic": event.topic, "event": wire(event)}
    )


async def send_many(events: Iterable[Event]) -> None:
    """Send those of these events that a page shows, a bounded number at a time.

    Thousands of streams may move in a second, and a page shows some dozens: to ask who listens is one call for a
    thousand. A page that begins to listen after that is told by its snapshot, which is taken later.
    """
    waiting = await _heard(list(events))
    for first in range(0, len(waiting), SENT_AT_ONCE):
        await asyncio.gather(*(send(event) for event in waiting[first : first + SENT_AT_ONCE]))


async def _heard(events: Sequence[Event]) -> list[Event]:
    """The events whose group somebody has joined, in whichever process."""
    if not events:
        return []
    name_of = get_channel_layer()._get_group_channel_name  # the layer tells nobody who has joined a group
    channels = {event.group: name_of(event.group) for event in events}
    heard = await asyncio.to_thread(store.log().run, listeners.heard(list(channels.values())))
    return [event for event in events if channels[event.group] in heard]


def stream_sampled(
    view: StreamView, *, at_ms: int, rate_in: float = 0.0, bytes_in: float = 0.0, rate_out: float = 0.0
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
    )


_SAMPLED = tuple(field.name for field in fields(StreamSampled))
_told = attrgetter(*_SAMPLED)


def sampled(sample: Sample) -> StreamSampled:
    """The worker's sample as an event."""
    return StreamSampled(**dict(zip(_SAMPLED, _told(sample), strict=True)))


def processes_changed(processes: Iterable[ProcessStatus]) -> ProcessesChanged:
    """The supervisor's list as an event."""
    return ProcessesChanged(
        at_ms=int(time.time() * 1000),
        processes=tuple(
            Process(name=each.name, state=each.state, restarts=each.restarts, sentence=each.sentence())
            for each in processes
        ),
    )
