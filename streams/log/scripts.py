"""The Lua scripts as one library of server functions: a verb a file under ``lua/``, what they share under ``lua/lib/``.

The library and its functions are named by the digest of their text, so that two versions of the product can work on
one server side by side. A server that does not know the library (new, emptied, another after a failover) refuses the
call before it runs; the drivers then load it and send the call again.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from streams.log import keys
from streams.log.commands import Op, Pipeline, Script, Servers
from streams.log.errors import StoreUnavailable

LUA = Path(__file__).parent / "lua"
PREFIX = "okmq_"
FLAGS = frozenset({"no-writes", "allow-oom"})
"""What a verb's header may say of it: it only reads; it frees memory, or needs next to none, and so runs on a full
server. Any other is refused by a full server before it has begun."""

_BEGIN = "lib/_library"

_LOCAL = re.compile(r"^local (function )?([\w, ]+?)(?= =|\(|$)", re.MULTILINE)
"""A name, or some, that a file under lib/ begins a line with."""

_KEY = re.compile(r"^-- KEYS\[\d+\] (\w+)", re.MULTILINE)
_HEADER = re.compile(r"^-- (include|flags): (.+)$", re.MULTILINE)


def call(script: Script, time: int | str) -> tuple[Any, ...]:
    """The command that calls a script's function, which is told the time with it (``clock.SteadyClock.told``)."""
    return ("FCALL", _function(script.name), len(script.keys), *script.keys, *script.args, time)


def load() -> tuple[str, ...]:
    """The command that makes the library known to a server."""
    return ("FUNCTION", "LOAD", text())


def is_unknown(reply: object) -> bool:
    """Whether a call was refused, before it ran, because the server does not know the library."""
    return isinstance(reply, RedisError) and str(reply) == "Function not found"


def is_known_already(reply: object) -> bool:
    """Whether loading was refused because another caller was faster."""
    return isinstance(reply, RedisError) and str(reply).endswith("already exists")


def older_forget(*, memory: bool = False) -> Op[int]:
    """Take away the libraries of other versions from the durable store or the memory server; how many there were.
    Nodes of a cluster that are away keep theirs.

    A process of another version that still runs loads its own again with its next call, so this can only cost it a
    round trip. A full server takes none: there this version's own has to be known before any other goes, and where it
    cannot be the others stay.

    Raises:
        StoreUnavailable: it does not answer.
        StoreFull: nothing was taken away.
    """
    asked = [keys.stream_id(memory=True)] if memory else (yield Servers())
    total = 0
    for stream_id in asked:
        try:
            total += yield from _older_forget_at(stream_id)
        except StoreUnavailable:
            if stream_id == asked[0]:
                raise
    return total


def _older_forget_at(stream_id: str) -> Op[int]:
    yield Script("counts", [keys.gone(stream_id)])  # whoever calls a script loads the library
    there = ("EXISTS", keys.meta(stream_id))  # nothing is; it says which server is asked
    _, listed = yield Pipeline([there, ("FUNCTION", "LIST", "LIBRARYNAME", f"{PREFIX}*")])
    names = [dict(zip(each[::2], each[1::2], strict=True))[b"library_name"].decode() for each in listed]
    older = [each for each in names if each != name()]
    yield Pipeline([there, *(("FUNCTION", "DELETE", each) for each in older)])
    return len(older)


def verbs() -> list[str]:
    """The names of all scripts."""
    return sorted(path.stem for path in LUA.glob("*.lua"))


def header(verb: str, line: str) -> list[str]:
    """What a script's header lists as ``include`` or as ``flags``."""
    found = dict(_HEADER.findall(_source(verb)))
    return re.split(r"[,\s]+", found[line].strip()) if line in found else []


def keys_named(verb: str) -> list[str]:
    """The names that a script's header gives to its keys, in their order."""
    return _KEY.findall(_source(verb))


@cache
def _function(verb: str) -> str:
    return f"{name()}_{verb}"


@cache
def name() -> str:
    """The library's name."""
    return PREFIX + hashlib.sha256(_text("").encode()).hexdigest()[:16]


@cache
def text() -> str:
    """The library: what is shared is made once, when it is loaded, and not with every call."""
    return _text(name())


def _text(library: str) -> str:
    parts = [f"#!lua name={library}", _source(_BEGIN), *map(_enclosed, _shared())]
    for verb in verbs():
        flags = ", ".join(f"'{flag}'" for flag in header(verb, "flags"))
        parts.append(
            f"library.register{{function_name = '{library}_{verb}', flags = {{{flags}}}, "
            f"callback = function(KEYS, ARGV)\nlibrary_begin(ARGV)\n{_source(verb)}end}}"
        )
    return "\n".join(parts)


@cache
def _shared() -> Sequence[str]:
    """The files under lib/, each after those that it needs, as the headers list them."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for verb in verbs():
        included = [f"lib/{part}" for part in header(verb, "include")]
        for before, after in pairwise(included):
            order.add(after, before)
        for part in included[:1]:
            order.add(part)
    return tuple(order.static_order())


def _enclosed(part: str) -> str:
    """A file under lib/ in a block of its own, with what others use of it before: Lua takes 200 names side by side."""
    source = _source(part)
    others = set[str]().union(*(_words(each) for each in [*_shared(), *verbs()] if each != part))
    told: list[str] = []

    def opened(found: re.Match[str]) -> str:
        names = re.findall(r"\w+", found[2])
        if others.isdisjoint(names):
            return found[0]
        told.extend(names)
        return (found[1] or "") + found[2]

    body = _LOCAL.sub(opened, source)
    return f"local {', '.join(told)}\ndo\n{body}\nend\n"


@cache
def _words(part: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", re.sub(r"--.*$", "", _source(part), flags=re.MULTILINE)))


def _source(part: str) -> str:
    return (LUA / f"{part}.lua").read_text("utf-8")
