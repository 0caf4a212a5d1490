"""Streams over HTTP: made, listed, seen, changed, deleted, found by key."""

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import stream_for
from streams.api.base import ApiView
from streams.api.errors import validation_refusal
from streams.api.operation import Operation
from streams.api.queries import KeyAsked, MadeAsked, StreamsAsked, is_meant
from streams.api.stream_objects import StreamChanges, StreamObject, StreamWanted, settings_in
from streams.errors import Refusal, stream_not_found
from streams.services.streams import stream_change, stream_create, stream_delete, streams_create

BATCH_LIMIT = 1000


class StreamsView(ApiView):
    """``/streams/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="streams_list",
            summary="List streams by name",
            scope="observe",
            query=StreamsAsked,
            answer=StreamObject,
            many=True,
        ),
        "POST": Operation(
            id="streams_create",
            summary="Create a stream, or up to 1000 at once",
            scope="manage",
            body=StreamWanted,
            body_limit=BATCH_LIMIT,
            status=201,
            answer=StreamObject,
            also={200: "There already, with the same settings; nothing was changed."},
            refusals=("stream_exists", "quota_exceeded", "batch_too_large"),
            description="An array is made as a whole or not at all.",
            examples={
                "one": {"name": "orders", "ttl": 604_800, "keys": ["orders.>"]},
                "several": [{"name": "orders"}, {"name": "invoices", "labels": {"team": "billing"}}],
            },
        ),
    }

    def get(self, request: Request) -> Response:
        labels = [(name, value) for name, _, value in (text.partition(":") for text in self.asked["label"])]
        views, more = selectors.streams_page(
            self.caller,
            after=self.asked["after"],
            limit=self.asked["limit"],
            name=self.asked["name"],
            name_regex=self.asked["name_regex"],
            labels=labels,
        )
        return self.page(self.rows(StreamObject, views), next_after=views[-1].stream.name if more else None)

    def post(self, request: Request) -> Response:
        data = self.body()
        if isinstance(data, list):
            return self._create_many(data)
        wanted = self.sent(StreamWanted)
        self.caller.demand_stream(wanted["name"])
        stream, is_new = stream_create(
            self.caller.workspace,
            name=wanted["name"],
            settings=settings_in(wanted),
            actor=self.caller.actor,
        )
        answer = StreamObject(selectors.stream_known(stream)).data
        return Response(answer, status=201 if is_new else 200)

    def _create_many(self, items: list[Any]) -> Response:
        if len(items) > BATCH_LIMIT:
            raise Refusal(
                "batch_too_large",
                f"{len(items)} streams in one call; at most {BATCH_LIMIT} are taken.",
                limit=BATCH_LIMIT,
            )
        wanted = wanted_streams(items)
        for name, _ in wanted:
            self.caller.demand_stream(name)
        made = streams_create(self.caller.workspace, wanted=wanted, actor=self.caller.actor)
        views = selectors.stream_views([stream for stream, _ in made])
        rows = self.rows(StreamObject, views)
        return Response(rows, status=201 if any(is_new for _, is_new in made) else 200)


def wanted_streams(items: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Names and settings of an array of streams.

    Raises:
        Refusal: ``validation_error`` with every wrong field of every item in ``details.errors``.
    """
    reader = StreamWanted()
    wanted: list[tuple[str, dict[str, Any]]] = []
    errors: list[dict[str, Any]] = []
    names: dict[str, int] = {}
    for index, item in enumerate(items):
        try:
            found = reader.run_validation(item)
        except serializers.ValidationError as error:
            refused = validation_refusal(error.get_full_details()).details["errors"]
            errors += [
                {"index": index, "field": field, "message": sentence}
                for field, sentences in refused.items()
                for sentence in sentences
            ]
            continue
        if found["name"] in names:
            sentence = f"Item {names[found['name']]} has the same name."
            errors.append({"index": index, "field": "name", "message": sentence})
        names.setdefault(found["name"], index)
        wanted.append((found["name"], settings_in(found)))
    if errors:
        first = errors[0]
        raise Refusal(
            "validation_error",
            f"Item {first['index']}, {first['field']}: {first['message']}",
            fields=list(dict.fromkeys(error["field"] for error in errors)),
            errors=errors,
        )
    return wanted


class StreamView(ApiView):
    """``/streams/{name}``"""

    operations: ClassVar = {
        "GET": Operation(
            id="stream_get",
            summary="See a stream",
            scope="observe",
            answer=StreamObject,
            refusals=("stream_not_found",),
        ),
        "PATCH": Operation(
            id="stream_change",
            summary="Change settings of a stream",
            scope="manage",
            body=StreamChanges,
            answer=StreamObject,
            refusals=("stream_not_found", "operation_denied", "quota_exceeded"),
            description="What is not sent keeps its value; a tighter limit acts at once.",
            examples={"shorter": {"ttl": 3600, "labels": {"team": "billing"}}},
        ),
        "DELETE": Operation(
            id="stream_delete",
            summary="Delete a stream with everything in it",
            scope="manage",
            query=MadeAsked,
            status=204,
            refusals=("stream_not_found",),
        ),
    }

    def get(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="observe")
        return Response(StreamObject(selectors.stream_known(stream)).data)

    def patch(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="manage")
        changes = settings_in(self.sent(StreamChanges))
        changed = stream_change(stream, changes=changes, actor=self.caller.actor)
        return Response(StreamObject(selectors.stream_known(changed)).data)

    def delete(self, request: Request, name: str) -> Response:
        stream = stream_for(self.caller, name, may="manage")
        if not is_meant(self.asked, stream.created_at):
            raise stream_not_found(name)
        stream_delete(stream, actor=self.caller.actor)
        return Response(status=204)


class StreamsFindView(ApiView):
    """``/streams/find``"""

    operations: ClassVar = {
        "GET": Operation(
            id="streams_find",
            summary="The streams whose key patterns match a key",
            scope="observe",
            query=KeyAsked,
            answer=StreamObject,
            many=True,
        ),
    }

    def get(self, request: Request) -> Response:
        return Response(self.rows(StreamObject, selectors.streams_matching(self.caller, self.asked["key"])))
