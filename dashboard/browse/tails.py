"""Following what arrives, in one stream or in several: which are chosen, and what has come since somebody looked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from dashboard.browse.browse_form import BrowseForm
from dashboard.browse.message_rows import MessageRow
from streams import bearer, naming, selectors
from streams.access import Caller
from streams.models import Stream

MOST_STREAMS = 20
"""Streams that one page follows."""

ROWS_AT_ONCE = 100
LEAST_OF_EACH = 10
"""Rows that one answer holds, and of how many of them each stream is sure."""

RING = "500"
RINGS = ("50", "100", "250", RING, "1000", "2500")
"""Rows that the page keeps; the oldest go."""

SLICE_S = 0.4
"""How long one answer looks at most for what a filter wants, over all its streams."""


class TailForm(BrowseForm):
    """The filters of a tail, how many rows it keeps, and where it follows several streams which."""

    streams = forms.CharField(
        label=_("Streams"),
        required=False,
        max_length=MOST_STREAMS * (naming.LONGEST_NAME + 2),
        widget=forms.TextInput(attrs={"placeholder": _("orders, payments-*"), "data-search": ""}),
    )
    ring = forms.ChoiceField(
        label=_("Rows kept"),
        required=False,
        choices=[(each, f"{int(each):,}") for each in RINGS],
    )

    def __init__(self, given: QueryDict) -> None:
        asked = given.copy()
        if not asked.get("ring"):
            asked["ring"] = RING
        super().__init__(asked)

    def clean_streams(self) -> list[str]:
        written: str = self.cleaned_data["streams"]
        return written.replace(",", " ").split()

    @property
    def rows_kept(self) -> int:
        """How many rows the page keeps."""
        return int(self.cleaned_data.get("ring") or RING)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The streams that were chosen, by name.

    Attributes:
        more: how many besides were, which are not followed.
        unknown: names of which there is no stream.
    """

    streams: list[Stream]
    more: int
    unknown: list[str]


def chosen(
    caller: Caller, names: Sequence[str], patterns: Sequence[str], *, known: Collection[str] = ()
) -> Chosen:
    """The streams of these names and of these patterns, in which ``*`` is any text; the first of them by name.

    Args:
        known: names that are followed already; those that there is room for beside them are found.
    """
    plain = {*names, *(pattern for pattern in patterns if "*" not in pattern)}
    wild = [pattern for pattern in patterns if "*" in pattern]
    there = selectors.streams_of(caller)
    found = set(there.filter(name__in=plain).values_list("name", flat=True))
    unknown = sorted(plain - found)
    if wild:
        all_names = there.values_list("name", flat=True)
        found |= {name for name in all_names if bearer.streams_cover(wild, name)}
    fresh = sorted(found - set(known))
    followed = fresh[: max(0, MOST_STREAMS - len(known))]
    return Chosen(list(there.filter(name__in=followed)), len(fresh) - len(followed), unknown)


@dataclass(frozen=True, slots=True)
class Arrived:
    """What has come: rows, the newest first, and how many messages were left out of them."""

    rows: list[MessageRow]
    left_out: int


def arrived(after: Mapping[Stream, int], form: TailForm, *, named: bool) -> Arrived:
    """What came after an offset of each stream and passes the filters of a valid form.

    Args:
        named: whether each row says its stream.
    """
    rows: list[MessageRow] = []
    left_out = 0
    for stream, offset in after.items():
        found = selectors.messages_found(
            stream,
            start=offset + 1,
            limit=max(LEAST_OF_EACH, ROWS_AT_ONCE // len(after)),
            wanted=form.wanted(),
            newest_first=True,
            seconds=SLICE_S / len(after),
        )
        left_out += selectors.messages_between(stream, found.rest)[0] if found.rest else 0
        rows += [
            MessageRow(each, form.columns, form.reading, stream if named else None) for each in found.messages
        ]
    if len(after) > 1:
        rows.sort(key=lambda row: (row.message.timestamp_ms, row.message.offset), reverse=True)
    return Arrived(rows, left_out)
