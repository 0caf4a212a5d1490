"""Live numbers: the closed set of events that a page may be sent, and their way to the sockets.

The worker calls ``publish_samples`` and ``publish_processes``; each event goes to one group of the channel layer,
and ``sockets.LiveSocket`` passes it on to the pages that show it. A group is named by ids, so a name that was
deleted and made again, or that stands in another workspace, never reaches the wrong page.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from operator import attrgetter
from typing import Any, ClassVar

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

from streams import selectors, store
from streams.log import listeners
from streams.models import Stream
from streams.selectors import StreamView
from streams.upkeep.processes import ProcessStatus
from streams.upkeep.sampling import Sample

BEAT_S = 1.0
# Streams that were made or deleted are found by looking at the rows now and then.
ROWS_EVERY_S = 2.0
# A stream that moves is sampled every second; a rate that was told before that has ended.
RATE_HOLDS_MS = 3_000
# How often a stream that has come to rest is told again: a store that was away is back within a second for the
# worker, and within two for the web processes that listen to it.
REPEATS = 5
INSPECTED_AT_ONCE = 500
SENT_AT_ONCE = 200

OVERVIEW, PROCESSES, STREAM_PREFIX, GROUP_PREFIX = "overview", "processes", "stream:", "group:"

logger = logging.getLogger(__name__)


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
    view: StreamView, *, at_ms: int, rate_in: float = 0.0, bytes_in: float = 0.0
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


class Feed:
    """Remembers how every stream stood last, so that the sums are there every second without asking again."""

    def __init__(self) -> None:
        self._last: dict[str, StreamSampled] = {}
        self._undelivered: dict[str, StreamSampled] = {}
        self._repeated: dict[str, int] = {}
        self._rows_at = 0.0
        self._beats = 0
        self._beating: asyncio.Task[None] | None = None

    async def publish(self, samples: Sequence[Sample]) -> None:
        """Tell the pages of these streams, and keep the sums beating from now on."""
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._keep_beating())
        events = {sample.stream_id: sampled(sample) for sample in samples}
        self._last.update(events)
        self._undelivered.update(events)
        self._repeated.update(dict.fromkeys(events, REPEATS))
        await self._deliver()

    def sums(self, *, at_ms: int) -> list[OverviewSampled]:
        """One event a workspace."""
        by_workspace: dict[int, list[StreamSampled]] = {}
        for event in self._last.values():
            by_workspace.setdefault(event.workspace_id, []).append(event)
        return [
            _sum(workspace_id, events, at_ms=at_ms, beat=self._beats)
            for workspace_id, events in by_workspace.items()
        ]

    async def _deliver(self) -> None:
        """Send what waits; what cannot be sent now goes with the next beat, unless something newer comes first."""
        waiting, self._undelivered = self._undelivered, {}
        try:
            await send_many(waiting.values())
        except Exception as error:
            self._undelivered = {**waiting, **self._undelivered}
            logger.warning("Live numbers wait for the store: %s", error)

    def _repeat(self, *, now_ms: int) -> None:
        """Say again how a stream stands that has just come to rest.

        A store that was away answers the worker before the web processes listen again, and what is published to
        nobody is lost; a stream that still moves is told anew every second anyway.
        """
        for stream_id, left in list(self._repeated.items()):
            last = self._last.get(stream_id)
            if last is None or left == 0:
                del self._repeated[stream_id]
            elif now_ms - last.at_ms > BEAT_S * 1500:
                self._repeated[stream_id] = left - 1
                self._undelivered.setdefault(stream_id, last)

    async def _keep_beating(self) -> None:
        """Send the sums every second, whether or not anything moved; ends with the worker's event loop."""
        while True:
            started = time.monotonic()
            try:
                if started - self._rows_at >= ROWS_EVERY_S:
                    await self._look_at_rows()
                    self._rows_at = started
                self._repeat(now_ms=int(time.time() * 1000))
                await self._deliver()
                self._beats += 1
                await send_many(self.sums(at_ms=int(time.time() * 1000)))
            except Exception:
                # The pages say by themselves that their numbers are stale; the next beat may get through.
                logger.exception("The live sums could not be sent.")
            await asyncio.sleep(max(0.05, BEAT_S - (time.monotonic() - started)))

    async def _look_at_rows(self) -> None:
        """Ask how new streams stand and forget the deleted ones; those that are known cost nothing."""
        there = await database_sync_to_async(_stream_ids)()
        for gone in self._last.keys() - there:
            del self._last[gone]
        unknown = sorted(there - self._last.keys())
        at_ms = int(time.time() * 1000)
        for first in range(0, len(unknown), INSPECTED_AT_ONCE):
            for view in await database_sync_to_async(_views)(unknown[first : first + INSPECTED_AT_ONCE]):
                if view.is_reachable:
                    self._last.setdefault(view.stream.stream_id, stream_sampled(view, at_ms=at_ms))


def _sum(workspace_id: int, events: Sequence[StreamSampled], *, at_ms: int, beat: int) -> OverviewSampled:
    moving = [event for event in events if at_ms - event.at_ms <= RATE_HOLDS_MS]
    return OverviewSampled(
        beat=beat,
        workspace_id=workspace_id,
        at_ms=at_ms,
        streams=len(events),
        messages=sum(event.messages for event in events),
        bytes=sum(event.bytes for event in events),
        rate_in=sum(event.rate_in for event in moving),
        bytes_in=sum(event.bytes_in for event in moving),
        last_ms=max((event.last_ms for event in events if event.last_ms), default=None),
    )


def _stream_ids() -> set[str]:
    return set(Stream.objects.filter(internal=False).values_list("stream_id", flat=True))


def _views(stream_ids: Sequence[str]) -> list[StreamView]:
    return selectors.stream_views(list(Stream.objects.filter(stream_id__in=stream_ids)))


_feed = Feed()


async def publish_samples(samples: Sequence[Sample]) -> None:
    """What the worker calls with the samples of a second."""
    await _feed.publish(samples)


async def publish_processes(processes: Sequence[ProcessStatus]) -> None:
    """What the worker calls when the supervisor's list has changed."""
    await _feed.publish([])
    await send(processes_changed(processes))
