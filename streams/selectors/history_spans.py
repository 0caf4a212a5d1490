"""How much of a stream's past lies in a range, before any of it is read."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from streams.models import Rollup, StandingRollup, Stream
from streams.models.history import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What there is in a range.

    Attributes:
        steps: from the first to the last of which something is known.
        fits_from: where the newest part of it begins that is as little as was asked for; None where all of it is.
    """

    steps: int
    fits_from: datetime | None


def history_span(
    stream: Stream,
    *,
    step: str,
    since: datetime | None = None,
    until: datetime | None = None,
    most_steps: int,
    most_rows: int,
) -> Span:
    """How much of a stream's past a range has; ``since`` inclusive, ``until`` exclusive.

    Args:
        most_rows: steps of the stream's own position and of each of its groups, all together.
    """
    published = _starts(Rollup.objects.all(), stream, step=step, since=since, until=until)
    stood = _starts(StandingRollup.objects.all(), stream, step=step, since=since, until=until)
    known = [each for rows in (published, stood) for each in (rows.first(), rows.last()) if each is not None]
    if not known:
        return Span(steps=0, fits_from=None)
    first, last, length = min(known), max(known), Step(step).length
    steps = (last - first) // length + 1
    fit = [last - (most_steps - 1) * length] if steps > most_steps else []
    fit += [min(beyond + length, last) for beyond in stood.reverse()[most_rows : most_rows + 1]]
    return Span(steps=steps, fits_from=max(fit, default=None))


def _starts(
    rows: "QuerySet[Rollup] | QuerySet[StandingRollup]",
    stream: Stream,
    *,
    step: str,
    since: datetime | None,
    until: datetime | None,
) -> "QuerySet[Rollup, datetime] | QuerySet[StandingRollup, datetime]":
    """Where rows begin, the earliest first."""
    found = rows.filter(stream_id=stream.stream_id, step=step)
    if since is not None:
        found = found.filter(start__gte=since)
    if until is not None:
        found = found.filter(start__lt=until)
    return found.order_by("start").values_list("start", flat=True)
