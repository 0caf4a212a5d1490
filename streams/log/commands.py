"""What an operation yields: commands for a server, alone or several sent together."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Script(msgspec.Struct, frozen=True):
    """One call of a script: its name, its keys, its arguments."""

    name: str
    keys: Sequence[str]
    args: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Plain commands sent together, each ``(name, argument, …)``; the reply is their list of replies.

    Attributes:
        in_memory: which server all of them are for, where whoever asks knows; None: each is asked for its key.
        apart: a command that is refused has its LogError in the place of its reply; otherwise one refuses all.
    """

    commands: Sequence[Sequence[Any]]
    in_memory: bool | None = None
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Scripts:
    """Several script calls sent together; a reply is the script's, or the LogError that it raised."""

    calls: Sequence[Script]


@dataclass(frozen=True, slots=True)
class Steady:
    """Asks for the store's steady clock (see ``clock``); the reply is ms: what it is at least, or at most."""

    latest: bool = False


@dataclass(frozen=True, slots=True)
class Clocks:
    """Asks what this process knows of the store's clocks, as every script is told; the reply is a ``clock.Reading``."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Asks which servers the durable store is: one, or in a cluster each node, that of the installation's keys first.

    The reply is, for each, an internal id that no stream has and that lies there: a command without a key goes there
    after one with a key of that id.
    """


@dataclass(frozen=True, slots=True)
class Reachable:
    """Asks which of these streams lie on servers that answer, in their order.

    The server of the streams in memory is asked, which takes a second at most (see ``breaker``); of a cluster, it is
    whether the node answered last. On a single durable server, and while the node of the installation's keys does not
    answer, it is all durable ones: nothing goes without it.
    """

    stream_ids: Sequence[str]


Command = Script | Scripts | Pipeline | Clocks | Reachable | Servers | Steady | tuple[Any, ...]
Op = Generator[Command, Any, T]


def small(verb: str, key: str, *arguments: Any) -> Script:
    """A ``SET``, ``HSET``, ``HSETNX``, ``HINCRBY`` or ``ZADD`` of one small value that a full server takes, too."""
    return Script("small", [key], [verb, *arguments])


def one(command: Command) -> Op[Any]:
    """The operation that sends one command and returns its reply."""
    return (yield command)
