"""What a stream's own limits take for messages that are published into it again."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from streams.api.retention import REASONS as REASONS_OF_PREVIEWS
from streams.api.retention_effects import GroupUnread
from streams.selectors import PushedOut

REASONS = ["per_key", *REASONS_OF_PREVIEWS]


class PushedOutObject(serializers.Serializer[Any]):
    """What would go, as far as it is foreseen."""

    messages = serializers.IntegerField(help_text="Messages that the stream holds now and that would go.")
    bytes = serializers.IntegerField(help_text="Bytes of their bodies.")
    groups = serializers.SerializerMethodField(
        help_text="The groups that have not acknowledged some of them."
    )
    arriving = serializers.IntegerField(
        help_text="So many of those that are published, the first ones, would go as well: the stream holds no more."
    )
    refused = serializers.IntegerField(
        help_text="So many of those that are published, the last ones, a full stream does not take (`discard: new`)."
    )
    reason = serializers.ChoiceField(
        choices=REASONS,
        allow_null=True,
        help_text="Why more may go than is said: `per_key`, what a limit of messages per key takes is not foreseen; "
        "`counting` and `too_many_keys` as in the preview of limits. Null where it does not.",
    )

    @extend_schema_field(GroupUnread(many=True))
    def get_groups(self, found: PushedOut) -> list[dict[str, Any]]:
        return [{"group": group, "unread": unread} for group, unread in found.unread.items()]
