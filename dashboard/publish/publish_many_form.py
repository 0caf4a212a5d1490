"""The form of many messages: lines that were pasted or a file of them, and how they are read."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dashboard.forms import BootstrapMixin

LARGEST_LINE = 2**53
EXAMPLE = (
    '{"id": "order-1", "body": {"total": 12}}\n{"id": "order-2", "key": "orders.eu", "body": {"total": 7}}'
)


class PublishManyForm(BootstrapMixin, forms.Form):
    """Lines, where to begin, and the start of the ids that are made for bodies."""

    each = forms.ChoiceField(
        label=_("Each line is"),
        choices=[
            ("message", _("a whole message")),
            ("body", _("a body; ids are generated")),
        ],
    )
    begin = forms.IntegerField(
        label=_("Start at line"), min_value=1, max_value=LARGEST_LINE, required=False, initial=1
    )
    lines = forms.CharField(
        label=_("Lines"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false", "placeholder": EXAMPLE}),
    )
    file = forms.FileField(
        label=_("Or a file"),
        required=False,
        allow_empty_file=True,
        widget=forms.FileInput(attrs={"accept": ".ndjson,.jsonl,.json,.txt,application/x-ndjson"}),
        help_text=_("NDJSON: one JSON value per line, of any length; sent in batches."),
    )
    keep = forms.BooleanField(label=_("Keep the contents afterwards"), required=False, initial=True)
    ids = forms.RegexField(r"\Aconsole-[0-9a-f]{12}\Z", widget=forms.HiddenInput)

    def clean_begin(self) -> int:
        return int(self.cleaned_data["begin"] or 1)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors and not cleaned.get("file") and not cleaned.get("lines", "").strip():
            raise ValidationError(_("Paste some lines, or choose a file."))
        return cleaned
