"""What other limits would do to streams, as it goes out."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from streams.api.fields import AnyJSON
from streams.selectors import Effect


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
    complete = serializers.BooleanField(
        source="is_complete", help_text="False where not all were looked at; more may go then."
    )
    reason = serializers.ChoiceField(
        choices=["counting", "too_many_keys"],
        allow_null=True,
        help_text="Why it is not complete, as in the preview of one stream; null where it is.",
    )


class EffectsObject(serializers.Serializer):  # type: ignore[type-arg]
    """Which streams would change, by name, and how many messages would go at once."""

    streams = EffectObject(many=True)
    messages = serializers.IntegerField(help_text="Of all of them.")
    complete = serializers.BooleanField(help_text="False where it is of one of them.")


def effects_told(effects: Sequence[Effect]) -> dict[str, Any]:
    """What ``EffectsObject`` takes."""
    return {
        "streams": effects,
        "messages": sum(effect.messages for effect in effects),
        "complete": all(effect.is_complete for effect in effects),
    }
