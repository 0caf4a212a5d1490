"""Storing how groups stood, as Spark counted it from the worker's samples."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from streams.models import RollupPosition, StandingRollup, Stream
from streams.services.history import Progressed

COUNTERS = ("deliveries", "acked", "redelivered", "dead_lettered", "lost", "duplicates")
MEASURES = ("lag", "lag_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoodPoint:
    """What new samples say of one window; as ``StandingRollup`` has it."""

    stream_id: str
    group: str
    step: str
    start: datetime
    samples: int
    last_ms: int
    counters: Mapping[str, int]
    highest: Mapping[str, int]
    seen: Mapping[str, Mapping[int, int]]


@transaction.atomic
def standing_add(points: Iterable[StoodPoint], *, position: Progressed) -> int:
    """Add newly counted samples and move the position, both or neither; returns how many windows changed.

    Nothing is done where the position is no longer where the counting started; streams that have gone are passed over.
    """
    held, _ = RollupPosition.objects.select_for_update().get_or_create(stream_id=position.stream_id)
    if held.offset != position.from_offset:
        return 0
    held.offset, held.fresh_to = position.to_offset, position.fresh_to or held.fresh_to
    held.save()
    wanted = list(points)
    there = set(
        Stream.objects.filter(stream_id__in={each.stream_id for each in wanted}).values_list(
            "stream_id", flat=True
        )
    )
    wanted = [each for each in wanted if each.stream_id in there]
    if not wanted:
        return 0
    starts = [each.start for each in wanted]
    known = StandingRollup.objects.filter(stream_id__in=there, start__gte=min(starts), start__lte=max(starts))
    rows_of = {(row.stream_id, row.group, row.step, row.start): row for row in known}
    rows = [_added(rows_of.get((each.stream_id, each.group, each.step, each.start)), each) for each in wanted]
    StandingRollup.objects.bulk_create(
        rows,
        batch_size=200,
        update_conflicts=True,
        unique_fields=["stream_id", "group", "step", "start"],
        update_fields=[
            "samples",
            "last_ms",
            *COUNTERS,
            *(f"{name}_{what}" for name in MEASURES for what in ("max", "seen")),
        ],
    )
    return len(rows)


def _added(before: StandingRollup | None, new: StoodPoint) -> StandingRollup:
    """A window with new samples; those that are counted later are of a later time."""
    row = before or StandingRollup(
        stream_id=new.stream_id, group=new.group, step=new.step, start=new.start, samples=0, last_ms=0
    )
    row.pk = None
    row.samples += new.samples
    row.last_ms = new.last_ms
    for name in COUNTERS:
        if name in new.counters:
            setattr(row, name, new.counters[name])
    for name in MEASURES:
        highest = [
            value for value in (getattr(row, f"{name}_max"), new.highest.get(name)) if value is not None
        ]
        setattr(row, f"{name}_max", max(highest, default=None))
        seen = Counter({int(value): times for value, times in getattr(row, f"{name}_seen").items()})
        seen.update(new.seen.get(name, {}))
        setattr(row, f"{name}_seen", {str(value): seen[value] for value in sorted(seen)})
    return row
