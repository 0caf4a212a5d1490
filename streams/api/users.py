"""People over HTTP: taken into a workspace, given a role, deactivated, removed; one-time passwords."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import naming, selectors
from streams.access import demand_account, membership_for, workspace_for
from streams.api.base import ApiView
from streams.api.fields import Moment, OneOf, StreamPatterns, Strict, Switch, Text
from streams.api.operation import Operation
from streams.api.queries import UsersAsked, WorkspaceAsked
from streams.models import Membership, Role
from streams.services.people import (
    password_reset,
    person_add,
    person_change,
    person_remove,
    person_set_active,
)

NOT_FOUND = ("user_not_found", "workspace_not_found")
ACCOUNT = (
    "Acts on the account, so it needs `admin` of every workspace that the person belongs to, or of `default`."
)

NARROWS = (
    "Name patterns with * of the streams that they see; none is every stream, and what is of all streams."
)
LAST = (
    "The last admin of a workspace who may log in cannot be removed, demoted, narrowed or deactivated: "
    "`operation_denied`, except to `admin` of `default` in another workspace."
)


@extend_schema_field({"type": "string", "pattern": f"^{naming.USER}$"})
class UserName(Text):
    """A name to log in with."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not naming.is_user(text):
            raise serializers.ValidationError(
                "Expected 1 to 100 characters: letters and digits of ASCII, then also . _ @ + and -."
            )
        return text


class UserWanted(Strict):
    """A person to take in."""

    name = UserName(help_text="To log in with; an e-mail address will do.")
    role = OneOf(choices=Role.values, help_text="What they may: each role includes the ones before.")
    streams = StreamPatterns(required=False, help_text=NARROWS)
    workspace = Text(
        required=False, max_length=50, help_text="For `admin` of `default`: the workspace to take them into."
    )


class UserChanges(Strict):
    """What of a person shall change."""

    not_taken: ClassVar = {"name": "A person cannot be renamed."}

    role = OneOf(choices=Role.values, required=False)
    streams = StreamPatterns(required=False, help_text=NARROWS)
    active = Switch(required=False, help_text="Whether the account may log in; false ends all its logins.")


class UserObject(serializers.Serializer):  # type: ignore[type-arg]
    """A person in a workspace."""

    name = serializers.CharField()
    role = serializers.CharField()
    streams = serializers.ListField(child=serializers.CharField(), help_text=NARROWS)
    workspace = serializers.CharField()
    active = serializers.BooleanField()
    one_time_password = serializers.BooleanField(
        source="one_time",
        help_text="Whether their password is a one-time one that they have not changed yet.",
    )
    last_login = Moment(allow_null=True)
    created_at = Moment()


class UserMade(UserObject):
    """A person who was taken in."""

    password = serializers.CharField(
        allow_null=True,
        help_text="A one-time password, shown this once: it must be changed at the first login, within 7 days. "
        "null for a person who had an account already.",
    )


class PasswordMade(serializers.Serializer):  # type: ignore[type-arg]
    """A new one-time password."""

    password = serializers.CharField(help_text="Shown this once; to be changed at the next login.")


class UsersView(ApiView):
    """``/users/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="users_list",
            summary="List the people of the workspace",
            scope="admin",
            query=UsersAsked,
            answer=UserObject,
            many=True,
            refusals=("workspace_not_found",),
        ),
        "POST": Operation(
            id="user_create",
            summary="Take a person into the workspace; a one-time password is shown this once",
            scope="admin",
            body=UserWanted,
            status=201,
            answer=UserMade,
            refusals=("user_exists", "workspace_not_found"),
            examples={"operator": {"name": "ada@example.com", "role": "operator", "streams": ["orders*"]}},
            description="People who belong to other workspaces are taken in by `admin` of `default` only.",
        ),
    }

    def get(self, request: Request) -> Response:
        self.caller.demand_every_stream()
        workspace = workspace_for(self.caller, self.asked.get("workspace"))
        people, more = selectors.people_page(workspace, after=self.asked["after"], limit=self.asked["limit"])
        return self.page(self.rows(UserObject, people), next_after=people[-1].name if more else None)

    def post(self, request: Request) -> Response:
        self.caller.demand_every_stream()
        wanted = self.sent(UserWanted)
        membership, password = person_add(
            workspace_for(self.caller, wanted.get("workspace")),
            name=wanted["name"],
            role=wanted["role"],
            streams=wanted.get("streams", []),
            actor=self.caller.actor,
            may_share=self.caller.rules_all,
        )
        return Response({**_told(membership), "password": password}, status=201)


class UserView(ApiView):
    """``/users/{name}``"""

    operations: ClassVar = {
        "PATCH": Operation(
            id="user_change",
            summary="Change a person's role, the streams they are narrowed to, or whether their account may log in",
            scope="admin",
            query=WorkspaceAsked,
            body=UserChanges,
            answer=UserObject,
            refusals=(*NOT_FOUND, "operation_denied"),
            examples={
                "role": {"role": "admin"},
                "streams": {"streams": ["orders*", "billing"]},
                "deactivate": {"active": False},
            },
            description=f"A role and its streams hold from the next request. `active`: {ACCOUNT} {LAST}",
        ),
        "DELETE": Operation(
            id="user_remove",
            summary="Remove a person from the workspace",
            scope="admin",
            query=WorkspaceAsked,
            status=204,
            refusals=(*NOT_FOUND, "operation_denied"),
            description=f"Whoever belongs to no workspace any more is deactivated; their name stays theirs. {LAST}",
        ),
    }

    def patch(self, request: Request, name: str) -> Response:
        membership = self._membership(name)
        changes = self.sent(UserChanges)
        if "active" in changes:
            demand_account(self.caller, membership)
        rights: dict[str, Any] = {name: changes[name] for name in ("role", "streams") if name in changes}
        if rights:
            membership = person_change(membership, changes=rights, **self._who)
        if "active" in changes:
            membership = person_set_active(membership, active=changes["active"], **self._who)
        return Response(_told(membership))

    def delete(self, request: Request, name: str) -> Response:
        person_remove(self._membership(name), **self._who)
        return Response(status=204)

    @property
    def _who(self) -> dict[str, Any]:
        return {"actor": self.caller.actor, "rules_all": self.caller.rules_all}

    def _membership(self, name: str) -> Membership:
        workspace = workspace_for(self.caller, self.asked.get("workspace"))
        return membership_for(self.caller, name, workspace=workspace)


class UserPasswordView(ApiView):
    """``/users/{name}/password``"""

    operations: ClassVar = {
        "POST": Operation(
            id="user_password_reset",
            summary="Give a person a one-time password; ends their logins",
            scope="admin",
            query=WorkspaceAsked,
            answer=PasswordMade,
            refusals=NOT_FOUND,
            description=f"Who is deactivated stays so. {ACCOUNT}",
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        workspace = workspace_for(self.caller, self.asked.get("workspace"))
        membership = membership_for(self.caller, name, workspace=workspace)
        demand_account(self.caller, membership)
        return Response(PasswordMade({"password": password_reset(membership, actor=self.caller.actor)}).data)


def _told(membership: Membership) -> dict[str, Any]:
    (person,) = selectors.people_of([membership])
    return dict(UserObject(person).data)
