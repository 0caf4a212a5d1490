"""Notes: what the data plane did on somebody's behalf, which knows no database, until the worker records it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streams.log import keys
from streams.log.client import Op, Script

AT_ONCE = 1000

UNKNOWN = {"outcome": "unknown"}
"""In ``after`` where the store's answer was lost: it may have done all, a part or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that was done to messages.

    Attributes:
        kind: of the event that it becomes.
        token_id, address: who did it, and from where.
        messages, bytes: how many were taken away by it.
        deed: notes with the same one belong together; "" stands alone, or with its like.
        after: what else is to be told.
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


def put(note: Note) -> Op[None]:
    """Leave a note for the worker."""
    yield Script("note", [keys.NOTES], [json.dumps(asdict(note))])


def take() -> Op[list[tuple[str, Note]]]:
    """The oldest notes, with their ids, which ascend; they stay until ``forget``."""
    found = yield ("XRANGE", keys.NOTES, "-", "+", "COUNT", AT_ONCE)
    return [(note_id.decode(), Note(**json.loads(fields[1]))) for note_id, fields in found]


def forget(note_id: str) -> Op[None]:
    """Remove a note and the ones before it."""
    ms, _, number = note_id.partition("-")
    yield ("XTRIM", keys.NOTES, "MINID", f"{ms}-{int(number) + 1}")


def is_later(note_id: str, than: str) -> bool:
    """Whether a note was left after another one."""
    return _order(note_id) > _order(than)


def _order(note_id: str) -> tuple[int, int]:
    ms, _, number = note_id.partition("-")
    return int(ms), int(number)
