"""What people fill in to publish a range of the past again."""

from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.forms import BootstrapMixin, QuantityField, pattern_fault
from streams import naming
from streams.services.replays import LONGEST_WHERE, MOST_RATE, ReplayWanted

WHEN = _("2 h ago · 2026-11-21 07:05")


def _moment(text: str) -> datetime:
    return quantities.parse_moment(text, now=timezone.now())


class MomentField(QuantityField):
    """A time as people write it, or nothing; the value is a time."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(parse=_moment, placeholder=WHEN, max_length=60, **kwargs)
        self.widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}


class ReplayForm(BootstrapMixin, forms.Form):
    """A range of the stream's past, and where it goes."""

    target = forms.CharField(
        label=_("Target stream"),
        max_length=50,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=_("This stream or another one."),
    )
    from_offset = forms.IntegerField(
        label=_("From offset"), required=False, min_value=1, max_value=quantities.LARGEST
    )
    to_offset = forms.IntegerField(
        label=_("To offset"),
        required=False,
        min_value=1,
        max_value=quantities.LARGEST,
        help_text=_("Included."),
    )
    since = MomentField(label=_("Published from"))
    until = MomentField(label=_("Published before"))
    key = forms.CharField(
        label=_("Key or pattern"),
        required=False,
        max_length=naming.LONGEST_KEY,
        widget=forms.TextInput(attrs={"placeholder": "eu.>", "autocomplete": "off", "spellcheck": "false"}),
    )
    where = forms.CharField(
        label=_("Condition in SQL"),
        required=False,
        max_length=LONGEST_WHERE,
        widget=forms.TextInput(
            attrs={
                "placeholder": "get_json_object(body, '$.carrier') = 'UA'",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_("On the columns of the table messages."),
    )
    ids = forms.ChoiceField(
        label=_("Ids"),
        required=False,
        choices=[
            ("", _("New in the same stream, otherwise original")),
            ("keep", _("Original: the target refuses those it already has")),
            ("new", _("New")),
        ],
    )
    rate = forms.IntegerField(
        label=_("Max messages per second"), required=False, min_value=1, max_value=MOST_RATE
    )

    def clean_key(self) -> str:
        key: str = self.cleaned_data["key"]
        fault = pattern_fault(key) if key else None
        if fault:
            raise ValidationError(fault)
        return key

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        first, last = cleaned.get("from_offset"), cleaned.get("to_offset")
        if first is not None and last is not None and first > last:
            self.add_error("to_offset", _("Enter an offset that is not below the first one."))
        since, until = cleaned.get("since"), cleaned.get("until")
        if since is not None and until is not None and since >= until:
            self.add_error("until", _("Enter a time after the first one."))
        return cleaned

    def wanted(self) -> ReplayWanted:
        """What was asked for; it waits, once it is counted, until somebody starts it."""
        sent = self.cleaned_data
        return ReplayWanted(
            from_offset=sent["from_offset"],
            to_offset=sent["to_offset"],
            since=sent["since"],
            until=sent["until"],
            key=sent["key"],
            where=sent["where"].strip(),
            keeps_ids={"keep": True, "new": False}.get(sent["ids"]),
            rate=sent["rate"],
            starts=False,
        )
