"""Messages taken out of the history for good."""

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import naming, selectors
from streams.access import erasure_for
from streams.api.base import ApiView
from streams.api.errors import invalid
from streams.api.fields import Moment, Name, Strict, Switch, Text, WholeNumber
from streams.api.operation import Operation
from streams.api.sql import number_of
from streams.models import Erasure
from streams.models.history import RunState
from streams.services import erasures as service

PATH = "/api/v1/analytics/erasures"


class MessageKey(Text):
    """A key of messages."""

    def to_internal_value(self, data: object) -> str:
        text = super().to_internal_value(data)
        fault = naming.key_fault(text)
        if fault:
            raise serializers.ValidationError(fault)
        return text


class ErasureAsked(Strict):
    """What is to be erased: the message at an offset, or all messages of a key; of deleted streams also everything."""

    stream = Name(
        required=False,
        help_text="The stream whose history it is; with `workspace` it may be left out, for all streams.",
    )
    workspace = Name(
        required=False,
        help_text="For `admin` of `default`, with `deleted`: a workspace that was deleted, whose streams are meant.",
    )
    offset = WholeNumber(required=False, help_text="The offset of one message.")
    key = MessageKey(
        max_length=naming.LONGEST_KEY, required=False, help_text="A key; all of its messages are erased."
    )
    deleted = Switch(
        default=False,
        help_text=(
            "Of all streams of that name that were deleted, not of one that is there; "
            "without offset and key everything."
        ),
    )


class ErasureObject(serializers.Serializer):  # type: ignore[type-arg]
    """An erasure, and what came of it."""

    id = serializers.IntegerField()
    url = serializers.SerializerMethodField()
    state = serializers.ChoiceField(choices=RunState.values)
    stream = serializers.SerializerMethodField(
        help_text="Its name; null for all streams of a workspace that was deleted."
    )
    deleted_workspace = serializers.SerializerMethodField(
        help_text="The workspace that was deleted whose streams are meant, or null."
    )
    deleted = serializers.BooleanField(
        source="of_deleted", help_text="Whether it is about the streams of that name that were deleted."
    )
    offset = serializers.IntegerField(allow_null=True)
    key_sha256 = serializers.SerializerMethodField(
        help_text="SHA-256 of the key, hexadecimal, or null; the key itself is not kept."
    )
    messages = serializers.IntegerField(
        allow_null=True, help_text="How many the history had; null until it is done."
    )
    dead_letters = serializers.IntegerField(
        allow_null=True,
        help_text="How many dead letters the stream's groups kept of it, replayed ones included, which are deleted; "
        "null until it is done, and of deleted streams, whose groups went with them.",
    )
    through = serializers.IntegerField(
        allow_null=True,
        help_text="The last offset that the history had of the stream. What is above it was not looked at.",
    )
    error = serializers.SerializerMethodField(help_text="Why it failed, or null.")
    requested_by = serializers.CharField()
    created_at = Moment()
    finished_at = Moment(allow_null=True)

    def get_url(self, erasure: Erasure) -> str:
        return str(self.context["request"].build_absolute_uri(f"{PATH}/{erasure.pk}"))

    def get_stream(self, erasure: Erasure) -> str | None:
        return erasure.stream or None

    def get_deleted_workspace(self, erasure: Erasure) -> str | None:
        return erasure.deleted_workspace or None

    def get_key_sha256(self, erasure: Erasure) -> str | None:
        return erasure.key_sha256 or None

    def get_error(self, erasure: Erasure) -> str | None:
        return erasure.error or None


class ErasuresView(ApiView):
    """``/analytics/erasures``"""

    operations: ClassVar = {
        "GET": Operation(
            id="erasures_list",
            summary="List erasures, newest first",
            scope="erase",
            answer=ErasureObject,
            many=True,
            description="The newest 100.",
        ),
        "POST": Operation(
            id="erasure_request",
            summary="Erase a message or a key from the history",
            scope="erase",
            body=ErasureAsked,
            status=202,
            answer=ErasureObject,
            refusals=("stream_not_found", "workspace_not_found", "operation_denied", "history_off"),
            description=(
                "The files that hold it are rewritten without it, permanently. Delete it from the stream first: "
                "what still stands there is archived later, and read until then. Dead letters of it are deleted "
                "in all groups of the stream. Counts of the past stay."
            ),
            examples={
                "a message": {"stream": "orders", "offset": 1234},
                "a key": {"stream": "orders", "key": "customers.8817"},
                "deleted streams": {"stream": "orders", "deleted": True},
                "a deleted workspace": {"workspace": "shop", "deleted": True},
            },
        ),
    }

    def get(self, request: Request) -> Response:
        self.caller.demand("erase")
        return Response(self.rows(ErasureObject, selectors.erasures_latest(self.caller)))

    def post(self, request: Request) -> Response:
        sent = self.sent(ErasureAsked)
        named = {"offset", "key"} & sent.keys()
        workspace = sent.get("workspace", "")
        if "stream" not in sent and not workspace:
            raise invalid("stream", "This field is required.")
        if workspace and not sent["deleted"]:
            raise invalid("workspace", 'Only with "deleted": true, for a workspace that was deleted.')
        if len(named) == 2 or not (named or sent["deleted"]):
            raise invalid("offset", "Expected either offset or key.")
        erasure = service.erasure_request(
            self.caller,
            stream=sent.get("stream", ""),
            offset=sent.get("offset"),
            key=sent.get("key", ""),
            deleted=sent["deleted"],
            deleted_workspace=workspace,
        )
        shown = ErasureObject(erasure, context={"request": request}).data
        return Response(shown, status=202, headers={"Location": shown["url"]})


class ErasureView(ApiView):
    """``/analytics/erasures/{id}``"""

    operations: ClassVar = {
        "GET": Operation(
            id="erasure_get",
            summary="See an erasure",
            scope="erase",
            answer=ErasureObject,
            refusals=("erasure_not_found",),
        ),
    }

    def get(self, request: Request, erasure_id: str) -> Response:
        erasure = erasure_for(self.caller, number_of(erasure_id), may="erase")
        return Response(ErasureObject(erasure, context={"request": request}).data)
