"""Fields that take exactly their JSON type: ``"5"`` is not 5, ``true`` is not 1, ``1.0`` is no whole number."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from streams import moments, naming

LARGEST_INTEGER = 2**53 - 1
"""The largest whole number that every JSON client can read back."""

LONGEST_LABEL_VALUE = 255
MOST_LABELS = 64
PATTERN_SCHEMA = {"type": "string", "maxLength": naming.LONGEST_KEY, "pattern": f"^{naming.PATTERN}$"}
MOST_PATTERNS = 100
MOST_UNKNOWN = 20
"""Unknown fields of one object that are named."""


class Text(serializers.CharField):
    """A string as sent: not stripped, not made from a number."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("Expected a string.")
        if "\x00" in data:
            raise serializers.ValidationError("The character NUL is not allowed.")
        return data


class WholeNumber(serializers.IntegerField):
    """A whole number, by default from 1 to the largest that every client can read back."""

    def __init__(self, *, min_value: int = 1, max_value: int = LARGEST_INTEGER, **options: Any) -> None:
        super().__init__(min_value=min_value, max_value=max_value, **options)
        self._bounds = min_value, max_value

    def to_internal_value(self, data: Any) -> int:
        low, high = self._bounds
        if type(data) is not int or not low <= data <= high:
            nullable = " or null" if self.allow_null else ""
            raise serializers.ValidationError(f"Expected a whole number from {low} to {high}{nullable}.")
        return data


class Switch(serializers.BooleanField):
    """``true`` or ``false``."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("Expected true or false.")
        return data


class OneOf(serializers.ChoiceField):
    """One of a few words."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            raise serializers.ValidationError(f"Expected one of {', '.join(map(str, self.choices))}.")
        return data


@extend_schema_field({"type": "string", "pattern": f"^{naming.NAME}$"})
class Name(Text):
    """A name as streams and workspaces have."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=naming.LONGEST_NAME, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or not naming.is_name(data):
            raise serializers.ValidationError(
                "Expected 1 to 50 characters: letters and digits of ASCII, then also . _ and -."
            )
        return data


class Moment(serializers.DateTimeField):
    """A time: RFC 3339 with a zone comes in, UTC with milliseconds goes out."""

    def to_internal_value(self, value: Any) -> datetime:
        time = moments.parse(value) if isinstance(value, str) else None
        if time is None:
            raise serializers.ValidationError("Expected a time such as 2026-11-21T06:00:00Z, with its zone.")
        return time

    def to_representation(self, value: datetime) -> str:
        return value.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": LONGEST_LABEL_VALUE},
        "maxProperties": MOST_LABELS,
        "propertyNames": {"minLength": 1, "maxLength": naming.LONGEST_LABEL},
        "description": (
            "A flat map of strings. A name is no whole number and has no colon, quotation mark, backslash or "
            "control character: the database's paths would take it for another place."
        ),
    }
)
class Labels(serializers.Field):  # type: ignore[type-arg]
    """A flat map of strings."""

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("Expected an object of strings.")
        if len(data) > MOST_LABELS:
            raise serializers.ValidationError(f"Expected at most {MOST_LABELS} labels.")
        faults = [fault for name, value in data.items() if (fault := label_fault(name, value))]
        if faults:
            raise serializers.ValidationError(faults)
        return dict(data)

    def to_representation(self, value: Any) -> Any:
        return value


def label_fault(name: str, value: Any) -> str | None:
    """What is wrong with a label."""
    if naming.is_number(name):
        return _("A label's name must not be a number.")
    if not naming.is_label(name):
        return _(
            "A label's name has 1 to %(most)s characters, none of them a colon, a quotation mark, "
            "a backslash or a control character."
        ) % {"most": naming.LONGEST_LABEL}
    if not isinstance(value, str) or len(value) > LONGEST_LABEL_VALUE or "\x00" in value:
        return _("A label's value is a string of at most %(most)s characters, none of them NUL.") % {
            "most": LONGEST_LABEL_VALUE
        }
    return None


@extend_schema_field(PATTERN_SCHEMA)
class KeyPattern(Text):
    """A key, or a pattern of keys."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        fault = naming.pattern_fault(text)
        if fault:
            raise serializers.ValidationError(fault)
        return text


class StreamPattern(Text):
    """A stream's name in which ``*`` stands for anything."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not naming.is_stream_pattern(text):
            raise serializers.ValidationError(
                "Expected patterns of 1 to 50 characters: letters and digits of ASCII, . _ - and * for anything."
            )
        return text


class StreamPatterns(serializers.ListField):
    """Name patterns that narrow a token or a person to some streams; none is every stream."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=StreamPattern(), max_length=MOST_PATTERNS, **options)


@extend_schema_field({"type": "array", "items": PATTERN_SCHEMA, "maxItems": MOST_PATTERNS})
class KeyPatterns(serializers.Field):  # type: ignore[type-arg]
    """The key patterns that a stream accepts; none is any key."""

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, list) or len(data) > MOST_PATTERNS:
            raise serializers.ValidationError(f"Expected an array of at most {MOST_PATTERNS} patterns.")
        faults = {}
        for index, pattern in enumerate(data):
            fault = naming.pattern_fault(pattern) if isinstance(pattern, str) else "Expected a string."
            if fault:
                faults[index] = f"Pattern {index}: {fault}"
        if faults:
            raise serializers.ValidationError(list(faults.values()))
        return list(data)

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(OpenApiTypes.ANY)
class AnyJSON(serializers.Field):  # type: ignore[type-arg]
    """Whatever JSON stands there."""

    def to_representation(self, value: Any) -> Any:
        return value


class Strict(serializers.Serializer):  # type: ignore[type-arg]
    """An object that comes in; a field that is not declared is refused by name.

    Attributes:
        not_taken: fields that people may expect here, each with the sentence that says why it is refused.
    """

    not_taken: ClassVar[Mapping[str, str]] = {}

    def run_validation(self, data: Any = empty) -> Any:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError({"body": ["Expected an object."]})
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> Any:
        errors: dict[str, Any] = {
            naming.shortened(name): [self.not_taken.get(name, "Unknown field.")]
            for name in islice((name for name in data if name not in self.fields), MOST_UNKNOWN)
        }
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            errors |= error.detail if isinstance(error.detail, dict) else {"body": error.detail}
        if errors:
            raise serializers.ValidationError(errors)
        return value
