"""CBOR (RFC 8949) written as JSON text, as MessagePack is: every integer, every name that stands twice, within bounds.

What JSON does not know is a string: bytes in hexadecimal (``"0x0aff"``), ``undefined``, ``simple(16)``, ``NaN`` and the
infinities by name. Tags are left out; integers that they make large are integers.
"""

from django.utils.translation import gettext as _

from dashboard.browse import packed
from dashboard.browse.packed import MOST_VALUES, hexadecimal, number_text, string_text

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG = range(7)
_ENDLESS = 31
_BREAK = 0xFF
_ARGUMENTS = {24: ">B", 25: ">H", 26: ">I", 27: ">Q"}
_REALS = {25: ">e", 26: ">f", 27: ">d"}
_NAMED = {20: "false", 21: "true", 22: "null", 23: '"undefined"'}
_LARGE, _LARGE_NEGATIVE = 2, 3
_LARGEST_BYTES = 1024
"""An integer of more bytes is shown as bytes."""
_MANY = 2**66
"""Items of an array or map that ends with a break; more than any can announce."""


def json_text(data: bytes, *, whole: bool, most_bytes: int) -> tuple[str, bool]:
    """CBOR as JSON text, and whether that is all of it.

    Args:
        whole: whether ``data`` is all there is, and not its beginning.

    Raises:
        ValueError: it is no CBOR; the text says why.
    """
    return packed.written(_Cbor(data), whole=whole, most_bytes=most_bytes)


class _Cbor(packed.Reader):
    def value(self) -> None:
        self.values += 1
        mark = self._number(">B")
        kind, extra = mark >> 5, mark & 31
        if mark == _BREAK:
            self._close()
        elif kind in (_ARRAY, _MAP):
            items = _MANY if extra == _ENDLESS else (1 + (kind == _MAP)) * self._argument(extra)
            self._open(items, is_map=kind == _MAP)
        elif kind == _TAG:
            self._tagged(self._argument(extra))
        else:
            self._put(self._scalar(kind, extra))

    def _close(self) -> None:
        """End what ends with a break."""
        level = self._levels[-1] if self._levels else None
        if level is None or level.left <= _MANY // 2 or (level.is_map and not level.is_at_name):
            raise ValueError(_("there is a break where none can be"))
        level.left = 0
        self._close_full()

    def _tagged(self, tag: int) -> None:
        mark = self.data[self.at] if self.at < len(self.data) else 0
        if tag not in (_LARGE, _LARGE_NEGATIVE) or mark >> 5 != _BYTES:
            return
        self.at += 1
        held = self._string(_BYTES, mark & 31)
        number = int.from_bytes(held[:_LARGEST_BYTES])
        shown = str(number if tag == _LARGE else -1 - number)
        self._put(shown if len(held) <= _LARGEST_BYTES else hexadecimal(held))

    def _scalar(self, kind: int, extra: int) -> str:
        if kind == _UNSIGNED:
            return str(self._argument(extra))
        if kind == _NEGATIVE:
            return str(-1 - self._argument(extra))
        if kind == _BYTES:
            return hexadecimal(self._string(kind, extra))
        if kind == _TEXT:
            return string_text(self._string(kind, extra))
        if extra in _REALS:
            # Encoders take fewer bits where that changes no number: all digits of it count.
            return number_text(self._number(_REALS[extra]))
        return _NAMED.get(extra) or f'"simple({self._argument(extra)})"'

    def _string(self, kind: int, extra: int) -> bytes:
        """A string whole: of one piece, or of several up to a break."""
        if extra != _ENDLESS:
            return self._take(self._argument(extra))
        pieces: list[bytes] = []
        while (mark := self._number(">B")) != _BREAK:
            self.values += 1
            if mark >> 5 != kind or mark & 31 == _ENDLESS:
                raise ValueError(_("a piece of a string is something else"))
            if self.values > MOST_VALUES:
                raise ValueError(_("a string has more than %(most)s pieces") % {"most": MOST_VALUES})
            pieces.append(self._take(self._argument(mark & 31)))
        return b"".join(pieces)

    def _argument(self, extra: int) -> int:
        if extra < 24:
            return extra
        if extra not in _ARGUMENTS:
            raise ValueError(_("a value cannot begin with %(bits)s in its five last bits") % {"bits": extra})
        return self._number(_ARGUMENTS[extra])
