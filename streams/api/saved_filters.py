"""Filters of the console's lists under a name, over HTTP."""

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import filter_for
from streams.api.base import ApiView
from streams.api.fields import Moment, OneOf, Strict, Switch, Text
from streams.api.operation import Operation
from streams.api.sql import number_of
from streams.models import FILTER_PAGES
from streams.services.saved_filters import LONGEST_NAME, LONGEST_QUERY, filter_delete, filter_save


class FiltersAsked(Strict):
    """Which filters."""

    page = OneOf(choices=list(FILTER_PAGES), required=False, help_text="Of this page only.")


class FilterWanted(Strict):
    """Filters to keep."""

    page = OneOf(choices=list(FILTER_PAGES), help_text="The list that they are for.")
    name = Text(min_length=1, max_length=LONGEST_NAME, help_text="What they are called.")
    query = Text(
        min_length=1,
        max_length=LONGEST_QUERY,
        help_text="The query string of the page's address; what is no filter is left out. Of messages, `match` (of the "
        "body) and `header` are conditions joined by `&&`, which all must hold, and by `||`, of which one must; `&&` "
        "binds more tightly, and parentheses group in a filter with `||`. What cannot be read is refused.",
    )
    shared = Switch(
        required=False,
        default=True,
        help_text="For everybody in the workspace; else for the person who is logged in. A token has none of its own.",
    )


class FilterObject(serializers.Serializer):  # type: ignore[type-arg]
    """Filters under a name."""

    id = serializers.IntegerField()
    page = serializers.ChoiceField(choices=list(FILTER_PAGES))
    name = serializers.CharField()
    query = serializers.CharField()
    shared = serializers.BooleanField()
    saved_by = serializers.CharField()
    updated_at = Moment()


class FiltersView(ApiView):
    """``/filters/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="filters_list",
            summary="List the filters that are kept under a name",
            scope="read",
            query=FiltersAsked,
            answer=FilterObject,
            many=True,
            description="Those of the workspace, and a person's own.",
        ),
        "POST": Operation(
            id="filter_save",
            summary="Keep the filters of a list under a name, in place of what stood there",
            scope="read",
            body=FilterWanted,
            status=201,
            answer=FilterObject,
            also={200: "The name was there; it holds these filters now."},
            refusals=("quota_exceeded",),
            description="To share them needs the scope `manage`.",
            examples={
                "refused": {"page": "messages", "name": "refused", "query": "match=.status = refused"},
                "open": {
                    "page": "messages",
                    "name": "open",
                    "query": "match=(.status = new || .status = late) %26%26 .total > 99.5",
                },
            },
        ),
    }

    def get(self, request: Request) -> Response:
        found = selectors.filters_saved(self.caller, page=self.asked.get("page", ""))
        return Response(self.rows(FilterObject, found))

    def post(self, request: Request) -> Response:
        saved, is_new = filter_save(self.caller, **self.sent(FilterWanted))
        return Response(FilterObject(saved).data, status=201 if is_new else 200)


class FilterView(ApiView):
    """``/filters/{filter_id}``"""

    operations: ClassVar = {
        "DELETE": Operation(
            id="filter_delete",
            summary="Let go of filters under a name",
            scope="read",
            status=204,
            refusals=("filter_not_found",),
            description="Shared ones need the scope `manage`.",
        ),
    }

    def delete(self, request: Request, filter_id: str) -> Response:
        filter_delete(self.caller, filter_for(self.caller, number_of(filter_id)))
        return Response(status=204)
