"""What people fill in at the desk of messages in flight."""

import time
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.forms import BootstrapMixin
from dashboard.shown import offsets_read
from streams.api.group_objects import LONGEST_WAIT_S
from streams.log.pending import Wanted
from streams.services.deliveries import MOST_AT_ONCE

MOST_CHOSEN = 1000
LONGEST_REASON = 1000


class DeskForm(BootstrapMixin, forms.Form):
    """Which messages in flight; a query string, so that a view has an address."""

    deliveries = forms.IntegerField(
        label=_("Deliveries at least"), required=False, min_value=1, max_value=2**31 - 1
    )
    age = forms.CharField(
        label=_("In flight for at least"),
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"placeholder": "5 min", "autocomplete": "off"}),
    )
    consumer = forms.CharField(
        label=_("Consumer"),
        required=False,
        max_length=255,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "data-search": ""}),
    )

    def clean_age(self) -> int | None:
        return _seconds(self.cleaned_data["age"])

    @property
    def wanted(self) -> Wanted:
        """The filter of a valid form."""
        asked = self.cleaned_data
        age_s = asked["age"]
        return Wanted(
            deliveries=asked["deliveries"] or 0,
            before_ms=None if age_s is None else int((time.time() - age_s) * 1000),
            consumer=asked["consumer"] or None,
        )


class ChosenForm(BootstrapMixin, forms.Form):
    """A form beside a list: to the rows that were chosen, or to all that match.

    Its preview sends back which messages it has shown: whoever confirms it agrees to those and to no other.

    Attributes:
        offsets: that were chosen.
        seen: offsets that the preview has shown; empty where it has not been shown yet.
    """

    scope = forms.ChoiceField(
        label=_("Apply to"), choices=[("chosen", _("selected")), ("all", _("all that match the filter"))]
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self.written = [] if data is None else data.getlist("offset")
        self.written_seen = "" if data is None else data.get("seen_offsets", "")
        self.offsets: list[int] = []
        self.seen: list[int] = []

    def seen_in(self, written: str) -> list[int]:
        """Offsets that the preview has shown, as it wrote them."""
        try:
            return offsets_read(written, most=MOST_AT_ONCE) if written else []
        except ValueError:
            self.add_error("scope", _("These are not offsets."))
            return []

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.written_seen:
            self.seen = self.seen_in(self.written_seen)
        elif cleaned.get("scope") == "chosen":
            if not self.written:
                self.add_error("scope", _("Select messages first."))
            elif len(self.written) > MOST_CHOSEN or not all(map(_is_offset, self.written)):
                self.add_error("scope", _("These are not offsets."))
            else:
                self.offsets = sorted({int(text) for text in self.written})
        return cleaned


class LettersForm(ChosenForm):
    """What shall happen to dead letters; ``reason`` is the filter of the list."""

    do = forms.ChoiceField(label=_("Action"), choices=[("replay", _("Replay")), ("delete", _("Delete"))])
    reason = forms.CharField(required=False, max_length=LONGEST_REASON, strip=False)


class SettleForm(ChosenForm):
    """What shall happen to messages in flight, and to which.

    Attributes:
        seen_dying: offsets that the preview has shown to become dead letters by a nack.
    """

    what = forms.ChoiceField(
        label=_("Action"),
        choices=[
            ("nack", _("Nack: redelivered, or a dead letter after the last delivery")),
            ("ack", _("Acknowledge: never redelivered")),
            ("term", _("Terminate: becomes a dead letter")),
        ],
    )
    delay = forms.CharField(
        label=_("Nack delay"),
        required=False,
        max_length=40,
        widget=forms.TextInput(attrs={"placeholder": _("at once"), "autocomplete": "off"}),
    )
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=LONGEST_REASON,
        widget=forms.TextInput(attrs={"placeholder": _("terminated by hand"), "autocomplete": "off"}),
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data)
        self.written_dying = "" if data is None else data.get("seen_dying", "")
        self.seen_dying: list[int] = []

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        self.seen_dying = self.seen_in(self.written_dying)
        return cleaned

    def clean_delay(self) -> int:
        seconds = _seconds(self.cleaned_data["delay"]) or 0
        if seconds > LONGEST_WAIT_S:
            raise ValidationError(_("At most 30 days."))
        return seconds


def _is_offset(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < len(text) < 17


def _seconds(text: str) -> int | None:
    if not text:
        return None
    try:
        return quantities.parse_duration(text)
    except (ValueError, OverflowError):
        raise ValidationError(_("Enter how long, such as 30 s or 5 min.")) from None
