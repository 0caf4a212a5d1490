"""What happened, over HTTP."""

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.api.base import ApiView
from streams.api.fields import AnyJSON, Moment
from streams.api.operation import Operation
from streams.api.queries import EventsAsked
from streams.models import Event
from streams.selectors import EventsWanted


class EventObject(serializers.Serializer):  # type: ignore[type-arg]
    """One thing that a person, a token or the system did."""

    id = serializers.IntegerField()
    time = Moment()
    kind = serializers.CharField()
    workspace = serializers.SerializerMethodField()
    stream = serializers.SerializerMethodField()
    group = serializers.SerializerMethodField()
    actor = serializers.CharField()
    address = serializers.CharField()
    before = AnyJSON()
    after = AnyJSON()
    summary = serializers.CharField()

    def get_workspace(self, event: Event) -> str | None:
        return event.workspace or None

    def get_stream(self, event: Event) -> str | None:
        return event.stream or None

    def get_group(self, event: Event) -> str | None:
        return event.group or None


class EventsView(ApiView):
    """``/events``"""

    operations: ClassVar = {
        "GET": Operation(
            id="events_list",
            summary="Who did what, and what the system did, in order",
            scope="read",
            query=EventsAsked,
            answer=EventObject,
            many=True,
            description="Ascending by id. Without `after` the newest; with it those that came later.",
        ),
    }

    def get(self, request: Request) -> Response:
        events, more = selectors.events_page(
            self.caller,
            EventsWanted(
                actor=self.asked["actor"],
                about=self.asked["about"],
                kind=self.asked["kind"],
                stream=self.asked["stream"],
                group=self.asked["group"],
                since=self.asked.get("from"),
                until=self.asked.get("to"),
                after=self.asked.get("after"),
            ),
            limit=self.asked["limit"],
            workspace=self.asked["workspace"],
        )
        return self.page(self.rows(EventObject, events), next_after=events[-1].pk if more else None)
