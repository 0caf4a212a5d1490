"""Storing how groups stood, as Spark counted it from the worker's samples."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from streams.models import RollupPosition, Run, StandingRollup, Stream
from streams.models.history import Step
from streams.services.history import Progressed

COUNTERS = ("deliveries", "acked", "redelivered", "dead_lettered", "lost", "duplicates")
MEASURES = ("lag", "lag_ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoodPoint:
    """What new samples say of one window, as ``StandingRollup`` has it.

    Attributes:
        ack_ms: ms from publish to acknowledgement → how many messages, ever; None where samples do not say it.
    """

    stream_id: str
    group: str
    step: str
    start: datetime
    samples: int
    last_ms: int
    counters: Mapping[str, int]
    ack_ms: Mapping[int, int] | None
    highest: Mapping[str, int]
    seen: Mapping[str, Mapping[int, int]]


@transaction.atomic
def standing_add(points: Iterable[StoodPoint], *, position: Progressed, run: Run | None = None) -> int:
    """Add newly counted samples and move the position, both or neither; returns how many windows changed.

    Nothing is done where the position is no longer where the counting started; streams that have gone are passed over.
    """
    held, _ = RollupPosition.objects.select_for_update().get_or_create(stream_id=position.stream_id)
    if held.offset != position.from_offset:
        return 0
    held.offset, held.fresh_to, held.run = position.to_offset, position.fresh_to or held.fresh_to, run
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
    acknowledged = _acknowledged(wanted, there)
    rows = [
        _added(rows_of.get(_window(each)), each, acknowledged.get(_window(each), Counter()))
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
            "ack_ms_seen",
            "ack_ms_ever",
            *(f"{name}_{what}" for name in MEASURES for what in ("max", "seen")),
        ],
    )
    return len(rows)


Window = tuple[str, str, str, datetime]


def _window(point: StoodPoint) -> Window:
    return point.stream_id, point.group, point.step, point.start


def _acknowledged(points: Iterable[StoodPoint], stream_ids: Collection[str]) -> dict[Window, Counter[int]]:
    """What was acknowledged in each window, minute by minute: by how much each count grew. Lower ones began anew."""
    found: dict[Window, Counter[int]] = {}
    ever = _ever(stream_ids)
    minutes = [each for each in points if each.step == Step.MINUTE and each.ack_ms is not None]
    for each in sorted(minutes, key=lambda point: point.start):
        now = Counter(each.ack_ms)
        before = ever.get((each.stream_id, each.group), Counter())
        grown = now - before if before <= now else now
        ever[each.stream_id, each.group] = now
        for step in Step:
            window = (each.stream_id, each.group, step.value, step.floor(each.start))
            found.setdefault(window, Counter()).update(grown)
    return found


def _ever(stream_ids: Collection[str]) -> dict[tuple[str, str], Counter[int]]:
    """Stream and group → what it had ever acknowledged when it was sampled last."""
    days = StandingRollup.objects.filter(
        stream_id__in=stream_ids, step=Step.DAY, ack_ms_ever__isnull=False
    ).exclude(group="")
    newest = {
        (each["stream_id"], each["group"]): each["newest"]
        for each in days.values("stream_id", "group").order_by().annotate(newest=Max("start"))
    }
    held = days.filter(start__in=set(newest.values())).values_list(
        "stream_id", "group", "start", "ack_ms_ever"
    )
    return {
        (stream_id, group): Counter({int(place): count for place, count in (ever or {}).items()})
        for stream_id, group, start, ever in held
        if newest[stream_id, group] == start
    }


def _added(before: StandingRollup | None, new: StoodPoint, acknowledged: Mapping[int, int]) -> StandingRollup:
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
        setattr(row, f"{name}_seen", _together(getattr(row, f"{name}_seen"), new.seen.get(name, {})))
    row.ack_ms_seen = _together(row.ack_ms_seen, acknowledged)
    if new.step == Step.DAY and new.ack_ms is not None:
        row.ack_ms_ever = _together({}, new.ack_ms)
    return row


def _together(held: Mapping[str, int], more: Mapping[int, int]) -> dict[str, int]:
    """Counts by number, added up, as JSON keeps them."""
    seen = Counter({int(value): times for value, times in held.items()})
    seen.update(more)
    return {str(value): seen[value] for value in sorted(seen)}
