"""Cutting what a publisher sent into its parts: bytes of JSON, none of them decoded.

It is done in C and stops as soon as something is more than is allowed: a text of 16 MiB may hold eight million
messages, or a message of a million members, and whoever takes it apart to say so is busy for seconds.
"""

from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from streams.errors import Refusal
from streams.log.append import BATCH_LIMIT

MOST_NAMED = 20
"""Unknown members of one object that are named."""
MOST_TAKEN_APART = 10_000
"""Commas of what is not known in an object whose unknown members are all looked for; of more the first is named."""

T = TypeVar("T", bound=msgspec.Struct)
Part = Raw | UnsetType
"""A member as sent, or nothing."""


class Message(msgspec.Struct):
    """The members of a message, as sent; others are passed over."""

    id: Part = UNSET
    body: Part = UNSET
    key: Part = UNSET
    headers: Part = UNSET
    ttl: Part = UNSET


class Envelope(msgspec.Struct):
    """The members of ``{"messages": […], "expect": {…}}``, as sent; others are passed over."""

    messages: Part = UNSET
    expect: Part = UNSET


_BATCH = msgspec.defstruct(
    "_BATCH",
    [(f"item_{number}", Raw | UnsetType, UNSET) for number in range(BATCH_LIMIT)],
    array_like=True,
    forbid_unknown_fields=True,
)
"""An array that is read no further than a batch may reach."""
_STRICT: dict[type[msgspec.Struct], type[msgspec.Struct]] = {
    parts: msgspec.defstruct(parts.__name__, [], bases=(parts,), forbid_unknown_fields=True)
    for parts in (Message, Envelope)
}
_members = msgspec.json.Decoder(dict[str, Raw]).decode


def items(array: bytes | Raw) -> list[Raw]:
    """The items of an array.

    Raises:
        Refusal: ``batch_too_large``.
        MsgspecError, RecursionError: it is malformed, or no array.
    """
    try:
        batch = msgspec.json.decode(array, type=_BATCH)
    except msgspec.ValidationError as error:
        if "at most length" not in str(error):
            raise
        raise batch_too_large() from None
    return [item for item in msgspec.structs.astuple(batch) if item is not UNSET]


def batch_too_large() -> Refusal:
    """There are more messages than a batch may have."""
    return Refusal("batch_too_large", f"The batch has more than {BATCH_LIMIT} messages.", limit=BATCH_LIMIT)


def parts(data: bytes | Raw, of: type[T]) -> T:
    """The known members of an object.

    Raises:
        MsgspecError, RecursionError: it is malformed, or no object.
    """
    return msgspec.json.decode(data, type=of)


def check(data: bytes) -> None:
    """Raises MsgspecError or RecursionError for what is malformed."""
    msgspec.json.decode(data, type=Raw)


def sent(part: Part) -> bytes:
    """The bytes of a member; none where it was not sent."""
    return b"" if part is UNSET else bytes(part)


def unknown(data: bytes | Raw, known: msgspec.Struct, *, every: bool = True) -> list[str]:
    """The names of the members of an object that are not among ``known``, its parts: ``MOST_NAMED`` at most.

    Without ``every``, and of very many, only the first is named.
    """
    kind = type(known)
    try:
        msgspec.json.decode(data, type=_STRICT[kind])
    except msgspec.ValidationError as error:
        commas = bytes(data).count(b",") - sum(
            sent(part).count(b",") for part in msgspec.structs.astuple(known)
        )
        if not every or commas > MOST_TAKEN_APART:
            return [str(error).partition("`")[2].rpartition("`")[0]]
        return [name for name in _members(data) if name not in kind.__struct_fields__][:MOST_NAMED]
    return []
