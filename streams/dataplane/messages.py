"""Reading what a publisher sent: strict, without decoding the bodies.

The quick way lets msgspec validate and slice the bytes. What it refuses is looked at again, message by message and
field by field: either to name every wrong field of every message, or because of a lone surrogate escape in a body,
which msgspec does not pass and which comes back as it was sent. No way makes objects of a body, whose text may be
small and costly: what arrays and objects it holds is only counted.
"""

import json
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from streams.dataplane import slicing
from streams.dataplane.marked import Marked
from streams.dataplane.request import LARGEST_AT_ONCE_BYTES
from streams.decoding import DEEPEST, DEEPEST_BODY, invalid_json, malformed, too_deep
from streams.errors import Refusal
from streams.log.append import BATCH_LIMIT, NOTHING_EXPECTED, Expectation
from streams.log.entries import LARGEST_HEADERS_BYTES, LONGEST_ID, LONGEST_TTL_S, NewMessage
from streams.naming import LONGEST_KEY, key_fault, shortened
from streams.nesting import is_deeper

LARGEST_INTEGER = 2**53 - 1
LARGEST_EXPECT_BYTES = 1024 * 1024
MOST_ERRORS = 1000
"""Errors after which of a message's unknown fields only one is named."""

_LONGEST_ESCAPE = 12
"""Bytes that one character may take: two escapes, beyond the first 65,536 characters."""
_BLANK = b" \t\n\r"


class Publication(msgspec.Struct, frozen=True):
    """What one publish asks for."""

    messages: list[NewMessage]
    expect: Expectation = NOTHING_EXPECTED


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    body: msgspec.Raw
    key: Annotated[str, Meta(max_length=LONGEST_KEY)] | None = None
    headers: dict[str, str] | None = None
    ttl: Annotated[int, Meta(ge=1, le=LONGEST_TTL_S)] | None = None


_decode = msgspec.json.Decoder(list[_Message]).decode
_headers = msgspec.json.Decoder(dict[str, str]).decode


def read_publication(data: bytes) -> Publication:
    """The messages of a request body: an array, one message, or ``{"messages": […], "expect": {…}}``.

    Raises:
        Refusal: ``invalid_json``, ``validation_error`` with every wrong field of every message in
            ``details.errors``, or ``batch_too_large``.
    """
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            raise invalid_json("it is not UTF-8") from None
    if data[:1] == b"[" and (len(data) <= LARGEST_AT_ONCE_BYTES or _is_modest(data)):
        try:
            messages = _decode(data)
        except (msgspec.MsgspecError, RecursionError):
            pass
        else:
            if len(messages) > BATCH_LIMIT:
                raise slicing.batch_too_large()
            quick = _quickly(messages)
            if quick is not None:
                return Publication(quick)
    return _slowly(data)


def _is_modest(data: bytes) -> bool:
    """Whether it is an array of messages in which nothing but bodies is large: only bodies are not decoded.

    Raises:
        Refusal: ``batch_too_large``.
    """
    try:
        sent = [slicing.parts(item, slicing.Message) for item in slicing.items(data)]
    except (msgspec.MsgspecError, RecursionError):
        return False
    return all(
        len(slicing.sent(message.id)) <= _LONGEST_ESCAPE * LONGEST_ID + 2
        and len(slicing.sent(message.key)) <= _LONGEST_ESCAPE * LONGEST_KEY + 2
        and len(slicing.sent(message.headers)) <= _LONGEST_ESCAPE * LARGEST_HEADERS_BYTES
        for message in sent
    )


def _quickly(messages: list[_Message]) -> list[NewMessage] | None:
    """The messages, or None when one needs a closer look."""
    found = []
    for message in messages:
        body = bytes(message.body)
        if is_deeper(body, DEEPEST_BODY):
            raise too_deep()
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


def _slowly(data: bytes) -> Publication:
    marked = Marked(data)
    try:
        match data.lstrip(_BLANK)[:1]:
            case b"[":
                items = slicing.items(marked.data)
            case b"{":
                envelope = slicing.parts(marked.data, slicing.Envelope)
                if envelope.messages is not UNSET:
                    return _enveloped(marked, envelope)
                items = [msgspec.Raw(marked.data.strip(_BLANK))]
            case _:
                slicing.check(data)
                raise Refusal("validation_error", "Expected a message or an array of messages.", fields=[])
    except msgspec.MsgspecError as error:
        raise malformed(error) from None
    except RecursionError:
        raise too_deep() from None
    if is_deeper(data, DEEPEST):
        raise too_deep()
    return Publication(_Reader(marked).messages(items))


def _enveloped(marked: Marked, envelope: slicing.Envelope) -> Publication:
    if is_deeper(marked.data, DEEPEST):
        raise too_deep()
    names = sorted(shortened(marked.shown(name)) for name in slicing.unknown(marked.data, envelope))
    if names:
        raise Refusal("validation_error", f"Unknown fields: {', '.join(names)}.", fields=names)
    sent = slicing.sent(envelope.messages)
    if sent[:1] != b"[":
        raise Refusal("validation_error", "messages: Expected an array.", fields=["messages"])
    expect = _expected(marked, slicing.sent(envelope.expect))
    messages = _Reader(marked).messages(slicing.items(sent))
    if not messages and expect != NOTHING_EXPECTED:
        raise Refusal("validation_error", "expect: Without a message nothing is checked.", fields=["expect"])
    return Publication(messages, expect)


def _expected(marked: Marked, sent: bytes) -> Expectation:
    if len(sent) > LARGEST_EXPECT_BYTES:
        sentence = f"expect: Expected at most {LARGEST_EXPECT_BYTES} bytes."
        raise Refusal("validation_error", sentence, fields=["expect"])
    return _expectation(marked.value(sent)) if sent else NOTHING_EXPECTED


class _Reader:
    """The messages of a well-formed text, or every fault in them."""

    def __init__(self, marked: Marked) -> None:
        self._marked = marked
        self._errors: list[dict[str, Any]] = []

    def messages(self, items: list[msgspec.Raw]) -> list[NewMessage]:
        found = [self._message(index, item) for index, item in enumerate(items)]
        if self._errors:
            first = self._errors[0]
            raise Refusal(
                "validation_error",
                f"Message {first['index']}, {first['field']}: {first['message']}",
                fields=sorted({error["field"] for error in self._errors}),
                errors=self._errors,
            )
        return [message for message in found if message is not None]

    def _message(self, index: int, item: msgspec.Raw) -> NewMessage | None:
        def wrong(name: str, sentence: str) -> None:
            self._errors.append({"index": index, "field": name, "message": sentence})

        before = len(self._errors)
        if bytes(item)[:1] != b"{":
            wrong("", "Expected an object.")
            return None
        parts = slicing.parts(item, slicing.Message)
        for name in slicing.unknown(item, parts, every=before < MOST_ERRORS):
            wrong(shortened(self._marked.shown(name)), "Unknown field.")
        message_id = self._text(parts.id, longest=LONGEST_ID)
        if not message_id:
            wrong("id", f"Required: a string of 1 to {LONGEST_ID} characters.")
        elif not _is_text(message_id):
            wrong("id", "A lone surrogate is not text.")
        if parts.body is UNSET:
            wrong("body", "Required: any JSON value, also null.")
        key = self._text(parts.key, longest=LONGEST_KEY)
        if key is None and _is_given(parts.key):
            wrong("key", f"Expected a string of at most {LONGEST_KEY} characters.")
        elif key is not None and (fault := _surrogate_fault(key) or key_fault(key)):
            wrong("key", fault)
        headers = self._headers(slicing.sent(parts.headers), wrong) if _is_given(parts.headers) else None
        ttl = slicing.sent(parts.ttl)
        ttl_s = int(ttl) if _is_ttl(ttl) else None
        if ttl_s is None and _is_given(parts.ttl):
            wrong("ttl", f"Expected whole seconds from 1 to {LONGEST_TTL_S}.")
        if len(self._errors) > before:
            return None
        body = self._marked.restored(slicing.sent(parts.body))
        return NewMessage(id=str(message_id), body=body, key=key, headers=headers, ttl_s=ttl_s)

    def _text(self, sent: slicing.Part, *, longest: int) -> str | None:
        """The string that was sent; None for none, for anything else, and for a longer one."""
        if not _is_given(sent):
            return None
        data = self._marked.restored(slicing.sent(sent))
        if len(data) > _LONGEST_ESCAPE * longest + 2:
            return None
        text = self._marked.text(data)
        return None if text is None or len(text) > longest else text

    def _headers(self, sent: bytes, wrong: Any) -> bytes | None:
        restored = self._marked.restored(sent)
        if len(restored) > _LONGEST_ESCAPE * LARGEST_HEADERS_BYTES:
            wrong("headers", f"Expected at most {LARGEST_HEADERS_BYTES} bytes.")
            return None
        try:
            headers = _headers(sent)  # a flat object, so what is decoded again is cheap
        except msgspec.MsgspecError:
            wrong("headers", "Expected a flat object of strings.")
            return None
        if restored != sent:
            headers = json.loads(restored)
        if not all(_is_text(name) and _is_text(value) for name, value in headers.items()):
            wrong("headers", "A lone surrogate is not text.")
            return None
        packed = msgspec.json.encode(headers)
        if len(packed) > LARGEST_HEADERS_BYTES:
            wrong("headers", f"Expected at most {LARGEST_HEADERS_BYTES} bytes.")
        return packed


def _expectation(value: Any) -> Expectation:
    if value is None:
        return NOTHING_EXPECTED

    def wrong(name: str, sentence: str) -> Refusal:
        return Refusal("validation_error", f"expect{name}: {sentence}", fields=[f"expect{name}"])

    if not isinstance(value, dict):
        raise wrong("", "Expected an object.")
    for name in value:
        if name not in {"last_offset", "last_id", "last_key_offset"}:
            raise wrong(f".{shortened(name)}", "Unknown field.")
    last_offset, last_id, by_key = (value.get(name) for name in ("last_offset", "last_id", "last_key_offset"))
    if last_offset is not None and not _is_offset(last_offset):
        raise wrong(".last_offset", "Expected a whole number, 0 for none yet.")
    if last_id is not None and not (
        isinstance(last_id, str) and 1 <= len(last_id) <= LONGEST_ID and _is_text(last_id)
    ):
        raise wrong(".last_id", f"Expected a string of 1 to {LONGEST_ID} characters.")
    if by_key is not None and not (
        isinstance(by_key, dict) and all(_is_text(key) and _is_offset(at) for key, at in by_key.items())
    ):
        raise wrong(".last_key_offset", "Expected an object of whole numbers by key, 0 for none yet.")
    if len(by_key or {}) > BATCH_LIMIT:
        raise wrong(".last_key_offset", f"Expected at most {BATCH_LIMIT} keys.")
    for key in by_key or {}:
        if fault := key_fault(key):
            raise wrong(".last_key_offset", f"{shortened(key)!r}: {fault}")
    return Expectation(last_offset=last_offset, last_id=last_id, last_key_offset=by_key or {})


def _is_offset(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_INTEGER


def _surrogate_fault(text: str) -> str | None:
    return None if _is_text(text) else "A lone surrogate is not text."


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_given(sent: slicing.Part) -> bool:
    return sent is not UNSET and bytes(sent) != b"null"


def _is_ttl(digits: bytes) -> bool:
    return digits.isdigit() and len(digits) <= 16 and 1 <= int(digits) <= LONGEST_TTL_S
