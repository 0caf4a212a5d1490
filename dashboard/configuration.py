"""Configuration as a file: one that is pasted or loaded, what it would change, and what is asked first."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dashboard.confirmations import LARGE_MESSAGES, is_production, names_production
from dashboard.forms import BootstrapMixin
from dashboard.live import rates
from dashboard.shown import Shown, counts_read
from streams.api.configuration import LONGEST_FILE
from streams.api.declared import wording
from streams.api.declared.applying import Outcome
from streams.api.declared.state import told
from streams.models import Stream, Workspace

MOST_SHOWN = 200

UNREAD, BURIED, LETTERS, ENDING = "unread", "in flight", "dead letters", "ending"
"""Begin the paths of what goes of a group: messages that it has not read, in flight that become dead letters, dead
letters that go with it, and messages that go once it is deleted.
"""


class ConfigurationForm(BootstrapMixin, forms.Form):
    """A file, pasted or loaded, and whether what it does not declare is deleted."""

    text = forms.CharField(
        label=_("The file"),
        required=False,
        strip=False,
        max_length=LONGEST_FILE,
        widget=forms.Textarea(
            attrs={
                "rows": 12,
                "spellcheck": "false",
                "placeholder": "okmq: 1\nstreams:\n  orders: {ttl: 86400}",
            }
        ),
        help_text=_("YAML, as in the download."),
    )
    file = forms.FileField(
        label=_("Or upload a file"),
        required=False,
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json,application/yaml"}),
        help_text=_("Replaces what is pasted."),
    )
    prune = forms.BooleanField(
        label=_("Delete what it does not declare"),
        required=False,
        help_text=_("In each section that it has: streams are deleted with all their messages."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        loaded = cleaned.get("file")
        if loaded is None:
            if not str(cleaned.get("text") or "").strip() and "text" not in self.errors:
                self.add_error("text", ValidationError(_("Paste or upload a file.")))
        elif loaded.size > LONGEST_FILE:
            self.add_error("file", ValidationError(_("Too long for this page; use okmq_apply.")))
        else:
            try:
                cleaned["text"] = loaded.read().decode()
            except UnicodeDecodeError:
                self.add_error("file", ValidationError(_("Not UTF-8 text.")))
        return cleaned


@dataclass(frozen=True, slots=True)
class Row:
    """One object: what becomes of it in a word, what of it, and what goes for good."""

    kind: str
    is_deleted: bool
    what: str
    fields: list[str]
    going: list[str]


@dataclass(frozen=True, slots=True)
class ConfigurationPreview:
    """What a file changes.

    Attributes:
        letters: how many messages in flight become dead letters and dead letters go with groups, as ``shown``.
        most: of each object of which messages go, and of each group that loses unread ones or dead letters, how many
            may within the minute, by its path.
        which: stands for these changes of these streams and groups; another for others, and for those of their names.
        phrase: what has to be typed before they are made; nothing where little goes.
    """

    outcome: Outcome
    workspace: Workspace
    shown: Shown
    letters: Shown
    most: Mapping[str, int]
    which: str
    phrase: str

    @property
    def rows(self) -> list[Row]:
        """The changes that a page lists."""
        return [
            Row(
                wording.kind_said(change),
                change.after is None,
                wording.thing(change.path),
                list(wording.fields(change, self.workspace)),
                list(wording.going(change, self.outcome)),
            )
            for change in self.outcome.changes[:MOST_SHOWN]
        ]

    @property
    def left(self) -> list[str]:
        """What the file does not declare and what stays, as far as a page lists it."""
        return [wording.thing(path) for path in self.outcome.left[:MOST_SHOWN]]

    @property
    def summary(self) -> str:
        return wording.summary(self.outcome)

    @property
    def removes(self) -> bool:
        """Whether something goes at once."""
        return bool(self.outcome.messages) or any(change.after is None for change in self.outcome.changes)

    @property
    def is_grave(self) -> bool:
        """Whether something goes for good, or becomes a dead letter."""
        return self.removes or bool(self.outcome.dying or self.outcome.endings)

    @property
    def is_moving(self) -> bool:
        """Whether more may go within the minute than now."""
        return bool(self.shown.margin or self.letters.margin)

    @property
    def each(self) -> str:
        """How many messages may go of each object, and unread of each group, for ``is_as``."""
        return json.dumps(self.most)

    def is_as(self, then: Shown, which: str, each: str) -> bool:
        """Whether it makes the changes that were shown, and no more goes, of all, of each and of each group."""
        seen = counts_read(each) or {}
        return (
            which == self.which
            and self.outcome.messages <= then.most
            and all(going <= seen.get(_name(path), 0) for path, going in _taken(self.outcome))
        )


def preview_of(
    outcome: Outcome, workspace: Workspace, *, then: Shown, letters_then: Shown
) -> ConfigurationPreview:
    """What to say of an outcome now.

    Args:
        then, letters_then: what was shown before, where it was.
    """
    at_ms = int(time.time() * 1000)
    going = {path: messages for path, messages in _taken(outcome) if messages}
    ids = {path: str(outcome.ids["stream", path[1]]) for path in going}  # some are deleted, for now
    arriving = {each: ceil(rate) for each, rate in rates.arriving(set(ids.values())).items()}
    at_rate = sum(arriving.values())
    shown = then.again(outcome.messages, arriving=at_rate, at_ms=at_ms)
    # What is in flight and what is dead come and go with fetches and answers: only their own pace tells.
    dead = sum(messages for path, messages in going.items() if path[0] in (BURIED, LETTERS))
    letters = letters_then.again(dead, arriving=0, at_ms=at_ms)
    # What grows otherwise than by its rate, as with age, is known of all together only.
    beyond = shown.margin if shown.margin > at_rate else 0
    most = {
        _name(path): messages
        + (letters.margin if path[0] in (BURIED, LETTERS) else max(beyond, arriving[ids[path]]))
        for path, messages in going.items()
    }
    is_asked = (
        not outcome.is_complete
        or max(shown.most, letters.most) >= LARGE_MESSAGES
        or bool(outcome.endings)
        or any(change.after is None and change.path[0] in ("stream", "group") for change in outcome.changes)
        or _takes_of_production(outcome, workspace)
    )
    return ConfigurationPreview(
        outcome, workspace, shown, letters, most, _digest(outcome), workspace.name if is_asked else ""
    )


def _taken(outcome: Outcome) -> list[tuple[tuple[str, ...], int]]:
    """How many messages go by each change, and how many of what each group has: path, messages."""
    of_groups: list[tuple[tuple[str, ...], int]] = []
    for change in outcome.changes:
        of_groups += [((UNREAD, change.path[1], name), unread) for name, unread in change.losing.items()]
        of_groups.append(((BURIED, *change.path[1:]), change.of_group.dying))
        if change.of_group.ending:
            ending = change.of_group.ending
            of_groups.append(((LETTERS, *change.path[1:]), ending.dead_letters))
            of_groups.append(((ENDING, *change.path[1:]), ending.messages))
    for path, lost in outcome.lost.items():
        of_groups += [((LETTERS, path[1], name), letters) for name, letters in lost.letters.items()]
    return [*outcome.going, *of_groups]


def _takes_of_production(outcome: Outcome, workspace: Workspace) -> bool:
    """Whether messages go of a stream that is labelled so, or was until this file."""
    taking = [change for change in outcome.changes if change.messages or change.of_group.dying]
    names = {change.path[1] for change in taking}
    those = [change for change in outcome.changes if change.path[0] == "stream" and change.path[1] in names]
    if any(names_production((change.before or {}).get("labels", {})) for change in those):
        return True
    return any(map(is_production, Stream.objects.filter(workspace=workspace, name__in=names)))


def _name(path: tuple[str, ...]) -> str:
    return " ".join(path)


def _digest(outcome: Outcome) -> str:
    said = [
        (
            change.path,
            outcome.ids.get(change.path),
            *(None if each is None else told(each) for each in (change.before, change.after)),
        )
        for change in outcome.changes
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
