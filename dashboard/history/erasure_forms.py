"""What shall be erased from a stream's history, as a person writes it, and what that would take."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.confirmations import LARGE_MESSAGES, phrase_for
from dashboard.forms import BootstrapMixin
from streams import naming
from streams.services.erasure_previews import ErasurePreview, PreviewState

OFFSET, KEY = "offset", "key"


class ErasureForm(BootstrapMixin, forms.Form):
    """One message, or all of a key; sent in a body, so that no address holds the key."""

    what = forms.ChoiceField(
        label=_("Erase"),
        choices=[(OFFSET, _("One message, by its offset")), (KEY, _("All messages with a key"))],
    )
    at = forms.CharField(
        label=_("Offset or key"),
        max_length=naming.LONGEST_KEY,
        widget=forms.TextInput(
            attrs={
                "class": "mono",
                "placeholder": "1200 · customers.8817",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_("Exactly; a key is no pattern."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        what, text = cleaned.get("what", ""), cleaned.get("at", "").strip()
        if what == KEY and text:
            fault = naming.key_fault(text)
            if fault:
                self.add_error("at", fault)
        elif what == OFFSET and text:
            digits = text.replace(",", "")
            if digits.isascii() and digits.isdigit() and 0 < int(digits) <= quantities.LARGEST:
                cleaned["offset"] = int(digits)
            else:
                self.add_error("at", _("Enter an offset: a whole number from 1."))
        return cleaned

    def wanted(self) -> dict[str, Any]:
        """What a valid form asks for, as services take it."""
        if self.cleaned_data["what"] == OFFSET:
            return {"offset": self.cleaned_data["offset"]}
        return {"key": self.cleaned_data["at"].strip()}


@dataclass(frozen=True, slots=True)
class ErasureEffect:
    """What an erasure would do now.

    Attributes:
        phrase: what has to be typed first: it cannot be undone, so of much, of what was not counted, and of production.
    """

    preview: ErasurePreview
    phrase: str

    @property
    def is_counting(self) -> bool:
        return self.preview.state == PreviewState.COUNTING

    @property
    def takes_something(self) -> bool:
        """Whether there may be anything to erase."""
        return self.preview.messages != 0 or bool(self.preview.letters)

    def has_grown(self, *, messages: int, letters: int, was_counted: bool) -> bool:
        """Whether more would go than was shown, so that a person is to be asked again."""
        now = self.preview.messages
        more = was_counted and (now is None or now > messages)
        return more or self.preview.letters > letters


def erasure_effect_of(preview: ErasurePreview) -> ErasureEffect:
    """What is to be told, and asked, of what an erasure would do."""
    is_large = (
        preview.messages is None
        or not preview.is_complete
        or preview.messages + preview.letters >= LARGE_MESSAGES
    )
    return ErasureEffect(preview, phrase_for([preview.stream], is_large=is_large))
