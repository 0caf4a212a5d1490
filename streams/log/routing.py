"""Which server a command is for: a stream's internal id says where it lives, so no caller has to know.

A command without a key (``TIME``, ``CONFIG``) goes where the command before it goes, and to the durable server when
it is the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams.log import keys
from streams.log.commands import Clocks, Command, Pipeline, Reachable, Script, Scripts, Servers, Steady

NO_MEMORY = "there is no memory server: set OKMQ_MEMORY_REDIS_URL"
LOST = "the memory server has lost this stream, which is about to be begun again"

KEYLESS = frozenset({"CONFIG", "FUNCTION", "INFO", "PUBSUB"})
"""Commands whose first argument is no key."""

Sent = TypeVar("Sent", Script, Sequence[Any])


@dataclass(frozen=True, slots=True)
class Part(Generic[Sent]):
    """The commands for one server, and their places among all."""

    in_memory: bool
    places: Sequence[int]
    commands: Sequence[Sent]


def is_for_memory(command: Script | Sequence[Any]) -> bool:
    """Whether one command is for the memory server."""
    key = _key(command)
    return key is not None and keys.of_memory(key)


def parts(commands: Sequence[Sent], *, in_memory: bool | None = None) -> list[Part[Sent]]:
    """Commands sent together, by server: the durable one's first; all for one where that is known."""
    if in_memory is not None:
        return [Part(in_memory, range(len(commands)), commands)]
    marks: list[bool] = []
    mark = False
    for command in commands:
        key = _key(command)
        mark = mark if key is None else keys.of_memory(key)
        marks.append(mark)
    if mark not in marks or (not mark) not in marks:
        return [Part(mark, range(len(commands)), commands)]
    found = []
    for server in (False, True):
        places = [place for place, mark in enumerate(marks) if mark is server]
        found.append(Part(server, places, [commands[place] for place in places]))
    return found


def merged(parts: Sequence[Part[Sent]], replies: Sequence[list[Any]]) -> list[Any]:
    """The replies to all commands in their order, from those of each part."""
    if len(parts) == 1:
        return replies[0]
    by_place = {
        place: reply
        for part, some in zip(parts, replies, strict=True)
        for place, reply in zip(part.places, some, strict=True)
    }
    return [by_place[place] for place in range(len(by_place))]


def by_server(stream_ids: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Streams by server, those of the durable one first."""
    fleeting = [each for each in stream_ids if keys.in_memory(each)]
    return (
        ([each for each in stream_ids if not keys.in_memory(each)], fleeting)
        if fleeting
        else (stream_ids, ())
    )


def in_order(asked: Sequence[str], durable: Sequence[str], fleeting: Sequence[str]) -> Sequence[str]:
    """Those of streams that ``by_server`` took apart which are there, in the order in which they were asked for."""
    if not fleeting:
        return durable
    there = {*durable, *fleeting}
    return [each for each in asked if each in there]


def memory_stream_of(command: Command) -> str | None:
    """The memory stream that a command is about, or None."""
    if isinstance(command, Clocks | Reachable | Servers | Steady):
        return None
    if isinstance(command, Scripts | Pipeline):
        commands = command.calls if isinstance(command, Scripts) else command.commands
        return memory_stream_of(commands[0]) if commands else None  # type: ignore[arg-type]
    return keys.stream_id_of(_key(command) or "") if command and is_for_memory(command) else None


def key_of(command: Command) -> str:
    """The key of a command, or what its keys begin with; "" of several streams together, or where there is none."""
    if isinstance(command, Clocks | Reachable | Servers | Steady):
        return ""
    if isinstance(command, Script):
        of_groups = [key for key in command.keys if "}:g:" in key]
        return of_groups[0] if len(of_groups) == 1 else keys.owner_of(command.keys[0])
    if isinstance(command, Scripts | Pipeline):
        commands: Sequence[Any] = command.calls if isinstance(command, Scripts) else command.commands
        found = {key_of(each) for each in commands} - {""}
        owners = {keys.owner_of(each) for each in found}
        return min(found) if len(owners) == 1 else ""
    return _key(command) or ""


def _key(command: Script | Sequence[Any]) -> str | None:
    if isinstance(command, Script):
        return command.keys[0]
    return command[1] if len(command) > 1 and command[0] not in KEYLESS else None
