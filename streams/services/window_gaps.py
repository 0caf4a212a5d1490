"""What is missing between one window of a stream and the next: offsets that lie in neither of them."""

from collections.abc import Iterable, Iterator

from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, When

from streams.models import Rollup

AT_ONCE = 500
"""Windows of one statement: SQLite takes no more than some thousand values."""


def gaps_counted(stored: Iterable[Rollup]) -> None:
    """Count into windows what is missing between each and the one before, and likewise into the windows behind them.

    So the minutes of an hour come to what the hour misses, and days to what the stream does, wherever the offsets lie.
    A window behind one that has messages no look has seen yet is left with what is missing within it: it is counted
    once that one is looked at. The caller's transaction holds the streams' positions.
    """
    rows = list(stored)
    for first in range(0, len(rows), AT_ONCE):
        within = {row.pk: row.missing or 0 for row in rows[first : first + AT_ONCE]}
        changed = list(_changed(within, pks={*within, *_behind(within)}))
        Rollup.objects.bulk_create(
            changed, update_conflicts=True, unique_fields=["pk"], update_fields=["missing"]
        )


def _behind(pks: Iterable[int]) -> Iterator[int]:
    """The next window of each that has an offset."""
    later = _of_step().filter(start__gt=OuterRef("start"), last_offset__isnull=False).order_by("start")
    found = Rollup.objects.filter(pk__in=list(pks)).annotate(behind=Subquery(later.values("pk")[:1]))
    return (pk for pk in found.values_list("behind", flat=True) if pk is not None)


def _changed(within: dict[int, int], *, pks: Iterable[int]) -> Iterator[Rollup]:
    """The windows whose number is another than is stored; ``within`` is what a look has just found of some of them."""
    earlier = _of_step().filter(start__lt=OuterRef("start")).order_by("-start")
    # One of which everything was erased has no offset, and hides none of those before it.
    earlier = earlier.filter(Q(last_offset__isnull=False) | Q(looked_at__lt=F("messages")))
    seen_to = earlier.annotate(seen_to=Case(When(looked_at__gte=F("messages"), then=F("last_offset"))))
    rows = Rollup.objects.filter(pk__in=list(pks)).annotate(before=Subquery(seen_to.values("seen_to")[:1]))
    for row in rows.select_for_update():
        if row.first_offset is None or row.last_offset is None:
            continue
        inside = within.get(row.pk, max(0, row.last_offset - row.first_offset + 1 - row.messages_scanned))
        missing = inside + (0 if row.before is None else max(0, row.first_offset - 1 - row.before))
        if missing != row.missing:
            row.missing = missing
            yield row


def _of_step() -> QuerySet[Rollup]:
    """The windows of the same stream and step as an outer one."""
    return Rollup.objects.filter(stream_id=OuterRef("stream_id"), step=OuterRef("step"))
