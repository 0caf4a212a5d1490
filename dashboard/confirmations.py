"""How much a person is asked before something goes for good: more, the more it would hurt."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dashboard.forms import BootstrapMixin
from streams.models import Stream

PRODUCTION = ("env", "production")
LARGE_MESSAGES = 1000
"""From so many messages on that go for good, a name has to be typed."""
LARGE_PART = 0.1
"""So of so much of what a stream holds, where it goes by other settings."""


def is_production(stream: Stream) -> bool:
    """Whether a stream is labelled ``env=production``: what is done to it asks for its name."""
    return names_production(stream.labels)


def names_production(labels: Mapping[str, str]) -> bool:
    """Whether labels have ``env=production`` among them."""
    label, value = PRODUCTION
    return labels.get(label) == value


def is_much(messages: int, *, stored: int) -> bool:
    """Whether so many of a stream's messages are so many that losing them has to be agreed to by a typed name."""
    return messages >= min(LARGE_MESSAGES, max(1, stored * LARGE_PART))


def phrase_for(streams: Sequence[Stream], *, is_large: bool = False) -> str:
    """What must be typed: a production stream's name, or their number where there are several; else nothing.

    Args:
        is_large: so much goes for good that it is asked of any streams.
    """
    guarded = [stream.name for stream in streams if is_production(stream)]
    if guarded:
        return (
            guarded[0] if len(guarded) == 1 else _("%(count)s production streams") % {"count": len(guarded)}
        )
    if not is_large:
        return ""
    return streams[0].name if len(streams) == 1 else _("%(count)s streams") % {"count": len(streams)}


class ConfirmForm(BootstrapMixin, forms.Form):
    """The phrase, typed, before something goes; no field where none is asked for.

    Args:
        stays: what was typed already is left as it is in a part of a page that was asked for again by itself.
    """

    confirm = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )

    def __init__(self, *args: Any, phrase: str, stays: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.phrase = phrase
        self.fields["confirm"].label = _("Type %(phrase)s to confirm") % {"phrase": phrase}
        if stays:
            self.fields["confirm"].widget.attrs["hx-preserve"] = "true"
        if not phrase:
            del self.fields["confirm"]

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed != self.phrase:
            raise ValidationError(_("That does not match. Nothing was done."))
        return typed
