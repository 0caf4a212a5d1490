"""Protobuf written as JSON text without its schema, by what the wire format says: fields are called by their numbers.

The format says how long a field is and not what it means. So a number is an object of all that it may be, by the names
of Protobuf's types: ``{"int":150,"sint":75}``, ``{"fixed32":1078530011,"float":3.1415927}``; ``uint``, ``sfixed32`` and
``sfixed64`` stand there where they differ. What has a length is text where it is readable, a message where all of it
is read as one, and else bytes in hexadecimal (``"0x0aff"``): also numbers that are packed. A field that stands several
times is an array.

Hostile input costs no more than its bounds: how much is written, read as fields, and looked at for text.
"""

import json
import re
import struct
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from dashboard.browse import packed
from dashboard.browse.packed import EndsEarly
from dashboard.browse.vectors import real_text

MOST_VALUES = 2000
"""What is written of one body; a page shows no more of it."""

MOST_FIELDS = 4000
"""Fields that are read of one body, also in what turns out to be no message."""

MOST_LOOKED_AT_BYTES = 1024 * 1024
"""What is looked at for text, over all levels."""

DEEPEST = packed.DEEPEST // 2 - 1
"""Messages in each other: each may stand in an array, and its numbers are objects."""

LEAST_TEXT = 12
"""Characters of text in a body that is taken for Protobuf though nobody said so."""

_HIGHEST_NUMBER = 2**29 - 1
_HIGHEST_FIRST = 3
"""Fields that few texts begin with, and no array, map or string of MessagePack: of Latin-1, lengths and letters,
enough can be read as fields with higher numbers."""

_VARINT, _FIXED64, _DELIMITED, _GROUP, _GROUP_END, _FIXED32 = range(6)
_LONGEST_VARINT = 10
_LINE_FEED = b"\n"
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


@dataclass(frozen=True, slots=True)
class Written:
    """A message as JSON text.

    Attributes:
        whole: False where ``text`` is the beginning of it.
        is_certain: whether it is Protobuf though nobody said so: read to its end, with two fields or more as encoders
            write them (in order, no byte too many), numbers of which half are taken, and ``LEAST_TEXT`` characters of
            text in what is no text as a whole.
    """

    text: str
    whole: bool
    is_certain: bool


@dataclass(frozen=True, slots=True)
class _Field:
    number: int
    form: int
    held: int | bytes | list["_Field"]


class _Full(Exception):
    """A bound is reached: what is written by then is the beginning."""


def written(data: bytes, *, whole: bool, most_bytes: int) -> Written:
    """A message as JSON text of at most ``most_bytes`` characters.

    Args:
        whole: whether ``data`` is all there is, and not its beginning.

    Raises:
        ValueError: it is no Protobuf; the text says why.
    """
    if not data:
        raise ValueError(_("it is empty"))
    reader = _Reader(most_bytes)
    fields: list[_Field] = []
    is_read = whole
    try:
        reader.scan(data, 0, fields)
    except EndsEarly:
        if whole:
            raise
    except _Full:
        is_read = False
    is_written = reader.message(fields, closes=is_read)
    is_certain = is_read and _is_certain(data, fields, reader)
    return Written("".join(reader.parts), is_read and is_written, is_certain)


def _is_certain(data: bytes, fields: list[_Field], reader: "_Reader") -> bool:
    numbers = [each.number for each in fields]
    return (
        reader.is_usual
        and reader.values > 1
        and reader.characters >= LEAST_TEXT
        and numbers[0] <= _HIGHEST_FIRST
        and numbers[-1] <= 2 * len(set(numbers))
        and numbers == sorted(numbers)
        and _text(data) is None
    )


@dataclass(slots=True)
class _Reader:
    """One body being read and written.

    Attributes:
        is_usual: whether nothing in it is what encoders no longer write: groups, numbers of more bytes than they need.
        values, characters: what is written, and how much of it is text.
    """

    most_bytes: int
    parts: list[str] = field(default_factory=list)
    is_usual: bool = True
    values: int = 0
    characters: int = 0
    _written: int = 0
    _fields: int = 0
    _looked_at: int = 0

    def scan(self, data: bytes, at: int, into: list[_Field], *, group: int = 0, depth: int = 1) -> int:
        """Read fields up to the end of the data, or of the group that is read; returns where that is."""
        while at < len(data):
            self._fields += 1
            if self._fields > MOST_FIELDS:
                raise _Full
            began = at
            tag, at = self._varint(data, at)
            number, form = tag >> 3, tag & 7
            if not 0 < number <= _HIGHEST_NUMBER:
                raise ValueError(
                    _("there is no field %(number)s (byte %(place)s)") % {"number": number, "place": began}
                )
            if form == _GROUP_END and number == group:
                return at
            if form == _GROUP:
                if depth == DEEPEST:
                    raise ValueError(_("it is nested deeper than %(most)s") % {"most": DEEPEST})
                inner: list[_Field] = []
                into.append(_Field(number, form, inner))
                self.is_usual = False
                at = self.scan(data, at, inner, group=number, depth=depth + 1)
                continue
            held, at = self._held(data, at, form, began)
            into.append(_Field(number, form, held))
        if group:
            raise EndsEarly(_("it ends too early"))
        return at

    def _held(self, data: bytes, at: int, form: int, began: int) -> tuple[int | bytes, int]:
        if form == _VARINT:
            return self._varint(data, at)
        if form == _FIXED64:
            return int.from_bytes(_taken(data, at, 8), "little"), at + 8
        if form == _FIXED32:
            return int.from_bytes(_taken(data, at, 4), "little"), at + 4
        if form == _DELIMITED:
            size, at = self._varint(data, at)
            return _taken(data, at, size), at + size
        raise ValueError(
            _("a field cannot be of wire type %(form)s there (byte %(place)s)")
            % {"form": form, "place": began}
        )

    def _varint(self, data: bytes, at: int) -> tuple[int, int]:
        value = shift = 0
        for place in range(at, min(at + _LONGEST_VARINT, len(data))):
            byte = data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 64:
                    break
                self.is_usual &= bool(byte) or place == at
                return value, place + 1
            shift += 7
        else:
            if len(data) - at < _LONGEST_VARINT:
                raise EndsEarly(_("it ends too early"))
        raise ValueError(_("a number has more than 64 bits (byte %(place)s)") % {"place": at})

    def message(self, fields: list[_Field], *, closes: bool) -> bool:
        """Write the outermost message, left open where more follows; whether all of it was written."""
        try:
            self._message(fields, 1, closes=closes)
        except _Full:
            return False
        return True

    def _message(self, fields: list[_Field], depth: int, *, closes: bool = True) -> None:
        found: dict[int, list[_Field]] = {}
        for each in fields:
            found.setdefault(each.number, []).append(each)
        self._write("{")
        for place, (number, same) in enumerate(found.items()):
            self._write(f'{"," if place else ""}"{number}":')
            if len(same) > 1:
                self._write("[")
            for index, each in enumerate(same):
                if index:
                    self._write(",")
                self._value(each, depth)
            if len(same) > 1:
                self._write("]")
        if closes:
            self._write("}")

    def _value(self, each: _Field, depth: int) -> None:
        self.values += 1
        if self.values > MOST_VALUES:
            raise _Full
        if isinstance(each.held, int):
            self._write(_number(each.form, each.held))
        elif isinstance(each.held, bytes):
            self._delimited(each.held, depth)
        else:
            self._message(each.held, depth + 1)

    def _delimited(self, data: bytes, depth: int) -> None:
        self._looked_at += len(data)
        if self._looked_at > MOST_LOOKED_AT_BYTES:
            raise _Full
        text = _text(data)
        # A message whose first field is text of 36 letters begins with a line feed and a dollar: readable, by accident.
        if (text is None or data.startswith(_LINE_FEED)) and depth < DEEPEST:
            fields: list[_Field] = []
            usual = self.is_usual
            try:
                self.scan(data, 0, fields, depth=depth + 1)
            except ValueError:
                self.is_usual = usual
            else:
                self._message(fields, depth + 1)
                return
        if text is None:
            self._write(f'"0x{data[: self.most_bytes].hex()}"')
        else:
            self.characters += len(text)
            self._write(json.dumps(text, ensure_ascii=False))

    def _write(self, text: str) -> None:
        room = self.most_bytes - self._written
        self.parts.append(text[:room])
        self._written += len(text)
        if len(text) > room:
            raise _Full


def _taken(data: bytes, at: int, size: int) -> bytes:
    if size > len(data) - at:
        raise EndsEarly(_("it ends too early"))
    return data[at : at + size]


def _text(data: bytes) -> str | None:
    """Bytes as text, where that has no other controls than those that lay it out."""
    if _CONTROL.search(data):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _number(form: int, bits: int) -> str:
    """A number as all that it may be."""
    if form == _VARINT:
        return _object(
            ("uint", str(bits) if bits >> 63 else ""),
            ("int", str(_signed(bits, 64))),
            ("sint", str(bits >> 1 ^ -(bits & 1))),
        )
    size, kind, real = (32, "<f", "float") if form == _FIXED32 else (64, "<d", "double")
    packed = bits.to_bytes(size // 8, "little")
    return _object(
        (f"fixed{size}", str(bits)),
        (f"sfixed{size}", str(_signed(bits, size)) if bits >> size - 1 else ""),
        (real, real_text(struct.unpack(kind, packed)[0], kind)),
    )


def _object(*members: tuple[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in members if text) + "}"


def _signed(bits: int, size: int) -> int:
    return bits - (1 << size) if bits >> size - 1 else bits
