"""The sums over streams that a page is told every second; to who sees some streams of a workspace, of these alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from channels.db import database_sync_to_async

from dashboard import languages
from dashboard.live.live_events import OverviewSampled, StreamSampled, StreamTold, workspace_group
from dashboard.live.unavailable import left_out
from streams import bearer, selectors
from streams.access import Caller
from streams.selectors import Firing
from streams.services.open_pages import heard

RATE_HOLDS_MS = 3_000
"""What moves, and what slows down, is told every second; a rate that was told before that has ended."""


@dataclass(slots=True)
class View:
    """What people see who are narrowed alike.

    Attributes:
        inside: whether a stream is, by its internal id; a stream's name stays.
    """

    caller: Caller
    firing: Firing = field(default_factory=Firing)
    newest_event: int = 0
    inside: dict[str, bool] = field(default_factory=dict)

    def shows(self, event: StreamTold) -> bool:
        if event.workspace_id != self.caller.workspace.pk:
            return False
        if event.stream_id not in self.inside:
            self.inside[event.stream_id] = bearer.streams_cover(self.caller.streams, event.name)
        return self.inside[event.stream_id]


class NarrowedSums:
    """The sums for each way in which people are narrowed; those that no page shows cost nothing."""

    def __init__(self) -> None:
        self._views: dict[str, View] = {}
        self._shown: set[str] = set()

    def find(self) -> None:
        """Ask how people are narrowed."""
        callers = {
            workspace_group(each.workspace.pk, each.streams): each for each in selectors.callers_narrowed()
        }
        self._views = {group: View(each) for group, each in callers.items()}

    async def look(self) -> None:
        """Ask which of them look, what fires for these, and what is the newest on record."""
        self._shown = await heard(self._views) if self._views else set()
        if self._shown:
            await database_sync_to_async(self._look)()

    def _look(self) -> None:
        for group in self._shown:
            view = self._views[group]
            view.firing = selectors.firing_for(view.caller)
            view.newest_event = selectors.newest_event(view.caller)

    def sums(
        self, events: Iterable[StreamTold], *, at_ms: int, beat: int, groups_mark: int
    ) -> list[OverviewSampled]:
        """One event for each that somebody looks at, from how all streams stood last."""
        known = list(events)
        return [
            sum_of(
                view.caller.workspace.pk,
                [event for event in known if view.shows(event)],
                at_ms=at_ms,
                beat=beat,
                firing=view.firing,
                events_mark=view.newest_event,
                groups_mark=groups_mark,
                narrowed_to=view.caller.streams,
            )
            for view in (self._views[group] for group in self._shown)
        ]


def sum_of(
    workspace_id: int,
    events: Sequence[StreamTold],
    *,
    at_ms: int,
    beat: int,
    firing: Firing,
    events_mark: int,
    groups_mark: int,
    narrowed_to: tuple[str, ...] = (),
) -> OverviewSampled:
    """How streams stood last, added up, as far as that is known."""
    known = [event for event in events if isinstance(event, StreamSampled)]
    moving = [event for event in known if at_ms - event.at_ms <= RATE_HOLDS_MS]
    unavailable = len(events) - len(known)
    return OverviewSampled(
        beat=beat,
        workspace_id=workspace_id,
        at_ms=at_ms,
        streams=len(events),
        messages=sum(event.messages for event in known),
        bytes=sum(event.bytes for event in known),
        rate_in=sum(event.rate_in or 0.0 for event in moving),
        bytes_in=sum(event.bytes_in or 0.0 for event in moving),
        rate_out=sum(event.rate_out or 0.0 for event in moving),
        last_ms=max((event.last_ms for event in known if event.last_ms), default=None),
        alerts=firing.loud,
        alerts_mark=firing.mark,
        events_mark=events_mark,
        groups_mark=groups_mark,
        unavailable=unavailable,
        left_out=left_out(unavailable),
        said=languages.in_others(lambda: {"left_out": left_out(unavailable)}) if unavailable else {},
        narrowed_to=narrowed_to,
    )
