"""What people fill in about alerts."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, get_args

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard import formats, quantities
from dashboard.confirmations import ConfirmForm
from dashboard.forms import BootstrapMixin
from dashboard.meanwhile import OpenForm
from streams import naming, verdicts
from streams.models import AlertRule
from streams.services import webhook_formats

WATCHES = (
    ("status", _("Status is one of the below")),
    ("lag", _("Lag above (messages)")),
    ("lag_seconds", _("Time lag above (seconds)")),
    ("no_consumer", _("No consumer for longer than (seconds)")),
    ("retention_edge", _("Retention edge nearer than (seconds)")),
    ("dead_letters", _("Dead letters above")),
    ("rate_above", _("Published above (messages per second)")),
    ("rate_below", _("Published below (messages per second)")),
)
FORMATS = (
    (webhook_formats.OKMQ, _("JSON of OKMQ, signed")),
    (webhook_formats.SLACK, _("Message for Slack or Mattermost")),
    (webhook_formats.TEAMS, _("Card for Microsoft Teams")),
)
STATUSES = [(each, each) for each in get_args(verdicts.Status) if each != "unknown"]
LONGEST_FOR_S = 86_400
MINUTES = 10


class RuleFields(BootstrapMixin, forms.Form):
    """What an alert rule is set to, but for its name, which stays."""

    stream = forms.CharField(
        label=_("Stream"),
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": "orders", "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("A name, or a pattern with *."),
    )
    group = forms.CharField(
        label=_("Group"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": _("any"), "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("A name, or a pattern; not with a rate."),
    )
    watch = forms.ChoiceField(label=_("Fires when"), choices=WATCHES, initial="lag")
    limit = forms.FloatField(label=_("Limit"), required=False, min_value=0, max_value=1e15)
    clear = forms.FloatField(
        label=_("Resolves at"),
        required=False,
        min_value=0,
        max_value=1e15,
        help_text=_("Defaults to the limit."),
    )
    statuses = forms.MultipleChoiceField(
        label=_("Bad statuses"),
        required=False,
        choices=STATUSES,
        widget=forms.CheckboxSelectMultiple,
    )
    lasting = forms.CharField(
        label=_("For at least"),
        required=False,
        max_length=40,
        initial="1 min",
        widget=forms.TextInput(attrs={"placeholder": _("at once"), "autocomplete": "off"}),
    )
    webhook_url = forms.CharField(
        label=_("Webhook URL"),
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"placeholder": "https://example.org/hook", "autocomplete": "off"}),
    )
    webhook_format = forms.ChoiceField(
        label=_("Webhook format"), choices=FORMATS, initial=webhook_formats.OKMQ, required=False
    )
    email = forms.EmailField(label=_("E-mail address"), required=False)
    most_messages = forms.IntegerField(
        label=_("Max notifications"),
        required=False,
        min_value=1,
        max_value=1000,
        widget=forms.NumberInput(attrs={"placeholder": _("no limit")}),
        help_text=_("To each destination; any beyond that are sent together as a digest."),
    )
    most_minutes = forms.IntegerField(
        label=_("Per (minutes)"), required=False, min_value=1, max_value=1440, initial=MINUTES
    )

    def clean_lasting(self) -> int:
        text: str = self.cleaned_data["lasting"]
        if not text:
            return 0
        try:
            seconds = quantities.parse_duration(text) if quantities.parse_seconds(text) else 0
        except ValueError as error:
            raise ValidationError(str(error)) from None
        if seconds > LONGEST_FOR_S:
            raise ValidationError(_("At most a day."))
        return seconds

    def settings(self) -> dict[str, Any]:
        """The rule's settings, by the service's names."""
        chosen = self.cleaned_data
        is_status = chosen["watch"] == "status"
        return {
            "stream": chosen["stream"],
            "group": chosen["group"],
            "watch": chosen["watch"],
            "statuses": chosen["statuses"] if is_status else [],
            "limit": None if is_status else chosen["limit"],
            "clear": None if is_status else chosen["clear"],
            "for_seconds": chosen["lasting"],
            "webhook_url": chosen["webhook_url"],
            "webhook_format": chosen["webhook_format"] or webhook_formats.OKMQ,
            "email": chosen["email"],
            "most_messages": chosen["most_messages"],
            "most_minutes": chosen["most_minutes"] or MINUTES,
        }


class NewRuleForm(RuleFields):
    """An alert rule to make; it is muted where it fires, or once it is made."""

    name = forms.CharField(
        label=_("Name"),
        max_length=naming.LONGEST_NAME,
        validators=[
            RegexValidator(rf"^{naming.NAME}\Z", _("Letters, digits, dots, dashes and underscores."))
        ],
        widget=forms.TextInput(
            attrs={"placeholder": "billing-lags", "autocomplete": "off", "spellcheck": "false"}
        ),
    )


class RuleDeleteForm(ConfirmForm):
    """A rule that is to go, with how many alerts of it were told to go, too."""

    seen_alerts = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)


class RuleForm(RuleFields, OpenForm):
    """An alert rule that is made.

    Args:
        rule: as it is saved now.
        webhook_url: what its reader may see of where it posts to; what is not the whole of it cannot be changed.
    """

    muted = forms.CharField(
        label=_("Muted until"),
        required=False,
        max_length=60,
        widget=forms.TextInput(attrs={"placeholder": _("not muted"), "autocomplete": "off"}),
        help_text=_("Such as 2 h, or 2026-11-22 06:00."),
    )
    mute_reason = forms.CharField(
        label=_("Reason for muting"),
        required=False,
        max_length=200,
        widget=forms.TextInput(attrs={"placeholder": _("moving the warehouse"), "autocomplete": "off"}),
    )

    def __init__(self, data: QueryDict | None = None, *, rule: AlertRule, webhook_url: str) -> None:
        self._mute = (rule.muted_until, rule.mute_reason) if rule.is_muted else (None, "")
        self._rule = rule
        fixed = () if webhook_url == rule.webhook_url else ("webhook_url",)
        super().__init__(data, initial=self._initial() | {"webhook_url": webhook_url}, fixed=fixed)
        for name in fixed:
            self.fields[name].help_text = _("Shown in full to those with the right to manage.")

    def unmoved(self, opened: Mapping[str, str]) -> Collection[str]:
        before, (until, _reason) = _moment(opened.get("muted", "")), self._mute
        if before is None:
            return ()
        if until is None:
            return ("muted", "mute_reason") if before <= timezone.now() else ()
        return ("muted",) if before == until.replace(microsecond=0) else ()

    def saved(self) -> dict[str, Any]:
        rule, (until, reason) = self._rule, self._mute
        held = {name: getattr(rule, name) for name in RuleFields.base_fields if name != "lasting"}
        return held | {"lasting": rule.for_seconds, "muted": until, "mute_reason": reason}

    def changes(self) -> dict[str, Any]:
        """The settings that differ from the rule's; a mute that is over counts as none."""
        saved = {name: getattr(self._rule, name) for name in self.settings()}
        saved["muted_until"], saved["mute_reason"] = self._mute
        found = {name: value for name, value in self.settings().items() if value != saved[name]}
        if "muted_until" in found:
            found["mute_reason"] = self.cleaned_data["mute_reason"]  # it goes with its mute
        return found

    def clean_muted(self) -> datetime | None:
        text: str = self.cleaned_data["muted"]
        if not text:
            return None
        try:
            return quantities.parse_until(text, now=timezone.now())
        except ValueError as error:
            raise ValidationError(str(error)) from None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("mute_reason") and cleaned.get("muted", "wrong") is None:
            self.add_error("mute_reason", _("Specify until when it is muted as well."))
        return cleaned

    def settings(self) -> dict[str, Any]:
        """The rule's settings, by the service's names."""
        chosen = self.cleaned_data
        return super().settings() | {"muted_until": chosen["muted"], "mute_reason": chosen["mute_reason"]}

    def _initial(self) -> dict[str, Any]:
        """What the form shows of the rule."""
        rule, (until, reason) = self._rule, self._mute
        return {
            "stream": rule.stream,
            "group": rule.group,
            "watch": rule.watch,
            "statuses": [each for each, _ in STATUSES if each in rule.statuses],
            "limit": quantities.written_number(rule.limit),
            "clear": quantities.written_number(rule.clear),
            "lasting": f"{rule.for_seconds} s",
            "webhook_format": rule.webhook_format,
            "email": rule.email,
            "most_messages": rule.most_messages,
            "most_minutes": rule.most_minutes,
            "muted": "" if until is None else formats.local(until).isoformat(" ", "seconds"),
            "mute_reason": reason,
        }


def _moment(shown: str) -> datetime | None:
    """The end of a mute as a page shows it."""
    try:
        moment = datetime.fromisoformat(shown)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
