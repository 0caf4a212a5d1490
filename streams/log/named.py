"""The log's own errors for what the server or the connection says."""

import json

from redis.exceptions import OutOfMemoryError, RedisError, ResponseError

from streams.log import errors, routing
from streams.log.commands import Command

_EXPECTED = {
    "OKMQ_WRONG_LAST": "last_offset",
    "OKMQ_WRONG_ID": "last_id",
    "OKMQ_WRONG_KEY": "last_key_offset",
}


_OF_A_SCRIPT = "@user_function:"
"""Where an error in a function was met: Lua cannot unpack a text, or a command takes no such id."""


class Refused(ResponseError):
    """The refusal of one of several commands that were sent together, and which it was."""

    def __init__(self, reply: RedisError, command: Command) -> None:
        super().__init__(str(reply))
        self.reply, self.command = reply, command


def named(error: RedisError, command: Command = ()) -> errors.LogError:
    """The log's own error for what the server or the connection said to a command."""
    if isinstance(error, Refused):
        return named(error.reply, error.command)
    if not isinstance(error, ResponseError):
        return errors.StoreUnavailable(str(error) or type(error).__name__)
    if isinstance(error, OutOfMemoryError):
        return errors.StoreFull(str(error))
    code, _, rest = str(error).partition(" ")
    match code:
        case "CROSSSLOT":
            return errors.KeysApart(str(error))
        case "OKMQ_NO_STREAM":
            return errors.StreamNotFound()
        case "OKMQ_CEILING":
            return errors.OffsetsUsedUp()
        case "OKMQ_NO_GROUP":
            return errors.GroupNotFound()
        case "OKMQ_MOVED":
            return errors.GroupMoved()
        case "OKMQ_NO_REMOVAL":
            return errors.RemovalNotFound()
        case "OKMQ_REMOVAL_OVER":
            return errors.RemovalOver()
        case "OKMQ_UNDO_LATER":
            return errors.RemovedSince(int(rest))
        case "OKMQ_UNDO_PART":
            left, messages = map(int, rest.split())
            return errors.RemovalTaken(left, messages)
        case "OKMQ_LEASE_LOST":
            return errors.LeaseLost(rest)
        case "OKMQ_SEALED":
            return errors.StreamSealed()
        case "OKMQ_DENIED":
            return errors.OperationDenied(rest)
        case "OKMQ_TOO_LARGE":
            index, size, limit = map(int, rest.split())
            return errors.MessageTooLarge(index, size, limit)
        case "OKMQ_FULL":
            limit_name, allowed = rest.split()
            return errors.StreamFull(limit_name, int(allowed))
        case "OKMQ_RANGE":
            return errors.OffsetOutOfRange(int(rest))
        case "OKMQ_WRONG_LAST" | "OKMQ_WRONG_ID" | "OKMQ_WRONG_KEY":
            last, last_id, held = json.loads(rest)
            return errors.WrongExpectation(
                _EXPECTED[code],
                last_offset=int(last),
                last_id=last_id,
                last_key_offset={key: int(offset) for key, offset in held or []},
            )
        case _ if code == "WRONGTYPE" or _is_of_a_script(error):
            return errors.Damaged(routing.key_of(command), str(error))
        case _:
            # LOADING, MISCONF, BUSY, READONLY, CLUSTERDOWN …: the server is there and refuses for now.
            return errors.StoreUnavailable(str(error))


def _is_of_a_script(error: ResponseError) -> bool:
    """Whether a function met what it cannot work with. What the server refuses for now has a code of its own."""
    code, _, _ = str(error).partition(" ")
    return (
        type(error) is ResponseError and _OF_A_SCRIPT in str(error) and (code == "ERR" or not code.isupper())
    )
