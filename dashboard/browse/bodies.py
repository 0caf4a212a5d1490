"""Message bodies made readable without changing what they say.

A body is shown by laying out its own text again, token by token: nothing is turned into a number or a
dictionary on the way, so a 30-digit integer keeps its digits, ``1.0`` stays ``1.0`` and a name that stands
twice is shown twice. Bodies are hostile input: everything leaves here escaped, and characters that could
reorder or hide text on the screen are shown as their escapes.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# What is laid out at once; the whole is one click away. A megabyte of JSON would be some 40,000 lines.
SHOWN_BYTES = 64 * 1024
PREVIEW_CHARACTERS = 160
HEX_BYTES = 4096
_INDENT = "  "

_TOKEN = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*"|-?\d[0-9.eE+-]*|true|false|null|[{}\[\],:])')
_SHORT_ESCAPES = {
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    '"': '\\"',
    "\\": "\\\\",
}
# Controls, bidirectional overrides and isolates, zero-width and line separators, byte order marks.
_DECEIVING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


@dataclass(frozen=True)
class Layout:
    """A body laid out: ``html`` is safe; ``shown`` of ``total`` bytes went into it."""

    html: SafeString
    shown: int
    total: int

    @property
    def complete(self) -> bool:
        return self.shown >= self.total


def visible(text: str) -> str:
    """The text with every character that could deceive the eye as ``\\uXXXX`` (or its short JSON escape)."""
    return _DECEIVING.sub(lambda match: _SHORT_ESCAPES.get(match[0], f"\\u{ord(match[0]):04x}"), text)


def preview(body: bytes) -> str:
    """The beginning of a body on one line, plain text; an ellipsis says that there is more."""
    text = body[: PREVIEW_CHARACTERS * 4].decode("utf-8", "replace")
    line = re.sub(r"\s+", " ", visible(re.sub(r"[\t\r\n]", " ", text))).strip()
    cut = len(line) > PREVIEW_CHARACTERS or len(body) > PREVIEW_CHARACTERS * 4
    return line[:PREVIEW_CHARACTERS] + ("…" if cut else "")


def raw(body: bytes, *, limit: int = SHOWN_BYTES) -> str:
    """The body as sent, up to ``limit`` bytes, deceiving characters made visible but line breaks kept."""
    text = body[:limit].decode("utf-8", "replace")
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.split("\n"))


def laid_out(body: bytes, *, limit: int = SHOWN_BYTES) -> Layout:
    """The body indented, names and values marked for colour; what is not JSON is shown as it is."""
    text = body[:limit].decode("utf-8", "replace")
    parts: list[str] = []
    depth = 0
    before = ""
    position = 0
    for token, following, end in tokens(text):
        if token in "{[":
            depth += 1
            parts.append(token if following in ("}", "]") else f"{token}\n{_INDENT * depth}")
        elif token in "}]":
            depth = max(0, depth - 1)
            parts.append(token if before in ("{", "[") else f"\n{_INDENT * depth}{token}")
        elif token == ",":
            parts.append(f",\n{_INDENT * depth}")
        elif token == ":":
            parts.append(": ")
        elif token.startswith('"'):
            kind = "name" if following == ":" else "string"
            parts.append(f'<span class="json-{kind}">{escape(readable_string(token))}</span>')
        else:
            kind = "number" if token[0] in "-0123456789" else "literal"
            parts.append(f'<span class="json-{kind}">{escape(token)}</span>')
        before, position = token, end
    parts.append(escape(visible(text[position:].rstrip())))
    # Every token above went through escape() or is one of {}[],: .
    return Layout(html=mark_safe("".join(parts)), shown=min(limit, len(body)), total=len(body))


def tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """The tokens of a JSON text: each with the one that follows ("" at the end) and the place behind it."""
    match = _TOKEN.match(text)
    while match:
        token, end = match[1], match.end()
        # Matched only where the last one ended: a search onwards would try every quote in a cut-off rest.
        match = _TOKEN.match(text, end)
        yield token, match[1] if match else "", end


def hex_dump(body: bytes, *, limit: int = HEX_BYTES) -> str:
    """The first bytes of a body, sixteen a line: place, hexadecimal, and what is printable ASCII."""
    lines = []
    for place in range(0, min(limit, len(body)), 16):
        row = body[place : min(place + 16, limit)]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{place:06x}  {row[:8].hex(' '):23}  {row[8:].hex(' '):23}  {shown}")
    return "\n".join(lines)


def readable_string(token: str) -> str:
    """``"caf\\u00e9"`` as ``"café"``; whatever would deceive or cannot be encoded keeps its escape."""
    if "\\u" not in token:
        return visible(token)
    try:
        value: str = json.loads(token)
    except ValueError:
        return visible(token)
    inner = "".join(_SHORT_ESCAPES.get(character, character) for character in value)
    return f'"{visible(inner)}"'
