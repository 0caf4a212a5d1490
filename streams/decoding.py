"""Decoding the objects that are ours: strict JSON, with sentences for what is no JSON and for what no field takes."""

import re
from typing import Any

import msgspec

from streams.errors import Refusal
from streams.naming import shortened
from streams.nesting import holds_more, is_deeper, is_wider

DEEPEST = 128
DEEPEST_BODY = DEEPEST - 2
"""So deep a message's body may be: a publish has it in an object of an array."""

LARGEST_EXPLAINED_BYTES = 65_536
"""Only of what is not larger it is told that a lone surrogate is what is wrong with it."""

_decode = msgspec.json.Decoder().decode
# An escape, as it stands after the ones before it: a pair of surrogates, a lone one (the group), or any other.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode(data: bytes, *, most_containers: int, most_members: int) -> Any:
    """JSON text as Python values.

    Args:
        most_containers, most_members: arrays and objects that it may hold, and members and items of all of them; a
            million are seconds of work.

    Raises:
        Refusal: ``invalid_json`` with a sentence that says why; ``validation_error`` for more of them, or for a
            number beyond those that a computer counts with, which names the members that hold one.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise invalid_json("it begins with a byte order mark")
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise invalid_json(f"byte {error.start} is not UTF-8") from None
    if is_wider(data, most_members):
        raise Refusal("validation_error", "The body has more members and items than are accepted.", fields=[])
    if is_deeper(data, DEEPEST):
        raise too_deep()
    if holds_more(data, most_containers):
        raise Refusal("validation_error", "The body has arrays and objects that no field takes.", fields=[])
    try:
        return _decode(data)
    except RecursionError:
        raise too_deep() from None
    except msgspec.ValidationError:
        raise _out_of_range(data) from None
    except (msgspec.MsgspecError, ValueError) as error:
        if _has_lone_surrogate(data):
            raise invalid_json("a lone surrogate is not text") from None
        raise malformed(error) from None


def _has_lone_surrogate(data: bytes) -> bool:
    """Whether nothing else is wrong; msgspec says of one at the end of a string that the text is cut off."""
    if len(data) > LARGEST_EXPLAINED_BYTES or b"\\ud" not in data.lower():
        return False
    try:
        _decode(_ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data))
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def invalid_json(reason: str) -> Refusal:
    """The body is no JSON that is taken here."""
    return Refusal("invalid_json", f"The body is not accepted as JSON: {reason}.")


def too_deep() -> Refusal:
    """Arrays and objects stand in each other too deep."""
    return invalid_json(f"it is nested deeper than {DEEPEST}")


def malformed(error: Exception) -> Refusal:
    """What msgspec cannot parse."""
    reason = str(error).removeprefix("JSON is malformed: ")
    return invalid_json("it is empty or ends too early" if reason == "Input data was truncated" else reason)


def _out_of_range(data: bytes) -> Refusal:
    try:
        members = _members(data)
    except msgspec.ValidationError:
        members = {}  # no object; which of its items it is in does not help
    except msgspec.MsgspecError as error:
        return malformed(error)
    fields = [shortened(name) for name, value in members.items() if _is_out_of_range(value)]
    return Refusal("validation_error", "A number in the body is larger than any field takes.", fields=fields)


def _is_out_of_range(value: msgspec.Raw) -> bool:
    try:
        _decode(value)
    except msgspec.ValidationError:
        return True
    return False
