"""Events as a page shows them: what is asked for, and each with its difference between before and after."""

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.forms import BootstrapMixin
from dashboard.lists.event_subjects import RULE_KINDS, Subject, subjects_of
from streams import selectors
from streams.access import Caller
from streams.log.notes import COUNTS, UNKNOWN
from streams.models import ChainCheck, Event, Group
from streams.selectors import EventsWanted

PAGE_SIZE = 50
LONGEST_VALUE = 300
LONGEST_ACTOR = 200

KINDS = (
    ("", _("any")),
    ("stream.", _("streams")),
    ("message.", _("messages deleted")),
    ("group.", _("groups")),
    ("alert.", _("alerts")),
    (RULE_KINDS, _("alerts and alert rules")),
    ("alert_rule.", _("alert rules")),
    ("policy.", _("policies")),
    ("token.", _("tokens")),
    ("user.", _("people")),
    ("workspace.", _("workspaces")),
    ("session.", _("logins")),
    ("process.", _("processes")),
    ("history.", _("history")),
    ("filter.", _("filters")),
    ("demo.", _("demo")),
    ("store.", _("message stores")),
    ("events.", _("event chain")),
)
"""How kinds begin; a kind itself is asked for by address."""

_KIND = re.compile(r"[a-z_]{1,30}\.[a-z_]{0,19}")


class EventsForm(BootstrapMixin, forms.Form):
    """Which events; the query string of the page is this form."""

    actor = forms.CharField(
        label=_("Actor"),
        required=False,
        max_length=LONGEST_ACTOR,
        strip=False,
        widget=forms.TextInput(attrs={"data-search": ""}),
    )
    about = forms.CharField(
        label=_("Rule, person, token"), required=False, max_length=LONGEST_ACTOR, strip=False
    )
    kind = forms.ChoiceField(label=_("Kind"), choices=KINDS, required=False)
    stream = forms.CharField(label=_("Stream"), required=False, max_length=50)
    group = forms.CharField(label=_("Group"), required=False, max_length=50)
    since = forms.CharField(
        label=_("Since"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": _("2 h ago")}),
    )
    until = forms.CharField(
        label=_("Until"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": _("now")}),
    )
    before = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)
    after = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        asked = self.data.get("kind", "")
        if _KIND.fullmatch(asked) and asked not in dict(KINDS):
            self.fields["kind"].choices = [*KINDS, (asked, asked)]  # type: ignore[attr-defined]

    def clean_since(self) -> datetime | None:
        return _moment(self.cleaned_data["since"])

    def clean_until(self) -> datetime | None:
        return _moment(self.cleaned_data["until"])

    @property
    def is_narrowed(self) -> bool:
        names = ("actor", "about", "kind", "stream", "group", "since", "until")
        return any(self.data.get(name) for name in names)

    def wanted(self, **fixed: Any) -> EventsWanted:
        """What a valid form asks for; ``fixed`` are those of one object."""
        asked = self.cleaned_data
        names = ("actor", "about", "kind", "stream", "group", "since", "until", "before", "after")
        given = {name: asked[name] for name in names if asked.get(name) not in ("", None)}
        return EventsWanted(**{**given, **fixed})


def _moment(text: str) -> datetime | None:
    try:
        return quantities.parse_moment(text, now=timezone.now()) if text else None
    except ValueError as error:
        raise forms.ValidationError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Change:
    """A field that an event changed: its values as JSON, None where it had none."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event with what it changed, and whether its stream and its group are there, or others of their names.

    Attributes:
        subject: the alert rule, person or token that it is about.
    """

    event: Event
    has_stream: bool = False
    has_group: bool = False
    subject: Subject | None = None

    @property
    def ms(self) -> int:
        return int(self.event.time.timestamp() * 1000)

    @property
    def changes(self) -> list[Change]:
        """The fields that differ first, then what stayed the same."""
        before = self.event.before if isinstance(self.event.before, dict) else {}
        after = self.event.after if isinstance(self.event.after, dict) else {}
        is_unknown = UNKNOWN.items() <= after.items()
        found = [
            Change(
                field,
                _said(before[field]) if field in before else None,
                _said(after[field], is_unknown=is_unknown and field in COUNTS) if field in after else None,
            )
            for field in dict.fromkeys((*before, *after))
        ]
        return sorted(found, key=lambda change: change.before == change.after)


def event_rows(caller: Caller, events: Sequence[Event]) -> list[EventRow]:
    """Events as rows, which know what of theirs has a page still."""
    places = {(event.stream, event.group) for event in events}
    streams = selectors.streams_of(caller).filter(name__in={stream for stream, _ in places})
    there = set(streams.values_list("name", flat=True))
    groups = Group.objects.filter(stream__in=streams, name__in={group for _, group in places})
    groups_there = set(groups.values_list("stream__name", "name"))
    subjects = subjects_of(caller, events)
    return [
        EventRow(
            event,
            event.stream in there,
            (event.stream, event.group) in groups_there,
            subjects.get(event.pk),
        )
        for event in events
    ]


@dataclass(frozen=True, slots=True)
class FoldedEvents:
    """Events of one kind, place and actor: the newest, how many, when the first was."""

    event: Event
    count: int
    since: datetime


def folded(events: Iterable[Event], *, most: int) -> list[FoldedEvents]:
    """At most so many rows of events that come newest first; each kind, place and actor has one."""
    alike: dict[tuple[str, ...], list[Event]] = {}
    for event in events:
        alike.setdefault((event.kind, event.stream, event.group, event.actor), []).append(event)
    return [
        FoldedEvents(same[0], len(same), same[-1].time) for same in itertools.islice(alike.values(), most)
    ]


def _said(value: Any, *, is_unknown: bool = False) -> str:
    if value is None and is_unknown:
        return gettext("unknown")
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def chain_state() -> ChainCheck | None:
    """How far the chain of events was last seen to hold."""
    return ChainCheck.objects.first()
