"""What the palette finds: pages and actions by their words, streams and groups by a part of their name, and with a word
more (``billing dead``) a page of theirs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Case, IntegerField, Value, When
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from streams import selectors
from streams.access import Caller, role_for
from streams.models import Group

MOST_OF_A_KIND = 8
LONGEST_QUESTION = 100

# words, address, the right it needs, query
LISTS = (
    (_("Groups by dead letters"), "dashboard:groups", "observe", "?sort=-dead"),
    (_("Groups by lag"), "dashboard:groups", "observe", "?sort=-lag"),
    (_("Groups by status"), "dashboard:groups", "observe", "?sort=-status"),
)
OF_STREAMS = (
    (_("Messages"), "dashboard:stream_messages", "read"),
    (_("Tail"), "dashboard:stream_tail", "read"),
    (_("Publish"), "dashboard:stream_publish", "observe"),
    (_("Groups"), "dashboard:stream_groups", "observe"),
    (_("Rates"), "dashboard:stream_rates", "observe"),
    (_("Retention"), "dashboard:stream_retention", "observe"),
    (_("Purge"), "dashboard:stream_purge", "manage"),
    (_("History"), "dashboard:stream_history", "read"),
    (_("Activity"), "dashboard:stream_activity", "read"),
    (_("Settings"), "dashboard:stream_settings", "observe"),
)
OF_GROUPS = (
    (_("In flight"), "dashboard:group_pending", "read"),
    (_("Dead letters"), "dashboard:dead_letters", "read"),
    (_("Activity"), "dashboard:group_activity", "read"),
    (_("Settings"), "dashboard:group_settings", "read"),
)
PAGES = (
    (_("Overview"), "dashboard:overview", "observe"),
    (_("Streams"), "dashboard:streams", "observe"),
    (_("Tail streams"), "dashboard:tails", "read"),
    (_("Groups"), "dashboard:groups", "observe"),
    (_("SQL"), "dashboard:sql", "read"),
    (_("Alerts"), "dashboard:alerts", "read"),
    (_("Events"), "dashboard:events", "read"),
    (_("Workspaces and plans"), "dashboard:workspaces", "observe"),
    (_("Configuration as a file"), "dashboard:configuration", "read"),
    (_("System"), "dashboard:system", "observe"),
    (_("Profile, time zone, sessions"), "dashboard:profile", "observe"),
    (_("Tokens"), "dashboard:tokens", "admin"),
    (_("People"), "dashboard:people", "admin"),
)
ACTIONS = (
    (_("New stream"), "dashboard:stream_create", "manage"),
    (_("New token"), "dashboard:tokens", "admin"),
    (_("Add a person"), "dashboard:people", "admin"),
    (_("Change password"), "dashboard:password", "observe"),
    (_("API documentation"), "api:docs", "observe"),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A line of the palette; without an address it is not allowed, and ``needs`` names the role."""

    kind: str
    text: str
    url: str
    needs: str = ""


def hits(caller: Caller, question: str) -> list[Hit]:
    """What a question finds, bounded whatever there is; an empty one finds the pages and actions."""
    asked = question.strip()[:LONGEST_QUESTION]
    named = [*_streams(caller, asked), *_groups(caller, asked)]
    return [*named, *_pages_of_named(caller, asked), *_lists(caller, asked), *_fixed(caller, asked)]


def _pages_of_named(caller: Caller, asked: str) -> Iterator[Hit]:
    """Pages of what is named before one of their words: ``orders ret``, ``billing dead letters``."""
    words = asked.split()
    for cut in range(len(words) - 1, 0, -1):
        name, page = " ".join(words[:cut]), " ".join(words[cut:]).casefold()
        of_streams = [row for row in OF_STREAMS if str(row[0]).casefold().startswith(page)]
        of_groups = [row for row in OF_GROUPS if str(row[0]).casefold().startswith(page)]
        for stream in _stream_names(caller, name) if of_streams else ():
            for text, address, scope in of_streams:
                yield _hit(caller, _("stream"), f"{stream} · {text}", reverse(address, args=[stream]), scope)
        for stream, group in _group_names(caller, name) if of_groups else ():
            for text, address, scope in of_groups:
                url = reverse(address, args=[stream, group])
                yield _hit(caller, _("group"), f"{stream} / {group} · {text}", url, scope)


def _lists(caller: Caller, asked: str) -> Iterator[Hit]:
    for text, address, scope, query in LISTS:
        if asked and asked.casefold() in str(text).casefold():
            yield _hit(caller, _("page"), str(text), reverse(address) + query, scope)


def _hit(caller: Caller, kind: Promise | str, text: str, url: str, scope: str) -> Hit:
    is_allowed = caller.may(scope)
    return Hit(str(kind), text, url if is_allowed else "", "" if is_allowed else role_for(scope))


def _fixed(caller: Caller, asked: str) -> Iterator[Hit]:
    for kind, rows in ((_("page"), PAGES), (_("action"), ACTIONS)):
        for text, address, scope in rows:
            if asked.casefold() in str(text).casefold():
                yield _hit(caller, kind, str(text), reverse(address), scope)


def _streams(caller: Caller, asked: str) -> Iterator[Hit]:
    for name in _stream_names(caller, asked):
        yield Hit(str(_("stream")), name, reverse("dashboard:stream_messages", args=[name]))


def _groups(caller: Caller, asked: str) -> Iterator[Hit]:
    for stream, name in _group_names(caller, asked):
        yield Hit(str(_("group")), f"{stream} / {name}", reverse("dashboard:group", args=[stream, name]))


def _stream_names(caller: Caller, asked: str) -> list[str]:
    """The first few with a name like this, those that begin so before others."""
    if not asked or not caller.may("observe"):
        return []
    found = selectors.streams_of(caller).filter(name__icontains=asked)
    begins = Case(When(name__istartswith=asked, then=Value(0)), default=Value(1), output_field=IntegerField())
    names = found.annotate(place=begins).order_by("place", "name").values_list("name", flat=True)
    return list(names[:MOST_OF_A_KIND])


def _group_names(caller: Caller, asked: str) -> list[tuple[str, str]]:
    """The first few with a name like this, each after its stream's."""
    if not asked or not caller.may("observe"):
        return []
    found = Group.objects.filter(
        stream__workspace=caller.workspace, stream__internal=False, name__icontains=asked
    )
    return list(found.order_by("name", "stream__name").values_list("stream__name", "name")[:MOST_OF_A_KIND])
