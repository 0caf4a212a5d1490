"""What people fill in. Each form checks what can be checked without the store; services refuse the rest."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard import json_faults, quantities
from streams import naming
from streams.api.fields import MOST_PATTERNS
from streams.errors import Refusal
from streams.models import Stream
from streams.models.stream import Discard, Retention, Storage
from streams.models.token import Scope


class BootstrapMixin:
    """Gives each widget its Bootstrap class, and a wrong one its red border."""

    fields: dict[str, forms.Field]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            widget = field.widget
            if isinstance(widget, forms.Select):
                kind = "form-select"
            elif isinstance(widget, (forms.CheckboxInput, forms.CheckboxSelectMultiple)):
                kind = "form-check-input"
            else:
                kind = "form-control"
            widget.attrs["class"] = f"{kind} {widget.attrs.get('class', '')}".strip()

    def is_valid(self) -> bool:
        valid: bool = super().is_valid()  # type: ignore[misc]
        for name in self.errors:  # type: ignore[attr-defined]
            if name in self.fields:
                self.fields[name].widget.attrs["class"] += " is-invalid"
        return valid


def refusal_show(refusal: Refusal, form: forms.Form, *, names: Mapping[str, str] | None = None) -> None:
    """Put a refusal where the person can mend it, without the field's name that callers of the API are told.

    Args:
        names: what fields of the API are called in this form, where that differs.
    """
    for field in refusal.details.get("fields") or [None]:
        named = (names or {}).get(field or "", field)
        sentence = refusal.message.removeprefix(f"{field}: ")
        form.add_error(named if named in form.fields else None, sentence)


class QuantityField(forms.CharField):
    """A duration, a size or a time as people write it, or nothing; the value is what ``parse`` makes of it."""

    def __init__(self, *, parse: Any, placeholder: Any, max_length: int = 40, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=max_length, **kwargs)
        self.parse = parse
        self.widget.attrs["placeholder"] = placeholder

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            raise ValidationError(str(error)) from None


class LinesField(forms.CharField):
    """A text of several lines, its edges too; line ends are as the API writes them, a browser sends CRLF."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, strip=False, **kwargs)

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class KeyPatternsField(LinesField):
    """Key patterns, which may hold commas: one per line, or with blanks between them, also after a comma."""

    APART = re.compile(r"\s*\n\s*|,?[^\S\n]+")

    def __init__(self, *, placeholder: Any, **kwargs: Any) -> None:
        attrs = {"rows": 3, "spellcheck": "false", "class": "mono", "placeholder": placeholder}
        super().__init__(widget=forms.Textarea(attrs=attrs), **kwargs)

    def clean(self, value: Any) -> list[str]:
        patterns = [pattern for pattern in self.APART.split(super().clean(value)) if pattern]
        if len(patterns) > MOST_PATTERNS:
            raise ValidationError(_("At most %(most)s patterns."), params={"most": MOST_PATTERNS})
        for pattern in patterns:
            fault: Any = pattern_fault(pattern)
            if not fault and pattern.strip(",") != pattern:
                fault = _("A comma at the edge; patterns are separated by lines.")
            if fault:
                raise ValidationError(f"{pattern[:60]}: {fault}")
        return patterns


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a key pattern, as ``streams.naming`` says it, in the language of who reads it."""
    if naming.pattern_fault(pattern) is None:
        return None
    if len(pattern) > naming.LONGEST_KEY:
        return gettext("Expected at most %(most)s characters.") % {"most": naming.LONGEST_KEY}
    return gettext("Expected dot-separated tokens; * is a whole token and > only the last.")


def key_patterns_written(patterns: Iterable[str]) -> str:
    """What such a field shows of them."""
    return "\n".join(patterns)


class StreamForm(BootstrapMixin, forms.Form):
    """A new stream."""

    name = forms.CharField(
        label=_("Name"),
        max_length=50,
        validators=[
            RegexValidator(
                r"^[A-Za-z0-9][A-Za-z0-9._-]{0,49}\Z",
                _("Letters, digits, dots, dashes and underscores; starts with a letter or a digit."),
            )
        ],
        widget=forms.TextInput(
            attrs={
                "placeholder": "orders.eu",
                "autocomplete": "off",
                "autofocus": True,
                "spellcheck": "false",
            }
        ),
        help_text=_("Case-sensitive. Cannot be changed later."),
    )
    description = forms.CharField(
        label=_("Description"), required=False, max_length=4096, widget=forms.TextInput()
    )
    ttl = QuantityField(
        label=_("Max age"),
        parse=quantities.parse_duration,
        placeholder=_("no limit"),
        help_text=_("Such as 12 h or 7 d."),
    )
    max_messages = forms.IntegerField(
        label=_("Max messages"),
        required=False,
        min_value=1,
        max_value=quantities.LARGEST,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
    )
    max_bytes = QuantityField(
        label=_("Max size"),
        parse=quantities.parse_size,
        placeholder=_("no limit"),
        help_text=_("Total size of the bodies, such as 10 GiB."),
    )
    max_messages_per_key = forms.IntegerField(
        label=_("Max messages per key"),
        required=False,
        min_value=1,
        max_value=quantities.LARGEST,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
        help_text=_("The newest messages of each key; 1 keeps only the latest."),
    )
    retention = forms.ChoiceField(
        label=_("Retention"),
        choices=[
            (Retention.LIMITS, _("Limits only")),
            (Retention.INTEREST, _("Limits and interest")),
        ],
        initial=Retention.LIMITS,
        required=False,
    )
    discard = forms.ChoiceField(
        label=_("When full"),
        choices=[
            (Discard.OLD, _("Discard oldest")),
            (Discard.NEW, _("Refuse new")),
        ],
        initial=Discard.OLD,
    )
    storage = forms.ChoiceField(
        label=_("Storage"),
        choices=[
            (Storage.DURABLE, _("On disk")),
            (Storage.MEMORY, _("In memory: faster, lost when its server restarts")),
        ],
        initial=Storage.DURABLE,
        required=False,
        help_text=_("This cannot be changed later."),
    )
    archive = forms.BooleanField(
        label=_("Keep a copy in the history"),
        required=False,
        initial=True,
        help_text=_("Spark copies every message before a limit removes it."),
    )

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name == "find":
            raise ValidationError(_("This name is reserved for the API."))
        return name

    def settings(self) -> dict[str, Any]:
        """The stream settings that were chosen; the others get their defaults."""
        chosen = {name: value for name, value in self.cleaned_data.items() if name != "name"}
        if chosen["ttl"] is None:
            del chosen["ttl"]  # nothing said: the plan's default
        chosen["retention"] = chosen["retention"] or Retention.LIMITS
        chosen["storage"] = chosen["storage"] or Storage.DURABLE
        return chosen


class DeleteForm(BootstrapMixin, forms.Form):
    """The name of the stream, typed, before it goes.

    ``seen`` is how many messages the page told of.
    """

    seen = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput())
    confirm = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )

    def __init__(self, *args: Any, stream: Stream, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stream = stream
        self.fields["confirm"].label = _("Type %(name)s to confirm") % {"name": stream.name}

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed != self.stream.name:
            raise ValidationError(_("That is not the stream's name. Nothing was deleted."))
        return typed


class PublishForm(BootstrapMixin, forms.Form):
    """One message."""

    id = forms.CharField(
        label=_("Id"),
        max_length=50,
        strip=False,
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("A message with an id that the stream already has is not stored again."),
    )
    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=255,
        widget=forms.TextInput(
            attrs={
                "class": "mono",
                "placeholder": "orders.eu.7",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_("Optional; words separated by dots."),
    )
    headers = forms.CharField(
        label=_("Headers"),
        required=False,
        strip=False,
        max_length=64 * 1024,
        widget=forms.TextInput(
            attrs={
                "class": "mono",
                "placeholder": '{"trace": "4bf92f35"}',
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_("Optional; a JSON object of strings."),
    )
    body = forms.CharField(
        label=_("Body (JSON)"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
    )

    def clean_id(self) -> str:
        return _encodable(self.cleaned_data["id"])

    def clean_key(self) -> str:
        key = _encodable(self.cleaned_data["key"])
        if key and any(not token or set(token) & set("*> \t\r\n") for token in key.split(".")):
            raise ValidationError(_("Words separated by single dots, without *, > or spaces."))
        return key

    def clean_headers(self) -> str:
        headers = _encodable(self.cleaned_data["headers"]).strip()
        try:
            held = json.loads(headers or "{}")
        except (ValueError, RecursionError):
            held = None
        if not isinstance(held, dict) or not all(isinstance(value, str) for value in held.values()):
            raise ValidationError(_('An object of strings, such as {"trace": "4bf92f35"}.'))
        return headers if held else ""

    def clean_body(self) -> str:
        body = _encodable(self.cleaned_data["body"].replace("\r\n", "\n").strip())
        try:
            # Only checked: the text itself is what is stored, with every digit.
            json.loads(body, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise ValidationError(json_faults.sentence(error)) from None
        except ValueError as error:
            raise ValidationError(str(error)) from None
        except RecursionError:
            raise ValidationError(_("Nested too deeply.")) from None
        return body


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValidationError(_("It contains a lone surrogate (half a character).")) from None
    return text


def _refuse_constant(name: str) -> None:
    raise ValueError(_("%(name)s is not JSON.") % {"name": name})


class PatternsField(forms.CharField):
    """The name patterns that narrow somebody to some streams, as a list; empty is every stream."""

    def __init__(self) -> None:
        attrs = {"placeholder": _("all"), "spellcheck": "false", "autocomplete": "off"}
        super().__init__(
            label=_("Only these streams"),
            required=False,
            strip=False,
            max_length=MOST_PATTERNS * 52,
            widget=forms.TextInput(attrs=attrs),
            help_text=_("Names or patterns with *, separated by commas."),
        )

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, (list, tuple)) else value

    def clean(self, value: Any) -> list[str]:
        """Only what was left empty is every stream."""
        written = super().clean(value)
        patterns: list[str] = written.replace(",", " ").split()
        if written and not patterns:
            raise ValidationError(_("No stream is named here. Leave the field empty for all streams."))
        if len(patterns) > MOST_PATTERNS:
            raise ValidationError(_("At most %(most)s patterns."), params={"most": MOST_PATTERNS})
        for pattern in patterns:
            if not naming.is_stream_pattern(pattern):
                fault = _("Expected 1 to 50 of a-z, A-Z, 0-9, “.”, “_”, “-” and “*” for anything.")
                raise ValidationError(f"{pattern[:60]}: {fault}")
        return patterns


class TokenForm(BootstrapMixin, forms.Form):
    """A new token."""

    EXPIRY_DAYS = (("", _("Never")), ("1", _("In a day")), ("30", _("In 30 days")), ("365", _("In a year")))
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        widget=forms.TextInput(attrs={"placeholder": "shop-api", "autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=[
            (Scope.OBSERVE, _("observe (metrics, no messages)")),
            (Scope.READ, _("read")),
            (Scope.PUBLISH, _("publish")),
            (Scope.CONSUME, _("consume")),
            (Scope.MANAGE, _("manage")),
            (Scope.ERASE, _("erase from the history")),
            (Scope.ADMIN, _("admin (everything)")),
        ],
        widget=forms.CheckboxSelectMultiple(),
        initial=[Scope.READ, Scope.PUBLISH, Scope.CONSUME],
    )
    streams = PatternsField()
    expires = forms.ChoiceField(label=_("Expires"), choices=EXPIRY_DAYS, required=False)
