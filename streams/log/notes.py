"""Notes: what was done to messages on somebody's behalf by who knows no database, until the worker records it.

What takes more than one call is begun with a sign in the store, which the note of it removes: where the process of
whoever does it ends between the two, or the store's answer is lost, the worker records that it was asked for.
"""

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from streams.log import keys
from streams.log.client import Op, Script, Steady, T, small
from streams.log.errors import LogError, is_nothing_done

AT_ONCE = 1000

UNKNOWN = {"outcome": "unknown"}
"""In ``after`` where it was cut off, or the store's answer was lost: all, a part or nothing of it may be done."""

LATER, BESIDE = ("deed", "actor"), "beside"
"""Fields that a worker of the version before stumbles over, and where in ``after`` a note has them in the store."""

COUNTS = ("messages", "bytes", "count")
"""In ``after`` how much was done."""

SIGN_EVERY_S = 5.0


def unsure(why: LogError) -> Mapping[str, str]:
    """What ``after`` also says where something was cut off by an error: ``UNKNOWN``, or nothing where it is known."""
    return {} if is_nothing_done(why) else UNKNOWN


def uncounted(after: Mapping[str, Any]) -> dict[str, Any]:
    """``after`` of what has no known end: where nothing is known to be done, how much was is null."""
    return {name: value or None if name in COUNTS else value for name, value in after.items()} | UNKNOWN


GIVEN_UP_AFTER_MS = 30_000
"""Who has given no sign of life for so long does not go on with what was begun."""

Begun = str
"""What was begun, as it stands in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that was done to messages.

    Attributes:
        kind: of the event that it becomes.
        token_id, address: who did it, and from where.
        messages, bytes: how many were taken away by it.
        deed: notes with the same one belong together; "" stands alone, or with its like.
        after: what else is to be told.
        actor: who did it, by name, where it was not a token.
    """

    kind: str
    workspace_id: int
    stream_id: str
    stream: str
    token_id: int
    address: str
    group: str = ""
    messages: int = 0
    bytes: int = 0
    deed: str = ""
    after: Mapping[str, Any]
    actor: str = ""


def begin(note: Note) -> Op[Begun]:
    """Say what is about to be done; ``note.after`` is what was asked for. Has to be ended by ``put`` or ``end``."""
    begun = _written(replace(note, deed=note.deed or secrets.token_hex(8)))
    yield small("ZADD", keys.BEGUN, (yield Steady()), begun)
    return begun


def meanwhile(begun: Begun, operation: Op[T]) -> Op[T]:
    """Carry out what was begun, with a sign of life every few seconds."""
    signed = monotonic()
    try:
        command = next(operation)
        while True:
            if monotonic() > signed + SIGN_EVERY_S:
                with suppress(LogError):  # what is asked next will tell
                    yield ("ZADD", keys.BEGUN, "XX", (yield Steady()), begun)
                signed = monotonic()
            try:
                reply = yield command
            except LogError as error:
                command = operation.throw(error)
            else:
                command = operation.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result


def end(begun: Begun) -> Op[None]:
    """What was begun is over, and is recorded elsewhere or was nothing."""
    yield ("ZREM", keys.BEGUN, begun)


def put(note: Note, *, begun: Begun = "") -> Op[None]:
    """Leave a note for the worker, of what was begun where that is given."""
    yield Script("note", [keys.NOTES, keys.BEGUN], [_written(note), begun])


def give_up() -> Op[None]:
    """Leave notes, their outcome unknown, of what was begun by who has given no sign of life for long."""
    until_ms = (yield Steady()) - GIVEN_UP_AFTER_MS
    found = yield ("ZRANGE", keys.BEGUN, "-inf", until_ms, "BYSCORE", "LIMIT", 0, AT_ONCE, "WITHSCORES")
    for begun, signed_ms in zip(found[::2], found[1::2], strict=True):
        note = _read(begun)
        signed = datetime.fromtimestamp(float(signed_ms) / 1000, UTC).isoformat(timespec="milliseconds")
        told = {**note.after, **UNKNOWN, "last_sign": signed}
        yield from put(replace(note, after=told), begun=begun.decode())


def take() -> Op[list[tuple[str, Note]]]:
    """The oldest notes, with their ids, which ascend; they stay until ``forget``."""
    found = yield ("XRANGE", keys.NOTES, "-", "+", "COUNT", AT_ONCE)
    return [(note_id.decode(), _read(fields[1])) for note_id, fields in found]


def forget(note_id: str) -> Op[None]:
    """Remove a note and the ones before it."""
    ms, _, number = note_id.partition("-")
    yield ("XTRIM", keys.NOTES, "MINID", f"{ms}-{int(number) + 1}")


def is_later(note_id: str, than: str) -> bool:
    """Whether a note was left after another one."""
    return _order(note_id) > _order(than)


def _written(note: Note) -> str:
    told = asdict(note)
    beside = {name: value for name in LATER if (value := told.pop(name))}
    if beside:
        told["after"] = {**told["after"], BESIDE: beside}
    return json.dumps(told)


def _read(written: bytes) -> Note:
    told = json.loads(written)
    beside = told["after"].pop(BESIDE, {})
    return Note(**told, **beside)


def _order(note_id: str) -> tuple[int, int]:
    ms, _, number = note_id.partition("-")
    return int(ms), int(number)
