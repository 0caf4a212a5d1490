"""Key patterns in the languages that match them: ``*`` is a whole token, ``>`` the rest."""

import re
from collections.abc import Callable, Sequence


def lua_pattern(pattern: str) -> str:
    """A key pattern as a Lua pattern, anchored at both ends."""
    parts = {"*": "[^.]+", ">": ".+"}
    return "^" + "%.".join(parts.get(token) or _lua_literal(token) for token in pattern.split(".")) + "$"


def python_pattern(pattern: str) -> str:
    """A key pattern as a regular expression."""
    parts = {"*": r"[^.]+", ">": r".+"}
    return r"\.".join(parts.get(token) or re.escape(token) for token in pattern.split("."))


def lets(patterns: Sequence[str]) -> Callable[[str | None], bool]:
    """Tells whether a key, or none, is let through by a filter of these patterns, as a group has it."""
    compiled = [re.compile(python_pattern(each), re.DOTALL) for each in patterns]
    return lambda key: not compiled or (key is not None and any(each.fullmatch(key) for each in compiled))


def _lua_literal(token: str) -> str:
    return re.sub(r"([^\w])", r"%\1", token, flags=re.ASCII) if token.isascii() else _lua_bytes(token)


def _lua_bytes(token: str) -> str:
    return "".join(
        char if not char.isascii() or char.isalnum() or char == "_" else "%" + char for char in token
    )
