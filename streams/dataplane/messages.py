"""Reading what a publisher sent: strict, without decoding the bodies.

The quick way lets msgspec validate and slice the bytes. What it refuses is looked at again, slowly and by hand:
either to name every wrong field of every message, or because of a lone surrogate escape in a body, which msgspec
does not pass and which comes back as it was sent.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from json import JSONDecodeError
from json.decoder import JSONDecoder
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from streams.errors import Refusal
from streams.log.append import BATCH_LIMIT, NOTHING_EXPECTED, Expectation
from streams.log.entries import NewMessage
from streams.naming import LONGEST_KEY, key_fault

DEEPEST = 128
LONGEST_ID = 50
LARGEST_HEADERS_BYTES = 65_536
LONGEST_TTL_S = 10 * 365 * 86_400
LARGEST_INTEGER = 2**53 - 1

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BLANK = re.compile(r"[ \t\n\r]*")
_FIELDS = ("id", "body", "key", "headers", "ttl")


@dataclass(frozen=True, slots=True)
class Publication:
    """What one publish asks for."""

    messages: list[NewMessage]
    expect: Expectation = field(default=NOTHING_EXPECTED)


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    body: msgspec.Raw
    key: Annotated[str, Meta(max_length=LONGEST_KEY)] | None = None
    headers: dict[str, str] | None = None
    ttl: Annotated[int, Meta(ge=1, le=LONGEST_TTL_S)] | None = None


_decode = msgspec.json.Decoder(list[_Message]).decode


def read_publication(data: bytes) -> Publication:
    """The messages of a request body: an array, one message, or ``{"messages": […], "expect": {…}}``.

    Raises:
        Refusal: ``invalid_json``, ``validation_error`` with every wrong field of every message in
            ``details.errors``, or ``batch_too_large``.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _invalid_json("it is not UTF-8") from None
    if data[:1] == b"[":
        try:
            messages = _decode(data)
        except (msgspec.MsgspecError, RecursionError):
            pass
        else:
            if len(messages) > BATCH_LIMIT:
                raise _batch_too_large(len(messages))
            quick = _quickly(messages)
            if quick is not None:
                return Publication(quick)
    return _Slowly(data, text).publication()


def _quickly(messages: list[_Message]) -> list[NewMessage] | None:
    """The messages, or None when one needs a closer look."""
    found = []
    for message in messages:
        body = bytes(message.body)
        if body.count(b"[") + body.count(b"{") > DEEPEST - 2:
            return None
        if message.key is None and message.headers is None:
            found.append(NewMessage(id=message.id, body=body, ttl_s=message.ttl))
            continue
        headers = None if message.headers is None else msgspec.json.encode(message.headers)
        if message.key is not None and key_fault(message.key):
            return None
        if headers is not None and len(headers) > LARGEST_HEADERS_BYTES:
            return None
        found.append(
            NewMessage(id=message.id, body=body, key=message.key, headers=headers, ttl_s=message.ttl)
        )
    return found


class _Slowly:
    """The same by hand, one value at a time, keeping the text of each body."""

    def __init__(self, data: bytes, text: str) -> None:
        if _is_deeper(data):
            raise _invalid_json(f"it is nested deeper than {DEEPEST}")
        self.text = text
        self.decoder = JSONDecoder(strict=True, parse_constant=_no_constant, parse_int=_integer)
        self.errors: list[dict[str, Any]] = []

    def publication(self) -> Publication:
        try:
            start = self._blank(0)
            value, end = self.decoder.raw_decode(self.text, start)
            if self._blank(end) != len(self.text):
                raise _invalid_json("there is more after it")
            if isinstance(value, list):
                return Publication(self._messages(start, value))
            if not isinstance(value, dict):
                raise Refusal("validation_error", "Expected a message or an array of messages.", fields=[])
            if "messages" not in value:
                return Publication(self._messages(start, [value], single=True))
            return self._with_expectation(start, value)
        except (JSONDecodeError, RecursionError, _Constant) as error:
            raise _invalid_json(str(error)) from None

    def _with_expectation(self, start: int, value: dict[str, Any]) -> Publication:
        unknown = sorted(set(value) - {"messages", "expect"})
        if unknown:
            raise Refusal("validation_error", f"Unknown fields: {', '.join(unknown)}.", fields=unknown)
        if not isinstance(value["messages"], list):
            raise Refusal("validation_error", "messages: Expected an array.", fields=["messages"])
        at = {name: begin for name, begin, _ in self._members(start)}
        return Publication(
            self._messages(at["messages"], value["messages"]), _expectation(value.get("expect"))
        )

    def _messages(self, start: int, values: list[Any], *, single: bool = False) -> list[NewMessage]:
        if len(values) > BATCH_LIMIT:
            raise _batch_too_large(len(values))
        starts = [start] if single else [begin for begin, _ in self._items(start)]
        found = [
            self._message(n, begin, value)
            for n, (begin, value) in enumerate(zip(starts, values, strict=True))
        ]
        if self.errors:
            first = self.errors[0]
            raise Refusal(
                "validation_error",
                f"Message {first['index']}, {first['field']}: {first['message']}",
                fields=sorted({error["field"] for error in self.errors}),
                errors=self.errors,
            )
        return [message for message in found if message is not None]

    def _message(self, index: int, start: int, value: Any) -> NewMessage | None:
        def wrong(name: str, sentence: str) -> None:
            self.errors.append({"index": index, "field": name, "message": sentence})

        before = len(self.errors)
        if not isinstance(value, dict):
            wrong("", "Expected an object.")
            return None
        for name in value:
            if name not in _FIELDS:
                wrong(name, "This field is not known.")
        message_id, key, headers, ttl = (value.get(name) for name in ("id", "key", "headers", "ttl"))
        if not isinstance(message_id, str) or not 1 <= len(message_id) <= LONGEST_ID:
            wrong("id", f"Required: a string of 1 to {LONGEST_ID} characters.")
        elif not _is_text(message_id):
            wrong("id", "A lone surrogate is not text.")
        if "body" not in value:
            wrong("body", "Required: any JSON value, also null.")
        if key is not None and not isinstance(key, str):
            wrong("key", "Expected a string.")
        elif key is not None and (fault := _surrogate_fault(key) or key_fault(key)):
            wrong("key", fault)
        packed = self._headers(headers, wrong) if headers is not None else None
        if ttl is not None and (type(ttl) is not int or not 1 <= ttl <= LONGEST_TTL_S):
            wrong("ttl", f"Expected whole seconds from 1 to {LONGEST_TTL_S}.")
        if len(self.errors) > before:
            return None
        begin, end = next(
            (begin, end) for name, begin, end in reversed(list(self._members(start))) if name == "body"
        )
        body = self.text[begin:end].encode()
        return NewMessage(id=str(message_id), body=body, key=key, headers=packed, ttl_s=ttl)

    @staticmethod
    def _headers(headers: Any, wrong: Any) -> bytes | None:
        if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
            wrong("headers", "Expected a flat object of strings.")
            return None
        if not all(_is_text(name) and _is_text(value) for name, value in headers.items()):
            wrong("headers", "A lone surrogate is not text.")
            return None
        packed = msgspec.json.encode(headers)
        if len(packed) > LARGEST_HEADERS_BYTES:
            wrong("headers", f"Expected at most {LARGEST_HEADERS_BYTES} bytes.")
        return packed

    def _blank(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def _items(self, start: int) -> Iterator[tuple[int, int]]:
        """Begin and end of each item of the array at ``start``; the text is known to be well formed."""
        at = self._blank(start + 1)
        while self.text[at] != "]":
            _, end = self.decoder.raw_decode(self.text, at)
            yield at, end
            at = self._blank(end)
            if self.text[at] == ",":
                at = self._blank(at + 1)

    def _members(self, start: int) -> Iterator[tuple[str, int, int]]:
        """Name, begin and end of each value of the object at ``start``."""
        at = self._blank(start + 1)
        while self.text[at] != "}":
            name, end = self.decoder.raw_decode(self.text, at)
            begin = self._blank(self._blank(end) + 1)
            _, end = self.decoder.raw_decode(self.text, begin)
            yield name, begin, end
            at = self._blank(end)
            if self.text[at] == ",":
                at = self._blank(at + 1)


def _expectation(value: Any) -> Expectation:
    if value is None:
        return NOTHING_EXPECTED

    def wrong(name: str, sentence: str) -> Refusal:
        return Refusal("validation_error", f"expect{name}: {sentence}", fields=[f"expect{name}"])

    if not isinstance(value, dict):
        raise wrong("", "Expected an object.")
    for name in value:
        if name not in {"last_offset", "last_id", "last_key_offset"}:
            raise wrong(f".{name}", "This field is not known.")
    last_offset, last_id, by_key = (value.get(name) for name in ("last_offset", "last_id", "last_key_offset"))
    if last_offset is not None and not _is_offset(last_offset):
        raise wrong(".last_offset", "Expected a whole number, 0 for none yet.")
    if last_id is not None and not (
        isinstance(last_id, str) and len(last_id) <= LONGEST_ID and _is_text(last_id)
    ):
        raise wrong(".last_id", "Expected a string.")
    if by_key is not None and not (
        isinstance(by_key, dict) and all(_is_text(key) and _is_offset(at) for key, at in by_key.items())
    ):
        raise wrong(".last_key_offset", "Expected an object of whole numbers by key, 0 for none yet.")
    return Expectation(last_offset=last_offset, last_id=last_id, last_key_offset=by_key or {})


class _Constant(ValueError):
    pass


def _no_constant(name: str) -> None:
    raise _Constant(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    # A number of thousands of digits is kept as text in a body; nothing of ours is that large.
    return int(digits) if len(digits) < 30 else float("inf")


def _is_offset(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_INTEGER


def _surrogate_fault(text: str) -> str | None:
    return None if _is_text(text) else "A lone surrogate is not text."


def _is_text(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _is_deeper(data: bytes) -> bool:
    if data.count(b"[") + data.count(b"{") <= DEEPEST:
        return False
    depth = 0
    for char in _STRING.sub(b"", data):
        if char in b"[{":
            depth += 1
            if depth > DEEPEST:
                return True
        elif char in b"]}":
            depth -= 1
    return False


def _invalid_json(reason: str) -> Refusal:
    return Refusal("invalid_json", f"The body is not JSON: {reason}.")


def _batch_too_large(count: int) -> Refusal:
    return Refusal(
        "batch_too_large",
        f"The batch has {count} messages; send {BATCH_LIMIT} at most.",
        count=count,
        limit=BATCH_LIMIT,
    )
