"""The list of streams: what is asked of it, in which order it stands, and a page of it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from operator import attrgetter
from typing import Any

from django.db.models import Count, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from dashboard.lists.sorts import both_ways
from dashboard.live import rates
from dashboard.quantities import LARGEST, is_on, number_of
from dashboard.stream_rows import StreamRow
from streams import expressions, selectors
from streams.access import Caller
from streams.api.fields import label_fault
from streams.expressions import LONGEST
from streams.log.stats import Figures
from streams.models import Stream
from streams.selectors import JudgedGroup, Numbered, StreamName

PAGE_SIZES = (25, 50, 100)
PAGE_SIZE = 50
MOST_LABELS = 5

COLUMNS = (
    ("messages", _("Messages")),
    ("bytes", _("Size")),
    ("rate", _("In")),
    ("out", _("Out")),
    ("last", _("Last write")),
    ("lag", _("Commit lag")),
    ("keeps", _("Retention")),
    ("groups", _("Groups")),
    ("status", _("Worst group")),
    ("oldest", _("Oldest message")),
    ("pending", _("In flight")),
    ("dead", _("Dead letters")),
    ("created", _("Created")),
)
SHOWN_AT_FIRST = frozenset({"messages", "bytes", "rate", "last", "keeps", "groups", "status"})
OF_GROUPS = ("groups", "pending", "dead")
"""What the groups of a stream come to: no socket tells it."""

UNSORTED = {"oldest"}
"""What is known of the streams of a page only: of all, it would be a closer look at each."""

SORTS = ("name", *(column for column, _label in COLUMNS if column not in UNSORTED))
BY_ROW = {"name": "name", "created": "created_at", "groups": "group_count"}
"""Orders that the database knows; the others are of what the log counts."""

BY_SUMS = {"pending": attrgetter("pending"), "dead": attrgetter("dead_letters")}
"""Orders of what a stream's groups come to; as by status, streams without a group come last."""
BY_GROUPS = {"status", *BY_SUMS}


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What is asked of the list; the page's query string is this.

    Attributes:
        regex: whether ``name`` is a regular expression and not a part of the name.
        labels: name and value, all of which must hold.
        internal: with the system's own streams.
        sort: one of ``SORTS``, descending with a leading ``-``.
    """

    name: str = ""
    regex: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    internal: bool = False
    sort: str = "name"
    number: int = 1
    size: int = PAGE_SIZE

    @property
    def is_narrowed(self) -> bool:
        return bool(self.name or self.labels)

    @property
    def fault(self) -> str | None:
        """What is wrong with the regular expression."""
        return expressions.fault(self.name) if self.regex else None

    @property
    def column(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def falls(self) -> bool:
        return self.sort.startswith("-")

    def streams(self, caller: Caller) -> QuerySet[Stream]:
        """The streams that match, by name; none where the expression has a fault."""
        internal = self.internal and caller.rules_all
        if not self.regex:
            return selectors.streams_of(caller, name=self.name, labels=self.labels, internal=internal)
        expression = "" if self.fault else self.name
        found = selectors.streams_of(caller, name_regex=expression, labels=self.labels, internal=internal)
        return found.none() if self.fault else found


def query_of(given: QueryDict) -> ListQuery:
    """The query in an address; what cannot be read is passed over."""
    sort = given.get("sort", "name")
    size = number_of(given.get("size"), default=PAGE_SIZE, low=0, high=1000)
    regex = is_on(given.get("regex"))
    labels = [label_of(text) for text in given.getlist("label")[:MOST_LABELS]]
    return ListQuery(
        name=given.get("name", "").strip()[: LONGEST + 1 if regex else 50],
        regex=regex,
        labels=tuple(label for label in labels if label is not None),
        internal=is_on(given.get("internal")),
        sort=sort if sort.removeprefix("-") in SORTS else "name",
        number=number_of(given.get("page"), default=1, low=1, high=100_000),
        size=size if size in PAGE_SIZES else PAGE_SIZE,
    )


def label_of(text: str) -> tuple[str, str] | None:
    """``env:production`` or ``env=production`` as name and value, with the spaces of both.

    No name has a colon, but one may have an equals sign.
    """
    name, separator, value = text.partition(":" if ":" in text else "=")
    return (name, value) if separator and not label_fault(name, value) else None


@dataclass(frozen=True, slots=True)
class Page(Numbered):
    """One page of rows; ``total`` match."""

    rows: list[StreamRow]
    total: int
    number: int
    size: int
    counted: Sequence[Figures] | None = None
    """Of all streams that match, where the order is of what is counted of them."""

    @property
    def shown(self) -> int:
        return len(self.rows)

    @property
    def keys(self) -> str:
        """The streams of its rows, for ``rows_of``."""
        return ".".join(str(row.stream.pk) for row in self.rows)


def page_of(caller: Caller, query: ListQuery) -> Page:
    """A page of the streams that match; only the page's own streams are asked closely how they stand."""
    found = query.streams(caller)
    if query.column in BY_ROW:
        rows = _ordered(found, query)
        total = found.count()
        number = _within(query, total)
        begin = (number - 1) * query.size
        return Page(_rows(list(rows[begin : begin + query.size])), total, number, query.size)
    if query.column in BY_GROUPS:
        groups = selectors.groups_of_streams(found)
        return _page_in(_group_order(found, groups, query), found, query, groups=groups)
    by_name = selectors.stream_figures(found)
    page = _page_in(_figure_order(found, by_name, query), found, query)
    return replace(page, counted=[figures for _, figures in by_name])


def order_of(
    found: QuerySet[Stream],
    query: ListQuery,
    *,
    by_name: Sequence[tuple[StreamName, Figures]],
    groups: Mapping[int, Sequence[JudgedGroup]],
) -> list[int]:
    """The keys of all streams that match, as the list has them; ``groups`` are those of ``groups_of_streams``."""
    if query.column in BY_ROW:
        return list(_ordered(found, query).values_list("pk", flat=True))
    if query.column in BY_GROUPS:
        return _group_order(found, groups, query)
    return _figure_order(found, by_name, query)


def rows_of(caller: Caller, query: ListQuery, keys: str) -> list[StreamRow]:
    """How those streams of a page stand that still match; ``keys`` is what the page says of itself."""
    wanted = [number_of(key, default=0, low=0, high=LARGEST) for key in keys.split(".")[: max(PAGE_SIZES)]]
    return _rows(list(query.streams(caller).filter(pk__in=wanted)))


def _page_in(
    order: Sequence[int],
    found: QuerySet[Stream],
    query: ListQuery,
    *,
    groups: Mapping[int, Sequence[JudgedGroup]] | None = None,
) -> Page:
    """A page of streams whose keys stand in an order; ``groups`` as in ``_rows``."""
    number = _within(query, len(order))
    begin = (number - 1) * query.size
    there = found.in_bulk(order[begin : begin + query.size])
    streams = [there[pk] for pk in order[begin : begin + query.size] if pk in there]
    return Page(_rows(streams, groups), len(order), number, query.size)


def _rows(
    streams: Sequence[Stream], groups: Mapping[int, Sequence[JudgedGroup]] | None = None
) -> list[StreamRow]:
    """``groups`` by the stream's key, where they have been read."""
    if groups is None:
        groups = selectors.groups_by_stream(streams)
    return [_with_groups(row, groups.get(row.stream.pk, [])) for row in rates.rows(streams)]


def _with_groups(row: StreamRow, groups: Sequence[JudgedGroup]) -> StreamRow:
    if not groups:
        return row
    return replace(row, worst=selectors.worst_of(groups), sums=selectors.sums_of(groups))


def _ordered(found: QuerySet[Stream], query: ListQuery) -> QuerySet[Stream]:
    if query.column == "groups":
        found = found.annotate(group_count=Count("groups"))
    return found.order_by(f"{'-' if query.falls else ''}{BY_ROW[query.column]}", "name")


def totals_of(caller: Caller, query: ListQuery, page: Page) -> rates.Totals:
    """The sums over the workspace, from what the page has read where that is all of it."""
    is_all = not query.is_narrowed and not query.internal
    return rates.totals(caller, counted=page.counted if is_all else None)


def _group_order(
    found: QuerySet[Stream], groups: Mapping[int, Sequence[JudgedGroup]], query: ListQuery
) -> list[int]:
    """The keys of all streams that match: by their groups, the worst first with ``-``; equal ones by name."""
    by_name = list(found.order_by("name").values_list("pk", flat=True))
    if query.column == "status":
        with_groups = list(groups) if query.falls else list(groups)[::-1]
    else:
        counted = BY_SUMS[query.column]
        sums = {pk: counted(selectors.sums_of(groups[pk])) or 0 for pk in by_name if pk in groups}
        with_groups = sorted(sums, key=sums.__getitem__, reverse=query.falls)
    return [*with_groups, *(pk for pk in by_name if pk not in groups)]


def _figure_order(
    found: QuerySet[Stream], by_name: Sequence[tuple[StreamName, Figures]], query: ListQuery
) -> list[int]:
    """The keys of streams by what is counted of them; equal ones by name."""
    value = _value_of(found, query.column)
    ordered = sorted(by_name, key=lambda each: value(*each), reverse=query.falls)
    return [name.pk for name, _ in ordered]


def used_of(figures: Figures, *, max_messages: int | None, max_bytes: int | None) -> float:
    """How much of the tighter limit is used, 0 to 1; nothing of none."""
    return max(figures.messages / (max_messages or inf), figures.bytes / (max_bytes or inf))


def _value_of(found: QuerySet[Stream], column: str) -> Callable[[StreamName, Figures], Any]:
    match column:
        case "messages":
            return lambda name, figures: figures.messages
        case "bytes":
            return lambda name, figures: figures.bytes
        case "lag":
            return lambda name, figures: figures.lag
        case "last":
            return lambda name, figures: figures.last_ms or 0
        case "rate":
            moving = rates.moving_now()
            return lambda name, figures: moving.get(name.stream_id, rates.AT_REST).rate_in
        case "out":
            moving = rates.moving_now()
            return lambda name, figures: moving.get(name.stream_id, rates.AT_REST).rate_out
        case _:  # keeps: by how much of the tighter limit is used; no limit is the least
            limits = {pk: held for pk, *held in found.values_list("pk", "max_messages", "max_bytes")}

            def used(name: StreamName, figures: Figures) -> float:
                max_messages, max_bytes = limits.get(name.pk, (None, None))
                return used_of(figures, max_messages=max_messages, max_bytes=max_bytes)

            return used


def _within(query: ListQuery, total: int) -> int:
    return min(query.number, max(1, -(-total // query.size)))


def sorts_of(shown: Collection[str], query: ListQuery) -> list[tuple[str, str]]:
    """What a list without headings offers to be sorted by: each shown column both ways, and the present order."""
    labels = {"name": _("Name"), **dict(COLUMNS)}
    return both_ways(
        (column, str(labels[column])) for column in SORTS if column in {"name", query.column, *shown}
    )


def columns_of(remembered: str) -> frozenset[str]:
    """The columns that a person chose, from the cookie that remembers them; those of the beginning without one."""
    known = {column for column, _label in COLUMNS}
    chosen = frozenset(remembered.split(".")) & known if remembered else frozenset()
    return chosen or SHOWN_AT_FIRST
