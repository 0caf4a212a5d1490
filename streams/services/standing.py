"""Storing how groups stood, as Spark counted it from the worker's samples."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Max, QuerySet

from streams.log.counts import COUNTERS, HIGHEST, MEASURES, Counts, Quiet, grown, quiet_kept
from streams.models import Event, RemovalCount, RollupPosition, Run, StandingRollup
from streams.models.history import Step
from streams.services.history import Progressed, streams_there
from streams.services.window_rows import window_rows

OF_WINDOW = ("stream_id", "group", "step")
"""Whose a window is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoodPoint:
    """What new samples say of one window, as ``StandingRollup`` has it.

    Attributes:
        counted: the ``COUNTERS``, as the last sample has them; None where samples do not say them.
        counted_first: as the first of all samples has them that are new, where it lies in this window.
        counted_grown: by how much they grew from one new sample to the next.
        ack_ms, ack_ms_first, ack_ms_grown: the same of ms from publish to acknowledgement → how many messages.
        highest: each of ``HIGHEST`` → its highest value.
        statuses, edge_ms, quiet: as ``status_seen``, ``edge_ms_min`` and ``quiet``; None where no sample says it.
    """

    stream_id: str
    group: str
    step: str
    start: datetime
    samples: int
    last_ms: int
    counted: Counts | None
    counted_first: Counts | None
    counted_grown: Mapping[str, int]
    ack_ms: Counts | None
    ack_ms_first: Counts | None
    ack_ms_grown: Mapping[str, int]
    highest: Mapping[str, int]
    seen: Mapping[str, Mapping[int, int]]
    statuses: Mapping[str, int] | None = None
    edge_ms: int | None = None
    quiet: Sequence[Quiet] | None = None


@transaction.atomic
def standing_add(points: Iterable[StoodPoint], *, position: Progressed, run: Run | None = None) -> int:
    """Add newly counted samples and move the position, both or neither; returns how many windows changed.

    Nothing is done where the position is no longer where the counting started; streams that have gone are passed over.
    """
    wanted = list(points)
    there = streams_there(each.stream_id for each in wanted)
    held, _ = RollupPosition.objects.select_for_update().get_or_create(stream_id=position.stream_id)
    if held.offset != position.from_offset:
        return 0
    held.offset, held.fresh_to, held.run = position.to_offset, position.fresh_to or held.fresh_to, run
    held.save()
    wanted = [each for each in wanted if each.stream_id in there]
    if not wanted:
        return 0
    known = window_rows(
        StandingRollup.objects.all(),
        (((each.stream_id, each.group, each.step), each.start) for each in wanted),
        of=OF_WINDOW,
    )
    rows_of = {(row.stream_id, row.group, row.step, row.start): row for row in known}
    held_of = _held(there)
    held_of |= _removed_before(wanted, held_of)
    rows = [
        _added(
            rows_of.get((each.stream_id, each.group, each.step, each.start)),
            each,
            held_of.get((each.stream_id, each.group), Held()),
        )
        for each in wanted
    ]
    StandingRollup.objects.bulk_create(
        rows,
        batch_size=200,
        update_conflicts=True,
        unique_fields=["stream_id", "group", "step", "start"],
        update_fields=[
            "samples",
            "last_ms",
            *COUNTERS,
            "made_ms",
            "grown",
            "ack_ms_seen",
            "ack_ms_ever",
            *(f"{name}_seen" for name in MEASURES),
            *(f"{name}_max" for name in HIGHEST),
            "status_seen",
            "edge_ms_min",
            "quiet",
        ],
    )
    return len(rows)


class Held(NamedTuple):
    """What the last samples have that were counted before; None where there was none."""

    counted: Counts | None = None
    ack_ms: Counts | None = None


def _held(stream_ids: Collection[str]) -> dict[tuple[str, str], Held]:
    """Stream and group → what was counted of it before."""
    days = StandingRollup.objects.filter(stream_id__in=stream_ids, step=Step.DAY)
    acknowledged = _newest(days.filter(ack_ms_ever__isnull=False))
    return {
        group: Held(
            Counts(
                row.made_ms, {name: count for name in COUNTERS if (count := getattr(row, name)) is not None}
            ),
            Counts(of.made_ms, of.ack_ms_ever or {}) if (of := acknowledged.get(group)) else None,
        )
        for group, row in _newest(days).items()
    }


def _removed_before(
    points: Iterable[StoodPoint], held_of: Mapping[tuple[str, str], Held]
) -> dict[tuple[str, str], Held]:
    """Streams of which samples begin to say what retention removed → what was counted before.

    What events had told of it by then is in that, and in no window.
    """
    found: dict[tuple[str, str], Held] = {}
    for point in points:
        held = held_of.get((point.stream_id, point.group), Held())
        counted, first = held.counted or Counts(None, {}), point.counted_first
        if point.step != Step.MINUTE or point.group or first is None or "removed" not in first.of:
            continue
        if "removed" not in counted.of and (told := _told_removed(point.stream_id, before=point.start)):
            counted = Counts(counted.made_ms, {**counted.of, "removed": told})
            found[point.stream_id, point.group] = held._replace(counted=counted)
    return found


def _told_removed(stream_id: str, *, before: datetime) -> int:
    """Messages that retention had removed as far as an event had told of it before a time."""
    count = RemovalCount.objects.select_related("stream").filter(stream__stream_id=stream_id).first()
    if count is None:
        return 0
    later = Event.objects.filter(
        workspace_id=count.stream.workspace_id,
        stream=count.stream.name,
        kind="stream.expired",
        time__gte=max(before, count.stream.created_at),
    )
    told_later: int = sum((event.after or {}).get("messages", 0) for event in later)
    return count.messages - told_later


def _newest(rows: QuerySet[StandingRollup]) -> dict[tuple[str, str], StandingRollup]:
    """Stream and group → the newest of these rows, with no more of it than says where its counts stood."""
    newest = {
        (each["stream_id"], each["group"]): each["newest"]
        for each in rows.values("stream_id", "group").order_by().annotate(newest=Max("start"))
    }
    found = rows.filter(start__in=set(newest.values())).only(
        "stream_id", "group", "start", "made_ms", "ack_ms_ever", *COUNTERS
    )
    return {(row.stream_id, row.group): row for row in found if newest[row.stream_id, row.group] == row.start}


def _added(before: StandingRollup | None, new: StoodPoint, held: Held) -> StandingRollup:
    """A window with new samples; those that are counted later are of a later time."""
    row = before or StandingRollup(
        stream_id=new.stream_id,
        group=new.group,
        step=new.step,
        start=new.start,
        samples=0,
        last_ms=0,
        grown={},
    )
    row.pk = None
    row.samples += new.samples
    row.last_ms = new.last_ms
    if new.counted is not None:
        row.made_ms = new.counted.made_ms
        for name, count in new.counted.of.items():
            setattr(row, name, count)
    if row.grown is not None:
        row.grown = dict(Counter(row.grown) + _since(held.counted, new.counted_first, new.counted_grown))
    _add_watched(row, new)
    for name in MEASURES:
        setattr(row, f"{name}_seen", _together(getattr(row, f"{name}_seen"), new.seen.get(name, {})))
    acknowledged = _since(held.ack_ms, new.ack_ms_first, new.ack_ms_grown)
    row.ack_ms_seen = _together(row.ack_ms_seen, {int(place): count for place, count in acknowledged.items()})
    if new.step == Step.DAY and new.ack_ms is not None:
        row.ack_ms_ever = dict(new.ack_ms.of)
    return row


def _add_watched(row: StandingRollup, new: StoodPoint) -> None:
    """What new samples say of how far it went: the highest, the lowest, which statuses, when nobody was there."""
    for name in HIGHEST:
        highest = _known(getattr(row, f"{name}_max"), new.highest.get(name))
        setattr(row, f"{name}_max", max(highest, default=None))
    row.edge_ms_min = min(_known(row.edge_ms_min, new.edge_ms), default=None)
    if new.statuses is not None:
        row.status_seen = dict(Counter(row.status_seen or {}) + Counter(new.statuses))
    if new.quiet is not None:
        row.quiet = quiet_kept([*map(tuple, row.quiet or ()), *new.quiet])


def _known(*values: int | None) -> list[int]:
    return [value for value in values if value is not None]


def _since(held: Counts | None, first: Counts | None, inside: Mapping[str, int]) -> Counter[str]:
    """What was counted in a window: up to the first new sample, where that lies in it, and from there on."""
    return Counter(inside) + Counter(grown(held, first) if first is not None else {})


def _together(held: Mapping[str, int], more: Mapping[int, int]) -> dict[str, int]:
    """Counts by number, added up, as JSON keeps them."""
    seen = Counter({int(value): times for value, times in held.items()})
    seen.update(more)
    return {str(value): seen[value] for value in sorted(seen)}
