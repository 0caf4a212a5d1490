"""What the bodies of a day look like, and how that differs from the day before."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.db.models import F, Q, QuerySet

from streams.models import Rollup, Stream
from streams.selectors.scans import Scan, scan_of

NULLS_MOVED = 0.1
"""A field is drifting where the share of bodies without a value of it changed by so much."""

CUT_AT = 200
"""A profile with so many fields may have lost some: nothing is said to be new or gone then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How a field differs from the day before that has a profile (``against``).

    Attributes:
        change: ``new``, ``gone``, ``type`` (there is one that there was not) or ``nulls`` (another share of them).
        before, after: the types by frequency, or shares without a value.
    """

    start: datetime
    against: datetime
    field: str
    change: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShare:
    """A field of a day: its types, most frequent first, and the share of objects that do not have it or have null."""

    name: str
    present: int
    types: list[str]
    nulls: float
    drift: list[Drift]


@dataclass(frozen=True, slots=True, kw_only=True)
class DayProfile:
    """The newest profile of a range; ``against`` is the day that it is compared with, ``scan`` what it is from."""

    start: datetime
    against: datetime | None
    scan: Scan
    bodies: int
    unreadable: int
    fields: list[FieldShare]
    gone: list[Drift]


def profile_latest(stream: Stream, *, until: datetime) -> DayProfile | None:
    """The newest profile of a day that began before a moment, and its drift; a day of whose bodies none could be taken
    apart has none.
    """
    day = _days(stream, until=until).first()
    if day is None:
        return None
    is_readable = _readable(day) > 0
    before = _with_fields(_days(stream, until=day.start)).first() if is_readable else None
    drifts = [] if before is None else drift_of(before, day)
    return DayProfile(
        start=day.start,
        against=None if before is None else before.start,
        scan=scan_of([day]),
        bodies=day.bodies or 0,
        unreadable=day.unreadable or 0,
        fields=[
            FieldShare(
                name=each["name"],
                present=each["present"],
                types=_types(each).split(", "),
                nulls=_nulls(day, each),
                drift=[drift for drift in drifts if drift.field == each["name"]],
            )
            for each in day.fields or ()
        ],
        gone=[drift for drift in drifts if drift.change == "gone"],
    )


def history_drift(
    stream: Stream, *, since: datetime | None = None, until: datetime | None = None
) -> list[Drift]:
    """How each day of a range differs from the day before it that has a profile, oldest first; a day of whose bodies
    none could be taken apart says nothing of fields.
    """
    days = list(_with_fields(_days(stream, until=until)).order_by("start"))
    return [
        drift
        for before, day in pairwise(days)
        if since is None or day.start >= since
        for drift in drift_of(before, day)
    ]


def drift_of(before: Rollup, day: Rollup) -> list[Drift]:
    """How the fields of a day differ from those of another; a field that was rarely there is compared, too."""
    then, now = _by_name(before), _by_name(day)
    found: list[Drift] = []

    def note(name: str, change: str, was: str, is_: str) -> None:
        found.append(
            Drift(start=day.start, against=before.start, field=name, change=change, before=was, after=is_)
        )

    if max(len(then), len(now)) < CUT_AT:
        for name in now.keys() - then.keys():
            note(name, "new", "", _types(now[name]))
        for name in then.keys() - now.keys():
            note(name, "gone", _types(then[name]), "")
    for name in now.keys() & then.keys():
        if now[name]["types"].keys() - then[name]["types"].keys() - {"null"}:
            note(name, "type", _types(then[name]), _types(now[name]))
        nulls = _nulls(before, then[name]), _nulls(day, now[name])
        if round(abs(nulls[0] - nulls[1]), 6) >= NULLS_MOVED:
            note(name, "nulls", f"{nulls[0]:.0%}", f"{nulls[1]:.0%}")
    return sorted(found, key=lambda each: (each.field, each.change))


def _days(stream: Stream, *, until: datetime | None) -> QuerySet[Rollup]:
    days = Rollup.objects.filter(stream_id=stream.stream_id, step="day", fields__isnull=False, bodies__gt=0)
    if until is not None:
        days = days.filter(start__lt=until)
    return days.order_by("-start")


def _with_fields(days: QuerySet[Rollup]) -> QuerySet[Rollup]:
    """Those of which a body could be taken apart."""
    return days.filter(Q(unreadable__isnull=True) | Q(unreadable__lt=F("bodies")))


def _readable(day: Rollup) -> int:
    return (day.bodies or 0) - (day.unreadable or 0)


def _by_name(day: Rollup) -> dict[str, Mapping[str, Any]]:
    return {each["name"]: each for each in day.fields or ()}


def _types(field: Mapping[str, Any]) -> str:
    by_frequency = sorted(field["types"].items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(name for name, _ in by_frequency)


def _nulls(day: Rollup, field: Mapping[str, Any]) -> float:
    """The share of the objects that could be taken apart which have no value of a field."""
    readable = _readable(day)
    has_value = field["present"] - field["types"].get("null", 0)
    return 1 - has_value / readable if readable else 0.0
