"""Lists of groups, of a stream or of all: which are asked for, in which order, and a page of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from dashboard.groups.group_rows import GroupRow
from dashboard.lists.sorts import both_ways
from dashboard.quantities import is_on, number_of
from streams import expressions, selectors
from streams.models import Group
from streams.selectors import JudgedGroup
from streams.selectors.group_verdicts import WORST_FIRST

PAGE_SIZE = 50
NUMBERS = {
    "time": attrgetter("lag_seconds"),
    "lag": attrgetter("lag"),
    "pending": attrgetter("pending"),
    "dead": attrgetter("dead_letters"),
}
"""What a list is sorted by, as the worker saw it last; what is not known counts as nought."""

COLUMNS = (
    ("name", _("Name")),
    ("status", _("Status")),
    ("lag", _("Lag")),
    ("time", _("Time lag")),
    ("pending", _("Pending")),
    ("dead", _("Dead letters")),
)
SORTS = tuple(column for column, _label in COLUMNS)


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """What is asked of the list; the page's query string is this.

    Attributes:
        name: a part of the name, or with ``regex`` a regular expression.
        status: a verdict that they have; empty for any.
        sort: one of ``SORTS``; the worst status and the highest number first with a leading ``-``.
    """

    name: str = ""
    regex: bool = False
    status: str = ""
    sort: str = "name"
    number: int = 1

    @property
    def is_narrowed(self) -> bool:
        return bool(self.name or self.status)

    @property
    def sorts(self) -> list[tuple[str, str]]:
        """What a list without headings offers to be sorted by."""
        return both_ways((column, str(label)) for column, label in COLUMNS)

    @property
    def fault(self) -> str | None:
        """What is wrong with the regular expression."""
        return expressions.fault(self.name) if self.regex else None

    def matching(self, groups: "QuerySet[Group]") -> "QuerySet[Group]":
        """Those of some groups whose names match; none where the expression has a fault."""
        if not self.regex:
            return groups.filter(name__contains=self.name)
        return groups.none() if self.fault else selectors.named_like(groups, self.name)

    def arranged(self, groups: list[JudgedGroup]) -> list[JudgedGroup]:
        """``groups`` come the worst first."""
        column, falls = self.sort.removeprefix("-"), self.sort.startswith("-")
        if column == "status":
            return groups if falls else groups[::-1]
        if column in NUMBERS:
            return sorted(groups, key=lambda each: NUMBERS[column](each) or 0, reverse=falls)
        return sorted(groups, key=lambda each: (each.name, each.stream), reverse=falls)


@dataclass(frozen=True, slots=True)
class GroupPage:
    """One page of rows, and of groups whose server is ``away``; ``total`` match, of ``all`` that there are."""

    rows: list[GroupRow]
    away: list[Group]
    first: int
    total: int
    all: int
    newer: int | None
    older: int | None

    @property
    def last(self) -> int:
        return self.first + len(self.rows) + len(self.away) - 1


def group_query_of(given: QueryDict) -> GroupQuery:
    """The query in an address; what cannot be read is passed over."""
    sort = given.get("sort", "name")
    return GroupQuery(
        name=given.get("group", "").strip()[:200],
        regex=is_on(given.get("regex")),
        status=status if (status := given.get("status", "")) in WORST_FIRST else "",
        sort=sort if sort.removeprefix("-") in SORTS else "name",
        number=number_of(given.get("page"), default=1, low=1, high=100_000),
    )


def arranged(
    groups: "QuerySet[Group]", query: GroupQuery, *, judged: Sequence[JudgedGroup] | None = None
) -> list[JudgedGroup]:
    """Those of some groups that match, in the order that is asked for; ``judged`` as in ``group_page_of``."""
    if judged is None or query.name:
        judged = selectors.groups_judged(query.matching(groups))
    return query.arranged([each for each in judged if query.status in {"", each.verdict.status}])


def group_page_of(
    groups: "QuerySet[Group]", query: GroupQuery, *, judged: Sequence[JudgedGroup] | None = None
) -> GroupPage:
    """A page of those groups that match; only the page's own are asked closely how they stand.

    Args:
        judged: all of them, the worst first, where that is known.
    """
    found = query.matching(groups)
    if query.sort == "name" and not query.status:
        pks = list(found.order_by("name", "stream__name").values_list("pk", flat=True))
    else:
        pks = [each.pk for each in arranged(groups, query, judged=judged)]
    number = min(query.number, max(1, -(-len(pks) // PAGE_SIZE)))
    begin = (number - 1) * PAGE_SIZE
    place = {pk: at for at, pk in enumerate(pks[begin : begin + PAGE_SIZE])}
    views, away = selectors.views_and_away(groups.select_related("stream").filter(pk__in=list(place)))
    return GroupPage(
        rows=sorted((GroupRow(view) for view in views), key=lambda row: place[row.group.pk]),
        away=sorted(away, key=lambda group: place[group.pk]),
        first=begin + 1,
        total=len(pks),
        all=groups.count(),
        newer=number - 1 if number > 1 else None,
        older=number + 1 if begin + PAGE_SIZE < len(pks) else None,
    )
