"""The rows of just some windows, whatever else there is between the first and the last of them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from django.db.models import Q, QuerySet

from streams.models import Rollup, StandingRollup

AT_ONCE = 200
"""Windows of one statement: SQLite takes some thousand values, and a thousand alternatives."""

Row = TypeVar("Row", Rollup, StandingRollup)


def window_rows(
    rows: QuerySet[Row], windows: Iterable[tuple[Sequence[str], datetime]], *, of: Sequence[str]
) -> Iterator[Row]:
    """The rows of windows, as far as they are there.

    Args:
        windows: whose each is, and where it begins.
        of: the fields that say whose a row is; with ``start`` they tell it from all others.
    """
    ordered = sorted({(tuple(whose), start) for whose, start in windows})
    for first in range(0, len(ordered), AT_ONCE):
        each_of = [
            Q(**dict(zip(of, whose, strict=True)), start__in=[start for _, start in some])
            for whose, some in groupby(ordered[first : first + AT_ONCE], key=itemgetter(0))
        ]
        yield from rows.filter(Q(*each_of, _connector=Q.OR)).order_by()
