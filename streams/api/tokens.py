"""Tokens over HTTP: made with a secret that is shown once, listed without it, revoked."""

import re
from datetime import datetime
from typing import ClassVar

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import bearer, selectors
from streams.access import workspace_for
from streams.api.base import ApiView
from streams.api.fields import Moment, OneOf, StreamPatterns, Strict, Text
from streams.api.operation import Operation
from streams.api.queries import TokensAsked, WorkspaceAsked
from streams.errors import Refusal
from streams.models import Token
from streams.services.tokens import token_create, token_revoke


class TokenWanted(Strict):
    """A token to make."""

    name = Text(min_length=1, max_length=100, help_text="What it is for.")
    scopes = serializers.ListField(
        child=OneOf(choices=bearer.SCOPES),
        min_length=1,
        max_length=20,
        help_text="What it may; admin implies the rest, and read implies observe: figures, and no message.",
    )
    streams = StreamPatterns(
        required=False, help_text="Name patterns with * that narrow it; none is every stream."
    )
    expires_at = Moment(required=False, allow_null=True, help_text="When it ends by itself.")
    workspace = Text(
        required=False, max_length=50, help_text="For `admin` of `default`: the workspace that it is for."
    )

    def validate_expires_at(self, value: datetime | None) -> datetime | None:
        if value is not None and value <= timezone.now():
            raise serializers.ValidationError("Expected a time in the future.")
        return value


class TokenObject(serializers.Serializer):  # type: ignore[type-arg]
    """A token, without its secret."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How the secret begins.")
    scopes = serializers.ListField(child=serializers.CharField())
    streams = serializers.ListField(child=serializers.CharField())
    workspace = serializers.CharField(source="workspace.name")
    created_at = Moment()
    expires_at = Moment(allow_null=True)
    last_used_at = Moment(allow_null=True)


class TokenMade(TokenObject):
    """A token with its secret, shown this once."""

    token = serializers.CharField(help_text="The secret; it is stored hashed and shown this once.")


class TokensView(ApiView):
    """``/tokens/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="tokens_list",
            summary="List the tokens of the workspace",
            scope="admin",
            query=TokensAsked,
            answer=TokenObject,
            many=True,
            refusals=("workspace_not_found",),
        ),
        "POST": Operation(
            id="token_create",
            summary="Make a token; its secret is shown this once",
            scope="admin",
            body=TokenWanted,
            status=201,
            answer=TokenMade,
            refusals=("workspace_not_found",),
            examples={"publisher": {"name": "shop-api", "scopes": ["publish"], "streams": ["orders*"]}},
        ),
    }

    def get(self, request: Request) -> Response:
        workspace = workspace_for(self.caller, self.asked.get("workspace"))
        tokens, more = selectors.tokens_page(
            self.caller, workspace=workspace, after=self.asked.get("after", 0), limit=self.asked["limit"]
        )
        return self.page(self.rows(TokenObject, tokens), next_after=tokens[-1].pk if more else None)

    def post(self, request: Request) -> Response:
        wanted = self.sent(TokenWanted)
        workspace = workspace_for(self.caller, wanted.get("workspace"))
        streams = wanted.get("streams", [])
        self.caller.demand_patterns(streams)
        token, secret = token_create(
            workspace,
            name=wanted["name"],
            scopes=wanted["scopes"],
            streams=streams,
            expires_at=wanted.get("expires_at"),
            actor=self.caller.actor,
        )
        return Response({**TokenObject(token).data, "token": secret}, status=201)


class TokenView(ApiView):
    """``/tokens/{id}``"""

    operations: ClassVar = {
        "DELETE": Operation(
            id="token_revoke",
            summary="Revoke a token, within 2 seconds on every process",
            scope="admin",
            query=WorkspaceAsked,
            status=204,
            refusals=("token_not_found", "workspace_not_found"),
        ),
    }

    def delete(self, request: Request, token_id: str) -> Response:
        found = Token.objects.select_related("workspace")
        if self.caller.rules_all and "workspace" not in self.asked:
            pass  # the admin of the default workspace may revoke any token
        else:
            found = found.filter(workspace=workspace_for(self.caller, self.asked.get("workspace")))
        is_id = re.fullmatch(r"[0-9]{1,18}", token_id) is not None
        token = found.filter(pk=int(token_id)).first() if is_id else None
        if token is None:
            raise Refusal("token_not_found", "There is no such token.")
        self.caller.demand_patterns(token.streams)
        token_revoke(token, actor=self.caller.actor)
        return Response(status=204)
