"""How the consumer groups of a stream stand to one message."""

import re
from typing import Any, ClassVar, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import stream_for
from streams.api.base import ApiView
from streams.api.errors import invalid
from streams.api.fields import Moment
from streams.api.operation import Operation
from streams.errors import refusal_of
from streams.log import entries
from streams.log.errors import MessageNotFound
from streams.log.message_groups import State
from streams.selectors import MessageInGroup


class MessageInGroupObject(serializers.Serializer[Any]):
    """How a group stands to a message."""

    group = serializers.CharField(source="group.name")
    state = serializers.ChoiceField(
        source="standing.state",
        choices=list(get_args(State)),
        help_text="`in_flight`: delivered, or given back, and not settled; `held_back`: an earlier message of its key "
        "is out; `dead_letter`; `to_come`: the group has not come to it; `filtered`: its key is none of the group's; "
        "`passed`: acknowledged, or the group began after it or was sought past it.",
    )
    deliveries = serializers.IntegerField(
        source="standing.deliveries",
        help_text="So far, where it is in flight or a dead letter; 0 after it was nacked unread.",
    )
    delivered_at = serializers.SerializerMethodField(
        help_text="When it was delivered last; null where it is not out."
    )
    consumer = serializers.CharField(
        source="standing.consumer", help_text="Who has it; empty where nobody has or none gave a name."
    )
    due_in = serializers.SerializerMethodField(
        help_text="Seconds until its wait is over, unless it is settled: it comes again then, or is a dead letter "
        "where this is its `last` delivery; null where it is not out."
    )
    last = serializers.BooleanField(
        source="standing.is_last", help_text="Whether this delivery is the last that the group gives it."
    )
    before = serializers.SerializerMethodField(
        help_text="Messages of any key that the group comes to before it; null where it is not to come."
    )
    reason = serializers.SerializerMethodField(help_text="Why it is a dead letter; null where it is none.")
    died_at = serializers.SerializerMethodField(
        help_text="Since when it is a dead letter; null where it is none."
    )

    @extend_schema_field(Moment(allow_null=True))
    def get_delivered_at(self, row: MessageInGroup) -> str | None:
        return _at(row, "in_flight")

    @extend_schema_field({"type": ["number", "null"], "minimum": 0})
    def get_due_in(self, row: MessageInGroup) -> float | None:
        return row.standing.due_in_ms / 1000 if row.standing.state == "in_flight" else None

    @extend_schema_field({"type": ["integer", "null"], "minimum": 0})
    def get_before(self, row: MessageInGroup) -> int | None:
        return row.standing.before if row.standing.state == "to_come" else None

    @extend_schema_field({"type": ["string", "null"]})
    def get_reason(self, row: MessageInGroup) -> str | None:
        return row.standing.reason if row.standing.state == "dead_letter" else None

    @extend_schema_field(Moment(allow_null=True))
    def get_died_at(self, row: MessageInGroup) -> str | None:
        return _at(row, "dead_letter")


def _at(row: MessageInGroup, state: State) -> str | None:
    at_ms = row.standing.at_ms
    return entries.timestamp(at_ms) if row.standing.state == state and at_ms is not None else None


class MessageGroupsView(ApiView):
    """``/streams/{name}/messages/{offset}/groups``"""

    operations: ClassVar = {
        "GET": Operation(
            id="message_groups",
            summary="How every consumer group stands to one message",
            scope="read",
            answer=MessageInGroupObject,
            many=True,
            refusals=("stream_not_found", "message_not_found"),
            description="First those where it is a dead letter, in flight or held back. Looking changes nothing. Who "
            "acknowledged a message is not kept, so `passed` does not tell that from a group that began after it.",
        ),
    }

    def get(self, request: Request, name: str, offset: str) -> Response:
        stream = stream_for(self.caller, name, may="read")
        if re.fullmatch(r"[0-9]{1,15}", offset) is None:
            raise invalid("offset", "Expected a whole number from 0.")
        try:
            message = selectors.message_at(stream, int(offset))
        except MessageNotFound as error:
            raise refusal_of(error, stream=name) from None
        return Response(self.rows(MessageInGroupObject, selectors.groups_of_message(stream, message)))
