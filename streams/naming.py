"""The grammar of names, keys and key patterns (the streams guide's rules). Pure; says what is wrong, or None.

A key is dot-separated tokens, non-empty and free of ``*``, ``>`` and blanks. In a pattern ``*`` is one whole token
and ``>``, as the last one, the rest: at least one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

LONGEST_NAME = 50
LONGEST_KEY = 255
LONGEST_SHOWN = 100
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}"
TOKEN = r"[^\s\x00-\x1f\x7f.*>]+"
KEY = rf"{TOKEN}(?:\.{TOKEN})*"
PATTERN = rf"(?:(?:\*|{TOKEN})\.)*(?:\*|>|{TOKEN})"

USER = r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}"

_USER = re.compile(USER)
Owner = TypeVar("Owner")
_NAME, _KEY, _PATTERN = re.compile(NAME), re.compile(KEY), re.compile(PATTERN)


def is_name(text: str) -> bool:
    """Whether a stream or a workspace could be called this."""
    return _NAME.fullmatch(text) is not None


def is_user(text: str) -> bool:
    """Whether a person could be called this; an e-mail address will do."""
    return _USER.fullmatch(text) is not None


def key_fault(key: str) -> str | None:
    """What is wrong with a message key."""
    if len(key) > LONGEST_KEY:
        return f"Expected at most {LONGEST_KEY} characters."
    if not _KEY.fullmatch(key):
        return "Expected dot-separated tokens, each non-empty and free of *, > and blanks."
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


@dataclass(slots=True)
class _Branch(Generic[Owner]):
    """What follows the same tokens: those whose pattern ends here, whose pattern takes any rest, and further tokens."""

    ends: list[Owner] = field(default_factory=list)
    rests: list[Owner] = field(default_factory=list)
    further: dict[str, "_Branch[Owner]"] = field(default_factory=dict)


class PatternIndex(Generic[Owner]):
    """Whose patterns match a key, by its tokens: a question costs what matches, not what patterns there are."""

    def __init__(self, patterns: Iterable[tuple[Owner, Iterable[str]]]) -> None:
        self._root: _Branch[Owner] = _Branch()
        for owner, its_patterns in patterns:
            for pattern in its_patterns:
                self._add(pattern.split("."), owner)

    def owners(self, key: str) -> set[Owner]:
        """Those with a pattern that matches a checked key."""
        found: set[Owner] = set()
        branches = [self._root]
        for token in key.split("."):
            found.update(*(branch.rests for branch in branches))
            branches = [
                branch.further[way] for branch in branches for way in (token, "*") if way in branch.further
            ]
        return found.union(*(branch.ends for branch in branches))

    def _add(self, tokens: list[str], owner: Owner) -> None:
        branch = self._root
        for token in tokens:
            if token == ">":
                branch.rests.append(owner)
                return
            branch = branch.further.setdefault(token, _Branch())
        branch.ends.append(owner)
