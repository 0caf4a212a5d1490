"""One deed to several streams: what it would do, what must be typed first, and doing it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dashboard.confirmations import LARGE_MESSAGES, ConfirmForm, phrase_for
from dashboard.live import rates
from dashboard.shown import counts_read
from dashboard.stream_rows import StreamRow
from streams import selectors
from streams.access import Actor, Caller
from streams.api.fields import MOST_LABELS, label_fault
from streams.errors import Refusal
from streams.models import Stream
from streams.services.messages import stream_purge
from streams.services.streams import stream_change, stream_delete

MOST = 100
TOLERATED_PART = 0.1
"""So much of what was seen may have come since without asking again before streams or groups are deleted."""

DEEDS = ("purge", "delete", "label")


class BulkForm(ConfirmForm):
    """The confirmation, and for labels what to set.

    ``seen`` is how many messages the preview told of, ``upto`` the last offset of each stream then, by its internal id.
    """

    seen = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput())
    upto = forms.CharField(required=False, widget=forms.HiddenInput())
    label = forms.CharField(label=_("Label"), required=False, max_length=200, strip=False)
    value = forms.CharField(
        label=_("Value"),
        required=False,
        max_length=500,
        strip=False,
        help_text=_("Empty removes the label."),
    )

    def __init__(self, *args: Any, deed: str, phrase: str, **kwargs: Any) -> None:
        super().__init__(*args, phrase=phrase, **kwargs)
        self.deed = deed
        for name in ("label", "value") if deed != "label" else ("seen", "upto", "confirm"):
            self.fields.pop(name, None)

    def clean_upto(self) -> dict[str, int]:
        upto = counts_read(self.cleaned_data["upto"] or "{}")
        if upto is None:
            raise ValidationError(_("Expected the last offset of each stream."))
        return upto

    def clean_label(self) -> str:
        label: str = self.cleaned_data["label"]
        if not label.strip():
            raise ValidationError(_("Enter the label's name, such as team."))
        fault = label_fault(label, self.data.get("value", ""))
        if fault:
            raise ValidationError(fault)
        return label


def is_more(going: int, *, seen: int) -> bool:
    """Whether so much more would go for good than was seen that a person is to be asked again."""
    return going > seen * (1 + TOLERATED_PART)


@dataclass(frozen=True, slots=True)
class Preview:
    """The streams that were chosen, as they stand now."""

    rows: list[StreamRow]

    @property
    def streams(self) -> list[Stream]:
        return [row.stream for row in self.rows]

    @property
    def messages(self) -> int:
        return sum(row.messages or 0 for row in self.rows)

    @property
    def bytes(self) -> int:
        return sum(row.bytes or 0 for row in self.rows)

    @property
    def groups(self) -> int:
        return sum(row.groups for row in self.rows)

    @property
    def upto(self) -> dict[str, int]:
        """The last offset of each stream, by its internal id: what comes later was not seen."""
        return {row.stream.stream_id: row.offset or 0 for row in self.rows}

    @property
    def seen(self) -> dict[str, Any]:
        """What the form says of it."""
        return {"seen": self.messages, "upto": json.dumps(self.upto)}

    def phrase(self, deed: str, *, is_undone: bool) -> str:
        """What must be typed first; ``is_undone`` says whether a purge can be."""
        is_final = deed == "delete" or (deed == "purge" and not is_undone)
        return phrase_for(self.streams, is_large=is_final and self.messages >= LARGE_MESSAGES)

    def has_grown(self, *, deed: str, seen: int, upto: Mapping[str, int]) -> bool:
        """Whether more would go than was seen, so that a person is to be asked again.

        A purge takes what was seen and nothing that came later. Streams are deleted with that, too, up to a tenth more.
        One that has taken the name of another since was not seen at all.
        """
        if upto and not upto.keys() >= {stream.stream_id for stream in self.streams}:
            return True
        if deed == "purge":
            return sum(_upto(row, upto.get(row.stream.stream_id)) for row in self.rows) > seen
        return is_more(self.messages, seen=seen)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many streams it was done to, how many messages went, and what was refused, in sentences."""

    streams: int
    messages: int
    refused: list[str]


def preview_of(caller: Caller, names: Sequence[str]) -> Preview:
    """The chosen streams that the caller may see, by name; at most ``MOST``."""
    found = selectors.streams_of(caller).filter(name__in=list(names)[:MOST])
    return Preview(rates.rows(list(found)))


def _upto(row: StreamRow, last: int | None) -> int:
    """How many messages a stream holds up to an offset, or one more for each that went from those behind it."""
    messages, offset = row.messages or 0, row.offset or 0
    return messages if last is None else messages - min(messages, max(0, offset - last))


def done(
    preview: Preview,
    *,
    deed: str,
    actor: Actor,
    upto: Mapping[str, int],
    label: str = "",
    value: str = "",
) -> Outcome:
    """Do it to each stream; one that refuses does not keep the others from it.

    Args:
        upto: the last offset of each stream that was seen, by its internal id: a purge takes nothing behind it.
    """
    gone, count, refused = 0, 0, []
    act: dict[str, Callable[[StreamRow], int]] = {
        "purge": lambda row: stream_purge(
            row.stream, actor=actor, below=_behind(upto.get(row.stream.stream_id))
        ),
        "delete": lambda row: _deleted(row, actor=actor),
        "label": lambda row: _labelled(row, label=label, value=value, actor=actor),
    }
    for row in preview.rows:
        try:
            gone += act[deed](row)
            count += 1
        except Refusal as refusal:
            refused.append(f"{row.name}: {refusal.message}")
    return Outcome(count, gone, refused)


def _behind(last: int | None) -> int | None:
    return None if last is None else last + 1


def _deleted(row: StreamRow, *, actor: Actor) -> int:
    messages = row.messages or 0
    stream_delete(row.stream, actor=actor)
    return messages


def labels_with(labels: Mapping[str, str], *, label: str, value: str) -> dict[str, str]:
    """Labels with one more, in place of another value of its name; without it where the value is empty."""
    others = {name: held for name, held in labels.items() if name != label}
    return {**others, label: value} if value else others


def _labelled(row: StreamRow, *, label: str, value: str, actor: Actor) -> int:
    labels = labels_with(row.stream.labels, label=label, value=value)
    if len(labels) > MOST_LABELS:
        raise Refusal(
            "validation_error", str(_("A stream has at most %(most)s labels.") % {"most": MOST_LABELS})
        )
    stream_change(row.stream, changes={"labels": labels}, actor=actor)
    return 0
