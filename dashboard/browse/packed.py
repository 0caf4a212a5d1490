"""MessagePack written as JSON text: every integer and every name that stands twice, within bounds.

Nothing is built of it but text, so that a few bytes that announce four billion items cost nothing. What JSON does
not know is a string: bytes in hexadecimal (``"0x0aff"``), a time as RFC 3339, ``NaN`` and the infinities by name.
"""

import json
import math
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.translation import gettext as _

MOST_VALUES = 2000
"""What is written of one body; a page shows no more of it."""

DEEPEST = 128
_TIMESTAMP = -1
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_LITERALS = {0xC0: "null", 0xC2: "false", 0xC3: "true"}
# What announces how many bytes (of a string, of bytes, of an extension) or items follow, and in which form.
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_BYTES = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}
_EXTENSIONS = {0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


class EndsEarly(ValueError):
    """More was announced than is there."""


@dataclass(slots=True)
class _Level:
    """An array or a map that is being written; ``left``: items, of a map names and values."""

    left: int
    is_map: bool
    is_first: bool = True

    @property
    def closing(self) -> str:
        return "}" if self.is_map else "]"

    @property
    def is_at_name(self) -> bool:
        return self.is_map and self.left % 2 == 0


def json_text(data: bytes, *, whole: bool, most_bytes: int) -> tuple[str, bool]:
    """MessagePack as JSON text, and whether that is all of it.

    Args:
        whole: whether ``data`` is all there is, and not its beginning.

    Raises:
        ValueError: it is no MessagePack; the text says why.
    """
    return written(_MessagePack(data), whole=whole, most_bytes=most_bytes)


def written(reader: "Reader", *, whole: bool, most_bytes: int) -> tuple[str, bool]:
    """What a reader has as JSON text, and whether that is all of it; as ``json_text``."""
    try:
        while not reader.is_done:
            if reader.values >= MOST_VALUES or reader.written > most_bytes:
                return reader.text, False
            reader.value()
    except EndsEarly:
        if whole:
            raise
        return reader.text, False
    if reader.at < len(reader.data):
        raise ValueError(_("there is data after its end"))
    return reader.text, True


class Reader(ABC):
    """Values of a format that says how many items follow, written one after the other."""

    def __init__(self, data: bytes) -> None:
        self.at = 0
        self.values = 0
        self.written = 0
        self.data = data
        self._parts: list[str] = []
        self._levels: list[_Level] = []

    @property
    def is_done(self) -> bool:
        return bool(self._parts) and not self._levels

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @abstractmethod
    def value(self) -> None:
        """Write the next value, or the opening of the next array or map."""

    def _put(self, text: str) -> None:
        """Write a value that is no array and no map."""
        if self._levels and self._levels[-1].is_at_name and not text.startswith('"'):
            text = json.dumps(text)
        self._begin()
        self._write(text)
        self._end()

    def _open(self, items: int, *, is_map: bool) -> None:
        if self._levels and self._levels[-1].is_at_name:
            raise ValueError(_("the name of a member is an array or a map"))
        if len(self._levels) == DEEPEST:
            raise ValueError(_("it is nested deeper than %(most)s") % {"most": DEEPEST})
        self._begin()
        self._write("{" if is_map else "[")
        self._levels.append(_Level(items, is_map))
        self._close_full()

    def _begin(self) -> None:
        """Write what stands between the value before and the next one."""
        if not self._levels:
            return
        level = self._levels[-1]
        if level.is_map and not level.is_at_name:
            self._write(":")
        elif not level.is_first:
            self._write(",")
        level.is_first = False

    def _end(self) -> None:
        """One item of the innermost level is written."""
        if self._levels:
            self._levels[-1].left -= 1
            self._close_full()

    def _close_full(self) -> None:
        while self._levels and self._levels[-1].left == 0:
            self._write(self._levels.pop().closing)
            if self._levels:
                self._levels[-1].left -= 1

    def _number(self, form: str) -> int:
        size = struct.calcsize(form)
        number: int = struct.unpack(form, self._take(size))[0]
        return number

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) < size:
            raise EndsEarly(_("it ends too early"))
        self.at += size
        return taken

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self.written += len(text)


class _MessagePack(Reader):
    def value(self) -> None:
        self.values += 1
        mark = self._number(">B")
        if 0x80 <= mark <= 0x8F or mark in _MAPS:
            self._open(2 * (self._number(_MAPS[mark]) if mark in _MAPS else mark & 0x0F), is_map=True)
        elif 0x90 <= mark <= 0x9F or mark in _ARRAYS:
            self._open(self._number(_ARRAYS[mark]) if mark in _ARRAYS else mark & 0x0F, is_map=False)
        else:
            self._put(self._scalar(mark))

    def _scalar(self, mark: int) -> str:
        if mark <= 0x7F:
            return str(mark)
        if mark >= 0xE0:
            return str(mark - 256)
        if mark in _LITERALS:
            return _LITERALS[mark]
        if mark in _NUMBERS:
            return number_text(self._number(_NUMBERS[mark]))
        if 0xA0 <= mark <= 0xBF or mark in _STRINGS:
            held = self._take(self._number(_STRINGS[mark]) if mark in _STRINGS else mark & 0x1F)
            return string_text(held)
        if mark in _BYTES:
            return hexadecimal(self._take(self._number(_BYTES[mark])))
        if mark in _EXTENSIONS or mark in _FIXED_EXTENSIONS:
            size = self._number(_EXTENSIONS[mark]) if mark in _EXTENSIONS else _FIXED_EXTENSIONS[mark]
            kind = self._number(">b")
            return _extension(kind, self._take(size))
        raise ValueError(_("byte %(byte)s does not begin a value") % {"byte": f"0x{mark:02x}"})


def number_text(number: int | float) -> str:
    if isinstance(number, float) and not math.isfinite(number):
        return '"NaN"' if math.isnan(number) else f'"{"-" if number < 0 else ""}Infinity"'
    return repr(number)


def string_text(held: bytes) -> str:
    """A string; as bytes where it is no UTF-8."""
    try:
        return json.dumps(held.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return hexadecimal(held)


def hexadecimal(held: bytes) -> str:
    return f'"0x{held.hex()}"'


def _extension(kind: int, held: bytes) -> str:
    try:
        if kind == _TIMESTAMP:
            return f'"{_timestamp(held)}"'
    except (ValueError, OverflowError):
        pass  # beyond the years that have four digits
    return f'"extension {kind}: 0x{held.hex()}"'


def _timestamp(held: bytes) -> str:
    """The extension type -1 of the MessagePack specification, to the nanosecond."""
    match len(held):
        case 4:
            seconds, nanoseconds = int.from_bytes(held), 0
        case 8:
            packed = int.from_bytes(held)
            seconds, nanoseconds = packed & 0x3_FFFF_FFFF, packed >> 34
        case 12:
            nanoseconds, seconds = struct.unpack(">Iq", held)
        case _:
            raise ValueError
    moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{nanoseconds:09d}".rstrip("0").rstrip(".") + "Z"
