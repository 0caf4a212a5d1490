"""Consumer groups over HTTP: made, listed, seen, changed, deleted, sought, paused; their dead letters."""

import time
from typing import Any, ClassVar

from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import group_for, stream_for
from streams.api.base import ApiView
from streams.api.errors import invalid
from streams.api.fields import Moment
from streams.api.group_objects import (
    Counted,
    DeadLetterObject,
    GroupChanges,
    GroupObject,
    GroupWanted,
    InFlightObject,
    LetGo,
    LettersDeleted,
    PauseWanted,
    PositionWanted,
    ReplayWanted,
    ResumeWanted,
    Sought,
    letter_json,
    settings_in,
)
from streams.api.operation import Operation
from streams.api.pushed_out import PushedOutObject
from streams.api.queries import DeadLettersAsked, MadeAsked, OffsetAsked, PendingAsked, is_meant
from streams.api.replays import ReplayObject
from streams.errors import Refusal, group_not_found, refusal_of
from streams.log import entries
from streams.log.errors import MessageNotFound
from streams.log.pending import Wanted
from streams.models import Group
from streams.models.stream import Retention
from streams.services.dead_letters import dead_letters_delete, dead_letters_replay
from streams.services.groups import (
    group_change,
    group_create,
    group_delete,
    group_pause,
    group_resume,
    group_seek,
    offset_of_position,
)
from streams.services.replays import replay_demand, replay_for_group, wanted_of

NOT_FOUND = ("stream_not_found", "group_not_found")
NOTHING = {"messages": 0, "bytes": 0, "is_complete": True, "reason": None}


class GroupsView(ApiView):
    """``/streams/{name}/groups/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="groups_list",
            summary="List the consumer groups of a stream",
            scope="observe",
            answer=GroupObject,
            many=True,
            refusals=("stream_not_found",),
        ),
        "POST": Operation(
            id="group_create",
            summary="Create a consumer group",
            scope="manage",
            body=GroupWanted,
            status=201,
            answer=GroupObject,
            also={200: "There already, with the same settings; nothing was changed."},
            refusals=("stream_not_found", "group_exists"),
            examples={"billing": {"name": "billing", "ack_wait": 10, "filter_keys": ["orders.>"]}},
        ),
    }

    def get(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="observe")
        views = selectors.group_views(Group.objects.select_related("stream").filter(stream=stream))
        return Response(self.rows(GroupObject, views))

    def post(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="manage")
        wanted = self.sent(GroupWanted)
        group, is_new = group_create(
            stream, name=wanted["name"], settings=settings_in(wanted), actor=self.caller.actor
        )
        return Response(GroupObject(selectors.group_view(group)).data, status=201 if is_new else 200)


class GroupView(ApiView):
    """``/streams/{name}/groups/{group}``"""

    operations: ClassVar = {
        "GET": Operation(
            id="group_get", summary="See a group", scope="observe", answer=GroupObject, refusals=NOT_FOUND
        ),
        "PATCH": Operation(
            id="group_change",
            summary="Change settings of a group",
            scope="manage",
            body=GroupChanges,
            answer=GroupObject,
            refusals=NOT_FOUND,
            description="What is not sent keeps its value; where it started cannot change.",
            examples={"slower": {"ack_wait": 120}},
        ),
        "DELETE": Operation(
            id="group_delete",
            summary="Delete a group with its dead letters",
            scope="manage",
            query=MadeAsked,
            status=204,
            refusals=NOT_FOUND,
        ),
    }

    def get(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="observe")
        return Response(GroupObject(selectors.group_view(found)).data)

    def patch(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="manage")
        changed = group_change(found, changes=settings_in(self.sent(GroupChanges)), actor=self.caller.actor)
        return Response(GroupObject(selectors.group_view(changed)).data)

    def delete(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="manage")
        if not is_meant(self.asked, found.created_at):
            raise group_not_found(group)
        group_delete(found, actor=self.caller.actor)
        return Response(status=204)


class GroupSeekView(ApiView):
    """``/streams/{name}/groups/{group}/seek``"""

    operations: ClassVar = {
        "POST": Operation(
            id="group_seek",
            summary="Move a group to another position",
            scope="manage",
            body=PositionWanted,
            answer=Sought,
            refusals=(*NOT_FOUND, "history_off", "replay_state"),
            description="What is in flight is void, delivery counts start anew, dead letters stay. A position older "
            "than what the stream holds is its oldest message; `gone` then says what does not come, and which replay "
            "brings it to this group alone from the history. With `history` that is begun with the seek, which then "
            "also needs `read`. The group gets what the stream holds meanwhile, so newer messages may come before "
            "older ones, of one key, too; one that is `ordered_by_key` gets one message of a key at a time, those from "
            "the history behind what is out and waits of their key, although that is newer. A replay that brings the "
            "group something since an earlier seek is ended. Where the stream retains by interest, what no group "
            "wants any more after a seek is removed for good; a dry run counts it in `removes`.",
            examples={
                "again": {"position": "earliest", "dry_run": True},
                "all of it": {"position": "offset", "offset": 1, "history": True},
            },
        ),
    }

    def post(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="manage")
        wanted = self.sent(PositionWanted)
        for field in ("offset", "timestamp"):
            if (field in wanted) != (wanted["position"] == field):
                raise invalid(field, f"Needed with position {field}, and only then.")
        next_offset = offset_of_position(
            found.stream,
            wanted["position"],
            offset=wanted.get("offset"),
            timestamp=wanted.get("timestamp"),
        )
        begins = wanted.get("history", False) and not wanted.get("dry_run", False)
        if begins:
            replay_demand(self.caller, stream=name)
        told = group_seek(
            found,
            next_offset=next_offset,
            actor=self.caller.actor,
            dry_run=wanted.get("dry_run", False),
        )
        gone = selectors.gone_behind(
            found,
            wanted["position"],
            offset=wanted.get("offset"),
            timestamp=wanted.get("timestamp"),
        )
        answer: dict[str, Any] = {**told}
        if wanted.get("dry_run") and found.stream.retention == Retention.INTEREST:
            let_go = selectors.let_go_by_seek(found, next_offset=told["to"])
            answer["removes"] = LetGo(let_go or NOTHING).data
        if gone is not None:
            begun = None
            if begins and gone.in_history:
                begun = replay_for_group(
                    self.caller, stream=name, group=group, wanted=wanted_of(gone, starts=True)
                )
            answer["gone"] = {
                "to_offset": gone.to_offset,
                "messages": gone.messages,
                "replay": _replay_of(found, gone),
                "pushes_out": PushedOutObject(selectors.PushedOut()).data if gone.in_history else None,
                "begun": ReplayObject(begun, context={"request": request}).data if begun else None,
            }
        return Response(answer)


def _replay_of(group: Group, gone: selectors.Gone) -> dict[str, Any] | None:
    """The replay that brings the group what has gone, counted before it is started."""
    if not gone.in_history:
        return None
    start: dict[str, Any] = {"from_offset": gone.from_offset}
    if gone.since is not None:
        start = {"from": Moment().to_representation(gone.since)}
    return {
        "source": group.stream.name,
        "group": group.name,
        **start,
        "to_offset": gone.to_offset,
        "start": False,
    }


class GroupPauseView(ApiView):
    """``/streams/{name}/groups/{group}/pause``"""

    operations: ClassVar = {
        "POST": Operation(
            id="group_pause",
            summary="Deliver nothing for a while",
            scope="manage",
            body=PauseWanted,
            body_optional=True,
            answer=GroupObject,
            refusals=NOT_FOUND,
            examples={"until resumed": {}, "over night": {"until": "2126-11-22T06:00:00Z"}},
        ),
    }

    def post(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="manage")
        until = self.sent(PauseWanted).get("until")
        if until is not None and until <= timezone.now():
            raise invalid("until", "Expected a time in the future.")
        group_pause(found, until=until, actor=self.caller.actor)
        return Response(GroupObject(selectors.group_view(found)).data)


class GroupResumeView(ApiView):
    """``/streams/{name}/groups/{group}/resume``"""

    operations: ClassVar = {
        "POST": Operation(
            id="group_resume",
            summary="Deliver again",
            scope="manage",
            body=ResumeWanted,
            body_optional=True,
            examples={"now": {}},
            answer=GroupObject,
            refusals=NOT_FOUND,
        ),
    }

    def post(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="manage")
        self.sent(ResumeWanted)
        group_resume(found, actor=self.caller.actor)
        return Response(GroupObject(selectors.group_view(found)).data)


class PendingView(ApiView):
    """``/streams/{name}/groups/{group}/pending``"""

    operations: ClassVar = {
        "GET": Operation(
            id="pending_list",
            summary="List what a group has in flight",
            scope="read",
            query=PendingAsked,
            answer=InFlightObject,
            many=True,
            refusals=NOT_FOUND,
            description="In offset order. Looking changes nothing; ack, nack and term settle by offset or lease.",
        ),
    }

    def get(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="read")
        age = self.asked.get("age")
        wanted = Wanted(
            deliveries=self.asked["deliveries"],
            before_ms=None if age is None else int(time.time() * 1000) - age * 1000,
            consumer=self.asked.get("consumer"),
        )
        rows, following = selectors.in_flight(
            found, wanted=wanted, start=self.asked.get("after", 0) + 1, limit=self.asked["limit"]
        )
        return self.page(
            self.rows(InFlightObject, rows), next_after=None if following is None else following - 1
        )


class DeadLettersView(ApiView):
    """``/streams/{name}/groups/{group}/dead-letters/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="dead_letters_list",
            summary="List dead letters by offset",
            scope="read",
            query=DeadLettersAsked,
            answer=DeadLetterObject,
            many=True,
            refusals=NOT_FOUND,
        ),
        "DELETE": Operation(
            id="dead_letters_delete",
            summary="Delete one dead letter, or all",
            scope="manage",
            query=OffsetAsked,
            answer=LettersDeleted,
            refusals=(*NOT_FOUND, "message_not_found"),
        ),
    }

    def get(self, request: Request, name: str, group: str) -> HttpResponse:
        found = group_for(self.caller, name, group, may="read")
        limit = self.asked["limit"]
        letters = selectors.dead_letters(
            found,
            after=self.asked.get("after"),
            limit=limit + 1,
            newest_first=self.asked["order"] == "newest",
        )
        has_more, letters = len(letters) > limit, letters[:limit]
        rows = [
            letter_json(
                letter,
                timestamp=entries.timestamp(letter.timestamp_ms),
                died_at=entries.timestamp(letter.died_ms),
            )
            for letter in letters
        ]
        link = self.link(next_after=letters[-1].offset if has_more else None)
        return HttpResponse(f"[{','.join(rows)}]", content_type="application/json", headers=link)

    def delete(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="manage")
        count = dead_letters_delete(found, offset=self.asked.get("offset"), actor=self.caller.actor)
        return Response({"deleted": count})


class DeadLettersReplayView(ApiView):
    """``/streams/{name}/groups/{group}/dead-letters/replay``"""

    operations: ClassVar = {
        "POST": Operation(
            id="dead_letters_replay",
            summary="Deliver dead letters again, with a fresh count",
            scope="manage",
            body=ReplayWanted,
            answer=Counted,
            refusals=(*NOT_FOUND, "message_not_found"),
            description="Offsets without a dead letter are passed over; 404 when there is none at any of them.",
            examples={"some": {"offsets": [17, 23]}, "all": {"all": True}},
        ),
    }

    def post(self, request: Request, name: str, group: str) -> Response:
        found = group_for(self.caller, name, group, may="manage")
        wanted: dict[str, Any] = self.sent(ReplayWanted)
        if ("offsets" in wanted) == bool(wanted.get("all")):
            raise Refusal("validation_error", "Send offsets or all, not both.", fields=["offsets", "all"])
        offsets = wanted.get("offsets")
        count = dead_letters_replay(found, offsets=offsets, actor=self.caller.actor)
        if offsets and not count:
            raise refusal_of(MessageNotFound(), stream=name)
        return Response({"count": count})
