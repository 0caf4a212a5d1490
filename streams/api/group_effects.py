"""What other settings would do to groups, as it goes out."""

from typing import Any

from rest_framework import serializers

from streams.api import retention
from streams.selectors import MANY_IN_FLIGHT

REASONS = [*retention.REASONS, MANY_IN_FLIGHT]
"""Why not everything that goes was counted."""


class GroupDeletion(serializers.Serializer[Any]):
    """A group that is deleted once nobody has fetched from it for a while, and what goes with it."""

    after = serializers.FloatField(source="after_s", help_text="Seconds without a fetch.")
    idle = serializers.FloatField(
        source="idle_s", help_text="Seconds since the last one; from `after` on it is deleted within 5 s."
    )
    in_flight = serializers.IntegerField(help_text="Messages in flight.")
    dead_letters = serializers.IntegerField(help_text="Its dead letters.")
    messages = serializers.IntegerField(
        help_text="Messages that no other group wants, where the stream retains by interest; beyond those that go at "
        "once."
    )
