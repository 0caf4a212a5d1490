"""Messages taken out of the history for good."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
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
from streams.services.erasure_previews import ErasurePreview, PreviewState, erasure_preview

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
    up_to = WholeNumber(
        min_value=0,
        required=False,
        help_text="With `key`: none of its messages above this offset. In any case none above the last one that "
        "the stream has when this is asked for.",
    )
    dry_run = Switch(required=False, help_text="Only tell what it would do.")
    anew = Switch(
        required=False,
        help_text="With `dry_run`: begin another count. What was deleted since the last one, which is told for "
        "ten minutes, is still in that.",
    )
    deleted = Switch(
        default=False,
        help_text=(
            "Of all streams of that name that were deleted by now, not of one that is there or is deleted later; "
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
    up_to = serializers.IntegerField(
        allow_null=True,
        help_text="The last offset that it means: what is published later stays. Null of deleted streams.",
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
        help_text="Up to which offset the history was looked through: `up_to`, or less where it had less.",
    )
    progress = serializers.FloatField(
        help_text="0 to 1, of the files that are looked through while it is running."
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


class KeptLetters(serializers.Serializer):  # type: ignore[type-arg]
    """The dead letters of a group that would be deleted."""

    group = serializers.CharField()
    dead_letters = serializers.IntegerField()


class MadeCopies(serializers.Serializer):  # type: ignore[type-arg]
    """A replay that may have published copies, which would stay."""

    replay = serializers.IntegerField(source="id")
    target = serializers.CharField()
    messages = serializers.IntegerField(source="stored", help_text="How many messages it has published.")


class ErasurePreviewObject(serializers.Serializer):  # type: ignore[type-arg]
    """What an erasure would do."""

    stream = serializers.CharField(source="stream.name")
    offset = serializers.IntegerField(allow_null=True)
    key_sha256 = serializers.SerializerMethodField(help_text="SHA-256 of the key, hexadecimal, or null.")
    state = serializers.ChoiceField(
        choices=PreviewState.values,
        help_text="Of the count of the history: ask again while it is `counting`.",
    )
    progress = serializers.FloatField(help_text="0 to 1, of the count.")
    messages = serializers.IntegerField(
        allow_null=True,
        help_text="How many the history would lose, also of what it has not copied yet; null until it is counted.",
    )
    up_to = serializers.IntegerField(
        help_text="The last offset that it means: the one that was sent, or the last that the stream had when this was "
        "counted, whichever is lower; asked for with it, no more goes."
    )
    in_stream = serializers.IntegerField(help_text="How many stand in the stream, where they would stay.")
    dead_letters = serializers.IntegerField(source="letters", help_text="How many would be deleted.")
    groups = serializers.SerializerMethodField(help_text="The groups that keep these dead letters.")
    waiting = serializers.SerializerMethodField(
        help_text="The ids of erasures of the same that are not done yet and take what they mean of it."
    )
    copies = MadeCopies(many=True, help_text="Replays that may have published copies, which would stay.")
    complete = serializers.BooleanField(
        source="is_complete",
        help_text="Whether all of the stream and of the dead letters was counted; if not, there may be more.",
    )
    error = serializers.SerializerMethodField(help_text="Why the history was not counted, or null.")

    def get_key_sha256(self, preview: ErasurePreview) -> str | None:
        return preview.key_sha256 or None

    @extend_schema_field(KeptLetters(many=True))
    def get_groups(self, preview: ErasurePreview) -> list[dict[str, Any]]:
        return [{"group": group, "dead_letters": count} for group, count in preview.dead_letters.items()]

    def get_waiting(self, preview: ErasurePreview) -> list[int]:
        return [each.pk for each in preview.waiting]

    def get_error(self, preview: ErasurePreview) -> str | None:
        return preview.error or None


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
            also={200: "With `dry_run`: what it would do."},
            other_answers={200: ErasurePreviewObject},
            refusals=("stream_not_found", "workspace_not_found", "operation_denied", "history_off"),
            description=(
                "The files that hold it are rewritten without it, permanently. Delete it from the stream first: "
                "what still stands there is archived later, and read until then. Dead letters of it are deleted "
                "in all groups of the stream. What is published after it was asked for stays (`up_to`). "
                "Counts of the past stay. With `dry_run` it only tells what it would do, "
                "of a stream that is there: Spark counts the history, so ask again while `state` is `counting`."
            ),
            examples={
                "a message": {"stream": "orders", "offset": 1234},
                "a key": {"stream": "orders", "key": "customers.8817"},
                "no more than was shown": {"stream": "orders", "key": "customers.8817", "up_to": 88_170},
                "what it would do": {"stream": "orders", "key": "customers.8817", "dry_run": True},
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
        if "up_to" in sent and ("key" not in sent or sent["deleted"]):
            raise invalid("up_to", "Only with a key of a stream that is there.")
        if sent.get("anew") and not sent.get("dry_run"):
            raise invalid("anew", "Only with dry_run.")
        if sent.get("dry_run"):
            if sent["deleted"]:
                raise invalid(
                    "dry_run", "Only of a stream that is there: deleted ones are counted as they are erased."
                )
            preview = erasure_preview(
                self.caller,
                stream=sent["stream"],
                offset=sent.get("offset"),
                key=sent.get("key", ""),
                up_to=sent.get("up_to"),
                anew=sent.get("anew", False),
            )
            return Response(ErasurePreviewObject(preview).data)
        erasure = service.erasure_request(
            self.caller,
            stream=sent.get("stream", ""),
            offset=sent.get("offset"),
            key=sent.get("key", ""),
            up_to=sent.get("up_to"),
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
