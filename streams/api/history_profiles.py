"""What the bodies of a day look like: part of a stream's history."""

from typing import Any

from rest_framework import serializers

from streams import naming
from streams.api.fields import Moment


class FieldName(serializers.CharField):
    """The name of a field of a body: such a name may have 50,000 characters, and a day 200 of them."""

    def __init__(self, **options: Any) -> None:
        told = f"Of a longer name the first {naming.LONGEST_SHOWN} characters and `…`."
        super().__init__(**{"help_text": told, **options})

    def to_representation(self, value: str) -> str:
        return naming.shortened(value)


class FieldOfDay(serializers.Serializer):  # type: ignore[type-arg]
    """A field of the objects of a day; those within other objects are not told."""

    name = FieldName()
    present = serializers.IntegerField(help_text="In how many bodies it is.")
    types = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="`object`, `array`, `string`, `number`, `boolean` or `null`, and how often.",
    )


class FieldDrift(serializers.Serializer):  # type: ignore[type-arg]
    """How a field of a day differs from the day before that has messages."""

    start = Moment()
    against = Moment()
    field = FieldName()
    change = serializers.ChoiceField(choices=["new", "gone", "type", "nulls"])
    before = serializers.CharField(help_text="Types by frequency, or the share without a value.")
    after = serializers.CharField()
