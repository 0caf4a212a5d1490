"""What other limits would do to streams, as it goes out."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from streams.api.fields import AnyJSON
from streams.selectors import MOST_GROUPS, Effect


class GroupUnread(serializers.Serializer):  # type: ignore[type-arg]
    """A group, and what it would lose."""

    group = serializers.CharField()
    unread = serializers.IntegerField(
        help_text="Messages that would go and that the group has not acknowledged."
    )


class Changed(AnyJSON):
    """Settings by name."""

    def to_representation(self, value: Any) -> Any:
        return {name: None if name == "policy" and not each else each for name, each in value.items()}


class EffectObject(serializers.Serializer):  # type: ignore[type-arg]
    """A stream whose settings would change."""

    name = serializers.CharField(source="stream.name")
    before = Changed(help_text="The settings that change, as they are.")
    after = Changed(help_text="As they would be.")
    messages = serializers.IntegerField(help_text="Stored messages that would go at once.")
    groups = serializers.SerializerMethodField(
        help_text=f"That would lose unread messages; those that lose most, at most {MOST_GROUPS}."
    )
    groups_losing = serializers.IntegerField(help_text="How many groups would.")
    unread = serializers.IntegerField(help_text="What all of these would lose together.")
    complete = serializers.BooleanField(
        source="is_complete", help_text="False where not all were looked at; more may go then."
    )
    reason = serializers.ChoiceField(
        choices=["counting", "too_many_keys"],
        allow_null=True,
        help_text="Why it is not complete, as in the preview of one stream; null where it is.",
    )

    @extend_schema_field(GroupUnread(many=True))
    def get_groups(self, effect: Effect) -> list[dict[str, Any]]:
        return [{"group": group, "unread": unread} for group, unread in effect.first_losing.items()]


class EffectsObject(serializers.Serializer):  # type: ignore[type-arg]
    """Which streams would change, by name, and how many messages would go at once."""

    streams = EffectObject(many=True)
    messages = serializers.IntegerField(help_text="Of all of them.")
    groups_losing = serializers.IntegerField(
        help_text="How many groups of all of them would lose unread messages."
    )
    unread = serializers.IntegerField(help_text="What all of these groups would lose together.")
    complete = serializers.BooleanField(help_text="False where it is of one of them.")


def effects_told(effects: Sequence[Effect]) -> dict[str, Any]:
    """What ``EffectsObject`` takes."""
    return {
        "streams": effects,
        "messages": sum(effect.messages for effect in effects),
        "groups_losing": sum(effect.groups_losing for effect in effects),
        "unread": sum(effect.unread for effect in effects),
        "complete": all(effect.is_complete for effect in effects),
    }
