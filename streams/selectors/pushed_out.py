"""What a stream's own limits take when messages are published into it again, told before that begins."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.log.errors import LogError
from streams.models import Replay, ReplayState, Stream
from streams.models.stream import Discard
from streams.selectors.retention import retention_preview
from streams.selectors.streams import stream_known

WAITING = (ReplayState.READY, ReplayState.PAUSED, ReplayState.FAILED)
"""A replay that is counted publishes nothing in these until somebody starts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushedOut:
    """What goes for so many more messages, as far as it is foreseen.

    Attributes:
        messages, bytes: that the stream holds now and that would go.
        unread: group → how many of these it has not acknowledged; only groups that lose some.
        arriving: of those that are published, the first so many would go, too: the stream holds no more.
        refused: of those that are published, the last so many a full stream would not take (``discard: new``).
        per_key: the limit a key, where there is one: by it more goes, which is not foreseen.
        reason: why more may go than is said: ``per_key``, or as of ``Preview``; None where it does not.
    """

    messages: int = 0
    bytes: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    arriving: int = 0
    refused: int = 0
    per_key: int | None = None
    reason: str | None = None

    @property
    def takes_something(self) -> bool:
        """Whether anything goes, or may go."""
        return bool(self.messages or self.arriving or self.refused or self.per_key)


def pushed_out(stream: Stream, *, messages: int, size_bytes: int, rate: int | None = None) -> PushedOut:
    """What would go by the limits of a stream if so many messages came.

    Args:
        size_bytes: of their bodies together.
        rate: messages a second; None is all at once.

    Raises:
        LogError: the stream's server does not answer.
    """
    per_key = stream.max_messages_per_key if messages else None
    reason = None if per_key is None else "per_key"
    if stream.discard == Discard.NEW:
        state = stream_known(stream).state
        taken = _fitting(
            messages,
            size_bytes,
            room_messages=_less(stream.max_messages, state.messages),
            room_bytes=_less(stream.max_bytes, state.bytes),
        )
        return PushedOut(refused=messages - taken, per_key=per_key, reason=reason)
    staying = _fitting(messages, size_bytes, room_messages=stream.max_messages, room_bytes=stream.max_bytes)
    if rate is not None and stream.ttl is not None:
        staying = min(staying, rate * stream.ttl)
    left = {
        "max_messages": _less(stream.max_messages, messages),
        "max_bytes": _less(stream.max_bytes, size_bytes),
    }
    told = retention_preview(stream, {**left, "max_messages_per_key": None})
    return PushedOut(
        messages=told.messages,
        bytes=told.bytes,
        unread={group: unread for group, unread in sorted(told.unread.items()) if unread},
        arriving=messages - staying,
        per_key=per_key,
        reason=told.reason or reason,
    )


def pushed_out_by(replay: Replay) -> PushedOut | None:
    """What the rest of a replay would push out of its target; None unless it is counted and waits to be started.

    None also where the target is no more, or its server does not answer. One for a group publishes nothing.
    """
    if replay.state not in WAITING or replay.total is None or replay.total_bytes is None:
        return None
    if replay.group:
        return PushedOut()
    target = Stream.objects.filter(stream_id=replay.target_id, workspace=replay.workspace_id).first()
    if target is None:
        return None
    left = max(0, replay.total - replay.stored - replay.duplicates)
    size_bytes = replay.total_bytes * left // replay.total if replay.total else 0
    try:
        return pushed_out(target, messages=left, size_bytes=size_bytes, rate=replay.rate)
    except LogError:
        return None


def _less(limit: int | None, by: int) -> int | None:
    return None if limit is None else max(0, limit - by)


def _fitting(messages: int, size_bytes: int, *, room_messages: int | None, room_bytes: int | None) -> int:
    """How many of so many messages, equally large, fit into a room."""
    fitting = messages if room_messages is None else min(messages, room_messages)
    if room_bytes is not None and size_bytes > room_bytes:
        fitting = min(fitting, messages * room_bytes // size_bytes)
    return fitting
