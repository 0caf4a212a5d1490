"""What the worker tells the pages: each stream that moved, and after each round of samples the sums of each workspace.

The worker calls ``publish_samples``, ``publish_processes`` and ``rest``; the events and their way are those of
``live_events``.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from channels.db import database_sync_to_async

from dashboard.live import live_events, live_groups
from dashboard.live.live_events import OverviewSampled, StreamSampled, StreamTold
from dashboard.live.means import CARRY_S, MEAN_S, Course
from dashboard.live.narrowed import NarrowedSums, sum_of
from dashboard.live.unavailable import StreamAway, answering, streams_away
from streams import selectors
from streams.models import Stream, Workspace
from streams.selectors import SILENT_MS, Firing, StreamView
from streams.upkeep.processes import ProcessStatus
from streams.upkeep.sampling import Sample

BEAT_S = 1.0
# A beat follows the samples: by a clock of its own it would tell of what is a second older than they are. None follows
# another sooner than this, and where a round takes its time, one comes without it.
SOONEST_S, LATEST_S = 0.25, 1.25
# Streams that were made or deleted are found by looking at the rows now and then.
ROWS_EVERY_S = 2.0
# How often a stream that has come to rest is told again: a store that was away is back within a second for the
# worker, and within two for the web processes that listen to it.
REPEATS = 5
INSPECTED_AT_ONCE = 500

logger = logging.getLogger(__name__)


class Feed:
    """Remembers how every stream stood last, so that the sums are there every second without asking again."""

    def __init__(self) -> None:
        self._last: dict[str, StreamTold] = {}
        self._courses: dict[str, Course] = {}
        self._undelivered: dict[str, StreamTold] = {}
        self._repeated: dict[str, int] = {}
        self._workspaces: set[int] = set()
        self._firing: dict[int, Firing] = {}
        self._newest_events: dict[int, int] = {}
        self._narrowed = NarrowedSums()
        self._statuses_ms = 0
        self._rows_at = self._told_at = 0.0
        self._beats = 0
        self._beating: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._sampled = asyncio.Event()
        self._is_resting = False

    async def publish(self, samples: Sequence[Sample]) -> None:
        """Tell the pages of these streams, and keep the sums beating as long as this is called."""
        self._is_resting = False
        self._told_at = time.monotonic()
        if self._beating is None or self._beating.done():
            self._sampled = asyncio.Event()  # of this event loop
            self._beating = asyncio.create_task(self._keep_beating())
        events = {sample.stream_id: self._told(sample) for sample in samples}
        self._last.update(events)
        self._undelivered.update(events)
        self._repeated.update(dict.fromkeys(events, REPEATS))
        await self._deliver()
        self._sampled.set()

    def rest(self) -> None:
        """Tell nothing until the next ``publish``: somebody else samples, and what is known here grows old.

        Two beats would also be two counts, and each page would take every other beat for a gap.
        """
        self._is_resting = True
        self._rows_at = 0.0
        for known in (self._last, self._courses, self._undelivered, self._repeated):
            known.clear()

    def sums(self, *, at_ms: int) -> list[OverviewSampled]:
        """One event a workspace, also where there is no stream yet: its pages would take silence for a standstill."""
        by_workspace: dict[int, list[StreamTold]] = {each: [] for each in self._workspaces}
        for event in self._last.values():
            by_workspace.setdefault(event.workspace_id, []).append(event)
        return [
            sum_of(
                workspace_id,
                events,
                at_ms=at_ms,
                beat=self._beats,
                firing=self._firing.get(workspace_id, Firing()),
                events_mark=self._newest_events.get(workspace_id, 0),
                groups_mark=self._statuses_ms,
            )
            for workspace_id, events in by_workspace.items()
        ]

    async def _narrowed_sums(self, *, at_ms: int) -> list[OverviewSampled]:
        """One event for each way in which people who look now are narrowed to some streams."""
        await self._narrowed.look()
        return self._narrowed.sums(
            self._last.values(), at_ms=at_ms, beat=self._beats, groups_mark=self._statuses_ms
        )

    async def _deliver(self) -> None:
        """Send what waits; what cannot be sent now goes with the next beat, unless something newer comes first."""
        waiting, self._undelivered = self._undelivered, {}
        try:
            await live_events.send_many(waiting.values())
        except Exception as error:
            self._undelivered = {**waiting, **self._undelivered}
            logger.warning("Live numbers wait for the store: %s", error)

    def _told(self, sample: Sample) -> StreamSampled:
        """A sample as the pages are told of it."""
        at_s = sample.at_ms / 1000
        course = self._courses.setdefault(sample.stream_id, Course())
        course.add(at_s, sample.rate_in, sample.bytes_in, sample.rate_out)
        course.forget(at_s - MEAN_S - CARRY_S)
        mean = course.mean(at_s)
        return live_events.sampled(
            sample, rate_in=mean.rate_in, bytes_in=mean.bytes_in, rate_out=mean.rate_out
        )

    def _repeat(self, *, now_ms: int) -> None:
        """Say again how a stream stands that has just come to rest: until its rates are nought, and a while longer.

        A store that was away answers the worker before the web processes listen again, and what is published to
        nobody is lost; a stream that still moves is told anew every second anyway.
        """
        for stream_id, left in list(self._repeated.items()):
            last = self._last.get(stream_id)
            if last is None or isinstance(last, StreamAway) or left == 0:
                del self._repeated[stream_id]
                self._courses.pop(stream_id, None)
            elif now_ms - last.at_ms > BEAT_S * 1500:
                # Nothing has touched it until the tick before: one who has looked since then knows better.
                at_ms = now_ms - int(BEAT_S * 1000)
                mean = self._courses[stream_id].mean(at_ms / 1000)
                self._last[stream_id] = replace(
                    last,
                    at_ms=at_ms,
                    rate_in=mean.rate_in,
                    bytes_in=mean.bytes_in,
                    rate_out=mean.rate_out,
                )
                self._repeated[stream_id] = left - (not mean.is_moving)
                self._undelivered.setdefault(stream_id, self._last[stream_id])

    async def _keep_beating(self) -> None:
        """Send the sums with each round of samples, whether or not anything moved; ends with the worker's event loop,
        or to rest.

        While the worker takes no samples it tells nothing: a page takes a beat for the sign that it does.
        """
        while not self._is_resting:
            started = time.monotonic()
            self._sampled.clear()
            if started - self._told_at > SILENT_MS / 1000:
                await self._until_sampled(since=started)
                continue
            try:
                if started - self._rows_at >= ROWS_EVERY_S:
                    await self._look_at_rows()
                    self._rows_at = started
                if self._looking is None or self._looking.done():
                    self._looking = asyncio.create_task(self._look_at_servers())
                self._repeat(now_ms=int(time.time() * 1000))
                await self._deliver()
                await self._look_at_marks()
                self._beats += 1
                at_ms = int(time.time() * 1000)
                await live_events.send_many(
                    [*self.sums(at_ms=at_ms), *await self._narrowed_sums(at_ms=at_ms)]
                )
            except Exception:
                # The pages say by themselves that their numbers are stale; the next beat may get through.
                logger.exception("The live sums could not be sent.")
            await self._until_sampled(since=started)

    async def _until_sampled(self, *, since: float) -> None:
        """Wait for the next samples, for a while after the last beat; at least until another may follow it."""
        await asyncio.sleep(max(0.05, SOONEST_S - (time.monotonic() - since)))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._sampled.wait(), max(0.05, LATEST_S - (time.monotonic() - since)))

    async def _look_at_marks(self) -> None:
        """Ask whether anything new is on record, or a group in another status; pages that show these ask then."""
        above = max(self._newest_events.values(), default=0)
        newest, self._statuses_ms = await database_sync_to_async(_marks)(above)
        self._newest_events |= newest

    async def _look_at_servers(self) -> None:
        """Note which streams have servers that do not answer, and how those stand that do again.

        Beside the beat: that a server hangs is found out by waiting for it.
        """
        at_ms = int(time.time() * 1000)
        known = set(self._last)
        try:
            there = await database_sync_to_async(answering)(known)
            lost = {each for each in known - there if not isinstance(self._last.get(each), StreamAway)}
            told = await database_sync_to_async(streams_away)(lost, at_ms=at_ms) if lost else []
            back = [each for each in there if isinstance(self._last.get(each), StreamAway)]
            views = await self._viewed(back)
        except Exception as error:
            logger.warning("Which streams are unavailable is looked at again: %s", error)
            return
        events: list[StreamTold] = [*told, *(live_events.stream_sampled(view, at_ms=at_ms) for view in views)]
        # A sample that has come meanwhile knows better.
        newer = {
            event.stream_id: event
            for event in events
            if event.stream_id in self._last and self._last[event.stream_id].at_ms <= at_ms
        }
        self._last |= newer
        self._undelivered |= newer
        if newer:
            await live_groups.publish_changed(newer)

    async def _viewed(self, stream_ids: Sequence[str]) -> list[StreamView]:
        """How streams stand whose servers answer."""
        found: list[StreamView] = []
        for first in range(0, len(stream_ids), INSPECTED_AT_ONCE):
            part = stream_ids[first : first + INSPECTED_AT_ONCE]
            found += [view for view in await database_sync_to_async(_views)(part) if view.is_reachable]
        return found

    async def _look_at_rows(self) -> None:
        """Ask how new streams stand and forget the deleted ones; those that are known cost nothing. And what fires."""
        self._firing = await database_sync_to_async(selectors.firing_by_workspace)()
        self._workspaces = await database_sync_to_async(_workspace_ids)()
        await database_sync_to_async(self._narrowed.find)()
        there = await database_sync_to_async(_stream_ids)()
        for gone in self._last.keys() - there:
            del self._last[gone]
        unknown = sorted(there - self._last.keys())
        at_ms = int(time.time() * 1000)
        away = await database_sync_to_async(_away)(unknown, at_ms=at_ms) if unknown else []
        for event in away:
            self._last.setdefault(event.stream_id, event)
        for view in await self._viewed([each for each in unknown if each not in self._last]):
            self._last.setdefault(view.stream.stream_id, live_events.stream_sampled(view, at_ms=at_ms))


def _marks(above: int) -> tuple[dict[int, int], int]:
    return selectors.newest_events(above=above), selectors.statuses_changed_ms()


def _workspace_ids() -> set[int]:
    return set(Workspace.objects.values_list("pk", flat=True))


def _away(stream_ids: Sequence[str], *, at_ms: int) -> list[StreamAway]:
    """The events of those of these streams whose servers do not answer."""
    return streams_away(set(stream_ids) - answering(stream_ids), at_ms=at_ms)


def _stream_ids() -> set[str]:
    return set(Stream.objects.filter(internal=False).values_list("stream_id", flat=True))


def _views(stream_ids: Sequence[str]) -> list[StreamView]:
    return selectors.stream_views(list(Stream.objects.filter(stream_id__in=stream_ids)))


_feed = Feed()


async def publish_samples(samples: Sequence[Sample]) -> None:
    """What the worker calls with the samples of a second."""
    await _feed.publish(samples)


def rest() -> None:
    """What the worker calls each second in which another one works."""
    _feed.rest()


async def publish_processes(processes: Sequence[ProcessStatus]) -> None:
    """What the worker calls when the supervisor's list has changed."""
    await _feed.publish([])
    await live_events.send(live_events.processes_changed(processes))
