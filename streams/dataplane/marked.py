"""A text with lone surrogates, which msgspec does not take, made one that it takes, and back."""

import json
import re
import secrets
from collections.abc import Iterator
from typing import Any

import msgspec

from streams.decoding import invalid_json

PIECE_BYTES = 65_536

_LONGEST_ESCAPE = 6
_text = msgspec.json.Decoder(str).decode


class Marked:
    r"""A JSON text in which the escapes of surrogates (``\ud800`` to ``\udfff``) were marked, so that msgspec takes it.

    Attributes:
        data: the text with its marks, or as it was where there are no such escapes.
    """

    def __init__(self, data: bytes) -> None:
        self._marks: dict[bytes, bytes] = {}
        self.data = data
        if b"\\ud" not in data and b"\\uD" not in data:
            return
        nonce = secrets.token_hex(5).encode()  # nobody can send a text that holds it
        self._marks = {b"%bl" % nonce: b"\\ud", b"%bu" % nonce: b"\\uD"}
        self._pair = b"%bp" % nonce
        self._no_escape = re.compile(rb"%b[lu](?![0-9a-fA-F]{3})" % nonce)
        self.data = b"".join([self._marked(piece) for piece in _pieces(data)])

    def _marked(self, data: bytes) -> bytes:
        if not any(escape in data for escape in self._marks.values()):
            return data
        # Two backslashes are one that is escaped; what stands after them is no escape.
        has_pairs = b"\\\\" in data
        if has_pairs:
            data = data.replace(b"\\\\", self._pair)
        for mark, escape in self._marks.items():
            data = data.replace(escape, mark)
        if self._no_escape.search(data):
            raise invalid_json("an escape is not of four hexadecimal digits")
        return data.replace(self._pair, b"\\\\") if has_pairs else data

    def restored(self, data: bytes) -> bytes:
        """A part of the text as it was sent."""
        for mark, escape in self._marks.items():
            data = data.replace(mark, escape)
        return data

    def shown(self, name: str) -> str:
        """The name of a member, with its surrogates as the escapes that were sent."""
        for mark, escape in self._marks.items():
            name = name.replace(mark.decode(), escape.decode())
        return name

    def value(self, data: bytes) -> Any:
        """A part of the text as Python values; what is no text of characters has lone surrogates."""
        return json.loads(self.restored(data), parse_int=_integer)

    def text(self, data: bytes) -> str | None:
        """The string that stands there; None for anything else. ``data`` is restored."""
        if data[:1] != b'"':
            return None
        try:
            return _text(data)
        except msgspec.MsgspecError:
            text: str = json.loads(data)
            return text


def _integer(digits: str) -> int | float:
    # A number of thousands of digits is kept as text in a body; nothing of ours is that large.
    return int(digits) if len(digits) < 30 else float("inf")


def _pieces(data: bytes) -> Iterator[bytes]:
    """The text in pieces, none of which ends within an escape: a thread that looks at one lets no other run."""
    start = 0
    while len(data) - start > PIECE_BYTES:
        end = start + PIECE_BYTES
        last = data.rfind(b"\\", end - _LONGEST_ESCAPE, end)
        if last >= 0:
            before = data[start:last]
            # After an odd number of them it is itself what is escaped.
            end = last - (len(before) - len(before.rstrip(b"\\"))) % 2
        yield data[start:end]
        start = end
    yield data[start:]
