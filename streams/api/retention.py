"""What other limits would take from a stream, told before they are saved."""

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import stream_for
from streams.api.base import ApiView
from streams.api.fields import Moment, Name, Strict
from streams.api.operation import Operation
from streams.api.queries import AskedNumber
from streams.api.retention_effects import GroupUnread
from streams.api.stream_objects import RetentionLimits, settings_in
from streams.log.preview import Preview
from streams.services.streams import changes_of

REASONS = ["counting", "too_many_keys"]


class LimitsAsked(RetentionLimits):
    """Limits to try, as they would be saved; what is not sent is as the stream has it."""

    policy = Name(
        required=False, allow_null=True, help_text="A policy to try, which decides the limits; null for none."
    )


REFUSALS = ("stream_not_found", "quota_exceeded", "operation_denied")


AS_SAVED = "What saving would refuse is refused in the same way."


class PreviewAsked(Strict):
    """How long the answer may take."""

    wait = AskedNumber(
        required=False,
        min_value=0,
        max_value=30,
        help_text="Seconds to go on looking at messages where they have to be looked at; 0 answers within 200 ms.",
    )


class EffectTold(serializers.Serializer[Any]):
    """What would go."""

    messages = serializers.IntegerField(help_text="Messages that would go.")
    bytes = serializers.IntegerField(help_text="Bytes of their bodies.")
    first_offset = serializers.IntegerField(
        help_text="Of what would remain; the next offset where nothing would."
    )
    oldest_timestamp = Moment(allow_null=True, help_text="Of what would remain.")
    groups = GroupUnread(many=True)
    as_of = serializers.IntegerField(help_text="The stream's last offset when this was counted.")
    complete = serializers.BooleanField(
        help_text="False while messages that have to be looked at are still being counted; more may go then."
    )
    counted = serializers.FloatField(help_text="Which part of them was, 0 to 1.")
    reason = serializers.ChoiceField(
        choices=REASONS,
        allow_null=True,
        help_text="Why it is not complete: null where it is; `counting` will be over; `too_many_keys` stays so "
        "(over two million).",
    )


class RetentionPreview(EffectTold):
    """What would go if the limits were saved."""


class LimitReached(serializers.Serializer[Any]):
    """A limit that the stream comes to."""

    limit = serializers.ChoiceField(choices=["ttl", "max_messages", "max_bytes"])
    reached_in = serializers.FloatField(help_text="Seconds; 0 where it is reached.")


class GroupFall(serializers.Serializer[Any]):
    """A group, and when retention takes what it has not acknowledged."""

    group = serializers.CharField()
    falls_off_in = serializers.FloatField(
        allow_null=True, help_text="Seconds, if it reads on as in the last minutes; null where it does not."
    )
    limit = serializers.CharField(allow_null=True, help_text="The limit that does it.")


class RetentionForecast(serializers.Serializer[Any]):
    """Where the stream is going at its rate of the last hour, or of a shorter time that is known."""

    messages_per_second = serializers.FloatField(help_text="That come in, on average.")
    bytes_per_second = serializers.FloatField()
    over = serializers.FloatField(
        help_text="Seconds of the average, until now: an hour, or since the first message; where limits have taken "
        "what came before, as far back as the samples show."
    )
    limits = LimitReached(many=True, help_text="Those that another limit does not hold it below.")
    messages = serializers.IntegerField(
        allow_null=True,
        help_text="What it will hold in the long run; null without an end, or while nothing comes in.",
    )
    bytes = serializers.IntegerField(allow_null=True)
    oldest_age = serializers.FloatField(
        allow_null=True, help_text="Seconds: how old its oldest message will be; null without an end."
    )
    groups = GroupFall(many=True)


class RetentionForecastView(ApiView):
    """``/streams/{name}/retention/forecast``"""

    operations: ClassVar = {
        "POST": Operation(
            id="retention_forecast",
            summary="When the stream comes to its limits, or to others; changes nothing",
            scope="observe",
            body=LimitsAsked,
            body_optional=True,
            answer=RetentionForecast,
            refusals=REFUSALS,
            description=f"Without a body: at the limits as they are. {AS_SAVED}",
            examples={"smaller": {"max_bytes": 1_073_741_824}},
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="observe")
        changes = changes_of(stream, settings_in(self.sent(LimitsAsked)), is_held=False)
        found = selectors.retention_outlook(stream, changes)
        future = found.forecast
        foreseen = {
            "messages_per_second": round(found.rate_in, 3),
            "bytes_per_second": round(found.bytes_in, 3),
            "over": found.over_s,
            "limits": [
                {"limit": limit, "reached_in": round(seconds, 3)}
                for limit, seconds in (future.reached_in_s.items() if future else ())
            ],
            "messages": future and future.messages,
            "bytes": future and future.bytes,
            "oldest_age": future and future.oldest_s,
            "groups": [
                {
                    "group": group,
                    "falls_off_in": None if fall is None else round(fall.in_s, 3),
                    "limit": None if fall is None else fall.limit,
                }
                for group, fall in sorted(found.falls.items())
            ],
        }
        return Response(RetentionForecast(foreseen).data)


class RetentionPreviewView(ApiView):
    """``/streams/{name}/retention/preview``"""

    operations: ClassVar = {
        "POST": Operation(
            id="retention_preview",
            summary="What other limits would take away; changes nothing",
            scope="observe",
            query=PreviewAsked,
            body=LimitsAsked,
            body_optional=True,
            answer=RetentionPreview,
            refusals=REFUSALS,
            description=f"Without a body: what the limits as they are would take away now. {AS_SAVED}",
            examples={"shorter": {"ttl": 86_400, "max_messages_per_key": 1}},
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="observe")
        changes = changes_of(stream, settings_in(self.sent(LimitsAsked)), is_held=False)
        found = selectors.retention_preview(stream, changes, within_s=self.asked.get("wait") or None)
        return Response(RetentionPreview(told(found)).data)


def told(found: Preview) -> dict[str, Any]:
    """What ``EffectTold`` takes."""
    return {
        "messages": found.messages,
        "bytes": found.bytes,
        "first_offset": found.first_offset,
        "oldest_timestamp": None if found.oldest_ms is None else selectors.moment(found.oldest_ms),
        "groups": [{"group": group, "unread": unread} for group, unread in sorted(found.unread.items())],
        "as_of": found.as_of,
        "complete": found.is_complete,
        "counted": round(found.counted, 3),
        "reason": found.reason,
    }
