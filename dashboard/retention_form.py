"""What a stream shall keep, as a person writes it, and what that would take away."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.confirmations import is_production
from dashboard.forms import BootstrapMixin, QuantityField
from dashboard.stream_rows import StreamRow
from streams import selectors
from streams.forecasts import Outlook
from streams.log.preview import Preview
from streams.models import Policy, Stream
from streams.models.policy import POLICY_LIMITS
from streams.models.stream import Discard, Retention
from streams.services.plans import within_plan

LARGE_MESSAGES, LARGE_PART = 1000, 0.1
"""From so many messages, or so much of the stream, its name has to be typed."""
TOLERATED_PART = 0.1
"""By so much the effect may have grown since it was seen: a stream that moves is never quite as it was shown."""

PRESETS: tuple[tuple[Any, dict[str, str]], ...] = (
    (_("An hour"), {"ttl": "1 h"}),
    (_("A day"), {"ttl": "1 d"}),
    (_("A week"), {"ttl": "7 d"}),
    (_("30 days, 10 GiB"), {"ttl": "30 d", "max_bytes": "10 GiB"}),
    (_("Latest of each key"), {"max_messages_per_key": "1"}),
    (_("No limit"), {}),
)


def _count(label: Any, help_text: Any = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        required=False,
        min_value=1,
        max_value=quantities.LARGEST,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
        help_text=help_text,
    )


class RetentionForm(BootstrapMixin, forms.Form):
    """Every limit; an empty one is no limit. With a policy, the policy's limits hold instead."""

    policy = forms.ChoiceField(label=_("Policy"), required=False)
    ttl = QuantityField(
        label=_("Keep for"),
        parse=quantities.parse_duration,
        placeholder=_("no limit"),
        help_text=_("Such as 12 h or 7 d."),
    )
    max_messages = _count(_("Keep at most (messages)"))
    max_bytes = QuantityField(
        label=_("Keep at most (size)"),
        parse=quantities.parse_size,
        placeholder=_("no limit"),
        help_text=_("Size of the bodies, such as 10 GiB."),
    )
    max_messages_per_key = _count(_("Of each key"), _("The newest so many messages."))
    retention = forms.ChoiceField(
        label=_("Messages go"),
        required=False,
        choices=[
            (Retention.LIMITS, _("By limits only")),
            (Retention.INTEREST, _("Also when every group is done with them")),
        ],
    )
    discard = forms.ChoiceField(
        label=_("When full"),
        required=False,
        choices=[(Discard.OLD, _("Remove the oldest")), (Discard.NEW, _("Refuse new ones"))],
    )

    def __init__(self, *args: Any, stream: Stream, **kwargs: Any) -> None:
        held = {
            "policy": stream.policy,
            "ttl": quantities.written_duration(stream.ttl),
            "max_messages": stream.max_messages,
            "max_bytes": quantities.written_size(stream.max_bytes),
            "max_messages_per_key": stream.max_messages_per_key,
            "retention": stream.retention,
            "discard": stream.discard,
        }
        super().__init__(*args, initial=held, **kwargs)
        self.stream = stream
        names = Policy.objects.filter(workspace=stream.workspace).values_list("name", flat=True)
        policy = self.fields["policy"]
        assert isinstance(policy, forms.ChoiceField)
        policy.choices = [("", _("none: limits of its own")), *((name, name) for name in names)]

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


@dataclass(frozen=True, slots=True)
class RetentionEffect:
    """What saving would do.

    Attributes:
        changes: the settings that change.
        seen: how many messages go, as the form is to send it back.
        phrase: what has to be typed first; nothing where little or nothing goes, as far as is known.
        losing: groups that lose unread messages: name → how many.
    """

    changes: dict[str, Any]
    preview: Preview
    outlook: Outlook
    phrase: str
    losing: dict[str, int]

    def has_grown(self, *, seen: int, losing: Mapping[str, int]) -> bool:
        """Whether so much more would go than was seen that a person should be asked again.

        Args:
            seen: messages that would go, as was shown.
            losing: group → unread messages that it would lose, as was shown; one that was not there loses none.
        """
        shown = [(self.preview.messages, seen)]
        shown += [(unread, losing.get(group, 0)) for group, unread in self.losing.items()]
        return any(now > then * (1 + TOLERATED_PART) for now, then in shown)


def effect_of(stream: Stream, row: StreamRow, changes: dict[str, Any]) -> RetentionEffect:
    """What these changes would do now."""
    limits = {name: getattr(stream, name) for name in POLICY_LIMITS} | changes
    if changes.get("policy"):
        policy = Policy.objects.get(workspace=stream.workspace, name=changes["policy"])
        limits |= within_plan(stream.workspace, policy.limits)
    preview = selectors.retention_preview(stream, limits)
    messages = row.messages or 0
    is_large = preview.messages >= min(LARGE_MESSAGES, max(1, messages * LARGE_PART))
    is_grave = not preview.is_complete or (preview.messages and (is_large or is_production(stream)))
    return RetentionEffect(
        changes,
        preview,
        selectors.retention_outlook(stream, limits, preview=preview),
        stream.name if is_grave else "",
        {group: unread for group, unread in sorted(preview.unread.items()) if unread},
    )
