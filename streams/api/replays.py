"""Ranges of the past, published again into a stream, or brought to one group."""

from collections.abc import Mapping
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import naming, selectors
from streams.access import replay_for
from streams.api.base import ApiView
from streams.api.errors import invalid
from streams.api.fields import KeyPattern, Moment, Name, OneOf, Strict, Switch, Text, WholeNumber
from streams.api.operation import Operation
from streams.api.pushed_out import PushedOutObject
from streams.api.sql import number_of
from streams.models import Replay, ReplayState, WaitsFor
from streams.services import replays as service

PATH = "/api/v1/analytics/replays"
IDS = {"keep": True, "new": False}


class ReplayAsked(Strict):
    """What is to be published again. Bounds are combined; without any it is everything ever published."""

    source = Name(help_text="The stream whose past it is.")  # type: ignore[assignment]
    target = Name(
        required=False,
        help_text="The stream that it is published into; it may be the same one. Needed without `group`.",
    )
    group = Name(
        required=False,
        help_text="A group of the source, instead of a target: the messages come to it alone, with their own offsets, "
        "times and ids; nothing is published.",
    )
    from_offset = WholeNumber(required=False, help_text="From this offset on.")
    to_offset = WholeNumber(required=False, help_text="Up to this offset, which is included.")
    to = Moment(required=False, help_text="Published before this time.")
    key = KeyPattern(max_length=naming.LONGEST_KEY, required=False, help_text="A key, or a pattern of keys.")
    where = Text(
        max_length=service.LONGEST_WHERE,
        required=False,
        help_text=(
            "A condition in SQL on the columns of the table `messages` (see the query's description), such as "
            "`get_json_object(body, '$.carrier') = 'UA'`."
        ),
    )
    ids = OneOf(
        choices=list(IDS),
        required=False,
        help_text=(
            "`keep`: the target refuses those that it knows. `new`: each gets one of its own. None: `new` into the "
            "same stream, else `keep`."
        ),
    )
    rate = WholeNumber(
        max_value=service.MOST_RATE, required=False, help_text="Messages a second at most; none is no limit."
    )
    start = Switch(
        required=False,
        default=True,
        help_text="Begin as soon as it is counted; else it waits, `ready`, for `…/start`.",
    )


# "from" is a word of Python's, so it cannot be written in the class.
ReplayAsked._declared_fields["from"] = Moment(required=False, help_text="Published at this time or later.")


class ReplayObject(serializers.Serializer):  # type: ignore[type-arg]
    """A replay, and how far it is."""

    id = serializers.IntegerField()
    url = serializers.SerializerMethodField()
    state = serializers.ChoiceField(choices=ReplayState.values)
    source = serializers.CharField()  # type: ignore[assignment]
    target = serializers.CharField(help_text="The source, where it is for a group.")
    group = serializers.SerializerMethodField(help_text="The group that it is for, or null.")
    from_offset = serializers.IntegerField(allow_null=True)
    to_offset = serializers.IntegerField(allow_null=True)
    to = Moment(source="until", allow_null=True)
    key = serializers.SerializerMethodField()
    where = serializers.SerializerMethodField()
    ids = serializers.SerializerMethodField(help_text="`keep` or `new`.")
    rate = serializers.IntegerField(allow_null=True)
    total = serializers.IntegerField(allow_null=True, help_text="Messages in the range; null until counted.")
    total_bytes = serializers.IntegerField(allow_null=True)
    stored = serializers.IntegerField(help_text="Messages that the target took, or the group got.")
    duplicates = serializers.IntegerField(
        help_text="Messages whose ids the target knew; or that the group has, or gets without this, or filters out."
    )
    progress = serializers.FloatField(help_text="0 to 1.")
    position = serializers.IntegerField(help_text="The source's offset up to which it is done.")
    waits_for = serializers.SerializerMethodField(
        help_text="What it waits for while it is running: `group`, which has as many as it may have at a time, or "
        "`paused_group`, which has them and is paused; else null."
    )
    error = serializers.SerializerMethodField(
        help_text="Why it failed, which an erasure in the workspace takes; or why its group ended it, or that nobody "
        "started it or had it go on for 30 days; or null."
    )
    requested_by = serializers.CharField()
    created_at = Moment()
    started_at = Moment(allow_null=True)
    finished_at = Moment(allow_null=True)

    def get_url(self, replay: Replay) -> str:
        return str(self.context["request"].build_absolute_uri(f"{PATH}/{replay.pk}"))

    def get_group(self, replay: Replay) -> str | None:
        return replay.group or None

    @extend_schema_field(serializers.ChoiceField(choices=WaitsFor.values, allow_null=True))
    def get_waits_for(self, replay: Replay) -> str | None:
        return replay.waits_for or None

    def get_key(self, replay: Replay) -> str | None:
        return replay.key or None

    def get_where(self, replay: Replay) -> str | None:
        return replay.where or None

    def get_ids(self, replay: Replay) -> str:
        return "keep" if replay.keeps_ids else "new"

    def get_error(self, replay: Replay) -> str | None:
        return replay.error or None


ReplayObject._declared_fields["from"] = Moment(source="since", allow_null=True)


class ReplayFound(ReplayObject):
    """A replay, how far it is, and what it would do."""

    pushes_out = serializers.SerializerMethodField(
        help_text="What the target's own limits would take for what is still to be published; null unless it is "
        "counted and waits to be started."
    )

    @extend_schema_field(PushedOutObject(allow_null=True))
    def get_pushes_out(self, replay: Replay) -> dict[str, Any] | None:
        found = selectors.pushed_out_by(replay)
        return None if found is None else dict(PushedOutObject(found).data)


class ReplaysView(ApiView):
    """``/analytics/replays``"""

    operations: ClassVar = {
        "GET": Operation(
            id="replays_list",
            summary="List replays, newest first",
            scope="read",
            answer=ReplayObject,
            many=True,
            description="The newest 100, of the last 30 days.",
        ),
        "POST": Operation(
            id="replay_request",
            summary="Publish a range of the past again",
            scope="manage",
            body=ReplayAsked,
            status=202,
            answer=ReplayFound,
            refusals=(
                "stream_not_found",
                "group_not_found",
                "operation_denied",
                "history_off",
                "replay_state",
            ),
            description=(
                "Messages of the history and of the live tail, in offset order. They are counted first, and published "
                "once each: over crashes, and over pauses. Needs `publish` for the target and `read` for the source. "
                "With `group` they come to that group alone, as many at a time as it takes; a seek of the group, and "
                "its end, end the replay. That needs no `publish`."
            ),
            examples={
                "yesterday": {
                    "source": "orders",
                    "target": "orders-again",
                    "from": "2026-11-20T00:00:00Z",
                    "to": "2026-11-21T00:00:00Z",
                    "start": False,
                },
                "a condition": {
                    "source": "orders",
                    "target": "large",
                    "where": "bytes > 10000 AND key LIKE 'eu.%'",
                },
                "a key": {"source": "orders", "target": "orders", "key": "eu.>", "rate": 500},
                "one group": {"source": "orders", "group": "billing", "to_offset": 5000, "start": False},
            },
        ),
    }

    def get(self, request: Request) -> Response:
        return Response(self.rows(ReplayObject, selectors.replays_latest(self.caller)))

    def post(self, request: Request) -> Response:
        sent = self.sent(ReplayAsked)
        since, until = sent.get("from"), sent.get("to")
        if since is not None and until is not None and since >= until:
            raise invalid("from", "Expected a time before to.")
        first, last = sent.get("from_offset"), sent.get("to_offset")
        if first is not None and last is not None and first > last:
            raise invalid("from_offset", "Expected an offset that is not above to_offset.")
        _check_goal(sent)
        wanted = service.ReplayWanted(
            from_offset=first,
            to_offset=last,
            since=since,
            until=until,
            key=sent.get("key", ""),
            where=sent.get("where", ""),
            keeps_ids=IDS[sent["ids"]] if "ids" in sent else None,
            rate=sent.get("rate"),
            starts=sent["start"],
        )
        if "group" in sent:
            replay = service.replay_for_group(
                self.caller, stream=sent["source"], group=sent["group"], wanted=wanted
            )
        else:
            replay = service.replay_request(
                self.caller, source=sent["source"], target=sent["target"], wanted=wanted
            )
        shown = ReplayFound(replay, context={"request": request}).data
        return Response(shown, status=202, headers={"Location": shown["url"]})


def _check_goal(sent: Mapping[str, Any]) -> None:
    if "group" not in sent:
        if "target" not in sent:
            raise invalid("target", "Expected a stream, or a group instead.")
        return
    if sent.get("target", sent["source"]) != sent["source"]:
        raise invalid("target", "Expected none, or the source: a group reads its own stream.")
    if sent.get("ids") == "new":
        raise invalid("ids", "Expected none, or keep: to a group messages come with their own ids.")


class ReplayView(ApiView):
    """``/analytics/replays/{id}``"""

    operations: ClassVar = {
        "GET": Operation(
            id="replay_get",
            summary="See a replay",
            scope="read",
            answer=ReplayFound,
            refusals=("replay_not_found",),
        ),
        "DELETE": Operation(
            id="replay_cancel",
            summary="Cancel a replay",
            scope="manage",
            status=204,
            refusals=("replay_not_found",),
            description="What was published stays. One that has ended is let be.",
        ),
    }

    def get(self, request: Request, replay_id: str) -> Response:
        replay = replay_for(self.caller, number_of(replay_id), may="read")
        return Response(ReplayFound(replay, context={"request": request}).data)

    def delete(self, request: Request, replay_id: str) -> Response:
        replay = replay_for(self.caller, number_of(replay_id), may="manage")
        service.replay_cancel(replay, actor=self.caller.actor)
        return Response(status=204)


class ReplayStartView(ApiView):
    """``/analytics/replays/{id}/start``"""

    operations: ClassVar = {
        "POST": Operation(
            id="replay_start",
            summary="Begin to publish, or go on after a pause or a failure",
            description="One whose count failed is counted again, and waits, `ready`, to be started once more.",
            scope="manage",
            answer=ReplayFound,
            refusals=("replay_not_found", "replay_state"),
        ),
    }

    def post(self, request: Request, replay_id: str) -> Response:
        replay = replay_for(self.caller, number_of(replay_id), may="manage")
        service.replay_start(self.caller, replay)
        replay.refresh_from_db()
        return Response(ReplayFound(replay, context={"request": request}).data)


class ReplayPauseView(ApiView):
    """``/analytics/replays/{id}/pause``"""

    operations: ClassVar = {
        "POST": Operation(
            id="replay_pause",
            summary="Let a replay rest",
            scope="manage",
            answer=ReplayFound,
            refusals=("replay_not_found", "replay_state"),
        ),
    }

    def post(self, request: Request, replay_id: str) -> Response:
        replay = replay_for(self.caller, number_of(replay_id), may="manage")
        service.replay_pause(replay, actor=self.caller.actor)
        replay.refresh_from_db()
        return Response(ReplayFound(replay, context={"request": request}).data)
