"""Live consumer groups: told within a second or two of what changed in their stream, and at each look of the worker."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any

from channels.db import database_sync_to_async

from dashboard import languages
from dashboard.groups.group_rows import DOTS, GroupRow
from dashboard.live import live_events
from dashboard.live.live_events import GroupSampled, WorstGroupSampled
from dashboard.live.unavailable import GroupAway, group_away
from streams import selectors
from streams.models import Group, Stream

TURN_S = 1.0
AT_ONCE = 100
"""Groups told in one turn. The others have the next turn, however many there are."""

logger = logging.getLogger(__name__)


def group_sampled(row: GroupRow, *, at_ms: int) -> GroupSampled:
    """The event that tells how a group stands; ``at_ms`` is from before it was looked at."""
    state = row.state
    return GroupSampled(
        stream_id=row.group.stream.stream_id,
        group_id=row.group.pk,
        stream=row.group.stream.name,
        name=row.name,
        at_ms=at_ms,
        status=row.status,
        state=row.dot,
        reason=row.reason,
        lag=state.lag,
        lag_seconds=row.lag_seconds,
        ack_pending=state.ack_pending,
        delivered=state.delivered_offset,
        ack_floor=state.ack_floor,
        redelivered=state.redelivered,
        dead_letters=state.dead_letters,
        lost=state.lost,
        members=len(row.view.members),
        waiting=row.view.waiting,
        ack_rate=row.ack_rate,
        eta_seconds=row.eta_seconds,
        edge_seconds=row.edge_seconds,
        fetched_ms=row.fetched_ms,
        acked_ms=row.acked_ms,
        judged_ms=row.judged_ms,
        out_mark=row.out_mark,
        dead_mark=row.dead_mark,
        said=languages.in_others(lambda: {"reason": row.reason}),
    )


def sampled(groups: Iterable[Group], *, at_ms: int) -> list[GroupSampled | GroupAway]:
    """The events that tell how groups stand; those that the log no longer has are left out."""
    views, away = selectors.views_and_away(groups)
    return [
        *(group_sampled(GroupRow(view), at_ms=at_ms) for view in views),
        *(group_away(group, at_ms=at_ms) for group in away),
    ]


def worst_sampled(streams: Sequence[Stream], *, at_ms: int) -> list[WorstGroupSampled]:
    """One event for each of these streams that has groups."""
    worst = selectors.worst_groups(streams)
    return [
        WorstGroupSampled(
            stream_id=stream.stream_id,
            stream=stream.name,
            at_ms=at_ms,
            worst=group.verdict.status,
            worst_state=DOTS[group.verdict.status],
            worst_reason=_named_reason(group),
            worst_lag_seconds=group.lag_seconds or None,
            said=languages.in_others(lambda group=group: {"worst_reason": _named_reason(group)}),  # type: ignore[misc]
        )
        for stream in streams
        if (group := worst.get(stream.pk)) is not None
    ]


def _named_reason(group: selectors.JudgedGroup) -> str:
    return f"{group.name}: {group.verdict.reason}"


class GroupFeed:
    """Tells of the groups of streams that changed, a bounded number a second, the longest waiting first."""

    def __init__(self) -> None:
        self._changed: dict[str, None] = {}
        self._telling: asyncio.Task[None] | None = None

    def changed(self, stream_ids: Iterable[str]) -> None:
        """Note that something happened to these streams; never waits."""
        for stream_id in stream_ids:
            self._changed.setdefault(stream_id)
        if self._changed and (self._telling is None or self._telling.done()):
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while self._changed:
            started = time.monotonic()
            part = list(self._changed)[:AT_ONCE]
            try:
                told, events = await database_sync_to_async(_events)(part)
                for stream_id in told:
                    self._changed.pop(stream_id, None)
                await live_events.send_many(events)
            except Exception as error:
                # The store is away: what changed stays noted, and a page that missed it asks by itself.
                logger.warning("Live groups wait for the store: %s", error)
            await asyncio.sleep(max(0.05, TURN_S - (time.monotonic() - started)))


def _events(stream_ids: Sequence[str]) -> tuple[list[str], list[Any]]:
    """The events of the first of these streams, as far as the turn reaches; of a stream, at most its first hundred."""
    at_ms = int(time.time() * 1000)
    found: dict[str, list[Group]] = {stream_id: [] for stream_id in stream_ids}
    streams: dict[str, Stream] = {}
    for group in Group.objects.filter(stream__stream_id__in=stream_ids).select_related("stream"):
        found[group.stream.stream_id].append(group)
        streams[group.stream.stream_id] = group.stream
    told: list[str] = []
    wanted: list[Group] = []
    for stream_id, groups in found.items():
        if wanted and len(wanted) + len(groups) > AT_ONCE:
            break
        told.append(stream_id)
        wanted += groups[:AT_ONCE]
    events: list[Any] = [*sampled(wanted, at_ms=at_ms)]
    return told, [*events, *worst_sampled([streams[each] for each in told if each in streams], at_ms=at_ms)]


_feed = GroupFeed()


async def publish_changed(stream_ids: Iterable[str]) -> None:
    """What the worker calls with the streams that changed, and with those whose groups it has looked at."""
    _feed.changed(stream_ids)
