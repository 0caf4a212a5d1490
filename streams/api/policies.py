"""Retention policies over HTTP: made, changed for every stream that uses them, given to many streams at once."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import policy_for
from streams.api.base import ApiView
from streams.api.errors import invalid
from streams.api.fields import Labels, Moment, Name, Strict, Switch, Text
from streams.api.operation import Operation
from streams.api.queries import PageAsked
from streams.api.retention_effects import EffectsObject, effects_told
from streams.api.stream_objects import LONGEST_DESCRIPTION_BYTES, RetentionLimits
from streams.errors import stream_not_found
from streams.models import Stream
from streams.services.policies import (
    apply_effects,
    policy_apply,
    policy_change,
    policy_create,
    policy_delete,
    policy_effects,
)

MOST_STREAMS = 1000
REFUSALS = ("policy_not_found", "quota_exceeded")


class PolicyLimits(RetentionLimits):
    """The limits that a policy decides; null is no bound."""


class PolicyChanges(PolicyLimits):
    """What of a policy shall change."""

    not_taken: ClassVar[Mapping[str, str]] = {"name": "A policy cannot be renamed."}

    description = Text(
        required=False, allow_blank=True, max_length=LONGEST_DESCRIPTION_BYTES, help_text="What it is for."
    )


class PolicyWanted(PolicyChanges):
    """A policy to make."""

    not_taken: ClassVar[Mapping[str, str]] = {}

    name = Name()


class ApplyWanted(Strict):
    """Which streams get it: those with all the labels, those named, or those of both kinds."""

    labels = Labels(required=False, help_text="All of them must hold.")
    streams = serializers.ListField(
        child=Name(), required=False, max_length=MOST_STREAMS, help_text="By name."
    )
    dry_run = Switch(required=False, help_text="Only tell what it would do.")


class PolicyObject(serializers.Serializer):  # type: ignore[type-arg]
    """A retention policy."""

    name = serializers.CharField()
    ttl = serializers.IntegerField(allow_null=True)
    max_messages = serializers.IntegerField(allow_null=True)
    max_bytes = serializers.IntegerField(allow_null=True)
    max_messages_per_key = serializers.IntegerField(allow_null=True)
    retention = serializers.CharField()
    discard = serializers.CharField()
    description = serializers.CharField()
    streams = serializers.IntegerField(
        source="stream_count", help_text="How many streams use it that the token may see."
    )
    created_at = Moment()
    updated_at = Moment()


class PolicyEffects(EffectsObject):
    """Which streams change, and which stay as they are because they are sealed."""

    sealed = serializers.ListField(child=serializers.CharField())


class PoliciesView(ApiView):
    """``/policies/``"""

    operations: ClassVar = {
        "GET": Operation(
            id="policies_list",
            summary="List retention policies by name",
            scope="read",
            query=PageAsked,
            answer=PolicyObject,
            many=True,
        ),
        "POST": Operation(
            id="policy_create",
            summary="Make a retention policy",
            scope="manage",
            body=PolicyWanted,
            status=201,
            answer=PolicyObject,
            also={200: "There already, with the same settings; nothing was changed."},
            refusals=("policy_exists", "quota_exceeded"),
            examples={"a week": {"name": "week", "ttl": 604_800}},
        ),
    }

    def get(self, request: Request) -> Response:
        rows, more = selectors.policies_page(
            self.caller, after=self.asked["after"], limit=self.asked["limit"]
        )
        return self.page(self.rows(PolicyObject, rows), next_after=rows[-1].name if more else None)

    def post(self, request: Request) -> Response:
        self.caller.demand_every_stream()
        wanted = self.sent(PolicyWanted)
        policy, is_new = policy_create(
            self.caller.workspace, name=wanted.pop("name"), settings=wanted, actor=self.caller.actor
        )
        answer = PolicyObject(selectors.policy_view(self.caller, policy)).data
        return Response(answer, status=201 if is_new else 200)


class PolicyView(ApiView):
    """``/policies/{name}``"""

    operations: ClassVar = {
        "GET": Operation(
            id="policy_get",
            summary="See a retention policy",
            scope="read",
            answer=PolicyObject,
            refusals=("policy_not_found",),
        ),
        "PATCH": Operation(
            id="policy_change",
            summary="Change a retention policy, for every stream that uses it",
            scope="manage",
            body=PolicyChanges,
            answer=PolicyObject,
            refusals=REFUSALS,
            description="Acts at once; sealed streams keep what they have. The preview tells what would go.",
            examples={"shorter": {"ttl": 86_400}},
        ),
        "DELETE": Operation(
            id="policy_delete",
            summary="Delete a retention policy that no stream uses",
            scope="manage",
            status=204,
            refusals=("policy_not_found", "policy_in_use"),
        ),
    }

    def get(self, request: Request, name: str) -> Response:
        policy = policy_for(self.caller, name, may="read")
        return Response(PolicyObject(selectors.policy_view(self.caller, policy)).data)

    def patch(self, request: Request, name: str) -> Response:
        policy = policy_for(self.caller, name, may="manage")
        changed = policy_change(policy, changes=self.sent(PolicyChanges), actor=self.caller.actor)
        return Response(PolicyObject(selectors.policy_view(self.caller, changed)).data)

    def delete(self, request: Request, name: str) -> Response:
        policy_delete(policy_for(self.caller, name, may="manage"), actor=self.caller.actor)
        return Response(status=204)


class PolicyPreviewView(ApiView):
    """``/policies/{name}/preview``"""

    operations: ClassVar = {
        "POST": Operation(
            id="policy_preview",
            summary="What other limits would do to the streams that use the policy; changes nothing",
            scope="read",
            body=PolicyLimits,
            body_optional=True,
            answer=PolicyEffects,
            refusals=REFUSALS,
            examples={"shorter": {"ttl": 86_400}},
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        self.caller.demand_every_stream()
        policy = policy_for(self.caller, name, may="read")
        effects = policy_effects(policy, changes=self.sent(PolicyLimits))
        sealed = Stream.objects.filter(workspace=policy.workspace, policy=policy.name, sealed=True)
        told = {**effects_told(effects), "sealed": list(sealed.values_list("name", flat=True))}
        return Response(PolicyEffects(told).data)


class PolicyApplyView(ApiView):
    """``/policies/{name}/apply``"""

    operations: ClassVar = {
        "POST": Operation(
            id="policy_apply",
            summary="Give a policy to streams by their labels or names",
            scope="manage",
            body=ApplyWanted,
            answer=PolicyEffects,
            refusals=(*REFUSALS, "stream_not_found"),
            description="Answers what it did, or with `dry_run` what it would do.",
            examples={"one team's": {"labels": {"team": "billing"}, "dry_run": True}},
        ),
    }

    def post(self, request: Request, name: str) -> Response:
        policy = policy_for(self.caller, name, may="manage")
        wanted = self.sent(ApplyWanted)
        streams = self._meant(wanted)
        effects = apply_effects(policy, streams=streams)
        if not wanted.get("dry_run"):
            policy_apply(policy, streams=streams, actor=self.caller.actor)
        told = {**effects_told(effects), "sealed": [stream.name for stream in streams if stream.sealed]}
        return Response(PolicyEffects(told).data)

    def _meant(self, wanted: Mapping[str, Any]) -> list[Stream]:
        labels, names = wanted.get("labels"), wanted.get("streams")
        if not labels and not names:
            raise invalid("labels", "Specify the streams: labels, streams or both.")
        found: dict[str, Stream] = {}
        if labels:
            found |= {each.name: each for each in selectors.streams_of(self.caller, labels=labels.items())}
        if names:
            named = {each.name: each for each in selectors.streams_of(self.caller).filter(name__in=names)}
            for name in names:
                if name not in named:
                    raise stream_not_found(name)
            found |= named
        return [found[name] for name in sorted(found)]
