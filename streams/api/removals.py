"""What was removed for a while: seen, undone, or made final."""

import re
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import stream_for
from streams.api.base import ApiView
from streams.api.fields import Moment, Strict, Switch
from streams.api.operation import Operation
from streams.errors import Refusal
from streams.services.undo import removal_end, removal_undo


class RemovalObject(serializers.Serializer[Any]):
    """A purge or deletion that can be undone. What it took is in no answer and no count."""

    removal = serializers.IntegerField(source="number", help_text="Its number, ascending within the stream.")
    kind = serializers.CharField(help_text="`stream.purged` or `message.deleted`.")
    messages = serializers.IntegerField(help_text="Messages that it took.")
    bytes = serializers.IntegerField(help_text="Bytes of their bodies.")
    first_offset = serializers.IntegerField(help_text="The lowest offset among them.")
    actor = serializers.CharField(help_text="Who did it.")
    until = Moment(help_text="When it becomes permanent.")


class UndoWanted(Strict):
    """What is to come back."""

    partial = Switch(  # type: ignore[assignment]
        required=False, default=False, help_text="Restore what limits have left, where it is not all."
    )


class Undone(serializers.Serializer[Any]):
    """What came back."""

    messages = serializers.IntegerField()
    bytes = serializers.IntegerField()


class RemovalsView(ApiView):
    """``/streams/{name}/removals/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="removals_list",
            summary="What was purged or deleted and can be restored, oldest first",
            description="The last hundred removals: the next one makes the oldest final before its time, and its "
            "answer and event say which (`ended`).",
            scope="read",
            answer=RemovalObject,
            many=True,
            refusals=("stream_not_found",),
        ),
    }

    def get(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="read")
        return Response(self.rows(RemovalObject, selectors.removals_of(stream)))


class RemovalView(ApiView):
    """``/streams/{name}/removals/{number}``"""

    operations: ClassVar = {
        "DELETE": Operation(
            id="removal_end",
            summary="Make a removal final now, with those before it",
            scope="admin",
            status=204,
            refusals=("stream_not_found", "removal_not_found"),
        ),
    }

    def delete(self, request: Request, name: str, number: str) -> Response:
        stream = stream_for(self.caller, name, may="admin")
        removal_end(stream, _number(number), actor=self.caller.actor)
        return Response(status=204)


class RemovalUndoView(ApiView):
    """``/streams/{name}/removals/{number}/undo``"""

    operations: ClassVar = {
        "POST": Operation(
            id="removal_undo",
            summary="Restore what a removal took, with ids, offsets and times as they were",
            scope="manage",
            body=UndoWanted,
            body_optional=True,
            answer=Undone,
            refusals=(
                "stream_not_found",
                "removal_not_found",
                "removed_since",
                "removal_taken",
                "operation_denied",
            ),
            description="Groups that had not read it find it unread. The last purge is undone first.",
            examples={"what is left": {"partial": True}},
        ),
    }

    def post(self, request: Request, name: str, number: str) -> Response:
        stream = stream_for(self.caller, name, may="manage")
        back = removal_undo(
            stream, _number(number), partial=self.sent(UndoWanted)["partial"], actor=self.caller.actor
        )
        return Response(Undone(back).data)


def _number(text: str) -> int:
    if re.fullmatch(r"[1-9][0-9]{0,14}", text) is None:
        raise Refusal("removal_not_found", "There is no such removal.")
    return int(text)
