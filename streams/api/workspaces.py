"""Workspaces over HTTP, and what the token's own one holds."""

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.api.base import ApiView
from streams.api.fields import Moment, Name, OneOf, Strict, Text, WholeNumber
from streams.api.operation import Operation
from streams.api.queries import AskedNumber
from streams.api.retention_effects import EffectsObject, effects_told
from streams.models import Plan
from streams.services.plans import plan_effects
from streams.services.workspaces import workspace_change, workspace_create, workspace_delete

FASTEST = 1_000_000
"""Requests a second above which a limit would bound nothing."""


class WorkspacesAsked(Strict):
    """One page of the workspaces."""

    limit = AskedNumber(max_value=1000, default=1000, help_text="How many at most.")
    after = Text(
        max_length=200, default="", allow_blank=True, help_text="The name that the page begins after."
    )


class RateLimit(WholeNumber):
    """A number of requests, or null."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_value=FASTEST, allow_null=True, required=False, **options)


class WorkspaceChanges(Strict):
    """What of a workspace shall change."""

    not_taken: ClassVar = {"name": "A workspace cannot be renamed."}

    plan = OneOf(choices=Plan.values, required=False, help_text="What its streams may keep.")
    rate_limit = RateLimit(
        help_text="Requests a second that each token of the workspace may make; null: as many as it likes."
    )
    rate_burst = RateLimit(help_text="Requests that may come at once; null: as many as in one second.")


class WorkspaceWanted(WorkspaceChanges):
    """A workspace to make."""

    not_taken: ClassVar = {}

    name = Name()


class PlanWanted(Strict):
    """A plan to look at."""

    plan = OneOf(choices=Plan.values, help_text="What its streams might keep.")


class PlanPreview(EffectsObject):
    """What another plan would do."""

    plan = serializers.CharField()


class WorkspaceObject(serializers.Serializer):  # type: ignore[type-arg]
    """A workspace."""

    name = serializers.CharField()
    plan = serializers.CharField()
    rate_limit = serializers.IntegerField(allow_null=True, help_text="Requests a second of each token.")
    rate_burst = serializers.IntegerField(allow_null=True, help_text="Requests at once.")
    streams = serializers.IntegerField(help_text="How many streams it has.")
    created_at = Moment()


class Limits(serializers.Serializer):  # type: ignore[type-arg]
    """What the workspace allows; null is no bound."""

    default_ttl = serializers.IntegerField(
        source="cap.default_ttl", allow_null=True, help_text="Seconds, where nothing is said."
    )
    longest_ttl = serializers.IntegerField(
        source="cap.longest_ttl", allow_null=True, help_text="Seconds, at most."
    )
    largest_bytes = serializers.IntegerField(
        source="cap.largest_bytes", allow_null=True, help_text="Bytes of one stream, at most."
    )
    rate_limit = serializers.IntegerField(allow_null=True, help_text="Requests a second of each token.")
    rate_burst = serializers.IntegerField(allow_null=True, help_text="Requests at once of each token.")


class Usage(serializers.Serializer):  # type: ignore[type-arg]
    """What the streams hold that the token may see."""

    streams = serializers.IntegerField()
    messages = serializers.IntegerField(help_text="What has just expired may be counted for another 20 s.")
    bytes = serializers.IntegerField(help_text="Of their bodies; what has just expired as above.")


class AccountObject(serializers.Serializer):  # type: ignore[type-arg]
    """The token's workspace."""

    workspace = serializers.CharField(source="caller.workspace.name")
    plan = serializers.CharField(source="caller.workspace.plan")
    limits = Limits(source="caller.workspace")
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
        workspace = workspace_create(name=wanted.pop("name"), settings=wanted, actor=self.caller.actor)
        return Response(WorkspaceObject(selectors.workspace_view(workspace)).data, status=201)


class WorkspaceView(ApiView):
    """``/workspaces/{name}``"""

    operations: ClassVar = {
        "PATCH": Operation(
            id="workspace_change",
            summary="Change settings of a workspace",
            scope="admin",
            body=WorkspaceChanges,
            answer=WorkspaceObject,
            refusals=("workspace_not_found",),
            examples={
                "slower": {"rate_limit": 50, "rate_burst": 200},
                "as fast as it likes": {"rate_limit": None},
            },
            description=(
                "For `admin` of the workspace `default`. What is not sent keeps its value. A lower plan bounds the "
                "streams that keep more at once; its preview tells which."
            ),
        ),
        "DELETE": Operation(
            id="workspace_delete",
            summary="Delete a workspace with everything in it",
            scope="admin",
            status=204,
            refusals=("workspace_not_found", "operation_denied"),
            description="For `admin` of the workspace `default`; `default` itself cannot be deleted.",
        ),
    }

    def patch(self, request: Request, name: str) -> Response:
        self.caller.demand_rule()
        workspace = selectors.workspace_named(name)
        changed = workspace_change(workspace, changes=self.sent(WorkspaceChanges), actor=self.caller.actor)
        return Response(WorkspaceObject(selectors.workspace_view(changed)).data)

    def delete(self, request: Request, name: str) -> Response:
        self.caller.demand_rule()
        workspace_delete(selectors.workspace_named(name), actor=self.caller.actor)
        return Response(status=204)


class PlanPreviewView(ApiView):
    """``/workspaces/{name}/plan/preview``"""

    operations: ClassVar = {
        "POST": Operation(
            id="plan_preview",
            summary="Which streams another plan would bound, and what would go; changes nothing",
            scope="admin",
            body=PlanWanted,
            answer=PlanPreview,
            refusals=("workspace_not_found",),
            examples={"lower": {"plan": "free"}},
            description="For `admin` of the workspace `default`.",
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        self.caller.demand_rule()
        workspace = selectors.workspace_named(name)
        plan = self.sent(PlanWanted)["plan"]
        effects = plan_effects(workspace, plan=plan)
        return Response(PlanPreview({"plan": plan, **effects_told(effects)}).data)


class AccountView(ApiView):
    """``/account``"""

    operations: ClassVar = {
        "GET": Operation(
            id="account_get",
            summary="Plan, limits and usage of the token's workspace",
            scope="observe",
            answer=AccountObject,
        ),
    }

    def get(self, request: Request) -> Response:
        caller = self.caller
        account = {"caller": caller, "usage": selectors.overview(caller), "scopes": sorted(caller.scopes)}
        return Response(AccountObject(account).data)
