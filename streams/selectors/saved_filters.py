"""Filters that are kept under a name."""

from streams.access import Caller, filters_of
from streams.models import SavedFilter


def filters_saved(caller: Caller, *, page: str = "") -> list[SavedFilter]:
    """The filters that a caller may use, by name: the workspace's and their own; of all pages or of one."""
    found = filters_of(caller)
    return list(found.filter(page=page) if page else found)
