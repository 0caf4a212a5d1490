"""The grammar of names, keys and key patterns (the streams guide's rules). Pure; says what is wrong, or None.

A key is dot-separated tokens, non-empty and free of ``*``, ``>`` and blanks. In a pattern ``*`` is one whole token
and ``>``, as the last one, the rest: at least one.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

LONGEST_NAME = 50
LONGEST_KEY = 255
LONGEST_LABEL = 63
LONGEST_SHOWN = 100
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}"
TOKEN = r"[^\s\x00-\x1f\x7f.*>]+"
KEY = rf"{TOKEN}(?:\.{TOKEN})*"
PATTERN = rf"(?:(?:\*|{TOKEN})\.)*(?:\*|>|{TOKEN})"
STREAM_PATTERN = r"[A-Za-z0-9._*-]{1,50}"

USER = r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}"

_USER = re.compile(USER)
Owner = TypeVar("Owner")
_WILDCARD = re.compile(r"[*>]")
_NAME, _KEY, _PATTERN = re.compile(NAME), re.compile(KEY), re.compile(PATTERN)
_STREAM_PATTERN = re.compile(STREAM_PATTERN)


def is_name(text: str) -> bool:
    """Whether a stream or a workspace could be called this."""
    return _NAME.fullmatch(text) is not None


def is_user(text: str) -> bool:
    """Whether a person could be called this; an e-mail address will do."""
    return _USER.fullmatch(text) is not None


def is_stream_pattern(text: str) -> bool:
    """Whether names of streams could be meant by this, in which ``*`` stands for anything."""
    return _STREAM_PATTERN.fullmatch(text) is not None


def is_label(text: str) -> bool:
    """Whether a label could be called this. The database's JSON paths would take anything else for another place."""
    has_others = any(char in '":\\' or char < " " for char in text)
    return 1 <= len(text) <= LONGEST_LABEL and not has_others and not is_number(text)


def is_number(text: str) -> bool:
    """Whether this is a whole number to Python, and so a place in an array to Django's JSON paths."""
    try:
        int(text)
    except ValueError:
        return False
    return True


def key_fault(key: str) -> str | None:
    """What is wrong with a message key."""
    if len(key) > LONGEST_KEY:
        return f"Expected at most {LONGEST_KEY} characters."
    if not _KEY.fullmatch(key):
        return "Expected dot-separated tokens, each non-empty and without *, > or spaces."
    return None


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a key pattern."""
    if len(pattern) > LONGEST_KEY:
        return f"Expected at most {LONGEST_KEY} characters."
    if not _PATTERN.fullmatch(pattern):
        return "Expected dot-separated tokens; * is a whole token and > only the last."
    return None


def shortened(name: str) -> str:
    """A name that somebody made up, short enough to be repeated to them."""
    return name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…"


def matches_any(key: str, patterns: Iterable[str]) -> bool:
    """Whether a key matches one of the patterns, which were checked before."""
    return any(compiled(pattern).fullmatch(key) for pattern in patterns)


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """A checked pattern as a regular expression that matches in linear time."""
    parts = {"*": r"[^.]+", ">": r".+"}
    return re.compile(
        r"\.".join(parts.get(token) or re.escape(token) for token in pattern.split(".")), re.DOTALL
    )


class PatternIndex(Generic[Owner]):
    """Whose patterns match a key: looked at are only those that begin as the key does, up to their first wildcard.

    It holds the patterns as they are, so it is little larger than they.
    """

    def __init__(self, patterns: Iterable[tuple[Owner, Iterable[str]]]) -> None:
        self._plain: dict[str, list[Owner]] = {}
        self._with_wildcards: dict[str, list[tuple[str, Owner]]] = {}
        for owner, its_patterns in patterns:
            for pattern in its_patterns:
                wildcard = _WILDCARD.search(pattern)
                if wildcard is None:
                    self._plain.setdefault(pattern, []).append(owner)
                else:
                    beginning = pattern[: wildcard.start()]
                    self._with_wildcards.setdefault(beginning, []).append((pattern, owner))

    def candidates(self, key: str) -> int:
        """How many patterns have to be looked at for a key."""
        return sum(len(self._with_wildcards.get(beginning, ())) for beginning in _beginnings(key))

    def owners(self, key: str) -> set[Owner]:
        """Those with a pattern that matches a checked key."""
        found = set(self._plain.get(key, ()))
        tokens = key.split(".")
        for beginning in _beginnings(key):
            for pattern, owner in self._with_wildcards.get(beginning, ()):
                if owner not in found and _fits(tokens, pattern.split(".")):
                    found.add(owner)
        return found


def _beginnings(key: str) -> Iterator[str]:
    """The parts of a key before each of its tokens, with the dot."""
    at = 0
    while True:
        yield key[:at]
        at = key.find(".", at) + 1
        if not at:
            return


def _fits(tokens: Sequence[str], pattern: Sequence[str]) -> bool:
    if pattern[-1] == ">":
        pattern, fits = pattern[:-1], len(tokens) >= len(pattern)
    else:
        fits = len(tokens) == len(pattern)
    return fits and all(its in (token, "*") for its, token in zip(pattern, tokens, strict=False))
