"""Query parameters: text that is read as strictly as a body, unknown ones refused by name."""

import re
from datetime import datetime
from typing import Any
from urllib.parse import unquote_to_bytes

from django.http import QueryDict
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from streams import expressions, naming
from streams.api.fields import Moment, OneOf, Strict, Switch, Text, WholeNumber
from streams.errors import Refusal

MOST_LABELS_ASKED = 20
LABEL = re.compile(r"[^:]+:.*", re.DOTALL)


class AskedNumber(WholeNumber):
    """A whole number in digits."""

    def to_internal_value(self, data: Any) -> int:
        is_digits = isinstance(data, str) and re.fullmatch(r"[0-9]{1,16}", data) is not None
        return super().to_internal_value(int(data) if is_digits else data)


class AskedSwitch(Switch):
    """``true`` or ``false``, as a word."""

    def to_internal_value(self, data: Any) -> bool:
        return super().to_internal_value({"true": True, "false": False}.get(data, data))


class AskedMoment(Moment):
    """A time; a blank stands for the plus sign that a query string turns into one."""

    def to_internal_value(self, value: Any) -> datetime:
        return super().to_internal_value(value.replace(" ", "+") if isinstance(value, str) else value)


@extend_schema_field({"type": "string", "maxLength": 400, "pattern": "^[^:]+:"})
class AskedLabel(Text):
    """``name:value``."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not LABEL.fullmatch(text):
            raise serializers.ValidationError("Expected name:value.")
        return text


class NothingAsked(Strict):
    """No query parameter at all."""

    class Meta:
        ref_name = None


class MadeAsked(Strict):
    """Which one of those that have had a name one after the other."""

    created_at = AskedMoment(
        required=False,
        help_text="Only the one that has this `created_at`; another one that has its name by now is left alone: 404.",
    )


def is_meant(asked: dict[str, Any], created_at: datetime) -> bool:
    """Whether what was made then is what ``MadeAsked`` asks for; to the millisecond, as objects tell it."""
    wanted, told = asked.get("created_at"), Moment().to_representation
    return wanted is None or told(wanted) == told(created_at)


class PageAsked(Strict):
    """One page of a list by name."""

    limit = AskedNumber(max_value=1000, default=100, help_text="How many at most.")
    after = Text(
        max_length=200, default="", allow_blank=True, help_text="The name that the page begins after."
    )


class AskedExpression(Text):
    """A regular expression over names."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text and (fault := expressions.fault(text)):
            raise serializers.ValidationError(fault)
        return text


class StreamsAsked(PageAsked):
    """Which streams."""

    name = Text(max_length=200, default="", allow_blank=True, help_text="A part of the name, as written.")
    name_regex = AskedExpression(
        max_length=expressions.LONGEST,
        default="",
        allow_blank=True,
        help_text="A regular expression in RE2's syntax that the name matches somewhere.",
    )
    label = serializers.ListField(  # type: ignore[assignment]
        child=AskedLabel(max_length=400),
        default=list,
        max_length=MOST_LABELS_ASKED,
        help_text="`name:value`; may be repeated, all must hold.",
    )


@extend_schema_field({"type": "string", "maxLength": naming.LONGEST_KEY, "pattern": f"^{naming.KEY}$"})
class AskedKey(Text):
    """A message key."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        fault = naming.key_fault(text)
        if fault:
            raise serializers.ValidationError(fault)
        return text


class KeyAsked(Strict):
    """Which key."""

    key = AskedKey(help_text="A message key, such as `orders.eu.7`.")


class EventsAsked(Strict):
    """Which events."""

    workspace = Text(
        max_length=50,
        default="",
        allow_blank=True,
        help_text="For `admin` of `default`: another workspace, also one that was deleted.",
    )

    stream = Text(max_length=200, default="", allow_blank=True, help_text="Those of one stream.")
    group = Text(
        max_length=200, default="", allow_blank=True, help_text="Those of groups of this name; see `stream`."
    )
    kind = Text(
        max_length=200,
        default="",
        allow_blank=True,
        help_text="Those of one kind, such as `stream.created`; with a dot at the end all that begin so: `stream.`; "
        "several are separated by commas.",
    )
    actor = Text(
        max_length=200,
        default="",
        allow_blank=True,
        help_text="A part of who did it, in any case of letters.",
    )
    about = Text(
        max_length=200,
        default="",
        allow_blank=True,
        help_text="Those of alert rules, people and tokens of this name.",
    )
    to = AskedMoment(required=False, help_text="Up to this time, exclusive.")
    after = AskedNumber(
        min_value=0, required=False, help_text="An event's id: those that came later. Without it, the newest."
    )
    limit = AskedNumber(max_value=1000, default=100, help_text="How many at most.")


# "from" is a word of Python's, so it cannot be written in the class.
EventsAsked._declared_fields["from"] = AskedMoment(required=False, help_text="From this time on.")


class RunsAsked(Strict):
    """Which runs."""

    after = AskedNumber(required=False, help_text="A run's id: those before it.")
    limit = AskedNumber(max_value=1000, default=100, help_text="How many at most.")


class AlertsAsked(Strict):
    """Which alerts."""

    state = OneOf(
        choices=["firing", "resolved"], required=False, help_text="Only what fires now, or what is over."
    )
    after = AskedNumber(required=False, help_text="An alert's id: those before it.")
    limit = AskedNumber(max_value=1000, default=100, help_text="How many at most.")


class WorkspaceAsked(Strict):
    """Another workspace than the token's own."""

    workspace = Text(max_length=50, required=False, help_text="For `admin` of `default`: another workspace.")


class TokensAsked(WorkspaceAsked):
    """Which tokens."""

    after = AskedNumber(required=False, help_text="A token's id: those made later.")
    limit = AskedNumber(max_value=1000, default=1000, help_text="How many at most.")


class UsersAsked(WorkspaceAsked):
    """Which people."""

    after = Text(
        max_length=200, default="", allow_blank=True, help_text="The name that the page begins after."
    )
    limit = AskedNumber(max_value=1000, default=1000, help_text="How many at most.")


class HistoryAsked(Strict):
    """Which part of the history."""

    step = OneOf(choices=["minute", "hour", "day"], default="hour", help_text="The width of a point.")
    to = AskedMoment(required=False, help_text="Up to this time, exclusive, whole points.")


# As above.
HistoryAsked._declared_fields["from"] = AskedMoment(
    required=False,
    help_text="From this time on, whole points; refused where there are more than 10,000 steps, or than 50,000 of all "
    "groups together. Without it, from the beginning, or where that would be more, the newest that are not.",
)


class DeadLettersAsked(Strict):
    """Which dead letters."""

    after = AskedNumber(min_value=0, required=False, help_text="An offset: those after it in this order.")
    order = OneOf(
        choices=["oldest", "newest"],
        default="oldest",
        help_text="By offset, from the lowest or the highest on.",
    )
    limit = AskedNumber(max_value=1000, default=100, help_text="How many at most.")


class PendingAsked(Strict):
    """Which messages in flight."""

    after = AskedNumber(min_value=0, required=False, help_text="An offset: those after it.")
    limit = AskedNumber(max_value=1000, default=100, help_text="How many at most.")
    deliveries = AskedNumber(
        min_value=0, max_value=2**31 - 1, default=0, help_text="Delivered at least so often."
    )
    age = AskedNumber(
        min_value=0,
        max_value=315_360_000,
        required=False,
        help_text="Handed out so many seconds ago, or earlier.",
    )
    consumer = Text(max_length=255, required=False, allow_blank=True, help_text="Held by this one.")


class OffsetAsked(Strict):
    """One offset."""

    offset = AskedNumber(required=False, help_text="One offset; without it, all.")


class MetricsAsked(Strict):
    """How far back."""

    range = OneOf(choices=["15m", "1h", "6h"], default="15m", help_text="How far back.")


def asked(query: QueryDict, schema: type[Strict], *, text: str) -> dict[str, Any]:
    """The checked query parameters; ``text`` is the query as sent, of which Django replaces what it cannot read.

    Raises:
        ValidationError: naming each one that is unknown, malformed, or sent more than once without being a list.
        Refusal: ``validation_error`` for what is not UTF-8.
    """
    try:
        unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise Refusal("validation_error", "The query string cannot be read.", fields=[]) from None
    reader = schema()
    given: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for name, values in query.lists():
        field = reader.fields.get(name)
        if field is None:
            errors[naming.shortened(name)] = ["Unknown parameter."]
        elif isinstance(field, serializers.ListField):
            given[name] = values
        elif len(values) > 1:
            errors[name] = ["This parameter may be sent only once."]
        else:
            given[name] = values[0]
    try:
        found: dict[str, Any] = reader.run_validation(given)
    except serializers.ValidationError as error:
        faults = error.detail if isinstance(error.detail, dict) else {"query": error.detail}
        errors = faults | errors  # what was sent twice is not missing
    if errors:
        raise serializers.ValidationError(errors)
    return found
