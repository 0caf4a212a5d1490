"""Which alert rule, person or token an event is about, and where that leads: to its page, or once it is gone to its
events."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from django.urls import reverse

from streams.access import Caller
from streams.models import AlertRule, Event, Membership, Token

RULE, PERSON, TOKEN = "rule", "person", "token"
ABOUT = {"alert": RULE, "alert_rule": RULE, "user": PERSON, "token": TOKEN}
"""By how a kind begins."""
RULE_KINDS = "alert.,alert_rule."
"""Of what a rule found, and of what was done to it."""
KINDS = {RULE: RULE_KINDS, PERSON: "user.", TOKEN: "token."}
"""How the kinds of all events of one begin."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an event is about.

    Attributes:
        address: of its page, or of its events.
        is_there: whether it has a page that the caller may see.
    """

    name: str
    address: str
    is_there: bool


def subjects_of(caller: Caller, events: Iterable[Event]) -> dict[int, Subject]:
    """By the ids of the events, of those that are about one."""
    told = {event.pk: about for event in events if (about := _about(event)) is not None}
    pages = _pages(caller, {name for _, name, _ in told.values()}) if told else {}
    return {
        pk: Subject(about[1], pages.get(about) or _events(about), about in pages)
        for pk, about in told.items()
    }


def _about(event: Event) -> tuple[str, str, str] | None:
    """What it is, its name, and of a token, whose name others may have, too, how its secret begins."""
    what = ABOUT.get(event.kind.partition(".")[0], "")
    name = _kept(event, "rule" if what == RULE else "name")
    return (what, name, _kept(event, "prefix") if what == TOKEN else "") if what and name else None


def _kept(event: Event, key: str) -> str:
    for side in (event.after, event.before):
        held: Any = side.get(key) if isinstance(side, dict) else None
        if isinstance(held, str):
            return held
    return ""


def _pages(caller: Caller, names: set[str]) -> dict[tuple[str, str, str], str]:
    """The pages that there are, and that the caller may see, of whatever has one of these names."""
    rules = AlertRule.objects.filter(workspace=caller.workspace, name__in=names)
    found = {
        (RULE, name, ""): reverse("dashboard:alert_rule", args=[name])
        for name, stream in rules.values_list("name", "stream")
        if caller.reaches((stream,))
    }
    if caller.may("admin") and not caller.streams:  # who is narrowed sees no event about a person or a token
        people = Membership.objects.filter(workspace=caller.workspace, user__username__in=names)
        for name in people.values_list("user__username", flat=True):
            found[PERSON, name, ""] = f"{reverse('dashboard:people')}#person-{quote(name)}"
        tokens = Token.objects.filter(workspace=caller.workspace, name__in=names)
        for pk, name, prefix in tokens.values_list("pk", "name", "prefix"):
            found[TOKEN, name, prefix] = f"{reverse('dashboard:tokens')}#token-{pk}"
    return found


def _events(about: tuple[str, str, str]) -> str:
    """Where all events of it are, and none of what else has its name."""
    what, name, _ = about
    return f"{reverse('dashboard:events')}?{urlencode({'about': name, 'kind': KINDS[what]}, safe=',')}"
