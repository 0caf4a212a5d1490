"""Filters under a name: kept for oneself or for the workspace, and let go of."""

from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl, urlencode

from django.db import transaction

from streams.access import Caller
from streams.errors import Refusal
from streams.filters.bodies import body_test
from streams.filters.headers import header_test
from streams.models import FILTER_PAGES, SavedFilter
from streams.services.events import event_record
from streams.services.workspace_lock import workspace_held

LONGEST_NAME = 60
LONGEST_QUERY = 2000
"""Characters of a name and of a query string."""

MOST_FILTERS = 50
"""Filters that a page has of the workspace, and of each person."""

_READ: dict[str, dict[str, Callable[[str], object]]] = {
    "messages": {"header": header_test, "match": body_test},
}
"""Of a page, the filters that are conditions, and what reads them."""


def filters_in(page: str, query: str) -> list[tuple[str, str]]:
    """The filters of a page in a query string, in the page's order; what is no filter and what is empty is left out.

    Raises:
        Refusal: ``validation_error`` where the string cannot be read.
    """
    try:
        given = parse_qsl(query.removeprefix("?"), max_num_fields=100)
    except ValueError:
        raise Refusal(
            "validation_error", "Expected filters as in an address, such as key=orders.", fields=["query"]
        ) from None
    names = FILTER_PAGES[page]
    return sorted((each for each in given if each[0] in names), key=lambda each: names.index(each[0]))


def filter_save(
    caller: Caller, *, page: str, name: str, query: str, shared: bool
) -> tuple[SavedFilter, bool]:
    """Keep the filters of a page under a name, in place of what stood there.

    Args:
        page: a key of ``FILTER_PAGES``.
        query: a query string; what is no filter of the page is left out.
        shared: for everybody in the workspace; else a person's own.

    Returns:
        The filter, and whether its name is new.

    Raises:
        Refusal: ``forbidden`` for a token that is narrowed to streams, or shared without the scope ``manage``;
            ``validation_error`` for a name that cannot be shown, without a filter, for conditions that cannot be read,
            and for a token's own; ``quota_exceeded`` beyond ``MOST_FILTERS``.
    """
    caller.demand("manage" if shared else "read")
    caller.demand_every_stream()
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refusal(
            "validation_error",
            f"Expected a name of 1 to {LONGEST_NAME} visible characters.",
            fields=["name"],
        )
    if not shared and not caller.role:
        raise Refusal(
            "validation_error", "A token cannot have private filters; share them.", fields=["shared"]
        )
    filters = filters_in(page, query)
    held = urlencode(filters)
    if not held:
        raise Refusal("validation_error", "There is no filter to save.", fields=["query"])
    if len(held) > LONGEST_QUERY:
        raise Refusal(
            "validation_error", f"Expected filters of at most {LONGEST_QUERY} characters.", fields=["query"]
        )
    _demand_readable(page, filters)
    owner = "" if shared else caller.actor.name
    with transaction.atomic():
        workspace_held(caller.workspace)  # who counts together must not exceed together
        there = SavedFilter.objects.filter(workspace=caller.workspace, page=page, owner=owner)
        before = there.filter(name=name).first()
        if before is None and there.count() >= MOST_FILTERS:
            raise Refusal(
                "quota_exceeded",
                f"{MOST_FILTERS} filters are already saved for this page; delete one.",
                limit=MOST_FILTERS,
            )
        saved, is_new = SavedFilter.objects.update_or_create(
            workspace=caller.workspace,
            page=page,
            owner=owner,
            name=name,
            defaults={"query": held, "saved_by": caller.actor.name},
        )
        if shared and (before is None or before.query != held):
            event_record(
                caller.workspace,
                kind="filter.saved",
                actor=caller.actor,
                before=None if before is None else {"page": page, "name": name, "query": before.query},
                after={"page": page, "name": name, "query": held},
                summary=f"Filter {name} was saved.",
            )
    return saved, is_new


def _demand_readable(page: str, filters: Sequence[tuple[str, str]]) -> None:
    """Refuse conditions that the page would refuse, as it does: in the language of who asks."""
    readers = _READ.get(page, {})
    for name, text in filters:
        if name in readers and text.strip():
            try:
                readers[name](text.strip())
            except ValueError as error:
                raise Refusal("validation_error", str(error), fields=["query"]) from None


@transaction.atomic
def filter_delete(caller: Caller, saved: SavedFilter) -> None:
    """Let go of a filter that the caller may use.

    Raises:
        Refusal: ``forbidden`` for a shared one without the scope ``manage``.
    """
    caller.demand("manage" if saved.shared else "read")
    deleted, _ = SavedFilter.objects.filter(pk=saved.pk).delete()
    if deleted and saved.shared:
        event_record(
            saved.workspace,
            kind="filter.deleted",
            actor=caller.actor,
            before={"page": saved.page, "name": saved.name, "query": saved.query},
            summary=f"Filter {saved.name} was deleted.",
        )
