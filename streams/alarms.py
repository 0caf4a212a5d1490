"""When an alert begins and ends: pure functions over values in time, the same for now and for a look back.

A value that is past its limit for long enough fires; it ends when a value is back beyond the limit for clearing, so
that a value that trembles around its limit is one alert, not twenty. An unknown value (None) changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

EVERY_S = 10.0
"""How long the worker waits between two looks; a rate is the mean between them."""

Watch = Literal[
    "status",
    "lag",
    "lag_seconds",
    "rate_above",
    "rate_below",
    "no_consumer",
    "retention_edge",
    "dead_letters",
]
"""What a rule looks at. ``status`` is 1 while the group has one of the rule's, else 0; times are seconds."""

FALLS: frozenset[str] = frozenset({"rate_below", "retention_edge"})
"""Watches that fire when the value is below the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """When a value is bad, when it is good again, and how many seconds it must be bad before it fires."""

    limit: float
    clear: float
    for_s: float
    falls: bool = False

    def is_bad(self, value: float) -> bool:
        return value < self.limit if self.falls else value > self.limit

    def is_good(self, value: float) -> bool:
        return value >= self.clear if self.falls else value <= self.clear


@dataclass(frozen=True, slots=True)
class Track:
    """What is known of one subject of a rule: bad since when, and whether it fires."""

    bad_since_s: float | None = None
    fires: bool = False


def followed(track: Track, limit: Limit, value: float | None, *, at_s: float) -> Track:
    """What is known after another value."""
    if value is None:
        return track
    if track.fires:
        return Track() if limit.is_good(value) and not limit.is_bad(value) else track
    if not limit.is_bad(value):
        return Track()
    since = at_s if track.bad_since_s is None else track.bad_since_s
    return Track(since, at_s - since >= limit.for_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One alert that would have been: unix seconds of its beginning and end."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


def would_have_fired(limit: Limit, points: Iterable[tuple[float, float]], *, until_s: float) -> list[Span]:
    """The alerts over (unix seconds, value), ascending; a value holds until the next one, the last until the end."""
    spans: list[Span] = []
    track, began_s, last = Track(), None, None

    def look(value: float, at_s: float) -> None:
        nonlocal track, began_s
        track = followed(track, limit, value, at_s=at_s)
        if track.fires and began_s is None:
            began_s = at_s
        elif not track.fires and began_s is not None:
            spans.append(Span(start_s=began_s, end_s=at_s))
            began_s = None

    for at_s, value in [*points, (until_s, None)]:
        # A value that held until now may have become an alert in between.
        if last is not None and track.bad_since_s is not None and not track.fires:
            due_s = track.bad_since_s + limit.for_s
            if due_s <= at_s:
                look(last, due_s)
        if value is not None:
            look(value, at_s)
            last = value
    if began_s is not None:
        spans.append(Span(start_s=began_s, end_s=until_s))
    return spans
