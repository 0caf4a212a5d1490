"""What belongs under each key of a stream and its groups: of which type it is, and how its parts are read.

``fsck_parts`` holds what is there against it. What does not look like this the scripts cannot read either.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from streams.log import group_meta, keys, meta, trails
from streams.log.dead_letters import DeadLetter

Type = Literal["hash", "list", "set", "string", "zset"]
Read = Callable[[bytes, bytes], object]
"""Reads a part: field and value, member and score, or the same twice where there is but one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Of one kind of key.

    Attributes:
        type: as the server has it.
        read: of each of its parts.
        is_derived: whether what is taken away follows from other keys or the database, or is missed by nobody.
        kept_here: names of parts of which that is not so, where it is of the others.
    """

    type: Type
    read: Read
    is_derived: bool = True
    kept_here: frozenset[bytes] = frozenset()

    def follows(self, name: bytes | None) -> bool:
        """Whether a part that is taken away follows from elsewhere; None: the whole key."""
        return self.is_derived and name not in self.kept_here


def _matching(pattern: bytes) -> Callable[[bytes], None]:
    compiled = re.compile(pattern, re.DOTALL)

    def check(text: bytes) -> None:
        if not compiled.fullmatch(text):
            raise ValueError(f"{text[:40]!r} does not belong there")

    return check


def _member(check: Callable[[bytes], object]) -> Read:
    return lambda member, _: check(member)


def _pair(name: Callable[[bytes], object], value: Callable[[bytes], object]) -> Read:
    return lambda field, held: (name(field), value(held))


_number = _matching(rb"\d+")
_text = bytes.decode
_run = _matching(rb"\d+:\d+:\d+:\d+:\d+:.*")
_letter = msgspec.msgpack.Decoder(DeadLetter).decode
_ranges = msgspec.msgpack.Decoder(list[int]).decode
_point = msgspec.json.Decoder(trails.Point).decode
_settings = msgspec.msgpack.Decoder(dict[str, object]).decode


def _record(text: bytes) -> None:
    if not isinstance(json.loads(text), dict):
        raise ValueError("it is no object")


def _of_epoch(field: bytes, value: bytes) -> None:
    (_number if field == b"number" else _text)(value)


def _of_meta(field: bytes, value: bytes) -> None:
    known: Mapping[bytes, Callable[[bytes], object]] = {
        b"settings": _settings,
        b"counters": meta.unpack,
        b"taken": _ranges,
        b"workspace": _number,
        b"keys": lambda held: json.loads(held or b"[]"),
        b"name": _text,
    }
    known.get(field, _text)(value)


def _of_group(field: bytes, value: bytes) -> None:
    known: Mapping[bytes, Callable[[bytes], object]] = {
        b"settings": _group_settings,
        b"counters": group_meta.unpack,
    }
    known.get(field, _number if field.isdigit() else _text)(value)


def _group_settings(packed: bytes) -> None:
    held = _settings(packed)
    for name in ("max_deliver", "ack_wait_ms", "max_ack_pending", "backoff", "filter"):
        held[name]


def _of_removals(field: bytes, value: bytes) -> None:
    _matching(rb"[a-z]+|\d+:[a-z]+|[a-z]+:\d+")(field)
    if field.endswith((b":facts", b":groups")):
        json.loads(value)
    elif not field.startswith(b"back:"):
        _number(value)


def _of_turns(field: bytes, value: bytes) -> None:
    _matching(rb"k.*|\d+")(field)
    _matching(rb"\d+:\d+" if field.startswith(b"k") else rb"\d*:.*")(value)


_offsets = Shape("zset", _member(_number))

OF_STREAM: Mapping[str, Shape] = {
    "meta": Shape("hash", _of_meta, kept_here=frozenset({meta.TAKEN.encode()})),
    "gone": Shape("zset", _member(_matching(rb"\d+:\d+:\d+(:.*)?")), is_derived=False),
    "by_key": Shape("hash", _pair(_text, _number)),
    "expiry": _offsets,
    "hidden": _offsets,
    "latest": Shape("zset", _member(_matching(rb".*\0\d{16}"))),
    "kept": _offsets,
    "aside": Shape("zset", _member(_number), is_derived=False),
    "removals": Shape("hash", _of_removals, is_derived=False),
    "went": Shape("zset", _member(_matching(rb"(\d+(/\d+)?:.*)?")), is_derived=False),
    "groups": Shape("set", _member(_text)),
}
"""By the name that ``keys.OF_STREAM`` has them under; the log itself is read entry by entry."""

IDS = Shape("hash", _pair(_text, _number))

OF_GROUP: Mapping[str, Shape] = {
    "group": Shape("hash", _of_group),
    "pending": _offsets,
    "due": Shape("zset", _member(_matching(rb"\d+(:\d+:\d+:\d+:\d+:.*)?"))),
    "leases": Shape("hash", _pair(_number, _matching(rb"\d+:\d+:\d+:.*"))),
    "shelved": _offsets,
    "runs": Shape("zset", _member(_run)),
    "members": Shape("hash", _pair(_text, _matching(rb"-?\d+:\d+"))),
    "acks": Shape("hash", _pair(_text, _matching(rb"\d+:\d+:\d+"))),
    "dead": Shape("zset", _member(_letter), is_derived=False),
    "replayed": Shape("hash", _pair(_number, _letter), is_derived=False),
    "brought": Shape("hash", _pair(_number, _matching(rb"\d+:\d+:\d+"))),
    "turns": Shape("hash", _of_turns),
    "parked": _offsets,
    "parked_aside": _offsets,
    "ready": _offsets,
    "last": _offsets,
    "counted": Shape("hash", _pair(_matching(rb"\d+|low"), _matching(rb"[\d:.-]+"))),
    "health": Shape("string", _member(json.loads)),
    "lags": Shape("list", _member(_point)),
    "lags_by_minute": Shape("list", _member(_point)),
}
"""By the name that ``keys.OF_GROUP`` has them under."""

_time = Shape("string", _member(_matching(rb"-?\d+")))

SHARED: Mapping[str, Shape] = {
    keys.REGISTRY: Shape("hash", _pair(_text, _record)),
    keys.TOUCHED: Shape("set", _member(_text)),
    keys.TOKENS_USED: Shape("hash", _pair(_number, _number)),
    keys.WAITING: Shape("hash", _pair(_text, _record)),
    keys.TRAFFIC: Shape("hash", _pair(_text, _number)),
    keys.WORKER_LEASE: Shape("string", _member(_text)),
    keys.SAMPLED: _time,
    keys.STATUSES: _time,
    keys.SKEW: _time,
    keys.CLOCKS: Shape("hash", _pair(_text, _matching(rb"-?[\d.]+ -?[\d.]+ [\d.]+"))),
    keys.JUMPS: Shape("string", _member(_matching(rb"\d+ -?\d+( \d+ -?\d+)*"))),
    keys.DAMAGED: Shape("string", _member(json.loads)),
    keys.SILENCES: Shape("zset", _member(_matching(rb"\d+ \d+"))),
    keys.MEMORY_HELD: Shape("hash", _pair(_text, _matching(rb"\d+ \d+"))),
    keys.MEMORY_RESERVED: Shape("hash", _pair(_text, _number)),
    keys.BEGUN: Shape("zset", _member(_record), is_derived=False),
    keys.ENDED: Shape("zset", _member(_matching(rb"\S+ \d+ .*")), is_derived=False),
    keys.EPOCH: Shape("hash", _of_epoch),
}
"""By key, of those that belong to no stream and are one for all. What is derived the database tells again, or it is of
the moment, and whoever goes by it writes it anew."""


def of_workspace(workspace_id: int) -> Mapping[str, Shape]:
    """By key, of those that a workspace has."""
    return {
        keys.names(workspace_id): Shape("hash", _pair(_text, _text)),
        keys.patterns(workspace_id): Shape("hash", _pair(_text, json.loads)),
        keys.flow(workspace_id): Shape("list", _member(json.loads)),
    }
