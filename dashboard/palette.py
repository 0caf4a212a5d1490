"""What the palette finds: pages and actions by their words, streams and groups by a part of their name."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Case, IntegerField, Value, When
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from streams import selectors
from streams.access import Caller, role_for
from streams.models import Group

MOST_OF_A_KIND = 8
LONGEST_QUESTION = 100

# words, address, the right it needs
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
    return [*_streams(caller, asked), *_groups(caller, asked), *_fixed(caller, asked)]


def _fixed(caller: Caller, asked: str) -> Iterator[Hit]:
    for kind, rows in ((_("page"), PAGES), (_("action"), ACTIONS)):
        for text, address, scope in rows:
            if asked.casefold() in str(text).casefold():
                allowed = caller.may(scope)
                yield Hit(
                    str(kind),
                    str(text),
                    reverse(address) if allowed else "",
                    "" if allowed else role_for(scope),
                )


def _streams(caller: Caller, asked: str) -> Iterator[Hit]:
    if not asked or not caller.may("observe"):
        return
    found = selectors.streams_of(caller).filter(name__icontains=asked)
    begins = Case(When(name__istartswith=asked, then=Value(0)), default=Value(1), output_field=IntegerField())
    names = found.annotate(place=begins).order_by("place", "name").values_list("name", flat=True)
    for name in names[:MOST_OF_A_KIND]:
        yield Hit(str(_("stream")), name, reverse("dashboard:stream_messages", args=[name]))


def _groups(caller: Caller, asked: str) -> Iterator[Hit]:
    if not asked or not caller.may("observe"):
        return
    found = Group.objects.filter(
        stream__workspace=caller.workspace, stream__internal=False, name__icontains=asked
    )
    for stream, name in found.order_by("name", "stream__name").values_list("stream__name", "name")[
        :MOST_OF_A_KIND
    ]:
        yield Hit(str(_("group")), f"{stream} / {name}", reverse("dashboard:group", args=[stream, name]))
