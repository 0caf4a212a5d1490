"""Where to look in a stream and what for; the query string of the pages that show messages is this form."""

import re
from datetime import datetime
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.browse import chosen_fields, coded, filters
from dashboard.browse.chosen_fields import ChosenField
from dashboard.browse.coded import Reading
from dashboard.forms import BootstrapMixin, pattern_fault
from streams import naming
from streams.filters import conditions
from streams.filters.bodies import body_test
from streams.filters.headers import header_test
from streams.log.read import Wanted

MOST_READING_CHARACTERS = 60
MORE = ("until", "header", "cols", "decode")
"""Fields that stand behind *More filters*."""

WITHOUT_PLACE = ("newest", "oldest")
"""Starts that need no offset, time or id."""

UNIX_MS_DIGITS = (13, 14)
"""From 2001 to the year 5138."""

READINGS = (
    "auto",
    "raw",
    "base64",
    "base64 gzip",
    "base64 zlib",
    "base64 zstd",
    "base64 snappy",
    "base64 msgpack",
    "base64 cbor",
    "base64 protobuf",
    "base64 float32",
    "base64 pickle",
    "hex",
    "hex msgpack",
    "hex protobuf",
    "json",
)
"""What the form proposes; steps may follow each other in other ways."""


class BrowseForm(BootstrapMixin, forms.Form):
    """The start, the end, the filters; then where a page goes on, and what a search has come to so far."""

    START = (
        ("newest", _("Newest first")),
        ("oldest", _("Oldest first")),
        ("offset", _("From offset")),
        ("time", _("From time")),
        ("id", _("From id")),
    )
    start = forms.ChoiceField(label=_("Start"), choices=START, required=False)
    at = forms.CharField(
        label=_("Offset, time or id"),
        required=False,
        max_length=60,
        strip=False,
        widget=forms.TextInput(
            attrs={"placeholder": _("1200 · 15 min ago"), "title": _("1200 · 15 min ago · 2026-11-21 07:05")}
        ),
    )
    until = forms.CharField(
        label=_("Until (time)"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": _("now")}),
    )
    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=naming.LONGEST_KEY,
        widget=forms.TextInput(attrs={"placeholder": _("orders.*  ·  orders.>")}),
    )
    header = forms.CharField(
        label=_("Header"),
        required=False,
        max_length=conditions.LONGEST,
        widget=forms.TextInput(
            attrs={
                "placeholder": _("trace = 4bf9"),
                "title": _(
                    "trace · trace = 4bf9 · trace ~ 4b · trace !~ 4b · several joined by && · "
                    "alternatives by ||: region = eu || region = us"
                ),
            }
        ),
    )
    match = forms.CharField(
        label=_("Body"),
        required=False,
        max_length=conditions.LONGEST,
        widget=forms.TextInput(
            attrs={
                "placeholder": _("text  ·  .customer.id = 42"),
                "title": _(
                    "refused · .customer.id = 42 · .status ~ part · .status !~ part · "
                    "several joined by &&: .status = paid && .total > 99.5 · "
                    "alternatives by ||: (.status = paid || .status = new) && .total > 99.5 · "
                    'in quotes: "salt && pepper"'
                ),
            }
        ),
    )
    cols = forms.CharField(
        label=_("Columns"),
        required=False,
        max_length=chosen_fields.MOST_CHARACTERS,
        widget=forms.TextInput(attrs={"placeholder": _(".customer.id, .total")}),
    )
    decode = forms.CharField(
        label=_("Decode"),
        required=False,
        max_length=MOST_READING_CHARACTERS,
        widget=forms.TextInput(
            attrs={"placeholder": coded.AUTO, "title": _("auto · raw · base64 gzip json"), "list": "readings"}
        ),
    )
    before = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)
    after = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)
    scanned = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)
    matched = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)
    took = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)
    looked = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)
    edge = forms.IntegerField(required=False, min_value=0, max_value=quantities.LARGEST)

    def __init__(self, given: QueryDict) -> None:
        super().__init__(_with_start(given))
        for field in self.fields.values():
            field.widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}
        self.fields["at"].widget.attrs["data-search"] = ""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        cleaned["start"] = start = cleaned.get("start") or "newest"
        text, now = cleaned.get("at", ""), timezone.now()
        try:
            if start == "time":
                cleaned["time"] = quantities.parse_moment(text, now=now)
            elif start == "offset":
                cleaned["offset"] = _offset(text)
            elif start == "id" and not text:
                raise ValueError(_("Enter the id of a message."))
            elif start != "id" and text.strip():
                raise ValueError(
                    _("Enter an offset (1200), a time (15 min ago, 2026-11-21 07:05) or the id of a message.")
                )
        except ValueError as error:
            self.add_error("at", str(error))
        try:
            until = cleaned.get("until")
            cleaned["until"] = quantities.parse_moment(until, now=now) if until else None
        except ValueError as error:
            self.add_error("until", str(error))
        return cleaned

    def clean_key(self) -> str:
        key: str = self.cleaned_data["key"]
        fault = pattern_fault(key) if key else None
        if fault:
            raise forms.ValidationError(fault)
        return key

    def clean_header(self) -> str:
        header: str = self.cleaned_data["header"]
        try:
            if header:
                header_test(header)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return header

    def clean_match(self) -> str:
        match: str = self.cleaned_data["match"]
        try:
            if match:
                body_test(match)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return match

    def clean_cols(self) -> list[ChosenField]:
        try:
            return chosen_fields.chosen(self.cleaned_data["cols"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None

    def clean_decode(self) -> Reading:
        try:
            return coded.reading(self.cleaned_data["decode"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None

    @property
    def reading(self) -> Reading:
        """How bodies are read."""
        chosen = self.cleaned_data.get("decode") if self.is_bound else None
        return chosen or coded.AUTOMATIC

    @property
    def readings(self) -> tuple[str, ...]:
        """What may be proposed for the field."""
        return READINGS

    @property
    def columns(self) -> list[ChosenField]:
        """The fields of bodies that have a column."""
        return self.cleaned_data.get("cols") or [] if self.is_bound else []

    @property
    def range(self) -> tuple[datetime, datetime] | None:
        """The span that was chosen, when both its ends were."""
        if not self.is_bound or self.errors:
            return None
        start, end = self.cleaned_data.get("time"), self.cleaned_data.get("until")
        return (start, end) if start and end and start < end else None

    @property
    def asks_more(self) -> bool:
        """Whether one of the fields is set that stand behind *More filters*."""
        return any(self[name].value() or self[name].errors for name in MORE)

    @property
    def is_narrowed(self) -> bool:
        """Whether the page is another one than that of the newest messages."""
        chosen = self["start"].value() not in (None, "", "newest")
        return chosen or self.asks_more or any(self[name].value() for name in ("at", "key", "match"))

    @property
    def is_filtered(self) -> bool:
        """Whether messages are left out by what they are."""
        return not self.errors and any(self.cleaned_data[name] for name in ("key", "header", "match"))

    def wanted(self, *, message_id: str = "") -> Wanted | None:
        """The filters as a test of an entry; None where there are none."""
        asked = self.cleaned_data
        return filters.entry_test(
            key=asked["key"],
            body=asked["match"],
            message_id=message_id,
            header=asked["header"],
            reading=self.reading,
        )


def _with_start(given: QueryDict) -> QueryDict:
    """What was sent; where the box of the start is filled in and the start needs no place, with the one meant."""
    text = given.get("at", "").strip()
    meant = _start_meant(text) if text and given.get("start", "") in ("", *WITHOUT_PLACE) else ""
    if meant:
        given = given.copy()
        given["start"] = meant
    return given


def _start_meant(text: str) -> str:
    """The start that a text is the place of: a number is an offset, as long a one as a unix time has that; nothing for
    what may be none of them, such as a time that is misspelt.
    """
    digits = text.replace(",", "")
    if digits.isascii() and digits.isdigit() and not (digits == text and len(text) in UNIX_MS_DIGITS):
        return "offset"
    try:
        quantities.parse_moment(text, now=timezone.now())
    except ValueError:
        return "" if re.search(r"\s", text) else "id"
    return "time"


def _offset(text: str) -> int:
    digits = text.strip().replace(",", "")
    if not (digits.isascii() and digits.isdigit()) or int(digits) > quantities.LARGEST:
        raise ValueError(_("Enter an offset: a whole number from 0."))
    return int(digits)
