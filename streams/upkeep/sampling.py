"""Sampling: once a second, how the streams that changed stand, and how fast they change.

The cost follows what changed, not how many streams exist: a process that serves requests tells which streams it
touched, and a stream is sampled from then until its rates are zero again.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec import structs

from streams.log import config, flow, keys, stats
from streams.log.append import append
from streams.log.client import AsyncLog, Reachable, one
from streams.log.config import Registered
from streams.log.entries import NewMessage
from streams.log.errors import StoreFull, StoreUnavailable, StreamNotFound
from streams.log.flow import Flow
from streams.log.lease import SILENT_FROM_MS
from streams.log.stats import Counted

TOUCHED_AT_ONCE = 5_000
MOST_IN_ONE_RECORD = 2_000
TICK_MS = 1_000
REGISTRY_AGE_S = 5.0
NEW_WITHIN_MS = 3 * TICK_MS
"""A tick, and what a busy worker is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How one stream stands at one moment.

    Attributes:
        at_ms: unix ms of the sample.
        offset, first_offset, messages, bytes, committed, lag, duplicates: as the stream object has them.
        rate_in, bytes_in, rate_out: messages published, bytes published, messages committed or acknowledged, a second.
        first_ms, last_ms: unix ms of the first and last visible message, None when empty.
        archived: everything up to it is in the history.
        appended_bytes: of everything ever appended.
        missed: messages that retention removed before the history had them.
        removed: messages that retention removed in all.
        is_to_tend: whether the worker may have something to do for it: it has limits, something waits for the history,
            or another message is the first one than at the sample before.
    """

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
    archived: int
    appended_bytes: int = 0
    missed: int = 0
    removed: int = 0
    is_to_tend: bool = True

    @property
    def unarchived(self) -> int:
        """Messages that the history has not got, whether or not it is to have them."""
        return min(self.messages, max(0, self.offset - self.archived))

    @property
    def span_s(self) -> float | None:
        """Seconds between the first and the last visible message."""
        if self.first_ms is None or self.last_ms is None:
            return None
        return (self.last_ms - self.first_ms) / 1000

    @property
    def is_moving(self) -> bool:
        return self.rate_in > 0 or self.rate_out > 0


class Sampler:
    """Remembers the last state of each stream, so that the next one gives rates."""

    def __init__(self, log: AsyncLog) -> None:
        self._log = log
        self._registered: dict[str, Registered] = {}
        self._last: dict[str, tuple[int, Counted]] = {}
        self._moving: set[str] = set()
        self._refreshed = 0.0
        self._round_ms: int | None = None
        self._quiet_ms = TICK_MS
        self.acked: Mapping[str, float] = {}
        """Messages that the groups of a stream acknowledged a second, when they were looked at last."""

    async def sample(self, *, at_ms: int, with_memory: bool = True) -> list[Sample]:
        """Sample what was touched since the last call and what still moved then.

        Args:
            with_memory: whether to ask for the streams in memory; if not, they are asked for in a later call.
        """
        touched = set(await self._log.run(stats.take_touched(TOUCHED_AT_ONCE)))
        self._begin_round(at_ms)
        wanted = touched | self._moving | self.acked.keys()
        if not wanted:
            return []
        registered = await self.registered()
        if not wanted <= registered.keys():
            registered = await self._refresh()
        known = wanted & registered.keys()
        there = set(await self._log.run(one(Reachable(sorted(known)))))
        asked = {each for each in there if with_memory or not keys.in_memory(each)}
        before = {each: self._last[each][1] for each in asked & self._last.keys()}
        states = await self._log.run(stats.counted_again(sorted(asked), before))
        samples = [self._sampled(stream_id, state, at_ms=at_ms) for stream_id, state in states.items()]
        for stream_id in wanted - states.keys():
            self._last.pop(stream_id, None)
        self._moving = {sample.stream_id for sample in samples if sample.is_moving}
        self._moving |= {each for each in known - states.keys() if keys.in_memory(each) or each not in there}
        return samples

    def _begin_round(self, at_ms: int) -> None:
        """What moves again did so within the last tick, or since the round before where that is long ago."""
        passed_ms = TICK_MS if self._round_ms is None else at_ms - self._round_ms
        self._round_ms, self._quiet_ms = at_ms, passed_ms if passed_ms > SILENT_FROM_MS else TICK_MS

    def forget(self, stream_ids: Iterable[str]) -> None:
        """Let streams begin anew: what was sampled before says nothing about their rates."""
        for stream_id in stream_ids:
            self._last.pop(stream_id, None)

    async def registered(self) -> Mapping[str, Registered]:
        """The registry of streams, read again every few seconds."""
        if self._refreshed < time.monotonic() - REGISTRY_AGE_S:
            return await self._refresh()
        return self._registered

    async def _refresh(self) -> Mapping[str, Registered]:
        self._registered = {stream.stream_id: stream for stream in await self._log.run(config.streams())}
        self._refreshed = time.monotonic()
        return self._registered

    def _sampled(self, stream_id: str, state: Counted, *, at_ms: int) -> Sample:
        stream = self._registered[stream_id]
        is_known = stream_id in self._last
        before_ms, before = self._last.get(stream_id) or (at_ms - TICK_MS, _before_first(state, at_ms=at_ms))
        # A stream that was quiet is sampled again because it changed since the last round, not since its last sample.
        elapsed_ms = at_ms - before_ms if stream_id in self._moving else self._quiet_ms
        seconds = max(1, elapsed_ms) / 1000
        self._last[stream_id] = (at_ms, state)
        return Sample(
            stream_id=stream_id,
            workspace_id=stream.workspace_id,
            name=stream.name,
            at_ms=at_ms,
            offset=state.offset,
            first_offset=state.first_offset,
            messages=state.messages,
            bytes=state.bytes,
            committed=state.committed_offset,
            lag=state.lag,
            duplicates=state.duplicates,
            rate_in=(state.offset - before.offset) / seconds,
            bytes_in=(state.appended_bytes - before.appended_bytes) / seconds,
            rate_out=max(0, state.committed_offset - before.committed_offset) / seconds
            + self.acked.get(stream_id, 0.0),
            first_ms=state.first_ms,
            last_ms=state.last_ms,
            archived=state.archived_offset,
            appended_bytes=state.appended_bytes,
            missed=state.missed,
            removed=max(0, state.by_retention_messages),
            is_to_tend=state.is_bounded or not is_known or state.first_offset != before.first_offset,
        )


def _before_first(state: Counted, *, at_ms: int) -> Counted:
    """How a stream stood before the first look at it: as now, but one whose first message has just come had nothing."""
    is_new = state.first_offset == 1 and state.first_ms is not None
    if is_new and abs(at_ms - (state.first_ms or 0)) <= NEW_WITHIN_MS:
        return structs.replace(state, offset=0, appended_bytes=0, committed_offset=0)
    return state


async def record(log: AsyncLog, metrics_stream_id: str, samples: Iterable[Sample], *, at_ms: int) -> None:
    """Append samples to the system's own stream, where the live charts and the history find them, and their sums to
    the flow of each workspace.

    A full store takes none: they are left out, so that what makes room there goes on.
    """
    visible = [sample for sample in samples if sample.stream_id != metrics_stream_id]
    try:
        await log.run(flow.note(flows(visible, at_ms=at_ms)))
    except StoreFull:
        return
    for first in range(0, len(visible), MOST_IN_ONE_RECORD):
        part = visible[first : first + MOST_IN_ONE_RECORD]
        body = json.dumps({"at": at_ms, "streams": {sample.stream_id: _figures(sample) for sample in part}})
        message = NewMessage(id=f"{at_ms}-{first}", body=body.encode())
        try:
            await log.run(append(metrics_stream_id, [message]))
        except (StreamNotFound, StoreFull, StoreUnavailable):
            return


def flows(samples: Iterable[Sample], *, at_ms: int) -> dict[int, Flow]:
    """The sums of each workspace."""
    sums: dict[int, list[float]] = {}
    for sample in samples:
        held = sums.setdefault(sample.workspace_id, [0.0, 0.0, 0.0])
        held[0] += sample.rate_in
        held[1] += sample.bytes_in
        held[2] += sample.rate_out
    return {
        workspace_id: Flow(at_ms, *(round(each, 3) for each in held)) for workspace_id, held in sums.items()
    }


def _figures(sample: Sample) -> dict[str, object]:
    return {
        "name": sample.name,
        "offset": sample.offset,
        "messages": sample.messages,
        "bytes": sample.bytes,
        "appended": sample.appended_bytes,
        "duplicates": sample.duplicates,
        "removed": sample.removed,
        "committed": sample.committed,
        "lag": sample.lag,
        "in": round(sample.rate_in, 3),
        "bytes_in": round(sample.bytes_in, 3),
        "out": round(sample.rate_out, 3),
    }
