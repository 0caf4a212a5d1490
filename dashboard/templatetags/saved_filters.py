"""Filters that are kept under a name, as chips of the page that they filter."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import template
from django.http import HttpRequest, QueryDict

from streams import selectors
from streams.models import FILTER_PAGES, SavedFilter
from streams.services.saved_filters import filters_in

register = template.Library()

PLACES = ("page", "open", "before", "after", "scanned", "matched", "took", "looked", "edge")
"""Where a page of a list is, which is nowhere in a list that is filtered otherwise."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A saved filter on its page.

    Attributes:
        is_on: the page is filtered by it, perhaps with others.
        address: the query string with it, or without it where it is on.
        says: what it filters by, ``key = orders.*, match = refused``.
    """

    saved: SavedFilter
    is_on: bool
    address: str
    says: str


@dataclass(frozen=True, slots=True)
class Chips:
    """The saved filters of a page, and the filters that it has now as a query string, empty where it has none."""

    page: str
    chips: Sequence[Chip]
    now: str


@register.simple_tag(takes_context=True)
def saved_filters(context: dict[str, Any], page: str) -> Chips | None:
    """What is kept for a page, as its address stands; None where nobody is known, or who may not read all."""
    request = context["request"]
    if not isinstance(request, HttpRequest) or not hasattr(request, "caller"):
        return None
    if not request.caller.may("read") or request.caller.streams:
        return None
    given = request.GET
    chips = [_chip(saved, given) for saved in selectors.filters_saved(request.caller, page=page)]
    now = [(name, value) for name in FILTER_PAGES[page] for value in given.getlist(name) if value]
    return Chips(page, chips, urlencode(now))


def _chip(saved: SavedFilter, given: QueryDict) -> Chip:
    held: dict[str, list[str]] = {}
    pairs = filters_in(saved.page, saved.query)
    for name, value in pairs:
        held.setdefault(name, []).append(value)
    is_on = all(given.getlist(name) == values for name, values in held.items())
    changed = given.copy()
    for name in (*PLACES, *held):
        changed.pop(name, None)
    if not is_on:
        for name, values in held.items():
            changed.setlist(name, values)
    says = ", ".join(f"{name} = {value}" for name, value in pairs)
    return Chip(saved, is_on, f"?{changed.urlencode()}", says)
