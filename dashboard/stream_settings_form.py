"""A stream's settings as a person writes them: those that may change back and forth, and those that stay."""

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.confirmations import ConfirmForm
from dashboard.forms import BootstrapMixin, KeyPatternsField, LinesField, QuantityField, key_patterns_written
from dashboard.meanwhile import OpenForm
from streams.api.fields import MOST_LABELS, label_fault
from streams.api.stream_objects import (
    LARGEST_MESSAGE_BYTES,
    LONGEST_DEDUP_WINDOW_S,
    LONGEST_DESCRIPTION_BYTES,
)
from streams.models import Stream
from streams.services.streams import ONE_WAY

LINES = {"rows": 3, "spellcheck": "false"}


class StreamSettingsForm(BootstrapMixin, OpenForm):
    """What may change at any time; the limits have a page of their own (``retention_form``)."""

    nothing: ClassVar = {"keys": _("any key")}

    description = LinesField(label=_("Description"), widget=forms.Textarea(attrs={"rows": 2}))
    labels = LinesField(
        label=_("Labels"),
        widget=forms.Textarea(attrs={**LINES, "class": "mono", "placeholder": "team:checkout"}),
        help_text=_("One per line, name:value. With env:production, removing asks for the stream's name."),
    )
    keys = KeyPatternsField(
        label=_("Key patterns"),
        placeholder=_("any key"),
        help_text=_("Only messages with matching keys are accepted, such as orders.eu.> or orders.*.paid."),
    )
    max_message_bytes = QuantityField(
        label=_("Max body size"),
        parse=quantities.parse_size,
        placeholder="1 MiB",
        help_text=_("At most 16 MiB."),
    )
    dedup_window = QuantityField(
        label=_("Duplicate window"),
        parse=quantities.parse_duration,
        placeholder="1 d",
        help_text=_("A message whose id was stored within it is not stored again; at most 7 d."),
    )
    archive = forms.BooleanField(label=_("Keep a copy in the history"), required=False)

    def __init__(self, *args: Any, stream: Stream, **kwargs: Any) -> None:
        held = {
            "description": stream.description,
            "labels": "\n".join(f"{name}:{value}" for name, value in sorted(stream.labels.items())),
            "keys": key_patterns_written(stream.keys),
            "max_message_bytes": quantities.written_size(stream.max_message_bytes),
            "dedup_window": quantities.written_duration(stream.dedup_window),
            "archive": stream.archive,
        }
        has_lines = any(set(value) & set("\r\n") for value in stream.labels.values())
        super().__init__(*args, initial=held, fixed=["labels"] if has_lines else [], **kwargs)
        self.stream = stream
        if has_lines:
            self.fields["labels"].help_text = _("A value has several lines: change labels over the API.")
        for name in ("max_message_bytes", "dedup_window"):
            self.fields[name].required = True

    def saved(self) -> dict[str, Any]:
        return {name: getattr(self.stream, name) for name in self.fields}

    def clean_description(self) -> str:
        text: str = self.cleaned_data["description"]
        if len(text.encode()) > LONGEST_DESCRIPTION_BYTES:
            raise ValidationError(
                _("At most %(most)s bytes."), params={"most": f"{LONGEST_DESCRIPTION_BYTES:,}"}
            )
        return text

    def clean_labels(self) -> dict[str, str]:
        labels: dict[str, str] = {}
        for line in filter(str.strip, self.cleaned_data["labels"].split("\n")):
            name, colon, value = line.partition(":")
            fault = label_fault(name, value) if colon else _("Enter name:value.")
            if fault or name in labels:
                raise ValidationError(f"{line[:60]}: {fault or _('Duplicate name.')}")
            labels[name] = value
        if len(labels) > MOST_LABELS:
            raise ValidationError(_("At most %(most)s labels."), params={"most": MOST_LABELS})
        return labels

    def clean_max_message_bytes(self) -> int:
        size: int = self.cleaned_data["max_message_bytes"]
        if size > LARGEST_MESSAGE_BYTES:
            raise ValidationError(_("At most 16 MiB."))
        return size

    def clean_dedup_window(self) -> int:
        seconds: int = self.cleaned_data["dedup_window"]
        if seconds > LONGEST_DEDUP_WINDOW_S:
            raise ValidationError(_("At most 7 d."))
        return seconds

    def changes(self) -> dict[str, Any]:
        """What differs from the stream as it is."""
        return {
            name: value for name, value in self.cleaned_data.items() if getattr(self.stream, name) != value
        }


class LastingForm(ConfirmForm):
    """What can be switched on and never off again; the stream's name is typed first."""

    deny_delete = forms.BooleanField(label=_("No single message can be deleted"), required=False)
    deny_purge = forms.BooleanField(label=_("The stream cannot be purged"), required=False)
    sealed = forms.BooleanField(
        label=_("Sealed: nothing can be published, deleted or changed any more"), required=False
    )

    def __init__(self, *args: Any, stream: Stream, **kwargs: Any) -> None:
        held = {name: getattr(stream, name) for name in ONE_WAY}
        super().__init__(*args, phrase=stream.name, initial=held, auto_id="id_lasting_%s", **kwargs)
        self.stream = stream
        for name, is_on in held.items():
            self.fields[name].disabled = is_on

    @property
    def is_open(self) -> bool:
        """Whether there is something left to switch on."""
        return not all(self.fields[name].disabled for name in ONE_WAY)

    @property
    def switches(self) -> list[forms.BoundField]:
        return [self[name] for name in ONE_WAY]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.changes():
            raise ValidationError(_("Select what to switch on."))
        return cleaned

    def changes(self) -> dict[str, Any]:
        """What is switched on that was off."""
        return {
            name: True for name in ONE_WAY if self.cleaned_data.get(name) and not getattr(self.stream, name)
        }
