"""What other limits would take from a stream, told before they are saved."""

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import stream_for
from streams.api.base import ApiView
from streams.api.fields import Moment, Strict
from streams.api.operation import Operation
from streams.api.queries import AskedNumber
from streams.api.stream_objects import RetentionLimits
from streams.log.preview import WITHIN_S
from streams.services.plans import within_plan


class LimitsAsked(RetentionLimits):
    """Limits to try, as they would be saved; what is not sent is as the stream has it."""


class PreviewAsked(Strict):
    """How long the answer may take."""

    wait = AskedNumber(
        required=False,
        min_value=0,
        max_value=30,
        help_text="Seconds to go on looking at messages where they have to be looked at; 0 answers within 200 ms.",
    )


class GroupUnread(serializers.Serializer[Any]):
    """A group, and what it would lose."""

    group = serializers.CharField()
    unread = serializers.IntegerField(
        help_text="Messages that would go and that the group has not acknowledged."
    )


class RetentionPreview(serializers.Serializer[Any]):
    """What would go if the limits were saved."""

    messages = serializers.IntegerField(help_text="Messages that would go.")
    bytes = serializers.IntegerField(help_text="Bytes of their bodies.")
    first_offset = serializers.IntegerField(
        help_text="Of what would remain; the next offset where nothing would."
    )
    oldest_timestamp = Moment(allow_null=True, help_text="Of what would remain.")
    groups = GroupUnread(many=True)
    as_of = serializers.IntegerField(help_text="The stream's last offset when this was counted.")
    complete = serializers.BooleanField(
        help_text="False where there was no time to look at all messages that have to be; more may go then."
    )


class RetentionPreviewView(ApiView):
    """``/streams/{name}/retention/preview``"""

    operations: ClassVar = {
        "POST": Operation(
            id="retention_preview",
            summary="What other limits would take away; changes nothing",
            scope="read",
            query=PreviewAsked,
            body=LimitsAsked,
            body_optional=True,
            answer=RetentionPreview,
            refusals=("stream_not_found", "quota_exceeded"),
            description="Without a body: what the limits as they are would take away now.",
            examples={"shorter": {"ttl": 86_400, "max_messages_per_key": 1}},
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="read")
        changes = within_plan(stream.workspace, self.sent(LimitsAsked), new=False)
        found = selectors.retention_preview(stream, changes, within_s=self.asked.get("wait") or WITHIN_S)
        told = {
            "messages": found.messages,
            "bytes": found.bytes,
            "first_offset": found.first_offset,
            "oldest_timestamp": None if found.oldest_ms is None else selectors.moment(found.oldest_ms),
            "groups": [{"group": group, "unread": unread} for group, unread in sorted(found.unread.items())],
            "as_of": found.as_of,
            "complete": found.is_complete,
        }
        return Response(RetentionPreview(told).data)
