"""The hash chain of events: what is hashed, so that anyone can compute it again. Pure.

An event's hash is the SHA-256 (64 lower-case hexadecimal digits) of the UTF-8 bytes of one JSON object with these
members, whose names are sorted and which has no blanks, no escapes but those that JSON demands, and no NaN:

- every member of ``FIELDS``; ``time`` is UTC with six decimals and ``+00:00``; a number that is whole is written
  without a fraction (``30``, also where it was stored as ``30.0``), so that every database gives it back alike;
- ``previous``: the hash of the event before it, or for the first one the chain's own id, 64 random digits.

This form is fixed: hashes that were written once must be found again for ever.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

FIELDS = (
    "id",
    "time",
    "kind",
    "workspace",
    "workspace_id",
    "stream",
    "group",
    "actor",
    "address",
    "before",
    "after",
    "summary",
)


def digest(event: Mapping[str, Any], *, previous: str) -> str:
    """The hash of an event (its ``FIELDS`` by name) that follows the one with the hash ``previous``."""
    content = {field: _plain(event[field]) for field in FIELDS} | {"previous": previous}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value
