"""Bodies that hold something coded in a JSON string (base64, gzip, zstd, MessagePack, Protobuf), decoded to be read.

What was sent stays what it is; this is a second look at it, which says what was done. All of it is bounded, whatever
a body claims to become: the bytes that are taken of it, those that come out of a step, and the steps in a row.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from django.utils.translation import gettext as _

from dashboard.browse import cbor, packed, pickles, protobuf, unpacking, vectors
from dashboard.browse.unpacking import MOST_BYTES, Piece
from streams.nesting import is_deeper

MOST_SENT_BYTES = 4 * MOST_BYTES
"""What is taken of a body: as much as so many bytes are in hexadecimal, twice."""

DEEPEST = packed.DEEPEST
"""So deep arrays and objects may stand in each other where JSON is seen in what was decoded: as in a body as sent."""

MOST_STEPS = 4

LEAST_TEXT = 12
"""Characters of a text that is taken for one: so many bytes are readable by accident once in a million."""

AUTO, RAW = "auto", "raw"
JSON, TEXT, BINARY = "JSON", "text", "binary"
MESSAGE_PACK, CBOR, PROTOBUF = "MessagePack", "CBOR", "Protobuf"

_SEPARATORS = re.compile(r"[\s,.>→]+")
_STANDARD, _URL_SAFE = re.compile(rb"[A-Za-z0-9+/]*"), re.compile(rb"[A-Za-z0-9_-]*")
_HEXADECIMAL = re.compile(rb"(?:0x|\\x)?((?:[0-9A-Fa-f]{2})*)[0-9A-Fa-f]?")
_BLANKS = b" \t\r\n"
_LINE_BREAKS = b"\r\n"
_LAID_OUT = dict.fromkeys(map(ord, "\t\r\n"))
"""What text may hold though it is not printed."""
_CUT_ESCAPE = 6
_SIGNS = {
    b"\x1f\x8b\x08": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
}
"""What tells itself by its first bytes."""
_SUMMED = (*_SIGNS.values(), "zlib")
"""What a sum, or a form that no chance has, shows to be unpacked rightly."""
_is_json = msgspec.json.Decoder(msgspec.Raw).decode


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body decoded.

    Attributes:
        body: what came out: JSON text, other text in UTF-8, or any bytes, as ``kind`` says; as sent with a ``fault``.
        steps: what was done, in order, and what it came to: ``base64``, ``gzip``, ``JSON``.
        whole: False where ``body`` is the beginning of it.
        fault: why it could not be decoded as was asked, as a part of a sentence.
    """

    body: bytes
    steps: tuple[str, ...]
    kind: str
    whole: bool
    fault: str = ""

    @property
    def said(self) -> str:
        """``base64, gzip, JSON``."""
        return _("JSON in a string") if self.steps == (JSON,) else ", ".join(self.steps)

    @property
    def is_without_names(self) -> bool:
        """Whether names and types are not known, as they stand in a schema that is not there."""
        return PROTOBUF in self.steps


@dataclass(frozen=True, slots=True)
class Reading:
    """How bodies are read: as it shows itself (no ``steps``), as sent, or by steps that a person named."""

    steps: tuple[str, ...] = ()
    is_raw: bool = False

    def __str__(self) -> str:
        return RAW if self.is_raw else " ".join(self.steps) or AUTO


AUTOMATIC = Reading()


def reading(text: str) -> Reading:
    """``auto`` (or nothing), ``raw``, or steps in their order: ``base64 gzip json``.

    Raises:
        ValueError: a sentence for the form.
    """
    words = [word for word in _SEPARATORS.split(text.lower()) if word]
    if words in ([], [AUTO]):
        return AUTOMATIC
    if words == [RAW]:
        return Reading(is_raw=True)
    unknown = next((word for word in words if word not in _STEPS), None)
    if unknown is not None:
        known = ", ".join(_STEPS)
        raise ValueError(
            _("“%(unknown)s” is not auto, raw or a sequence of %(known)s.")
            % {"unknown": unknown, "known": known}
        )
    if len(words) > MOST_STEPS:
        raise ValueError(_("At most %(most)s steps can be chained.") % {"most": MOST_STEPS})
    return Reading(tuple(words))


def decoded(body: bytes, how: Reading) -> Decoded | None:
    """A body read as was asked; None where it is shown as sent: that was asked, or nothing coded is seen in it."""
    if how.is_raw or (not how.steps and not is_string(body)):
        return None
    if not how.steps:
        held = _held(body)
        return None if held is None else _recognised(held, (), MOST_STEPS)
    held = _held(body) if is_string(body) else None
    if held is None:
        return Decoded(body, (), JSON, whole=True, fault=_("it is not a string"))
    return _followed(body, held, how.steps)


def is_string(body: bytes) -> bool:
    """Whether a body is a JSON string: only that can hold something coded."""
    return body.lstrip(_BLANKS)[:1] == b'"' if body[:1] in (b" ", b"\t", b"\r", b"\n") else body[:1] == b'"'


def _followed(body: bytes, held: Piece, steps: tuple[str, ...]) -> Decoded:
    """The steps that a person named, and what it came to, where no step said so."""
    done: tuple[str, ...] = ()
    kind = ""
    for step in steps:
        try:
            held = _STEPS[step](held)
        except ValueError as error:
            return Decoded(
                body,
                done,
                JSON,
                whole=True,
                fault=_("not %(step)s: %(fault)s") % {"step": step, "fault": error},
            )
        done = (*done, held.name or step)
        kind = JSON if held.name in (JSON, MESSAGE_PACK, CBOR, PROTOBUF) else ""
    if not kind:
        kind = JSON if _holds_json(held) else TEXT if _readable(held) is not None else BINARY
        done = (*done, kind)
    return Decoded(held.data, done, kind, held.whole)


def _recognised(held: Piece, done: tuple[str, ...], left: int) -> Decoded | None:
    """What shows itself: by the signs at its beginning, by sums that agree, by being readable in the end."""
    if left:
        for step in _suggested(held.data):
            try:
                inner = _STEPS[step](held)
            except ValueError:
                continue
            if step == "msgpack" and not inner.data.startswith((b'{"', b'[{"')):
                continue  # random bytes may be an array of small numbers; not one of members with names
            if step in ("json", "msgpack"):
                return Decoded(inner.data, (*done, inner.name), JSON, inner.whole)
            found = _recognised(inner, (*done, inner.name or step), left - 1)
            if found is not None:
                return found
    if not done:
        return None
    sure = done[-1] in _SUMMED
    text = _readable(held)
    if text is not None and (sure or len(text) >= LEAST_TEXT):
        return Decoded(held.data, (*done, TEXT), TEXT, held.whole)
    numbered = _certain_protobuf(held)
    if numbered is not None:
        return Decoded(numbered.data, (*done, PROTOBUF), JSON, numbered.whole)
    return Decoded(held.data, (*done, BINARY), BINARY, held.whole) if sure else None


def _certain_protobuf(held: Piece) -> Piece | None:
    """Protobuf as JSON; None for what is not certain to be any."""
    try:
        made = protobuf.written(held.data, whole=held.whole, most_bytes=MOST_BYTES)
    except ValueError:
        return None
    return Piece(made.text.encode(), made.whole) if made.is_certain else None


def _suggested(data: bytes) -> list[str]:
    """The steps that the beginning of some bytes speaks for."""
    first = data[:1]
    sign = next((name for start, name in _SIGNS.items() if data.startswith(start)), None)
    if sign:
        return [sign]
    if first == b"\x78" and len(data) > 1 and int.from_bytes(data[:2]) % 31 == 0:
        return ["zlib", "base64"]
    if first and (0x80 <= first[0] <= 0x9F or 0xDC <= first[0] <= 0xDF):
        return ["msgpack"]
    if data.lstrip(_BLANKS)[:1] in (b"{", b"["):
        return ["json"]
    return ["hex", "base64"] if data.isascii() else []


def _held(body: bytes) -> Piece | None:
    """The characters of a JSON string as UTF-8, their beginning where there are many; None for what is no string."""
    body = body.strip(_BLANKS) if body[:1] != b'"' else body
    if len(body) <= MOST_SENT_BYTES:
        texts, whole = [body], True
    else:
        # A cut may fall into an escape or a character; a little before that it does not.
        cut = body[:MOST_SENT_BYTES]
        texts, whole = [cut[: len(cut) - back] + b'"' for back in range(2 * _CUT_ESCAPE)], False
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        return Piece(value.encode("utf-8", "surrogatepass"), whole) if isinstance(value, str) else None
    return None


def _base64(held: Piece) -> Piece:
    text = held.data.translate(None, _LINE_BREAKS)
    inner = text.rstrip(b"=")
    if len(text) - len(inner) > 2:
        raise ValueError(_("it ends with more than two ="))
    is_standard = _STANDARD.fullmatch(inner) is not None
    if not is_standard and not _URL_SAFE.fullmatch(inner):
        raise ValueError(_("it contains other characters"))
    if not held.whole:
        inner = inner[: len(inner) // 4 * 4]
    if not inner or len(inner) % 4 == 1:
        raise ValueError(_("it ends in the middle of a byte") if inner else _("it is empty"))
    data = base64.b64decode(inner + b"=" * (-len(inner) % 4), altchars=None if is_standard else b"-_")
    return _cut(data, whole=held.whole, name="base64" if is_standard else "base64url")


def _hex(held: Piece) -> Piece:
    match = _HEXADECIMAL.fullmatch(held.data.translate(None, _LINE_BREAKS))
    if match is None or not match[1]:
        raise ValueError(_("it contains other characters") if match is None else _("it is empty"))
    if held.whole and match.end() != match.end(1):
        raise ValueError(_("it ends in the middle of a byte"))
    return _cut(binascii.unhexlify(match[1]), whole=held.whole)


def _message_pack(held: Piece) -> Piece:
    text, whole = packed.json_text(held.data, whole=held.whole, most_bytes=MOST_BYTES)
    return Piece(text.encode("utf-8", "surrogatepass"), whole, name=MESSAGE_PACK)


def _cbor(held: Piece) -> Piece:
    text, whole = cbor.json_text(held.data, whole=held.whole, most_bytes=MOST_BYTES)
    return Piece(text.encode("utf-8", "surrogatepass"), whole, name=CBOR)


def _protobuf(held: Piece) -> Piece:
    made = protobuf.written(held.data, whole=held.whole, most_bytes=MOST_BYTES)
    return Piece(made.text.encode(), made.whole, name=PROTOBUF)


def _vector(form: str) -> Callable[[Piece], Piece]:
    def step(held: Piece) -> Piece:
        text, whole = vectors.json_text(held.data, form, whole=held.whole)
        return Piece(text.encode(), whole)

    return step


def _pickle(held: Piece) -> Piece:
    text, whole = pickles.listing(held.data, whole=held.whole, most_bytes=MOST_BYTES)
    return Piece(text.encode(), whole)


def _json(held: Piece) -> Piece:
    if not _holds_json(held):
        raise ValueError(
            _("it is nested deeper than %(most)s") % {"most": DEEPEST}
            if _is_too_deep(held)
            else _("it is not JSON")
        )
    return Piece(held.data, held.whole, name=JSON)


def _holds_json(held: Piece) -> bool:
    """Whether it is JSON, and no deeper than ``DEEPEST``.

    Of its beginning only that it begins like an object or an array can be said.
    """
    text = held.data.strip(_BLANKS)
    if _is_too_deep(held):
        return False
    if not held.whole:
        return text[:1] in (b"{", b"[") and _readable(held) is not None
    try:
        text.decode()
        _is_json(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


def _is_too_deep(held: Piece) -> bool:
    return held.data.lstrip(_BLANKS)[:1] in (b"{", b"[") and is_deeper(held.data, DEEPEST)


def _readable(held: Piece) -> str | None:
    """Bytes as the text that they are; None where they are something else."""
    data = held.data
    for back in range(1 if held.whole else 4):  # the cut may fall into a character
        try:
            text = data[: len(data) - back].decode()
        except UnicodeDecodeError:
            continue
        return text if text.translate(_LAID_OUT).isprintable() else None
    return None


def _cut(data: bytes, *, whole: bool, name: str = "") -> Piece:
    """What came out, as much of it as may; bytes that another step makes smaller may be more than are shown."""
    return Piece(data[:MOST_SENT_BYTES], whole and len(data) <= MOST_SENT_BYTES, name)


_STEPS: dict[str, Callable[[Piece], Piece]] = {
    "base64": _base64,
    "hex": _hex,
    **unpacking.STEPS,
    "msgpack": _message_pack,
    "cbor": _cbor,
    "protobuf": _protobuf,
    "float32": _vector(vectors.FLOAT),
    "float64": _vector(vectors.DOUBLE),
    "pickle": _pickle,
    "json": _json,
}
