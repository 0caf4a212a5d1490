"""What the bodies of a day look like: part of a stream's history."""

from rest_framework import serializers

from streams.api.fields import Moment


class FieldOfDay(serializers.Serializer):  # type: ignore[type-arg]
    """A field of the objects of a day; those within other objects are not told."""

    name = serializers.CharField()
    present = serializers.IntegerField(help_text="In how many bodies it is.")
    types = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="`object`, `array`, `string`, `number`, `boolean` or `null`, and how often.",
    )


class FieldDrift(serializers.Serializer):  # type: ignore[type-arg]
    """How a field of a day differs from the day before that has messages."""

    start = Moment()
    against = Moment()
    field = serializers.CharField()
    change = serializers.ChoiceField(choices=["new", "gone", "type", "nulls"])
    before = serializers.CharField(help_text="Types by frequency, or the share without a value.")
    after = serializers.CharField()
