"""A workspace's configuration as a file over HTTP: written out, compared, applied."""

from typing import ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams.api.base import ApiView
from streams.api.declared import wording
from streams.api.declared.applying import apply
from streams.api.declared.checking import check_for
from streams.api.declared.reading import Faulty
from streams.api.declared.state import exported
from streams.api.fields import Strict, Switch, Text
from streams.api.group_effects import REASONS, GroupDeletion
from streams.api.operation import Operation
from streams.errors import Refusal
from streams.selectors import MOST_GROUPS

LONGEST_FILE = 131_072
"""Characters of a file that is applied in one request, during which others may have to wait for the database."""


class ConfigurationWanted(Strict):
    """A file to apply."""

    file = Text(max_length=LONGEST_FILE, help_text="YAML, as GET gives it.")
    prune = Switch(
        required=False, help_text="Delete what a section of the file does not declare, with all its messages."
    )
    dry_run = Switch(required=False, help_text="Only tell what it would do.")


class ConfigurationObject(serializers.Serializer):  # type: ignore[type-arg]
    """A workspace's streams, groups, policies and alert rules."""

    workspace = serializers.CharField()
    file = serializers.CharField(help_text="YAML; what is as by default is left out.")


class ConfigurationChange(serializers.Serializer):  # type: ignore[type-arg]
    """One object that is made, changed or deleted."""

    may_lack = frozenset({"bytes", "unread", "groups_losing", "unread_messages", "dead_letters", "deletion"})
    what = serializers.CharField(help_text="Such as `stream orders` or `group billing of orders`.")
    change = serializers.ChoiceField(choices=sorted(wording.SIGNS))
    before = serializers.DictField(
        allow_null=True, help_text="The settings that change; null before it was made."
    )
    after = serializers.DictField(allow_null=True, help_text="Null once it is deleted.")
    messages = serializers.IntegerField(help_text="Stored messages that go at once.")
    complete = serializers.BooleanField(help_text="False where more may go.")
    reason = serializers.ChoiceField(choices=REASONS, allow_null=True)
    bytes = serializers.IntegerField(required=False, help_text="Of the messages of a stream that is deleted.")
    unread = serializers.DictField(
        child=serializers.IntegerField(),
        required=False,
        help_text="Of what is deleted, messages that each group has not acknowledged; of a stream that stays, those of "
        f"them that go, of the {MOST_GROUPS} groups that lose most.",
    )
    groups_losing = serializers.IntegerField(
        required=False, help_text="Of a stream that stays: how many groups lose unread messages."
    )
    unread_messages = serializers.IntegerField(required=False, help_text="What all of these lose together.")
    dead_letters = serializers.IntegerField(
        required=False,
        help_text="Of a group that gets fewer deliveries: messages in flight that become dead letters, as in its "
        "preview. Of what is deleted: dead letters that go with it.",
    )
    deletion = GroupDeletion(
        required=False,
        help_text="Of a group that is deleted when idle, or sooner, as in its preview. Of several groups of a "
        "stream the last one has the `messages` of all.",
    )


class ConfigurationEffects(serializers.Serializer):  # type: ignore[type-arg]
    """What applying a file did, or would do."""

    workspace = serializers.CharField()
    changes = ConfigurationChange(many=True)
    left = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the file does not declare and what stays without `prune`.",
    )
    messages = serializers.IntegerField(help_text="Stored messages that go at once, of all changes.")
    dead_letters = serializers.IntegerField(help_text="Messages in flight that become dead letters.")
    complete = serializers.BooleanField()


class ConfigurationView(ApiView):
    """``/configuration``"""

    operations: ClassVar = {
        "GET": Operation(
            id="configuration_get",
            summary="The streams, groups, policies and alert rules of the workspace as a file",
            scope="read",
            answer=ConfigurationObject,
        ),
    }

    def get(self, request: Request) -> Response:
        self.caller.demand_every_stream()
        workspace = self.caller.workspace
        found = {"workspace": workspace.name, "file": exported(workspace)}
        return Response(ConfigurationObject(found).data)


class ConfigurationApplyView(ApiView):
    """``/configuration/apply``"""

    operations: ClassVar = {
        "POST": Operation(
            id="configuration_apply",
            summary="Make the workspace as a file says: all of it or nothing",
            scope="admin",
            body=ConfigurationWanted,
            answer=ConfigurationEffects,
            description=(
                "Answers what it did, or with `dry_run` what it would do. A second time changes nothing. Where "
                "anything is wrong nothing is changed, and `errors.file` has everything as `line:column: what: why`."
            ),
            examples={
                "looked at": {
                    "file": "okmq: 1\nstreams:\n  orders: {ttl: 86400}\n",
                    "prune": False,
                    "dry_run": True,
                }
            },
        ),
    }

    def post(self, request: Request) -> Response:
        self.caller.demand_every_stream()
        wanted, workspace = self.sent(ConfigurationWanted), self.caller.workspace
        try:
            outcome = apply(
                check_for(wanted["file"], workspace.name),
                workspace,
                actor=self.caller.actor,
                prune=wanted.get("prune", False),
                dry_run=wanted.get("dry_run", False),
            )
        except Faulty as error:
            raise _refusal(error) from None
        return Response(ConfigurationEffects(wording.as_json(outcome, workspace)).data)


def _refusal(error: Faulty) -> Refusal:
    sentences = [str(fault) for fault in error.faults]
    return Refusal(
        "validation_error",
        f"Nothing was changed. file:{sentences[0]}",
        fields=["file"],
        errors={"file": sentences},
    )
