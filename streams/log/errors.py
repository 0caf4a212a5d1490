"""What the log can refuse. Each error carries facts, not sentences; the API turns them into answers."""

from collections.abc import Mapping, Sequence


class LogError(Exception):
    """Base of everything that the log raises on purpose."""


class StoreUnavailable(LogError):
    """The store did not answer, or refuses commands for now; whether a write happened is not known."""


class StoreFull(StoreUnavailable):
    """The server's memory is used up; nothing was done."""


class KeysApart(StoreUnavailable):
    """One call named streams that a cluster keeps on different servers; nothing was done."""


class Damaged(StoreUnavailable):
    """What the store holds under a key is not what belongs there, so that it cannot be read; of a write it is not known
    whether it happened.

    Attributes:
        key: a key of what was asked for; "" where it was more than one stream's.
    """

    def __init__(self, key: str, why: str) -> None:
        super().__init__(key, why)
        self.key, self.why = key, why

    def __str__(self) -> str:
        return f"{self.key}: {self.why}" if self.key else self.why

    @property
    def stream_id(self) -> str:
        """The internal id of the stream that it is of; "" where it is of none, or not known."""
        _, brace, rest = self.key.partition("{")
        return rest.partition("}")[0] if brace else ""

    @property
    def group(self) -> str:
        """The group that it is of; "" where it is of none, or not known."""
        return self.key.partition("}:g:")[2]


class StreamLost(StoreUnavailable):
    """The memory server has lost this stream, and it is about to be begun again; nothing was done."""


class OffsetsUsedUp(LogError):
    """A memory stream has handed out what was reserved for it; nothing was stored. ``append`` reserves more."""


class StreamNotFound(LogError):
    """No stream has this internal id (any more)."""


class GroupNotFound(LogError):
    """The stream has no consumer group of this name (any more)."""


class GroupMoved(LogError):
    """The group was moved, or made anew, since it was looked at; nothing was done."""


class LeaseLost(LogError):
    """The message of a lease has been delivered again since; nothing was done. ``lease`` is the one that is lost."""

    def __init__(self, lease: str) -> None:
        super().__init__(lease)
        self.lease = lease


class StreamSealed(LogError):
    """The stream takes no more messages and loses none by hand."""


class OperationDenied(LogError):
    """A one-way switch forbids it; ``switch`` is ``deny_delete`` or ``deny_purge``."""

    def __init__(self, switch: str) -> None:
        super().__init__(switch)
        self.switch = switch


class RemovalNotFound(LogError):
    """There is no such removal, its time is over, or it was undone."""


class RemovalOver(LogError):
    """It was undone, made final, or its time is over, while it went on: it takes nothing more."""


class RemovedSince(LogError):
    """Something was removed after it that has to be undone first: ``later`` is its number."""

    def __init__(self, later: int) -> None:
        super().__init__(f"removal {later} came after it")
        self.later = later


class DoneInPart(LogError):
    """What takes more than one call was refused, or cut off, after a part of it was done.

    Attributes:
        why: by what.
        messages, bytes: that went, or came back, or were settled, by then.
        ended: as of ``Removed``.
        removal: the number of the removal that they can be undone as; None where there is none.
        offsets: which they are, where that is told.
    """

    def __init__(
        self,
        why: LogError,
        messages: int,
        size: int = 0,
        *,
        ended: int = 0,
        removal: int | None = None,
        offsets: Sequence[int] = (),
    ) -> None:
        super().__init__(str(why))
        self.why, self.messages, self.bytes = why, messages, size
        self.ended, self.removal, self.offsets = ended, removal, offsets


class RemovalTaken(LogError):
    """A limit has meanwhile taken part of a removal, or would at once; nothing was brought back.

    Attributes:
        left, messages: that could still come back, of how many.
    """

    def __init__(self, left: int, messages: int) -> None:
        super().__init__(f"{left} of {messages} are left")
        self.left, self.messages = left, messages


class MessageNotFound(LogError):
    """No visible message stands at this offset."""


class MessageTooLarge(LogError):
    """A body is larger than the stream allows; nothing of its batch was stored.

    Attributes:
        index: position in the batch, from 0.
        size_bytes, limit_bytes: what was sent and what is allowed.
    """

    def __init__(self, index: int, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"message {index}: {size_bytes} bytes, limit {limit_bytes}")
        self.index, self.size_bytes, self.limit_bytes = index, size_bytes, limit_bytes


class StreamFull(LogError):
    """``discard: new`` and a limit would be passed; ``limit`` names the setting. Nothing was stored."""

    def __init__(self, limit: str, allowed: int) -> None:
        super().__init__(f"{limit} is {allowed}")
        self.limit, self.allowed = limit, allowed


class WrongExpectation(LogError):
    """A publish expected another state of the stream. Nothing was stored.

    Attributes:
        kind: the first that differs of ``last_offset``, ``last_id`` and ``last_key_offset``.
        last_offset, last_id: what the stream really holds; 0 and "" are none yet.
        last_key_offset: the real last offset of every key that was expected to have one, 0 for none.
    """

    def __init__(
        self, kind: str, *, last_offset: int, last_id: str, last_key_offset: Mapping[str, int]
    ) -> None:
        super().__init__(f"{kind} differs")
        self.kind, self.last_offset, self.last_id = kind, last_offset, last_id
        self.last_key_offset = dict(last_key_offset)


class OffsetOutOfRange(LogError):
    """A position beyond the last assigned offset."""

    def __init__(self, last_offset: int) -> None:
        super().__init__(f"last offset is {last_offset}")
        self.last_offset = last_offset


def is_nothing_done(error: LogError) -> bool:
    """Whether it is certain that what was asked for was not done, nor any part of it."""
    if isinstance(error, StoreUnavailable):
        return isinstance(error, StoreFull | KeysApart | StreamLost)
    return not isinstance(error, DoneInPart)
