"""What the palette finds: pages and actions by their words, streams and groups by a part of their name.

A page of a stream or a group is found by its words with a part of the name, in either order: ``orders retention``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from dashboard import languages
from streams import selectors
from streams.access import Caller, role_for
from streams.models import Group, Stream

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
    (_("Profile, time zone, language, sessions"), "dashboard:profile", "observe"),
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
OF_EVERY_STREAM = ("dashboard:configuration", "dashboard:people")
"""Pages that are not for who is narrowed to some streams."""
LISTS = (
    (_("Dead letters of all groups"), "?sort=-dead"),
    (_("In flight of all groups"), "?sort=-pending"),
    (_("Lag of all groups"), "?sort=-lag"),
)
"""The list of groups in an order of its own."""
DEAD_LETTERS = _("Dead letters")
OF_A_STREAM = (
    (_("Messages"), "dashboard:stream_messages", "observe"),
    (_("Tail"), "dashboard:stream_tail", "read"),
    (_("Publish"), "dashboard:stream_publish", "publish"),
    (_("Groups"), "dashboard:stream_groups", "observe"),
    (_("Rates"), "dashboard:stream_rates", "observe"),
    (_("Retention"), "dashboard:stream_retention", "observe"),
    (_("History"), "dashboard:stream_history", "read"),
    (_("Activity"), "dashboard:stream_activity", "read"),
    (_("Settings"), "dashboard:stream_settings", "read"),
    (_("Purge"), "dashboard:stream_purge", "manage"),
    (_("Erase from the history"), "dashboard:stream_erasures", "erase"),
)
OF_A_GROUP = (
    (DEAD_LETTERS, "dashboard:dead_letters", "read"),
    (_("In flight"), "dashboard:group_pending", "read"),
    (_("Lag"), "dashboard:group", "observe"),
    (_("Activity"), "dashboard:group_activity", "read"),
    (_("Settings"), "dashboard:group_settings", "read"),
)
SHORTEST_WORD = 2
"""So many letters of a page's words are looked for; fewer would name most pages."""


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
    return [
        *_streams(caller, asked),
        *_groups(caller, asked),
        *_parts(caller, asked),
        *_with_dead_letters(caller, asked),
        *_fixed(caller, asked),
    ]


def _fixed(caller: Caller, asked: str) -> Iterator[Hit]:
    for kind, rows in ((_("page"), PAGES), (_("action"), ACTIONS)):
        for text, address, scope in rows:
            if caller.streams and address in OF_EVERY_STREAM:
                continue
            if languages.matches(text, lambda said: asked.casefold() in said):
                yield _hit(caller, str(kind), str(text), reverse(address), scope)
    for text, query in LISTS:
        if asked and languages.matches(text, lambda said: asked.casefold() in said):
            yield _hit(caller, str(_("page")), str(text), reverse("dashboard:groups") + query, "observe")


def _hit(caller: Caller, kind: str, text: str, url: str, scope: str) -> Hit:
    """A line that leads there, or says the role that it needs."""
    return Hit(kind, text, url) if caller.may(scope) else Hit(kind, text, "", role_for(scope))


def _streams(caller: Caller, asked: str) -> Iterator[Hit]:
    if not asked or not caller.may("observe"):
        return
    for name in _names_of_streams(caller, asked):
        yield Hit(str(_("stream")), name, reverse("dashboard:stream_messages", args=[name]))


def _groups(caller: Caller, asked: str) -> Iterator[Hit]:
    if not asked or not caller.may("observe"):
        return
    for stream, name in _names_of_groups(caller, asked):
        yield Hit(str(_("group")), f"{stream} / {name}", reverse("dashboard:group", args=[stream, name]))


def _parts(caller: Caller, asked: str) -> Iterator[Hit]:
    """Pages of streams and groups whose name and words are asked for together."""
    if not caller.may("observe"):
        return
    for part, words in _name_and_words(asked):
        if pages := [row for row in OF_A_GROUP if _begins(row[0], words)]:
            for stream, name in _names_of_groups(caller, part):
                for text, address, scope in pages:
                    url = reverse(address, args=[stream, name])
                    yield _hit(caller, str(text), f"{stream} / {name}", url, scope)
        if pages := [row for row in OF_A_STREAM if _begins(row[0], words)]:
            for name in _names_of_streams(caller, part):
                for text, address, scope in pages:
                    yield _hit(caller, str(text), name, reverse(address, args=[name]), scope)


def _begins(text: Any, words: str) -> bool:
    return languages.matches(text, lambda said: said.startswith(words))


def _name_and_words(asked: str) -> Iterator[tuple[str, str]]:
    """How a question may be a part of a name, which has no spaces, and a page's words."""
    words = asked.split()
    if len(words) < 2:
        return
    for name, rest in (words[0], words[1:]), (words[-1], words[:-1]):
        said = " ".join(rest).casefold()
        if len(said) >= SHORTEST_WORD:
            yield name, said


def _with_dead_letters(caller: Caller, asked: str) -> Iterator[Hit]:
    """The dead letters of the groups that have some, the most first."""
    said = asked.casefold()
    if len(said) < SHORTEST_WORD or not _begins(DEAD_LETTERS, said) or not caller.may("read"):
        return
    for group in selectors.groups_with_dead_letters(caller)[:MOST_OF_A_KIND]:
        url = reverse("dashboard:dead_letters", args=[group.stream, group.name])
        yield Hit(str(DEAD_LETTERS), f"{group.stream} / {group.name}", url)


def _names_of_streams(caller: Caller, part: str) -> "QuerySet[Stream, str]":
    found = selectors.streams_of(caller).filter(name__icontains=part)
    begins = Case(When(name__istartswith=part, then=Value(0)), default=Value(1), output_field=IntegerField())
    names = found.annotate(place=begins).order_by("place", "name").values_list("name", flat=True)
    return names[:MOST_OF_A_KIND]


def _names_of_groups(caller: Caller, part: str) -> "QuerySet[Group, tuple[str, str]]":
    """With a part of the group's name, or after one of its stream's: ``orders bil``, ``orders / billing``."""
    *of_stream, of_group = part.replace("/", " ").split() or [part]
    found = selectors.groups_of(caller).filter(name__icontains=of_group)
    for each in of_stream:
        found = found.filter(stream__name__icontains=each)
    return found.order_by("name", "stream__name").values_list("stream__name", "name")[:MOST_OF_A_KIND]
