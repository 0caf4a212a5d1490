"""Workspaces over HTTP, and what the token's own one holds."""

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.api.base import ApiView
from streams.api.fields import Moment, Name, OneOf, Strict, Text
from streams.api.operation import Operation
from streams.api.queries import AskedNumber
from streams.models import Plan
from streams.services.workspaces import workspace_create, workspace_delete


class WorkspacesAsked(Strict):
    """One page of the workspaces."""

    limit = AskedNumber(max_value=1000, default=1000, help_text="How many at most.")
    after = Text(
        max_length=200, default="", allow_blank=True, help_text="The name that the page begins after."
    )


class WorkspaceWanted(Strict):
    """A workspace to make."""

    name = Name()
    plan = OneOf(choices=Plan.values, required=False, help_text="What its streams may keep.")


class WorkspaceObject(serializers.Serializer):  # type: ignore[type-arg]
    """A workspace."""

    name = serializers.CharField()
    plan = serializers.CharField()
    streams = serializers.IntegerField(help_text="How many streams it has.")
    created_at = Moment()


class Limits(serializers.Serializer):  # type: ignore[type-arg]
    """What the plan allows; null is no bound."""

    default_ttl = serializers.IntegerField(allow_null=True, help_text="Seconds, where nothing is said.")
    longest_ttl = serializers.IntegerField(allow_null=True, help_text="Seconds, at most.")


class Usage(serializers.Serializer):  # type: ignore[type-arg]
    """What the streams hold that the token may see."""

    streams = serializers.IntegerField()
    messages = serializers.IntegerField()
    bytes = serializers.IntegerField()


class AccountObject(serializers.Serializer):  # type: ignore[type-arg]
    """The token's workspace."""

    workspace = serializers.CharField(source="caller.workspace.name")
    plan = serializers.CharField(source="caller.workspace.plan")
    limits = Limits(source="caller.workspace.cap")
    usage = Usage()
    scopes = serializers.ListField(child=serializers.CharField(), help_text="What the token may.")
    streams = serializers.ListField(
        source="caller.streams", child=serializers.CharField(), help_text="Patterns that narrow the token."
    )


class WorkspacesView(ApiView):
    """``/workspaces/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="workspaces_list",
            summary="List workspaces by name",
            scope="admin",
            query=WorkspacesAsked,
            answer=WorkspaceObject,
            many=True,
            description="For `admin` of the workspace `default`.",
        ),
        "POST": Operation(
            id="workspace_create",
            summary="Make a workspace",
            scope="admin",
            body=WorkspaceWanted,
            status=201,
            answer=WorkspaceObject,
            refusals=("workspace_exists",),
            examples={"team": {"name": "billing", "plan": "pro"}},
            description="For `admin` of the workspace `default`.",
        ),
    }

    def get(self, request: Request) -> Response:
        self.caller.demand_rule()
        rows, more = selectors.workspaces_page(after=self.asked["after"], limit=self.asked["limit"])
        return self.page(self.rows(WorkspaceObject, rows), next_after=rows[-1].name if more else None)

    def post(self, request: Request) -> Response:
        self.caller.demand_rule()
        wanted = self.sent(WorkspaceWanted)
        workspace = workspace_create(
            name=wanted["name"], plan=wanted.get("plan", Plan.UNLIMITED), actor=self.caller.actor
        )
        return Response(WorkspaceObject(selectors.workspace_view(workspace)).data, status=201)


class WorkspaceView(ApiView):
    """``/workspaces/{name}``"""

    operations: ClassVar = {
        "DELETE": Operation(
            id="workspace_delete",
            summary="Delete a workspace with everything in it",
            scope="admin",
            status=204,
            refusals=("workspace_not_found", "operation_denied"),
            description="For `admin` of the workspace `default`; `default` itself cannot be deleted.",
        ),
    }

    def delete(self, request: Request, name: str) -> Response:
        self.caller.demand_rule()
        workspace_delete(selectors.workspace_named(name), actor=self.caller.actor)
        return Response(status=204)


class AccountView(ApiView):
    """``/account``"""

    operations: ClassVar = {
        "GET": Operation(
            id="account_get",
            summary="Plan, limits and usage of the token's workspace",
            scope="read",
            answer=AccountObject,
        ),
    }

    def get(self, request: Request) -> Response:
        caller = self.caller
        account = {"caller": caller, "usage": selectors.overview(caller), "scopes": sorted(caller.scopes)}
        return Response(AccountObject(account).data)
