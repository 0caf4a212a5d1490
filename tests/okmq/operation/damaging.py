"""Every kind of key that a stream or a group may own, and ways to damage each."""

from collections.abc import Iterator

from streams.log import keys, shapes
from streams.log.client import Log

GARBAGE = b"\xc1"
"""Neither a number nor UTF-8, JSON or MessagePack."""

WAYS = ("wrong-type", "garbage")
GROUP = "g"

OF_STREAMS = ("log", *shapes.OF_STREAM, "ids_0", "ids_1")
OF_GROUPS = tuple(shapes.OF_GROUP)


def cases() -> Iterator[tuple[str, str]]:
    """Each kind with each way."""
    for kind in (*OF_STREAMS, *OF_GROUPS):
        for way in WAYS:
            yield kind, way


def key_of(stream_id: str, kind: str) -> str:
    if kind.startswith("ids_"):
        return keys.ids(stream_id, int(kind[-1]))
    if kind in keys.OF_STREAM:
        return keys.OF_STREAM[kind](stream_id)
    return keys.OF_GROUP[kind](stream_id, GROUP)


def type_of(kind: str) -> str:
    if kind == "log":
        return "stream"
    if kind.startswith("ids_"):
        return shapes.IDS.type
    return {**shapes.OF_STREAM, **shapes.OF_GROUP}[kind].type


def damage(log: Log, stream_id: str, kind: str, way: str) -> None:
    """Put what does not belong there in the place of a key, or of each value that it holds."""
    key, type_, ask = key_of(stream_id, kind), type_of(kind), log.client.execute_command
    if way == "wrong-type":
        ask("DEL", key)
        ask("RPUSH", key, GARBAGE) if type_ == "string" else ask("SET", key, GARBAGE)
    elif type_ == "hash":
        for field in ask("HKEYS", key) or [GARBAGE]:
            ask("HSET", key, field, GARBAGE)
    elif type_ == "zset":
        newest = ask("ZRANGE", key, -1, -1, "WITHSCORES")
        ask("ZADD", key, newest[1] if newest else 5, GARBAGE)
    elif type_ == "set":
        ask("SADD", key, GARBAGE)
    elif type_ == "list":
        ask("RPUSH", key, GARBAGE)
    elif type_ == "string":
        ask("SET", key, GARBAGE)
    else:
        ((entry, _),) = ask("XREVRANGE", key, "+", "-", "COUNT", 1)
        offset, _, ms = entry.decode().partition("-")
        ask("XADD", key, f"{int(offset) + 1}-{ms}", b"i", GARBAGE, b"b", GARBAGE, b"c", GARBAGE)


def is_there(log: Log, stream_id: str, kind: str, way: str) -> bool:
    """Whether it still is: what stood beside it may have been dealt with, and have taken it along."""
    key, type_, ask = key_of(stream_id, kind), type_of(kind), log.client.execute_command
    if way == "wrong-type":
        found = ask("TYPE", key)
        return bool(found == b"list" if type_ == "string" else found == b"string")
    asked = {
        "hash": ("HVALS", key),
        "zset": ("ZRANGE", key, 0, -1),
        "set": ("SMEMBERS", key),
        "list": ("LRANGE", key, 0, -1),
        "string": ("GET", key),
    }
    if type_ in asked:
        return GARBAGE in (ask(*asked[type_]) or ())
    return any(GARBAGE in fields for _, fields in ask("XRANGE", key, "-", "+"))
