"""What a stream shall keep, as a person writes it, and what that would take away."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dashboard import formats, quantities
from dashboard.confirmations import is_much, is_production
from dashboard.forms import BootstrapMixin, QuantityField
from dashboard.live.means import MEAN_S
from dashboard.meanwhile import Moved, OpenForm
from dashboard.shown import Shown
from dashboard.stream_rows import StreamRow
from streams import selectors
from streams.forecasts import Outlook
from streams.log.preview import Preview
from streams.models import Stream
from streams.models.policy import POLICY_LIMITS
from streams.models.stream import Discard, Retention
from streams.services.plans import within_plan
from streams.services.streams import changes_of

SETTLED_S = 2
"""A moment after the newest message the worker samples that nothing more came."""

NO_LIMIT = dict.fromkeys(("ttl", "max_messages", "max_bytes", "max_messages_per_key", "policy"), "")
PRESETS: tuple[tuple[Any, dict[str, str]], ...] = (
    (_("An hour"), {**NO_LIMIT, "ttl": "1 h"}),
    (_("A day"), {**NO_LIMIT, "ttl": "1 d"}),
    (_("A week"), {**NO_LIMIT, "ttl": "7 d"}),
    (_("30 days, 10 GiB"), {**NO_LIMIT, "ttl": "30 d", "max_bytes": "10 GiB"}),
    (_("Latest per key"), {**NO_LIMIT, "max_messages_per_key": "1"}),
    (_("No limit"), NO_LIMIT),
)
"""Each says all the limits, so that none of the present ones stays."""


def _count(label: Any, help_text: Any = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=1,
        max_value=quantities.LARGEST,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
        help_text=help_text,
    )


class RetentionForm(BootstrapMixin, OpenForm):
    """Every limit; an empty one is no limit. With a policy, the policy's limits hold instead."""

    nothing: ClassVar = dict.fromkeys(
        ("ttl", "max_messages", "max_bytes", "max_messages_per_key"), _("no limit")
    )

    policy = forms.ChoiceField(label=_("Policy"), required=False)
    ttl = QuantityField(
        label=_("Max age"),
        parse=quantities.parse_duration,
        placeholder=_("no limit"),
        help_text=_("Such as 12 h or 7 d."),
    )
    max_messages = _count(_("Max messages"))
    max_bytes = QuantityField(
        label=_("Max size"),
        parse=quantities.parse_size,
        placeholder=_("no limit"),
        help_text=_("Total size of the bodies, such as 10 GiB."),
    )
    max_messages_per_key = _count(_("Max messages per key"), _("The newest messages of each key."))
    retention = forms.ChoiceField(
        label=_("Retention"),
        required=False,
        choices=[
            (Retention.LIMITS, _("Limits only")),
            (Retention.INTEREST, _("Limits and interest")),
        ],
    )
    discard = forms.ChoiceField(
        label=_("When full"),
        required=False,
        choices=[(Discard.OLD, _("Discard oldest")), (Discard.NEW, _("Refuse new"))],
    )

    def __init__(self, *args: Any, stream: Stream, policies: Iterable[str], **kwargs: Any) -> None:
        held = {name: getattr(stream, name) for name in self.base_fields}
        super().__init__(*args, initial=_texts(held), **kwargs)
        self.stream = stream
        policy = self.fields["policy"]
        assert isinstance(policy, forms.ChoiceField)
        policy.choices = [("", _("none: own limits")), *((name, name) for name in policies)]

    def differences(self, changes: Mapping[str, Any]) -> list[Moved]:
        """What saving these would change, in words."""
        saved = self._now()
        return [
            Moved(str(self.fields[name].label), self._said(name, saved[name]), self._said(name, text))
            for name, text in _texts(changes).items()
        ]

    def saved(self) -> dict[str, Any]:
        return {name: getattr(self.stream, name) for name in self.fields}

    def changes(self) -> dict[str, Any]:
        """What is to be saved; only what differs.

        Raises:
            Refusal: ``quota_exceeded`` above the plan's cap.
        """
        wanted: dict[str, Any] = dict(self.cleaned_data)
        if wanted["policy"]:
            wanted = {"policy": wanted["policy"]}
        else:
            wanted["retention"] = wanted["retention"] or Retention.LIMITS
            wanted["discard"] = wanted["discard"] or Discard.OLD
            wanted = within_plan(self.stream.workspace, wanted, new=False)
        return {name: value for name, value in wanted.items() if getattr(self.stream, name) != value}


def _texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Settings of a stream as a person writes them; nothing for None."""
    written = {"ttl": quantities.written_duration, "max_bytes": quantities.written_size}
    return {
        name: written.get(name, str)(value) if value is not None else "" for name, value in settings.items()
    }


@dataclass(frozen=True, slots=True)
class RetentionEffect(selectors.Losing):
    """What saving would do.

    Attributes:
        changes: the settings that change.
        limits: those limits that would differ, also where a policy decides them.
        shown: how many messages go, at once and within a minute at most.
        phrase: what has to be typed first; nothing where little or nothing goes, as far as is known.
        last_ms: when the newest message came (unix ms).
    """

    changes: dict[str, Any]
    limits: dict[str, Any]
    preview: Preview
    outlook: Outlook
    phrase: str
    losing: Mapping[str, int]
    shown: Shown
    last_ms: int

    @property
    def saved(self) -> str:
        """What to say once it is saved: how many go, at least where not all was counted or more comes meanwhile."""
        count = self.preview.messages
        if not count:
            return gettext("Retention saved.")
        if not self.preview.is_complete or self.shown.margin:
            said = ngettext(
                "Retention saved. At least %(count)s message is being removed.",
                "Retention saved. At least %(count)s messages are being removed.",
                count,
            )
        else:
            said = ngettext(
                "Retention saved. %(count)s message is being removed.",
                "Retention saved. %(count)s messages are being removed.",
                count,
            )
        return said % {"count": formats.count(count)}

    @property
    def losing_most(self) -> dict[str, int]:
        """As ``losing``, within a minute at most."""
        return {group: unread + self.shown.margin for group, unread in self.losing.items()}

    @property
    def firm_in_s(self) -> int:
        """Until nothing of what has come is in the rate any more, so that what goes is told without a margin."""
        since_ms = self.shown.at_ms - self.last_ms
        return max(1, MEAN_S + SETTLED_S - since_ms // 1000)

    def has_grown(self, *, then: Shown, losing: Mapping[str, int]) -> bool:
        """Whether more would go than was shown, so that a person is to be asked again.

        Args:
            losing: group → unread messages that it would lose at most, as was shown; one that was not there loses none.
        """
        more = [group for group, unread in self.losing.items() if unread > losing.get(group, 0)]
        return self.preview.messages > then.most or bool(more)


def effect_of(stream: Stream, row: StreamRow, changes: dict[str, Any], *, then: Shown) -> RetentionEffect:
    """What these changes would do now.

    Args:
        then: what was shown before, where it was.

    Raises:
        Refusal: as saving them would be refused.
    """
    limits = {name: getattr(stream, name) for name in POLICY_LIMITS} | changes_of(
        stream, changes, is_held=False
    )
    preview = selectors.retention_preview(stream, limits)
    shown = then.again(preview.messages, arriving=row.arriving, at_ms=int(time.time() * 1000))
    is_large = is_much(shown.most, stored=row.messages or 0)
    is_grave = not preview.is_complete or (preview.messages and (is_large or is_production(stream)))
    return RetentionEffect(
        changes,
        {name: limits[name] for name in POLICY_LIMITS if limits[name] != getattr(stream, name)},
        preview,
        selectors.retention_outlook(stream, limits, preview=preview),
        stream.name if is_grave else "",
        selectors.most_first(preview.unread),
        shown,
        row.last_ms or 0,
    )
