"""A stream as it comes in and as it goes out."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers

from streams.api.fields import KeyPatterns, Labels, Moment, Name, OneOf, Strict, Switch, Text, WholeNumber
from streams.services.streams import RESERVED_NAMES
from streams.services.streams_told import SETTINGS

LARGEST_MESSAGE_BYTES = 16 * 1024 * 1024
LONGEST_DESCRIPTION_BYTES = 4096
LONGEST_DEDUP_WINDOW_S = 604_800
LONGEST_TTL_S = 100 * 365 * 86_400

READ_ONLY = (
    "created_at",
    "updated_at",
    "offset",
    "first_offset",
    "messages",
    "bytes",
    "committed_offset",
    "lag",
    "first_timestamp",
    "last_timestamp",
    "groups",
    "keys_count",
    "duplicates",
    "limit_pending",
)


class RetentionLimits(Strict):
    """What may stay in a stream, as a stream or a policy sets it; null is no bound."""

    ttl = WholeNumber(
        required=False,
        allow_null=True,
        max_value=LONGEST_TTL_S,
        help_text="Age limit of messages in seconds.",
    )
    max_messages = WholeNumber(required=False, allow_null=True, help_text="Count limit; the oldest go first.")
    max_bytes = WholeNumber(required=False, allow_null=True, help_text="Size limit; the oldest go first.")
    max_messages_per_key = WholeNumber(
        required=False,
        allow_null=True,
        help_text="Of each key the newest so many are kept, whatever discard says; messages without a key are not "
        "limited by it.",
    )
    retention = OneOf(
        choices=["limits", "interest"],
        required=False,
        help_text="What lets messages go: limits alone, or also that every group is done with them.",
    )
    discard = OneOf(
        choices=["old", "new"],
        required=False,
        help_text="At a limit: drop the oldest, or refuse the publish.",
    )


class StreamSettings(RetentionLimits):
    """What can be set. Times are whole seconds, sizes bytes; a limit is null or at least 1."""

    policy = Name(
        required=False,
        allow_null=True,
        help_text="The retention policy that decides the limits; null for none.",
    )
    max_message_bytes = WholeNumber(
        required=False, max_value=LARGEST_MESSAGE_BYTES, help_text="Largest body of one message, as sent."
    )
    dedup_window = WholeNumber(
        required=False,
        max_value=LONGEST_DEDUP_WINDOW_S,
        help_text="Seconds that a message's id is remembered.",
    )
    archive = Switch(required=False, help_text="Copy messages to the history before they go.")
    deny_delete = Switch(required=False, help_text="One-way: no single message can be deleted.")
    deny_purge = Switch(required=False, help_text="One-way: the stream cannot be purged.")
    sealed = Switch(required=False, help_text="One-way: the stream is read-only.")
    storage = OneOf(
        choices=["durable", "memory"],
        required=False,
        help_text="Fixed at creation. In memory messages may be lost at a restart; offsets never go down.",
    )
    description = Text(required=False, allow_blank=True, help_text="At most 4 KiB.")
    labels = Labels(required=False, help_text="A flat map of strings.")
    keys = KeyPatterns(required=False, help_text="Key patterns that the stream accepts; none is any key.")

    def validate_description(self, value: str) -> str:
        if len(value.encode()) > LONGEST_DESCRIPTION_BYTES:
            raise serializers.ValidationError(f"Expected at most {LONGEST_DESCRIPTION_BYTES} bytes.")
        return value


class StreamWanted(StreamSettings):
    """A stream to make."""

    not_taken: ClassVar = dict.fromkeys(READ_ONLY, "This field cannot be set.")

    name = Name()

    def validate_name(self, value: str) -> str:
        if value in RESERVED_NAMES:
            raise serializers.ValidationError("This name is reserved.")
        return value


class StreamChanges(StreamSettings):
    """Settings to change; what is not sent keeps its value."""

    not_taken: ClassVar = dict.fromkeys((*READ_ONLY, "name", "storage"), "This field cannot be changed.")
    storage = None  # type: ignore[assignment]


def settings_in(checked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the service takes, of a checked object."""
    settings = {field: checked[field] for field in SETTINGS if field in checked}
    if "policy" in settings:
        settings["policy"] = settings["policy"] or ""
    return settings


class StreamObject(serializers.Serializer):  # type: ignore[type-arg]
    """A stream: its settings and how it stands.

    In a list, the figures of one in memory are null while its server does not answer or is about to begin it again; it
    alone is not answered then.
    """

    name = serializers.CharField(source="stream.name")
    policy = serializers.SerializerMethodField(help_text="The retention policy that decides the limits.")
    ttl = serializers.IntegerField(source="stream.ttl", allow_null=True)
    max_messages = serializers.IntegerField(source="stream.max_messages", allow_null=True)
    max_bytes = serializers.IntegerField(source="stream.max_bytes", allow_null=True)
    max_messages_per_key = serializers.IntegerField(source="stream.max_messages_per_key", allow_null=True)
    retention = serializers.CharField(source="stream.retention")
    discard = serializers.CharField(source="stream.discard")
    max_message_bytes = serializers.IntegerField(source="stream.max_message_bytes")
    dedup_window = serializers.IntegerField(source="stream.dedup_window")
    archive = serializers.BooleanField(source="stream.archive")
    deny_delete = serializers.BooleanField(source="stream.deny_delete")
    deny_purge = serializers.BooleanField(source="stream.deny_purge")
    sealed = serializers.BooleanField(source="stream.sealed")
    storage = serializers.CharField(source="stream.storage")
    description = serializers.CharField(source="stream.description")
    labels = Labels(source="stream.labels")
    keys = KeyPatterns(source="stream.keys")
    created_at = Moment(source="stream.created_at")
    updated_at = Moment(source="stream.updated_at")
    offset = serializers.IntegerField(
        source="figures.offset", allow_null=True, help_text="Last assigned; 0 if none ever was."
    )
    first_offset = serializers.IntegerField(
        source="figures.first_offset",
        allow_null=True,
        help_text="Lowest stored; offset + 1 when the stream is empty.",
    )
    messages = serializers.IntegerField(source="figures.messages", allow_null=True)
    bytes = serializers.IntegerField(source="figures.bytes", allow_null=True)
    committed_offset = serializers.IntegerField(source="figures.committed_offset", allow_null=True)
    lag = serializers.IntegerField(source="figures.lag", allow_null=True)
    first_timestamp = Moment(
        allow_null=True,
        help_text="When the oldest message that is there came; null when the stream is empty.",
    )
    last_timestamp = Moment(
        allow_null=True,
        help_text="When the newest message came, also if that one has gone since; null when the stream is empty.",
    )
    groups = serializers.IntegerField(help_text="How many consumer groups.")
    keys_count = serializers.IntegerField(
        source="figures.keys_count",
        allow_null=True,
        help_text="Keys whose newest message is still stored, also while it only waits for the history or an undo.",
    )
    duplicates = serializers.IntegerField(
        source="figures.duplicates", allow_null=True, help_text="Publishes refused as known."
    )
    limit_pending = serializers.IntegerField(
        source="figures.limit_pending",
        allow_null=True,
        help_text="Messages that a limit a key, set on what was there, has yet to look at; 0: every limit holds.",
    )

    def get_policy(self, view: Any) -> str | None:
        return view.stream.policy or None
