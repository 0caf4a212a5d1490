"""How deep JSON text is nested, and of how much it is made: told from its bytes before it is decoded, at C speed.

What is hostile is small and costly: a million empty arrays are 3 MB of text, and seconds of work as objects.
"""

from itertools import accumulate

_EVERY = bytes(range(256))
_MARKS = bytes.maketrans(b"{}", b"[]")
_NO_MARK = bytes(set(_EVERY) - set(b'[]{}"'))
_BLOCK = 32
_PIECE = 65_536
"""Bytes in one step that makes many objects: other threads wait for its end."""
_NO_SEPARATOR = bytes(set(_EVERY) - set(b',"'))
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")


def is_deeper(data: bytes, limit: int) -> bool:
    """Whether arrays and objects stand in each other more than ``limit`` deep. The text may be malformed."""
    if data.count(b"[") + data.count(b"{") <= limit:
        return False
    brackets = _brackets(data)
    depth = 0
    # Each turn takes the innermost level away; it is worth it while that is much of what there is.
    while brackets and depth <= limit:
        fewer = brackets.replace(b"[]", b"")
        depth += len(fewer) < len(brackets)
        if len(fewer) > len(brackets) // 2:
            brackets = fewer
            break
        brackets = fewer
    return depth > limit or _rises(brackets, limit - depth)


def _rises(brackets: bytes, limit: int) -> bool:
    """Whether more than ``limit`` brackets are open at once; a block that cannot rise so high is only counted."""
    steps = memoryview(brackets.translate(_STEPS)).cast("b")
    height = 0
    for at in range(0, len(brackets), _BLOCK):
        opened = brackets.count(b"[", at, at + _BLOCK)
        if height + opened > limit and height + max(accumulate(steps[at : at + _BLOCK])) > limit:
            return True
        height += 2 * opened - min(_BLOCK, len(brackets) - at)
    return False


def holds_more(data: bytes, limit: int) -> bool:
    """Whether a JSON text holds more than ``limit`` arrays and objects."""
    most = data.count(b"[") + data.count(b"{")
    return most > limit and (b'"' not in data or _brackets(data).count(b"[") > limit)


def is_wider(data: bytes, limit: int) -> bool:
    """Whether a JSON text holds more than ``limit`` strings, or separates more than ``limit`` members and items."""
    if data.count(b'"') + data.count(b",") <= limit:
        return False
    data = _unescaped(data)
    return data.count(b'"') > 2 * limit or _outside(data.translate(None, _NO_SEPARATOR)).count(b",") > limit


def _brackets(data: bytes) -> bytes:
    """The brackets of a JSON text that are not in strings, all of them square."""
    return _outside(_unescaped(data).translate(_MARKS, _NO_MARK))


def _unescaped(data: bytes) -> bytes:
    """A text whose quotation marks are the ends of strings: backslashes stand in strings only."""
    return data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data


def _outside(marks: bytes) -> bytes:
    """The marks that do not stand between quotation marks.

    Two quotation marks side by side change for nothing around them whether it is in a string, so that only the strings
    that hold marks are left to be looked at one by one.
    """
    marks = marks.replace(b'""', b"")
    if b'"' not in marks:
        return marks
    outside, is_inside = [], False
    for at in range(0, len(marks), _PIECE):
        parts = marks[at : at + _PIECE].split(b'"')
        outside.append(b"".join(parts[is_inside::2]))
        is_inside ^= len(parts) % 2 == 0
    return b"".join(outside)
