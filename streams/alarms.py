"""When an alert begins and ends: pure functions over values in time, the same for now and for a look back.

A value that is past its limit for long enough fires; it ends when a value is back beyond the limit for clearing, so
that a value that trembles around its limit is one alert, not twenty. An unknown value (None) changes nothing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

EVERY_S = 10.0
"""How long the worker waits between two looks; a rate is the mean between them."""

JITTER_S = 2.0
"""How far the clocks of the store and of the worker, and the moments of one sample, may lie apart."""

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


def silences(points: Sequence[tuple[float, float]], *, limit: float) -> list[tuple[float, float]]:
    """What (unix seconds, seconds since somebody was there) tells of the time between: the same, with points where it
    passes the limit and where somebody came.

    It grows while nobody comes. Where somebody came between two points, nobody had before in this gap if it had been
    silent at its beginning for longer than between two looks, and else somebody was there all along: whoever comes or
    goes is sampled (``streams.dataplane.fetching``).
    """
    found: list[tuple[float, float]] = []
    for (before_s, before), (at_s, value) in pairwise(points):
        found.append((before_s, before))
        silent_since_s, came_s = before_s - before, at_s - value
        if came_s <= before_s + JITTER_S:
            found += _passing(came_s, limit, after_s=before_s, until_s=at_s)
            continue
        if before >= EVERY_S:
            found += _passing(silent_since_s, limit, after_s=before_s, until_s=came_s)
        found.append((came_s, 0.0))
        found += _passing(came_s, limit, after_s=came_s, until_s=at_s)
    return [*found, *points[-1:]]


def _passing(since_s: float, limit: float, *, after_s: float, until_s: float) -> list[tuple[float, float]]:
    """Where a silence passes the limit, if that is between two times."""
    at_s = since_s + limit
    return [(at_s, math.nextafter(limit, math.inf))] if after_s < at_s < until_s else []


def lives(
    points: Sequence[tuple[float, float]], ends_s: Iterable[float], *, until_s: float
) -> list[tuple[list[tuple[float, float]], float]]:
    """The (unix seconds, value) of each life of what was deleted at some times and may have come again, and when it
    ended; ``until_s`` for what is left.
    """
    found, left = [], list(points)
    for end_s in sorted(ends_s):
        of_it = [point for point in left if point[0] < end_s]
        left = left[len(of_it) :]
        if of_it:
            found.append((of_it, min(end_s, until_s)))
    return [*found, (left, until_s)] if left else found


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
