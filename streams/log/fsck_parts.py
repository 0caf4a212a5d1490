"""What cannot be read of what is held of a stream and its groups, part by part; and taking it away."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streams.log import damage, entries, group_meta, keys, shapes
from streams.log.client import Op
from streams.log.errors import Damaged
from streams.log.shapes import Shape

PAGE = 1000
SHOWN = 60
"""Bytes of a part that are shown of it."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Something that cannot be read.

    Attributes:
        kind: of its key, as ``keys.OF_STREAM`` and ``keys.OF_GROUP`` name them, or ``log`` or ``ids``; the type of one
            that belongs to no stream.
        key: its key.
        group: that it is of, or "".
        name: field, member or entry; None where the whole key is not what belongs there.
        why: what the reader met.
        is_derived: whether what is right follows from what else is there.
    """

    kind: str
    key: str
    group: str
    name: bytes | None
    why: str
    is_derived: bool

    @property
    def what(self) -> str:
        """The same for the same part in a later look."""
        return (
            f"damaged {self.key} {'' if self.name is None else self.name.decode('utf-8', 'backslashreplace')}"
        )

    @property
    def sentence(self) -> str:
        """For a person."""
        shown = "" if self.name is None else f" {self.name[:SHOWN].decode('utf-8', 'backslashreplace')!r}"
        of = f" of group {self.group}" if self.group else ""
        return f"{self.key}{shown}{of} cannot be read: {self.why}"


def look(stream_id: str) -> Op[list[Part]]:
    """Everything of a stream and of the groups that it lists that cannot be read.

    Raises:
        StoreUnavailable: its server does not answer.
    """
    found = yield from _of_log(stream_id)
    for kind, shape in shapes.OF_STREAM.items():
        found += yield from _of_key(kind, keys.OF_STREAM[kind](stream_id), shape)
    for bucket in (0, 1):
        found += yield from _of_key("ids", keys.ids(stream_id, bucket), shapes.IDS)
    try:
        names = group_meta.names_in((yield ("SMEMBERS", keys.groups(stream_id))))
    except Damaged:
        names = []
    for name in names:
        for kind, shape in shapes.OF_GROUP.items():
            found += yield from _of_key(kind, keys.OF_GROUP[kind](stream_id, name), shape, group=name)
    return found


def look_shared(workspace_ids: Iterable[int]) -> Op[list[Part]]:
    """Everything that cannot be read of what belongs to no stream.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    found: list[Part] = []
    for shaped in (shapes.SHARED, *map(shapes.of_workspace, workspace_ids)):
        for key, shape in shaped.items():
            found += yield from _of_key(shape.type, key, shape)
    return found


def take_away(parts: Sequence[Part]) -> Op[None]:
    """Take these parts away; what follows from what is left is for ``fsck.mend`` and ``fsck_groups.mend``.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    for part in parts:
        command = "XDEL" if part.kind == "log" else None
        if part.name is None or _shape(part.kind) in {"list", "string"}:
            yield ("UNLINK", part.key)
        elif part.kind == "group" and part.name == group_meta.COUNTERS.encode():
            yield ("UNLINK", part.key)  # without its counters it is no group, and settings are told again
        else:
            yield (
                command or {"hash": "HDEL", "zset": "ZREM", "set": "SREM"}[_shape(part.kind)],
                part.key,
                part.name,
            )


def _shape(kind: str) -> str:
    if kind == "log":
        return "stream"
    named = {"ids": shapes.IDS, **shapes.OF_STREAM, **shapes.OF_GROUP}
    return named[kind].type if kind in named else kind


def _of_log(stream_id: str) -> Op[list[Part]]:
    key, start = keys.log(stream_id), "-"
    found: list[Part] = []
    while True:
        try:
            page = yield ("XRANGE", key, start, "+", "COUNT", PAGE)
        except Damaged as error:
            return [_part("log", key, "", None, error.why, is_derived=False)]
        for entry in page:
            try:
                entries.parse(entry)
            except damage.UNREADABLE as error:
                found.append(_part("log", key, "", entry[0], _why(error), is_derived=False))
        if len(page) < PAGE:
            return found
        start = f"({page[-1][0].decode()}"


def _of_key(kind: str, key: str, shape: Shape, *, group: str = "") -> Op[list[Part]]:
    found: list[Part] = []
    at: Any = 0
    while at is not None:
        try:
            parts, at = yield from _page(key, shape.type, at)
        except Damaged as error:
            return [_part(kind, key, group, None, error.why, is_derived=shape.follows(None))]
        for name, value in parts:
            try:
                shape.read(name, value)
            except damage.UNREADABLE as error:
                found.append(_part(kind, key, group, name, _why(error), is_derived=shape.follows(name)))
    return found


def _page(key: str, type_: str, at: int) -> Op[tuple[list[tuple[bytes, bytes]], int | None]]:
    """Some parts, and where the next ones begin; None: there are no more."""
    if type_ == "hash":
        cursor, flat = yield ("HSCAN", key, at, "COUNT", PAGE)
        return list(_pairs(flat)), int(cursor) or None
    if type_ == "zset":
        flat = yield ("ZRANGE", key, at, at + PAGE - 1, "WITHSCORES")
        return list(_pairs(flat)), at + PAGE if len(flat) == 2 * PAGE else None
    if type_ == "string":
        held = yield ("GET", key)
        return [] if held is None else [(held, held)], None
    read = ("SMEMBERS", key) if type_ == "set" else ("LRANGE", key, 0, -1)
    return [(member, member) for member in (yield read)], None


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _part(kind: str, key: str, group: str, name: bytes | None, why: str, *, is_derived: bool) -> Part:
    return Part(kind=kind, key=key, group=group, name=name, why=why, is_derived=is_derived)


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
