"""What other settings of a group, or a new group, would take away, told before they are saved."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from streams import selectors
from streams.access import stream_for
from streams.api.base import ApiView
from streams.api.errors import invalid
from streams.api.fields import Moment, Name
from streams.api.group_effects import REASONS, GroupDeletion
from streams.api.group_objects import FIELDS, GroupChanges, GroupWanted, settings_in
from streams.api.operation import Operation
from streams.api.retention import AS_SAVED, PreviewAsked
from streams.models import Group, Stream
from streams.selectors import GroupEffect
from streams.services.groups import group_as_changed, group_planned, settings_of


class GroupTried(GroupWanted):
    """Settings to try, as they would be saved; of a group that is there, those that change."""

    not_taken: ClassVar[Mapping[str, str]] = {"name": "The path says it."}

    name = None  # type: ignore[assignment]


class SettingsTold(serializers.DictField):
    """Settings of a group by name."""

    def to_representation(self, value: Mapping[str, Any]) -> Any:
        return {
            FIELDS.get(name, name): Moment().to_representation(each) if isinstance(each, datetime) else each
            for name, each in value.items()
        }


class GroupPreview(serializers.Serializer[Any]):
    """What would be taken away if the settings were saved."""

    before = SettingsTold(
        allow_null=True, help_text="The settings that change, as they are; null where there is no such group."
    )
    after = SettingsTold(help_text="As they would be.")
    messages = serializers.IntegerField(
        help_text="Messages that would go at once: the stream retains by interest, and no group would want them."
    )
    bytes = serializers.IntegerField(help_text="Bytes of their bodies.")
    dead_letters = serializers.IntegerField(
        help_text="Messages in flight that become dead letters when their wait is over, unless they are acknowledged "
        "before: they were delivered as often as the group would allow."
    )
    deletion = GroupDeletion(
        allow_null=True,
        help_text="Where `inactive_after` would delete the group, or sooner than as it is; null where it would not.",
    )
    complete = serializers.BooleanField(
        source="is_complete", help_text="False where not all were looked at; more may go then."
    )
    reason = serializers.ChoiceField(
        choices=REASONS,
        allow_null=True,
        help_text="Why it is not complete, as in the preview of retention; `too_many_in_flight`: more than 100,000 are "
        "in flight. Null where it is.",
    )


class GroupPreviewView(ApiView):
    """``/streams/{name}/groups/{group}/preview``"""

    operations: ClassVar = {
        "POST": Operation(
            id="group_preview",
            summary="What other settings of a group, or a new one, would take away; changes nothing",
            scope="manage",
            query=PreviewAsked,
            body=GroupTried,
            body_optional=True,
            answer=GroupPreview,
            refusals=("stream_not_found", "group_not_found"),
            description="Where there is no such group: what creating it would take away, with the start that is sent. "
            f"{AS_SAVED}",
            examples={
                "narrower": {"filter_keys": ["orders.eu.>"]},
                "fewer deliveries": {"max_deliver": 2, "inactive_after": 86_400},
            },
        ),
    }

    def post(self, request: Request, name: str, group: str) -> Response:
        stream = stream_for(self.caller, name, may="manage")
        within_s = self.asked.get("wait") or None
        held = Group.objects.select_related("stream__workspace").filter(stream=stream, name=group).first()
        if held is None:
            before, after, effect = self._of_new(stream, group, within_s=within_s)
        else:
            before, after, effect = self._of_change(held, within_s=within_s)
        going = effect.going
        told = {
            "before": before,
            "after": after,
            "messages": going.messages if going else 0,
            "bytes": going.bytes if going else 0,
            "dead_letters": effect.dying,
            "deletion": effect.ending,
            "is_complete": effect.is_complete,
            "reason": effect.reason,
        }
        return Response(GroupPreview(told).data)

    def _of_new(
        self, stream: Stream, name: str, *, within_s: float | None
    ) -> tuple[None, dict[str, Any], GroupEffect]:
        try:
            Name().run_validation(name)
        except serializers.ValidationError as error:
            raise invalid("name", " ".join(map(str, error.detail))) from None
        planned = group_planned(stream, name=name, settings=settings_in(self.sent(GroupTried)))
        return None, settings_of(planned), selectors.group_effect_of_new(planned, within_s=within_s)

    def _of_change(
        self, held: Group, *, within_s: float | None
    ) -> tuple[dict[str, Any], dict[str, Any], GroupEffect]:
        view = selectors.group_view(held)
        changed = group_as_changed(held, changes=settings_in(self.sent(GroupChanges)))
        was, would_be = settings_of(held), settings_of(changed)
        differs = [name for name in was if was[name] != would_be[name]]
        return (
            {name: was[name] for name in differs},
            {name: would_be[name] for name in differs},
            selectors.group_effect_of_change(view, changed, within_s=within_s),
        )
