"""What people fill in about consumer groups. Each form checks what can be checked without the store."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.forms import BootstrapMixin
from streams import naming
from streams.api.fields import MOST_PATTERNS
from streams.api.group_objects import LONGEST_WAIT_S
from streams.models import Group
from streams.models.group import StartFrom

MOST_DELIVERIES = 2**31 - 1
PLACES = _("1200 · 15 min ago · 2026-11-21 07:05")


def _place(place: str, text: str) -> dict[str, Any]:
    """``offset`` or ``timestamp`` as a place needs it.

    Raises:
        ValueError: a sentence for the form.
    """
    if place == StartFrom.OFFSET:
        digits = text.strip().replace(",", "")
        if not (digits.isascii() and digits.isdigit()) or int(digits) > quantities.LARGEST:
            raise ValueError("Write an offset: a whole number from 0.")
        return {"offset": int(digits)}
    if place == StartFrom.TIMESTAMP:
        return {"timestamp": quantities.parse_moment(text, now=timezone.now())}
    return {}


class GroupForm(BootstrapMixin, forms.Form):
    """A new group."""

    name = forms.CharField(
        label=_("Name"),
        max_length=naming.LONGEST_NAME,
        validators=[
            RegexValidator(
                rf"^{naming.NAME}\Z",
                _("Letters, digits, dots, dashes and underscores; it begins with a letter or a digit."),
            )
        ],
        widget=forms.TextInput(
            attrs={"placeholder": "billing", "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text=_("Capitals count. The name cannot be changed later."),
    )
    start_from = forms.ChoiceField(
        label=_("Starts at"),
        choices=[
            (StartFrom.EARLIEST, _("The first message kept")),
            (StartFrom.LATEST, _("What is published from now on")),
            (StartFrom.LAST, _("The newest message")),
            (StartFrom.OFFSET, _("An offset")),
            (StartFrom.TIMESTAMP, _("A time")),
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
    ack_wait = forms.FloatField(
        label=_("Answer within (seconds)"),
        min_value=0.1,
        max_value=LONGEST_WAIT_S,
        initial=30,
        help_text=_("Then a message is delivered again."),
    )
    max_deliver = forms.IntegerField(
        label=_("Deliveries at most"),
        required=False,
        min_value=1,
        max_value=MOST_DELIVERIES,
        initial=5,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
        help_text=_("Then it becomes a dead letter."),
    )
    filter_keys = forms.CharField(
        label=_("Only these keys"),
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"class": "mono", "placeholder": _("all"), "spellcheck": "false"}),
        help_text=_("Patterns such as orders.eu.> or orders.*.paid, separated by commas."),
    )

    def clean_filter_keys(self) -> list[str]:
        patterns: list[str] = self.cleaned_data["filter_keys"].replace(",", " ").split()
        if len(patterns) > MOST_PATTERNS:
            raise ValidationError(_("At most %(most)s patterns."), params={"most": MOST_PATTERNS})
        for pattern in patterns:
            fault = naming.pattern_fault(pattern)
            if fault:
                raise ValidationError(f"{pattern[:60]}: {fault}")
        return patterns

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        place, text = cleaned.get("start_from", ""), cleaned.get("at", "")
        if text and place and place not in {StartFrom.OFFSET, StartFrom.TIMESTAMP}:
            self.add_error(
                "at", _("This belongs to an offset or a time; choose one of them, or leave it out.")
            )
            return cleaned
        try:
            cleaned["place"] = _place(place, text)
        except ValueError as error:
            self.add_error("at", str(error))
        return cleaned

    def settings(self) -> dict[str, Any]:
        """The group settings that were chosen; the others get their defaults."""
        chosen, limit = self.cleaned_data, self.cleaned_data["max_deliver"]
        return {
            "start_from": chosen["start_from"],
            **{f"start_{name}": value for name, value in chosen["place"].items()},
            "ack_wait": chosen["ack_wait"],
            "max_deliver": -1 if limit is None else limit,
            "filter_keys": chosen["filter_keys"],
        }


class SeekForm(BootstrapMixin, forms.Form):
    """Where a group shall go; a query string, so that a preview has an address."""

    position = forms.ChoiceField(
        label=_("Go to"),
        choices=[
            (StartFrom.EARLIEST, _("The first message kept")),
            (StartFrom.LATEST, _("What is published from now on")),
            (StartFrom.OFFSET, _("An offset")),
            (StartFrom.TIMESTAMP, _("A time")),
        ],
    )
    at = forms.CharField(
        label=_("Offset or time"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": PLACES, "autocomplete": "off", "spellcheck": "false"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        try:
            cleaned["place"] = _place(cleaned.get("position", ""), cleaned.get("at", ""))
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
                "placeholder": _("someone resumes it"),
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_("Such as 30 min, or 2026-11-22 06:00 (UTC)."),
    )

    def clean_until(self) -> datetime | None:
        text: str = self.cleaned_data["until"]
        if not text:
            return None
        now = timezone.now()
        try:
            until = now + timedelta(seconds=quantities.parse_duration(text))
        except (ValueError, OverflowError):
            try:
                until = quantities.parse_moment(text, now=now)
            except ValueError:
                raise ValidationError(_("Write how long, such as 30 min, or a time in the future.")) from None
        if until <= now:
            raise ValidationError(_("That time is over; write one in the future."))
        return until


class GroupDeleteForm(BootstrapMixin, forms.Form):
    """The name of the group, typed, before it goes."""

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
