"""Which messages of a stream shall be purged, as a person writes it, and what that would take away."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.confirmations import LARGE_MESSAGES, phrase_for
from dashboard.forms import BootstrapMixin, pattern_fault
from dashboard.shown import Shown
from streams import naming, selectors
from streams.log.preview import Preview, Purge
from streams.models import Stream

ALL, OFFSET, TIME, NEWEST, KEY = "all", "offset", "time", "newest", "key"


class PurgeForm(BootstrapMixin, forms.Form):
    """What shall go; a query string, so that its effect has an address."""

    what = forms.ChoiceField(
        label=_("Purge"),
        choices=[
            (ALL, _("Everything")),
            (OFFSET, _("Messages before an offset")),
            (TIME, _("Messages published before a time")),
            (NEWEST, _("All but the newest")),
            (KEY, _("Messages with a key")),
        ],
    )
    at = forms.CharField(
        label=_("Offset, time, number or key"),
        required=False,
        max_length=naming.LONGEST_KEY,
        widget=forms.TextInput(
            attrs={
                "class": "mono",
                "placeholder": _("1200 · 15 min ago · 2026-11-21 07:05 · orders.eu.7"),
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
        help_text=_("Empty for everything. Keys may be patterns such as orders.eu.*."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        what, text = cleaned.get("what", ""), cleaned.get("at", "").strip()
        try:
            cleaned["wanted"] = self._wanted(what, text)
        except ValueError as error:
            self.add_error("at", str(error))
        return cleaned

    def _wanted(self, what: str, text: str) -> Any:
        """The offset, the time, the number or the key.

        Raises:
            ValueError: a sentence for the form.
        """
        if what in (OFFSET, NEWEST):
            digits = text.replace(",", "")
            if not (digits.isascii() and digits.isdigit()) or int(digits) > quantities.LARGEST:
                wanted = _("an offset") if what == OFFSET else _("how many to keep")
                raise ValueError(_("Enter %(wanted)s: a whole number from 0.") % {"wanted": wanted})
            return int(digits)
        if what == TIME:
            return quantities.parse_moment(text, now=timezone.now())
        if what == KEY:
            fault = pattern_fault(text) if text else _("Enter a key, such as orders.eu.7.")
            if fault:
                raise ValueError(fault)
            return text
        if text:
            raise ValueError(_("Everything is purged: leave this empty, or choose what it stands for."))
        return None

    def purge(self, stream: Stream) -> Purge:
        """What a valid form asks for, as the stream is now."""
        what, wanted = self.cleaned_data["what"], self.cleaned_data["wanted"]
        if what == TIME:
            return Purge(below=selectors.offset_at(stream, wanted))
        if what == OFFSET:
            return Purge(below=wanted)
        return Purge(keys=(wanted,)) if what == KEY else Purge(keep=wanted or 0)


@dataclass(frozen=True, slots=True)
class PurgeEffect(selectors.Losing):
    """What purging would do.

    Attributes:
        below: nothing from this offset on goes, whatever comes until it is done.
        key: a pattern, of which alone it is; empty is any key.
        phrase: what has to be typed first; nothing where it can be undone and is not production.
    """

    below: int
    key: str
    preview: Preview
    phrase: str
    losing: Mapping[str, int]

    @property
    def shown(self) -> Shown:
        """How many go: nothing that comes later is added."""
        return Shown(self.preview.messages, self.preview.messages, int(time.time() * 1000))

    def has_grown(self, *, then: Shown, losing: Mapping[str, int]) -> bool:
        """Whether more would go, or be lost to a group, than was shown, so that a person is to be asked again."""
        more = [group for group, unread in self.losing.items() if unread > losing.get(group, 0)]
        return self.preview.messages > then.most or bool(more)


def purge_effect_of(stream: Stream, purge: Purge) -> PurgeEffect:
    """What a purge would do now."""
    preview = selectors.purge_preview(stream, purge)
    if not purge.keys:
        below = preview.first_offset
    else:
        below = preview.as_of + 1 if purge.below is None else purge.below
    is_large = preview.messages >= LARGE_MESSAGES or not preview.is_complete
    return PurgeEffect(
        below,
        "".join(purge.keys),
        preview,
        phrase_for([stream], is_large=is_large and not settings.ENV.undo_s),
        selectors.most_first(preview.unread),
    )
