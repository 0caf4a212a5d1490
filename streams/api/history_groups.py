"""How the groups of a stream stood over time, and what came again or went: parts of a stream's history."""

from typing import Any

from rest_framework import serializers

from streams.api.fields import Moment


class Lags(serializers.Serializer):  # type: ignore[type-arg]
    """Percentiles, at most 1/64 too low, and the highest."""

    p50 = serializers.FloatField(allow_null=True)
    p90 = serializers.FloatField(allow_null=True)
    p99 = serializers.FloatField(allow_null=True)
    max = serializers.FloatField(allow_null=True)


class _Stood(serializers.Serializer):  # type: ignore[type-arg]
    lag = Lags(help_text="Of messages not delivered yet.")
    lag_seconds = Lags(help_text="Of the age of the oldest message not acknowledged.")
    ack_seconds = Lags(
        help_text="From the publish of a message to its acknowledgement, over the messages that were acknowledged; "
        "at most 1/16 too low, the highest, too. Null where none was, and for `ack: none`."
    )
    deliveries = serializers.IntegerField()
    acked = serializers.IntegerField()
    redelivered = serializers.IntegerField()
    dead_lettered = serializers.IntegerField(help_text="Because they were delivered too often.")
    lost = serializers.IntegerField(help_text="Removed before they were delivered.")


class GroupStep(_Stood):
    """How a group stood in one step, from the worker's samples: one in ten seconds while it has something to do."""

    start = Moment()
    samples = serializers.IntegerField()


class GroupPast(_Stood):
    """A group over the range: all of it together, and by step."""

    name = serializers.CharField(source="group")
    points = GroupStep(many=True, source="steps")


class CountedStep(serializers.Serializer):  # type: ignore[type-arg]
    """How many in one step; steps without any are left out."""

    start = Moment()
    messages = serializers.IntegerField()


def counted_steps(found: dict[Any, int]) -> list[dict[str, Any]]:
    """Numbers by step, as ``CountedStep`` takes them."""
    return [{"start": start, "messages": messages} for start, messages in found.items() if messages]
