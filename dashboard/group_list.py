"""The groups of a stream: which are asked for, in which order, and a page of them."""

from dataclasses import dataclass

from django.http import QueryDict

from dashboard.group_rows import GroupRow
from dashboard.views.door import number_of
from streams import selectors
from streams.models import Stream
from streams.selectors import JudgedGroup

PAGE_SIZE = 50
SORTS = ("name", "status", "time")


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """What is asked of the list; the page's query string is this.

    Attributes:
        name: a part of the name.
        sort: one of ``SORTS``; the worst status and the longest lag first with a leading ``-``.
    """

    name: str = ""
    sort: str = "name"
    number: int = 1

    def arranged(self, groups: list[JudgedGroup]) -> list[JudgedGroup]:
        """``groups`` come the worst first."""
        column, falls = self.sort.removeprefix("-"), self.sort.startswith("-")
        if column == "status":
            return groups if falls else groups[::-1]
        if column == "time":
            return sorted(groups, key=lambda each: each.lag_seconds or 0.0, reverse=falls)
        return sorted(groups, key=lambda each: each.name, reverse=falls)


@dataclass(frozen=True, slots=True)
class GroupPage:
    """One page of rows; ``total`` match, of ``all`` that there are."""

    rows: list[GroupRow]
    first: int
    total: int
    all: int
    newer: int | None
    older: int | None

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def group_query_of(given: QueryDict) -> GroupQuery:
    """The query in an address; what cannot be read is passed over."""
    sort = given.get("sort", "name")
    return GroupQuery(
        name=given.get("group", "").strip()[:200],
        sort=sort if sort.removeprefix("-") in SORTS else "name",
        number=number_of(given.get("page"), default=1, low=1, high=100_000),
    )


def group_page_of(stream: Stream, query: GroupQuery) -> GroupPage:
    """A page of the groups that match; only the page's own are asked closely how they stand."""
    groups = stream.groups.all()
    if query.sort == "name":
        names = list(groups.filter(name__contains=query.name).order_by("name").values_list("name", flat=True))
    else:
        names = [each.name for each in query.arranged(selectors.groups_judged(stream, name=query.name))]
    number = min(query.number, max(1, -(-len(names) // PAGE_SIZE)))
    begin = (number - 1) * PAGE_SIZE
    shown = names[begin : begin + PAGE_SIZE]
    place = {name: at for at, name in enumerate(shown)}
    views = selectors.group_views(groups.filter(name__in=shown))
    return GroupPage(
        rows=sorted((GroupRow(view) for view in views), key=lambda row: place[row.name]),
        first=begin + 1,
        total=len(names),
        all=groups.count(),
        newer=number - 1 if number > 1 else None,
        older=number + 1 if begin + PAGE_SIZE < len(names) else None,
    )
