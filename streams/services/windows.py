"""Which minutes, hours and days are to be looked at as a whole, and storing what was found."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Max, Min, Q, QuerySet

from streams.models import Erasure, Rollup, RollupPosition, Run
from streams.models.history import Job, RunState, Step
from streams.services.storable import storable
from streams.services.window_gaps import gaps_counted

AT_ONCE = 3000
"""Windows of one look: their figures are in memory together."""

BESIDE = 100_000
"""Messages in windows that are looked at beside those that are due, in a run that is under way anyway."""

FIGURES = (
    "first_offset",
    "last_offset",
    "missing",
    "ids",
    "keys",
    *(f"size_{each}" for each in ("p50", "p90", "p99", "max")),
    "top_keys",
    "bodies",
    "unreadable",
    "fields",
)

LOOK = ("looked_at", "scanned", "look_run", "look_time")

FORGOTTEN: dict[str, Any] = {**dict.fromkeys([*LOOK, *FIGURES]), "looked_at": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class DueWindow:
    """A window that is to be looked at.

    Attributes:
        pk: of its row.
        messages: how many are counted into it.
        counted: up to which offset.
    """

    pk: int
    stream_id: str
    step: str
    start: datetime
    messages: int
    counted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFigures:
    """What a look at a window found, and that it was looked at with so many messages counted (``looked_at``), of which
    so many were there (``scanned``); ``missing`` are offsets between its first and its last.
    """

    pk: int
    looked_at: int
    scanned: int
    first_offset: int | None
    last_offset: int | None
    missing: int
    ids: int
    keys: int
    size_p50: int | None
    size_p90: int | None
    size_p99: int | None
    size_max: int | None
    top_keys: list[tuple[str, int]]
    bodies: int | None = None
    unreadable: int | None = None
    fields: list[dict[str, Any]] | None = None


def windows_due(*, now: datetime, limit: int = AT_ONCE) -> list[DueWindow]:
    """The windows that have grown by a quarter since they were looked at, or at all once they are over; newest first.

    So a message is looked at some five times for each of its windows, however often the rollups run.
    """
    over = Q()
    for step in Step:
        over |= Q(step=step, start__lte=now - step.length)
    grown = Q(messages__gte=F("looked_at") + F("looked_at") / 4)
    return _as_due(_behind().filter(over | grown).order_by("-start", "pk")[:limit])


def windows_beside(*, but: Iterable[DueWindow], most: int = BESIDE) -> list[DueWindow]:
    """Further windows that have grown at all, the smallest first, as long as few messages are read for them.

    They are no reason for a run, but in one that is under way they cost little (docs/adr/0026).

    Args:
        but: those that are looked at anyway.
        most: messages that all of these windows have together.
    """
    found: list[DueWindow] = []
    known = {each.pk for each in but}
    for each in _as_due(_behind().order_by("messages", "pk")[:AT_ONCE]):
        if each.pk in known:
            continue
        most -= each.messages
        if most < 0:
            break
        found.append(each)
    return found[: max(0, AT_ONCE - len(known))]


def _behind() -> QuerySet[Rollup]:
    """The windows that have grown since they were looked at."""
    return Rollup.objects.filter(looked_at__lt=F("messages"))


def _as_due(windows: QuerySet[Rollup]) -> list[DueWindow]:
    rows = list(windows.values_list("pk", "stream_id", "step", "start", "messages"))
    counted = dict(
        RollupPosition.objects.filter(stream_id__in={row[1] for row in rows}).values_list(
            "stream_id", "offset"
        )
    )
    return [
        DueWindow(
            pk=pk,
            stream_id=stream_id,
            step=step,
            start=start,
            messages=messages,
            counted=counted.get(stream_id, 0),
        )
        for pk, stream_id, step, start, messages in rows
    ]


@transaction.atomic
def windows_store(found: Iterable[WindowFigures], *, since: datetime, run: Run | None = None) -> int:
    """Put figures in the place of those of an earlier look; those of rows that have gone are passed over.

    So are those of streams of which something was erased meanwhile: they may name it, and are due again.

    Whole rows in a few statements: Django's ``bulk_update``, a choice of rows for each column, kept the database
    for five seconds a day of minutes.

    Args:
        since: when the look began, before it knew which files to read.
        run: that looked.

    Returns:
        How many were put there.
    """
    looks = {each.pk: each for each in found}
    held = Rollup.objects.filter(pk__in=looks)
    _one_at_a_time(held.values_list("stream_id", flat=True).distinct().order_by())
    rows = list(held.select_for_update()) if looks else []
    erased = Erasure.objects.filter(state=RunState.SUCCEEDED, finished_at__gte=since)
    passed_over = set(erased.values_list("stream_id", flat=True))
    rows = [row for row in rows if row.stream_id not in passed_over]
    for row in rows:
        look = looks[row.pk]
        row.looked_at, row.scanned, row.look_run, row.look_time = look.looked_at, look.scanned, run, since
        for name in FIGURES:
            setattr(row, name, getattr(look, name))
        if look.fields is not None:
            row.fields = [{**each, "name": storable(each["name"])} for each in look.fields]
    Rollup.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["pk"],
        update_fields=[*LOOK, *FIGURES],
        batch_size=500,
    )
    gaps_counted(rows)
    return len(rows)


def _one_at_a_time(stream_ids: Iterable[str]) -> None:
    """Until the transaction ends, whoever else stores or forgets figures of these streams waits."""
    list(RollupPosition.objects.select_for_update().filter(stream_id__in=set(stream_ids)).order_by("pk"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Which windows of a stream name a key, as of a look without the database held.

    Attributes:
        pks: of their rows.
        runs_from: the first run that may have stored figures since.
    """

    pks: list[int]
    runs_from: int


def windows_naming(stream_id: str, *, key: str) -> Naming:
    """The windows whose figures name a key: as many as there ever were are read, so outside of a transaction."""
    runs = Run.objects.filter(job=Job.ROLLUP)
    under_way = runs.filter(state__in=[RunState.QUEUED, RunState.RUNNING]).aggregate(first=Min("pk"))["first"]
    runs_from = under_way or (runs.aggregate(last=Max("pk"))["last"] or 0) + 1
    looked = Rollup.objects.filter(stream_id=stream_id, looked_at__gt=0)
    return Naming(pks=list(_naming(looked, key)) if key else [], runs_from=runs_from)


def windows_forget(stream_id: str, *, offset: int | None, key: str, naming: Naming) -> int:
    """Forget the figures that name a key, or count an offset, that was erased; they are looked for anew.

    Args:
        naming: the windows that were found to name the key; they are looked at again, and those stored since.

    Returns:
        How many windows.
    """
    _one_at_a_time({stream_id})
    found = Rollup.objects.filter(stream_id=stream_id, looked_at__gt=0)
    if offset is not None:
        found = found.filter(first_offset__lte=offset, last_offset__gte=offset)
        return found.update(**FORGOTTEN)
    # A field's name may be of an erased message, too, and nobody knows of which day.
    days = found.filter(fields__isnull=False).update(**FORGOTTEN)
    stored_since = found.filter(look_run__gte=naming.runs_from)
    forgotten = 0
    for rows in (stored_since, *(found.filter(pk__in=pks) for pks in _slices(naming.pks))):
        for pks in _slices(list(_naming(rows, key))):
            forgotten += found.filter(pk__in=pks).update(**FORGOTTEN)
    return days + forgotten


def _naming(rows: QuerySet[Rollup], key: str) -> Iterator[int]:
    """Those of these rows whose figures name a key."""
    known = rows.filter(top_keys__isnull=False).order_by().values_list("pk", "top_keys")
    return (pk for pk, top_keys in known.iterator() if any(named == key for named, _ in top_keys or ()))


def _slices(pks: list[int]) -> Iterator[list[int]]:
    return (pks[first : first + 500] for first in range(0, len(pks), 500))
