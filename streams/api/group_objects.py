"""A consumer group as it comes in and as it goes out."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from streams.api import retention
from streams.api.fields import KeyPatterns, Moment, Name, OneOf, Strict, Switch, Text, WholeNumber
from streams.api.pushed_out import PushedOutObject
from streams.api.replays import ReplayObject
from streams.log import entries
from streams.log.dead_letters import DeadLetter
from streams.log.pending import InFlight
from streams.models.group import Ack, StartFrom
from streams.selectors import MemberState
from streams.services.groups import SETTINGS
from streams.verdicts import Status

LONGEST_WAIT_S = 30 * 86_400
LONGEST_DESCRIPTION_BYTES = 4096
MOST_BACKOFF = 100

STARTED = "Where a group starts is fixed when it is created; seek moves it."

FIELDS = {"start_offset": "offset", "start_timestamp": "timestamp"}
"""What the API calls two settings that would be too short a name elsewhere."""


class Seconds(serializers.FloatField):
    """Seconds, fractions allowed."""

    def __init__(self, *, min_value: float, max_value: float = LONGEST_WAIT_S, **options: Any) -> None:
        super().__init__(min_value=min_value, max_value=max_value, **options)
        self._bounds = min_value, max_value

    def to_internal_value(self, data: Any) -> float:
        low, high = self._bounds
        if type(data) not in {int, float} or not low <= data <= high:
            raise serializers.ValidationError(f"Expected seconds from {low:g} to {high:g}.")
        return float(data)


class MaxDeliver(WholeNumber):
    """A number of deliveries, or -1 for no limit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=-1, **options)

    def to_internal_value(self, data: Any) -> int:
        if type(data) is int and data == 0:
            raise serializers.ValidationError("Expected -1, or a whole number from 1.")
        return super().to_internal_value(data)


@extend_schema_field({"type": "array", "items": {"type": "number", "minimum": 0.1}, "maxItems": MOST_BACKOFF})
class Backoff(serializers.Field):  # type: ignore[type-arg]
    """Waits in seconds."""

    def to_internal_value(self, data: Any) -> list[float]:
        if not isinstance(data, list) or len(data) > MOST_BACKOFF:
            raise serializers.ValidationError(f"Expected an array of at most {MOST_BACKOFF} waits.")
        wait = Seconds(min_value=0.1)
        return [wait.to_internal_value(each) for each in data]

    def to_representation(self, value: Any) -> Any:
        return value


class GroupChanges(Strict):
    """What can be changed. Waits are seconds, fractions allowed."""

    not_taken: ClassVar[Mapping[str, str]] = {
        "name": "A group cannot be renamed.",
        "start_from": STARTED,
        "offset": STARTED,
        "timestamp": STARTED,
    }

    ack = OneOf(choices=Ack.values, required=False, help_text="Each message, everything before one, or none.")
    ack_wait = Seconds(min_value=0.1, required=False, help_text="Until an unanswered delivery comes again.")
    max_deliver = MaxDeliver(required=False, help_text="Deliveries until it is a dead letter; -1: no limit.")
    backoff = Backoff(required=False, help_text="Waits that replace ack_wait after delivery 1, 2, …")
    max_ack_pending = WholeNumber(
        required=False, max_value=10_000_000, help_text="Most messages out at once, over all members."
    )
    filter_keys = KeyPatterns(required=False, help_text="Key patterns; other messages are skipped.")
    ordered_by_key = Switch(
        required=False, help_text="Messages of one key go out one at a time, in order; other keys meanwhile."
    )
    inactive_after = Seconds(
        min_value=0.1,
        required=False,
        allow_null=True,
        help_text="Without a fetch for so long it is removed, within 5 s; an open poll is activity.",
    )
    description = Text(required=False, allow_blank=True, max_length=LONGEST_DESCRIPTION_BYTES)


class GroupWanted(GroupChanges):
    """A group to make."""

    not_taken: ClassVar[Mapping[str, str]] = {}

    name = Name()
    start_from = OneOf(choices=StartFrom.values, required=False, help_text="Where it starts.")
    offset = WholeNumber(required=False, min_value=0, help_text="With start_from offset.")
    timestamp = Moment(required=False, help_text="With start_from timestamp.")


class PositionWanted(Strict):
    """Where a group goes."""

    position = OneOf(choices=["earliest", "latest", "offset", "timestamp"])
    offset = WholeNumber(required=False, min_value=0, help_text="With position offset: the next one.")
    timestamp = Moment(required=False, help_text="With position timestamp.")
    history = Switch(
        required=False,
        help_text="Where the position is older than what the stream holds, also have the replay counted and started "
        "that brings the group, and it alone, what has gone. What the stream holds comes meanwhile, so newer messages "
        "may come before older ones, of one key, too, also to a group that is `ordered_by_key`.",
    )
    dry_run = Switch(required=False, help_text="Only tell what it would do.")


class PauseWanted(Strict):
    """For how long."""

    until = Moment(required=False, allow_null=True, help_text="None: until it is resumed.")


class ResumeWanted(Strict):
    """Nothing."""


class ReplayWanted(Strict):
    """Which dead letters."""

    offsets = serializers.ListField(child=WholeNumber(), required=False, max_length=10_000)
    all = Switch(required=False)


class MemberObject(serializers.Serializer):  # type: ignore[type-arg]
    """A consumer that works for a group."""

    name = serializers.CharField()
    ack_pending = serializers.IntegerField()
    ack_rate = serializers.FloatField(
        allow_null=True,
        help_text="Messages a second that it acknowledged, over the last ten seconds; null where it was none for a "
        "minute.",
    )
    last_active = Moment(allow_null=True, help_text="Its last fetch or answer.")
    state = serializers.ChoiceField(
        choices=list(get_args(MemberState)),
        help_text="`active`: it has messages in flight; `idle`: it has none; `silent`: it has some, and has neither "
        "fetched nor answered for longer than its delivery lasts, a minute at least.",
    )


class HealthObject(serializers.Serializer):  # type: ignore[type-arg]
    """How a group is doing over the last minutes."""

    status = serializers.ChoiceField(
        choices=list(get_args(Status)),
        help_text="The first that holds; unknown until it was watched for 50 s.",
    )
    reason = serializers.CharField(help_text="One sentence, with the figures it follows from.")
    eta_seconds = serializers.FloatField(
        allow_null=True, help_text="While it is catching up: until nothing waits."
    )


class GroupObject(serializers.Serializer):  # type: ignore[type-arg]
    """A consumer group: its settings, and how it stands."""

    name = serializers.CharField(source="group.name")
    start_from = serializers.CharField(source="group.start_from")
    offset = serializers.IntegerField(source="group.start_offset", allow_null=True)
    timestamp = Moment(source="group.start_timestamp", allow_null=True)
    ack = serializers.CharField(source="group.ack")
    ack_wait = serializers.FloatField(source="group.ack_wait")
    max_deliver = serializers.IntegerField(source="group.max_deliver")
    backoff = Backoff(source="group.backoff")
    max_ack_pending = serializers.IntegerField(source="group.max_ack_pending")
    filter_keys = KeyPatterns(source="group.filter_keys")
    ordered_by_key = serializers.BooleanField(source="group.ordered_by_key")
    inactive_after = serializers.FloatField(source="group.inactive_after", allow_null=True)
    description = serializers.CharField(source="group.description")
    created_at = Moment(source="group.created_at")
    updated_at = Moment(source="group.updated_at")
    delivered_offset = serializers.IntegerField(source="state.delivered_offset")
    ack_floor = serializers.IntegerField(
        source="state.ack_floor", help_text="Everything up to it is acknowledged."
    )
    lag = serializers.IntegerField(source="state.lag", help_text="Stored, matching, not yet delivered.")
    lag_seconds = serializers.FloatField(help_text="Age of the oldest message not yet acknowledged.")
    ack_pending = serializers.IntegerField(source="state.ack_pending")
    redelivered = serializers.IntegerField(source="state.redelivered")
    waiting = serializers.IntegerField(help_text="Open polls.")
    dead_letters = serializers.IntegerField(source="state.dead_letters")
    lost = serializers.IntegerField(source="state.lost", help_text="Removed before they were delivered.")
    consumers = MemberObject(
        source="members",
        many=True,
        help_text="Who has messages in flight, or fetched or answered within the last minute.",
    )
    paused = serializers.SerializerMethodField()
    paused_until = Moment(allow_null=True)
    status = serializers.ChoiceField(
        choices=["ok", "lagging", "stalled", "idle", "paused"], help_text="At this moment, in one word."
    )
    health = HealthObject()

    def get_paused(self, view: Any) -> bool:
        return view.state.paused_until_ms is not None


class Gone(serializers.Serializer):  # type: ignore[type-arg]
    """What lies behind the position asked for and is no longer in the stream."""

    to_offset = serializers.IntegerField(help_text="The last offset that has gone.")
    messages = serializers.IntegerField(
        help_text="How many messages that is at most; the count of the replay tells."
    )
    replay = serializers.DictField(
        allow_null=True,
        help_text="What to send to /analytics/replays/ to have it brought to this group alone, from the history and "
        "from what waits in the stream to be copied to it; null where nothing of it is left.",
    )
    pushes_out = PushedOutObject(
        allow_null=True,
        help_text="What the stream's own limits would take for that replay: nothing, as it publishes nothing into the "
        "stream; null without a replay.",
    )
    begun = ReplayObject(
        allow_null=True, help_text="The replay that was begun with the seek, with `history`; else null."
    )


class LetGo(serializers.Serializer):  # type: ignore[type-arg]
    """What would be removed for good, as no group would want it any more."""

    messages = serializers.IntegerField(help_text="How many messages.")
    bytes = serializers.IntegerField(help_text="Bytes of their bodies.")
    complete = serializers.BooleanField(
        source="is_complete", help_text="False where not all were looked at; more may go then."
    )
    reason = serializers.ChoiceField(
        choices=retention.REASONS,
        allow_null=True,
        help_text="Why it is not complete, as in the preview of retention; null where it is.",
    )


class Sought(serializers.Serializer):  # type: ignore[type-arg]
    """What a seek did, or would do."""

    may_lack = frozenset({"gone", "removes"})

    to = serializers.IntegerField(help_text="The offset that is delivered next now.")
    messages = serializers.IntegerField(
        help_text="How many are delivered, again as far as they were before, or skipped."
    )
    skipped = serializers.IntegerField(
        help_text="How many of them will not be delivered; also what waits for its key."
    )
    gone = Gone(
        required=False,
        help_text="Only where the position is older than what the stream holds: the group goes to the oldest message, "
        "and what lay before it comes only with `history`.",
    )
    removes = LetGo(
        required=False,
        help_text="Only in a dry run, where the stream retains by interest: what the seek would let go of. Nothing "
        "brings it back.",
    )


# "from" is a word of Python's, so it cannot be written in the class.
Sought._declared_fields["from"] = serializers.IntegerField(help_text="The one that was next before.")


class Counted(serializers.Serializer):  # type: ignore[type-arg]
    """How many it applied to."""

    count = serializers.IntegerField()


class LettersDeleted(serializers.Serializer):  # type: ignore[type-arg]
    """How many were deleted."""

    deleted = serializers.IntegerField()


class InFlightObject(serializers.Serializer):  # type: ignore[type-arg]
    """A message that is out and not settled."""

    offset = serializers.IntegerField()
    id = serializers.CharField(allow_null=True, help_text="None where the message went meanwhile.")
    key = serializers.CharField(allow_null=True)
    consumer = serializers.CharField(help_text="Empty where it gave no name.")
    deliveries = serializers.IntegerField(help_text="0 after it was nacked unread.")
    delivered_at = serializers.SerializerMethodField()
    due_in = serializers.SerializerMethodField(
        help_text="Seconds until it comes again, or, delivered as often as the group allows, becomes a dead letter."
    )
    lease = serializers.CharField(help_text="Of this delivery.")

    @extend_schema_field(Moment(allow_null=True))
    def get_delivered_at(self, row: InFlight) -> str | None:
        return entries.timestamp(row.delivered_ms) if row.delivered_ms else None

    @extend_schema_field({"type": "number", "minimum": 0})
    def get_due_in(self, row: InFlight) -> float:
        return row.due_in_ms / 1000


class DeadLetterObject(serializers.Serializer):  # type: ignore[type-arg]
    """A message that is delivered no more."""

    may_lack = frozenset({"key", "headers"})
    id = serializers.CharField()
    offset = serializers.IntegerField()
    timestamp = Moment()
    body = serializers.JSONField(help_text="As it was published.")
    key = serializers.CharField(required=False)
    headers = serializers.DictField(child=serializers.CharField(), required=False)
    reason = serializers.CharField(help_text="`max_deliver`, or what was given with term.")
    deliveries = serializers.IntegerField()
    died_at = Moment()


def settings_in(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among checked fields, by the names that the service knows."""
    return {
        field: wanted[FIELDS.get(field, field)] for field in SETTINGS if FIELDS.get(field, field) in wanted
    }


def letter_json(letter: DeadLetter, *, timestamp: str, died_at: str) -> str:
    """A dead letter as JSON text; the body stands in it as it was published."""
    head = {"id": letter.id, "offset": letter.offset, "timestamp": timestamp}
    tail: dict[str, Any] = {"key": letter.key} if letter.key is not None else {}
    tail |= {"reason": letter.reason, "deliveries": letter.deliveries, "died_at": died_at}
    headers = f',"headers":{letter.headers}' if letter.headers is not None else ""
    return f'{json.dumps(head)[:-1]},"body":{letter.body}{headers},{json.dumps(tail)[1:]}'
