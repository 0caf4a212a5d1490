"""What a purge would take from a stream, told before it is made."""

from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import naming, purges, selectors
from streams.access import stream_for
from streams.api.base import ApiView
from streams.api.fields import KeyPattern, Moment
from streams.api.operation import Operation
from streams.api.queries import AskedNumber, AskedSwitch
from streams.api.retention import EffectTold, PreviewAsked, told
from streams.errors import refusal_of
from streams.log.errors import OperationDenied, StreamSealed
from streams.log.preview import Purge
from streams.models import Stream


class PurgeAsked(PreviewAsked):
    """The purge, as ``DELETE …/messages`` takes it."""

    offset = AskedNumber(
        required=False, min_value=0, help_text="Those below this offset; not together with keep."
    )
    keep = AskedNumber(required=False, min_value=0, help_text="All but the newest so many.")
    key = KeyPattern(
        required=False,
        max_length=naming.LONGEST_KEY,
        help_text="Those whose key matches: `*` is one token, `>` the rest.",
    )
    undo = AskedSwitch(required=False, help_text="Whether what goes is to be kept for a while.")


class PurgePreview(EffectTold):
    """What would go by the purge."""

    goes_from = serializers.IntegerField(
        allow_null=True, help_text="The first offset that would go; null where none would."
    )
    goes_to = serializers.IntegerField(allow_null=True, help_text="The last one.")
    finals = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="The removals that could no longer be undone, whole or below it, where it is permanent.",
    )
    until = Moment(
        allow_null=True,
        help_text="Until when it could be undone, were it done now with this token; null where it is permanent.",
    )


class PurgePreviewView(ApiView):
    """``/streams/{name}/purge/preview``"""

    operations: ClassVar = {
        "POST": Operation(
            id="purge_preview",
            summary="What a purge would take away; changes nothing",
            scope="manage",
            query=PurgeAsked,
            answer=PurgePreview,
            refusals=("stream_not_found", "operation_denied"),
            description="Takes the parameters of `DELETE …/messages`, and refuses what that refuses.",
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="manage")
        offset, keep, key = (self.asked.get(each) for each in ("offset", "keep", "key"))
        purges.demand_one(offset=offset, keep=keep)
        kept_s = purges.kept_s(
            self.asked.get("undo"),
            undo_s=settings.ENV.undo_s,
            for_good=settings.ENV.purge_for_good,
            may_for_good=self.caller.may(settings.ENV.purge_for_good),
        )
        _demand_purge(stream)
        purge = Purge(below=offset, keep=keep or 0, keys=(key,) if key else ())
        found = selectors.purge_preview(stream, purge, within_s=self.asked.get("wait") or None)
        more: dict[str, Any] = {
            "goes_from": found.goes_from or None,
            "goes_to": found.goes_to or None,
            "finals": [] if kept_s else selectors.finals_of(stream, kept_from=found.kept_from),
            "until": timezone.now() + timedelta(seconds=kept_s) if kept_s else None,
        }
        return Response(PurgePreview(told(found) | more).data)


def _demand_purge(stream: Stream) -> None:
    """Raises Refusal ``operation_denied`` where a purge would."""
    if stream.sealed:
        raise refusal_of(StreamSealed(), stream=stream.name)
    if stream.deny_purge:
        raise refusal_of(OperationDenied("deny_purge"), stream=stream.name)
