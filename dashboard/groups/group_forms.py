"""What people fill in about consumer groups. Each form checks what can be checked without the store."""

import re
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.forms import BootstrapMixin, KeyPatternsField, LinesField, key_patterns_written
from dashboard.meanwhile import OpenForm
from streams import naming
from streams.api.fields import LARGEST_INTEGER
from streams.api.group_objects import LONGEST_DESCRIPTION_BYTES, LONGEST_WAIT_S, MOST_BACKOFF
from streams.models import Group
from streams.models.group import Ack, StartFrom

PLACES = _("1200 · 15 min ago · 2026-11-21 07:05")


def _place(place: str, text: str) -> dict[str, Any]:
    """``offset`` or ``timestamp`` as a place needs it.

    Raises:
        ValueError: a sentence for the form.
    """
    if place == StartFrom.OFFSET:
        digits = text.strip().replace(",", "")
        if not (digits.isascii() and digits.isdigit()) or int(digits) > quantities.LARGEST:
            raise ValueError(_("Enter an offset: a whole number from 0."))
        return {"offset": int(digits)}
    if place == StartFrom.TIMESTAMP:
        return {"timestamp": quantities.parse_moment(text, now=timezone.now())}
    return {}


class GroupSettingsForm(BootstrapMixin, OpenForm):
    """The settings of a group that may change at any time."""

    nothing: ClassVar = {"max_deliver": _("no limit"), "filter_keys": _("all"), "inactive_after": _("never")}

    description = LinesField(
        label=_("Description"),
        max_length=LONGEST_DESCRIPTION_BYTES,
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off"}),
    )
    ack = forms.ChoiceField(
        label=_("Acknowledgement"),
        required=False,
        choices=[
            (Ack.EXPLICIT, _("Explicit: each message")),
            (Ack.ALL, _("Cumulative: one covers everything before it")),
            (Ack.NONE, _("None: acknowledged when fetched")),
        ],
        initial=Ack.EXPLICIT,
    )
    ack_wait = forms.FloatField(
        label=_("Ack wait (seconds)"),
        min_value=0.1,
        max_value=LONGEST_WAIT_S,
        initial=30,
        help_text=_("Then a message is redelivered."),
    )
    max_deliver = forms.IntegerField(
        label=_("Max deliveries"),
        required=False,
        min_value=1,
        max_value=LARGEST_INTEGER,
        initial=5,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
        help_text=_("Then it becomes a dead letter."),
    )
    backoff = forms.CharField(
        label=_("Backoff (seconds)"),
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "1, 5, 30", "autocomplete": "off"}),
        help_text=_(
            "After delivery 1, 2, …, separated by commas; replaces the ack wait, the last one repeats."
        ),
    )
    max_ack_pending = forms.IntegerField(
        label=_("Max in flight"),
        required=False,
        min_value=1,
        max_value=10_000_000,
        initial=1000,
        help_text=_("Across all members."),
    )
    filter_keys = KeyPatternsField(
        label=_("Key filter"),
        placeholder=_("all"),
        help_text=_("Patterns such as orders.eu.> or orders.*.paid, one per line."),
    )
    inactive_after = forms.CharField(
        label=_("Delete when idle for"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": _("never"), "autocomplete": "off"}),
        help_text=_("Such as 2 h; without a fetch for that long, the group is deleted."),
    )
    ordered_by_key = forms.BooleanField(
        label=_("One message per key at a time, in order"),
        required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )

    def __init__(self, data: QueryDict | None = None, *, group: Group | None = None) -> None:
        super().__init__(data, initial=None if group is None else self.initial_of(group))
        self.group = group

    def saved(self) -> dict[str, Any]:
        if self.group is None:
            return {}
        held = {name: getattr(self.group, name) for name in self.fields}
        return held | {"max_deliver": None if self.group.max_deliver == -1 else self.group.max_deliver}

    def clean_backoff(self) -> list[float]:
        parts = self.cleaned_data["backoff"].replace(",", " ").split()
        try:
            waits = [float(part) for part in parts]
        except ValueError:
            waits = [-1.0]
        if len(waits) > MOST_BACKOFF or not all(0.1 <= wait <= LONGEST_WAIT_S for wait in waits):
            raise ValidationError(
                _("Enter at most %(most)s waits, each from 0.1 to %(longest)s seconds."),
                params={"most": MOST_BACKOFF, "longest": LONGEST_WAIT_S},
            )
        return waits

    def clean_inactive_after(self) -> float | None:
        text: str = self.cleaned_data["inactive_after"]
        if not text:
            return None
        try:
            seconds = quantities.parse_seconds(text)
        except ValueError:
            raise ValidationError(_("Enter how long, such as 30 min or 2 h.")) from None
        if not 0.1 <= seconds <= LONGEST_WAIT_S:
            raise ValidationError(_("From 0.1 seconds to 30 days."))
        return seconds

    def settings(self) -> dict[str, Any]:
        """The group settings that were chosen."""
        chosen = self.cleaned_data
        limit, most = chosen["max_deliver"], chosen["max_ack_pending"]
        return {
            "description": chosen["description"],
            "ack": chosen["ack"] or Ack.EXPLICIT,
            "ack_wait": chosen["ack_wait"],
            "max_deliver": -1 if limit is None else limit,
            "backoff": chosen["backoff"],
            "max_ack_pending": 1000 if most is None else most,
            "filter_keys": chosen["filter_keys"],
            "inactive_after": chosen["inactive_after"],
            "ordered_by_key": chosen["ordered_by_key"],
        }

    def changes(self, group: Group) -> dict[str, Any]:
        """Those that differ from what the group is set to."""
        return {name: value for name, value in self.settings().items() if getattr(group, name) != value}

    @classmethod
    def initial_of(cls, group: Group) -> dict[str, Any]:
        """What the form shows of a group."""
        return {
            "description": group.description,
            "ack": group.ack,
            "ack_wait": quantities.written_number(group.ack_wait),
            "max_deliver": None if group.max_deliver == -1 else group.max_deliver,
            "backoff": ", ".join(map(quantities.written_number, group.backoff)),
            "max_ack_pending": group.max_ack_pending,
            "filter_keys": key_patterns_written(group.filter_keys),
            "inactive_after": quantities.written_seconds(group.inactive_after),
            "ordered_by_key": group.ordered_by_key,
        }


class GroupForm(GroupSettingsForm):
    """A new group."""

    name = forms.CharField(
        label=_("Name"),
        max_length=naming.LONGEST_NAME,
        validators=[
            RegexValidator(
                rf"^{naming.NAME}\Z",
                _("Letters, digits, dots, dashes and underscores; starts with a letter or a digit."),
            )
        ],
        widget=forms.TextInput(
            attrs={"placeholder": "billing", "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text=_("Case-sensitive. Cannot be changed later."),
    )
    start_from = forms.ChoiceField(
        label=_("Start from"),
        choices=[
            (StartFrom.EARLIEST, _("Earliest message")),
            (StartFrom.LATEST, _("New messages only")),
            (StartFrom.LAST, _("Newest message")),
            (StartFrom.OFFSET, _("Offset")),
            (StartFrom.TIMESTAMP, _("Time")),
        ],
        initial=StartFrom.EARLIEST,
    )
    at = forms.CharField(
        label=_("Offset or time"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": PLACES, "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("Only with an offset or a time."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        place, text = cleaned.get("start_from", ""), cleaned.get("at", "")
        if text and place and place not in {StartFrom.OFFSET, StartFrom.TIMESTAMP}:
            self.add_error(
                "at", _("Only used with an offset or a time; choose one of them, or leave this empty.")
            )
            return cleaned
        try:
            cleaned["place"] = _place(place, text)
        except ValueError as error:
            self.add_error("at", str(error))
        return cleaned

    def settings(self) -> dict[str, Any]:
        """The group settings that were chosen, with where it starts."""
        return super().settings() | {
            "start_from": self.cleaned_data["start_from"],
            **{f"start_{name}": value for name, value in self.cleaned_data["place"].items()},
        }


SHIFT, LIKE = "shift", "like"
"""Two more places that a person may name: so many offsets on or back, and where another group is."""

_SHIFT = re.compile(r"([+\-−]?)\s*(\d[\d,]*)")


class SeekForm(BootstrapMixin, forms.Form):
    """Where a group shall go; a query string, so that a preview has an address."""

    position = forms.ChoiceField(
        label=_("Seek to"),
        choices=[
            (StartFrom.EARLIEST, _("Earliest message")),
            (StartFrom.LATEST, _("New messages only")),
            (StartFrom.OFFSET, _("Offset")),
            (StartFrom.TIMESTAMP, _("Time")),
            (SHIFT, _("Shift by offsets")),
            (LIKE, _("Position of another group")),
        ],
    )
    at = forms.CharField(
        label=_("Offset or time"),
        required=False,
        max_length=60,
        widget=forms.TextInput(
            attrs={
                "placeholder": _("1200 · 15 min ago · 2026-11-21 07:05 · -500 · audit"),
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_("Or a number of offsets, such as -500; or the other group's name."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        place, text = cleaned.get("position", ""), cleaned.get("at", "").strip()
        if place == SHIFT:
            match = _SHIFT.fullmatch(text)
            digits = match[2].replace(",", "") if match else ""
            if match is None or int(digits) > quantities.LARGEST:
                self.add_error("at", _("Enter how many offsets, such as -500 or +20."))
            else:
                cleaned["by"] = -int(digits) if match[1] in {"-", "−"} else int(digits)
        elif place == LIKE:
            if not text:
                self.add_error("at", _("Enter the name of a group of this stream."))
        else:
            try:
                cleaned["place"] = _place(place, text)
            except ValueError as error:
                self.add_error("at", str(error))
        return cleaned


class SeekNowForm(forms.Form):
    """A preview that was agreed to: the next offset to go to, and the one that was next when it was shown."""

    next_offset = forms.IntegerField(min_value=0, max_value=quantities.LARGEST)
    seen_from = forms.IntegerField(min_value=0, max_value=quantities.LARGEST)


class PauseForm(BootstrapMixin, forms.Form):
    """For how long a group is paused."""

    until = forms.CharField(
        label=_("Until"),
        required=False,
        max_length=60,
        widget=forms.TextInput(
            attrs={
                "placeholder": _("resumed by hand"),
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_("Such as 30 min, or 2026-11-22 06:00."),
    )

    def clean_until(self) -> datetime | None:
        text: str = self.cleaned_data["until"]
        if not text:
            return None
        try:
            return quantities.parse_until(text, now=timezone.now())
        except ValueError as error:
            raise ValidationError(str(error)) from None


class GroupDeleteForm(BootstrapMixin, forms.Form):
    """The name of the group, typed, before it goes.

    ``seen_letters`` is how many dead letters the page told of, ``seen_messages`` how many go that only it wanted.
    """

    seen_letters = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput())
    seen_messages = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput())
    confirm = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )

    def __init__(self, *args: Any, group: Group, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group
        self.fields["confirm"].label = _("Type %(name)s to confirm") % {"name": group.name}

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed != self.group.name:
            raise ValidationError(_("That is not the group's name. Nothing was deleted."))
        return typed
