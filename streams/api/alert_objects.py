"""An alert rule as it comes in and goes out, what fired, and what would have."""

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from rest_framework import serializers

from streams import alarms, verdicts
from streams.api.fields import Moment, Name, OneOf, Strict, Switch, Text, WholeNumber
from streams.services.webhook_formats import FORMATS

MOST_LIMIT = 1e15


class Limit(serializers.FloatField):
    """A number of at least 0."""

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in {int, float} or not 0 <= data <= MOST_LIMIT:
            raise serializers.ValidationError("Expected a number of at least 0.")
        return float(data)


class RuleChanges(Strict):
    """What of a rule may change."""

    not_taken: ClassVar[Mapping[str, str]] = {"name": "A rule cannot be renamed."}

    stream = Text(max_length=200, required=False, help_text="A name, or a pattern with `*`.")
    group = Text(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="A name, or a pattern; empty is any group.",
    )
    watch = OneOf(
        choices=list(get_args(alarms.Watch)),
        required=False,
        help_text="What is watched; `retention_edge` and `rate_below` fire below their limit.",
    )
    statuses = serializers.ListField(
        child=OneOf(choices=[each for each in get_args(verdicts.Status) if each != "unknown"]),
        required=False,
        max_length=10,
        help_text="With `status`: which are bad.",
    )
    limit = Limit(required=False, allow_null=True, help_text="Messages, seconds, or messages a second.")
    clear = Limit(
        required=False, allow_null=True, help_text="Where it is good again; null is the limit. (Hysteresis.)"
    )
    for_seconds = WholeNumber(
        required=False, min_value=0, max_value=86_400, help_text="How long it must be bad; 60 by default."
    )
    muted_until = Moment(
        required=False,
        allow_null=True,
        help_text="Until then nobody is told; then, of what fires still.",
    )
    mute_reason = Text(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="Why; goes with the mute it was given with.",
    )
    webhook_url = Text(max_length=2000, required=False, allow_blank=True, help_text="Told by a signed POST.")
    webhook_format = OneOf(
        choices=list(FORMATS),
        required=False,
        help_text="What is posted: `okmq`, the fields of an alert as JSON, by default; `slack`, a message as Slack and "
        "Mattermost take it; `teams`, a card for a workflow of Microsoft Teams.",
    )
    email = serializers.EmailField(required=False, allow_blank=True, help_text="Told by e-mail.")
    most_messages = WholeNumber(
        max_value=1000,
        required=False,
        allow_null=True,
        help_text="So many messages at most to each receiver in `most_minutes`; what comes more is told together, as "
        "one, once there is room. Null is no bound.",
    )
    most_minutes = WholeNumber(max_value=1440, required=False, help_text="10 by default.")
    enabled = Switch(required=False)


class RuleWanted(RuleChanges):
    """A rule to make."""

    not_taken: ClassVar[Mapping[str, str]] = {}

    name = Name()
    stream = Text(max_length=200, help_text="A name, or a pattern with `*`.")
    watch = OneOf(choices=list(get_args(alarms.Watch)), help_text="What is watched.")


class RuleTried(RuleWanted):
    """A rule to try on what is kept."""

    name = Name(required=False)


class DeliveryObject(serializers.Serializer):  # type: ignore[type-arg]
    """The last try at telling a receiver: taken, to be tried again, or given up."""

    channel = serializers.ChoiceField(choices=["webhook", "email"])
    tried_at = Moment(allow_null=True, help_text="None of what is held back, to be told with others.")
    attempts = serializers.IntegerField(help_text="How often this was tried.")
    error = serializers.CharField(help_text="What went wrong, in a sentence; empty where it was accepted.")
    next_try_at = Moment(
        source="due_at",
        allow_null=True,
        help_text="None where it was accepted, or given up; a mute puts it off.",
    )
    delivered_at = Moment(allow_null=True, help_text="None where it was not accepted.")
    together = serializers.IntegerField(help_text="How many were told in this message; 1: it went by itself.")


class RuleObject(serializers.Serializer):  # type: ignore[type-arg]
    """An alert rule."""

    name = serializers.CharField(source="rule.name")
    stream = serializers.CharField(source="rule.stream")
    group = serializers.CharField(source="rule.group")
    watch = serializers.CharField(source="rule.watch")
    statuses = serializers.ListField(source="rule.statuses", child=serializers.CharField())
    limit = serializers.FloatField(source="rule.limit", allow_null=True)
    clear = serializers.FloatField(source="rule.clear", allow_null=True)
    for_seconds = serializers.IntegerField(source="rule.for_seconds")
    muted_until = Moment(source="rule.muted_until", allow_null=True)
    mute_reason = serializers.CharField(source="rule.mute_reason", help_text="Empty where none was given.")
    webhook_url = serializers.CharField(
        help_text="Whole for who may change the rule. Others, and events, are told its scheme and host, and by `/…` "
        "that there is more, which may be a secret: `https://hooks.example.org/…`."
    )
    webhook_format = serializers.ChoiceField(choices=list(FORMATS), source="rule.webhook_format")
    email = serializers.CharField(source="rule.email")
    most_messages = serializers.IntegerField(source="rule.most_messages", allow_null=True)
    most_minutes = serializers.IntegerField(source="rule.most_minutes")
    enabled = serializers.BooleanField(source="rule.enabled")
    created_at = Moment(source="rule.created_at")
    updated_at = Moment(source="rule.updated_at")
    deliveries = DeliveryObject(
        many=True, help_text="The last try at each receiver; empty while there was nothing to tell."
    )


class RuleMade(RuleObject):
    """A rule, and what its webhook is signed with; shown this once."""

    webhook_secret = serializers.CharField(source="rule.webhook_secret", help_text="Empty without a webhook.")


class RuleChanged(RuleMade):
    """A rule, and where the change gave it its first webhook what that is signed with; shown this once."""

    may_lack = frozenset({"webhook_secret"})


class AlertObject(serializers.Serializer):  # type: ignore[type-arg]
    """One time that a rule fired."""

    id = serializers.IntegerField(source="alert.id")
    rule = serializers.CharField(source="alert.rule.name")
    stream = serializers.CharField(source="alert.stream")
    group = serializers.CharField(source="alert.group", help_text="Empty where the rule is about the stream.")
    began_at = Moment(source="alert.began_at")
    ended_at = Moment(source="alert.ended_at", allow_null=True, help_text="None while it fires.")
    value = serializers.FloatField(source="alert.value", help_text="When it began.")
    sentence = serializers.CharField(source="alert.sentence", help_text="When it began.")
    newest_sentence = serializers.CharField(
        source="alert.newest_words",
        help_text="By the newest evaluated figures; the same while there are no others.",
    )
    newest_at = Moment(source="alert.newest_at", allow_null=True, help_text="When they were evaluated.")
    deliveries = DeliveryObject(many=True, help_text="The last try at each receiver to tell of it.")


class TestedObject(serializers.Serializer):  # type: ignore[type-arg]
    """How a receiver took a test."""

    channel = serializers.ChoiceField(choices=["webhook", "email"])
    error = serializers.CharField(help_text="What went wrong, in a sentence; empty where it was accepted.")


class WouldHave(serializers.Serializer):  # type: ignore[type-arg]
    """What a rule would have done."""

    since = Moment(allow_null=True, help_text="From here on something is kept of what it is about.")
    until = Moment()
    sampled_since = Moment(
        allow_null=True, help_text="From here on there are samples; before that, it goes by the minute."
    )
    subjects = serializers.IntegerField(help_text="Streams, or groups with samples, that it is about.")
    fired = serializers.IntegerField()
    longest_seconds = serializers.FloatField()
