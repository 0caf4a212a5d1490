"""Key patterns: dot-separated tokens, ``*`` one whole token, ``>`` as the last one the rest, at least one."""

import re
from collections.abc import Iterable
from functools import lru_cache

from streams.dataplane.request import invalid


def matches_any(key: str, patterns: Iterable[str]) -> bool:
    """Whether a key matches one of the patterns."""
    return any(compiled(pattern).fullmatch(key) for pattern in patterns)


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """A checked pattern as a regular expression that matches in linear time."""
    tokens = pattern.split(".")
    parts = [r"[^.]+" if token == "*" else r".+" if token == ">" else re.escape(token) for token in tokens]
    return re.compile(r"\.".join(parts), re.DOTALL)


def checked(name: str, pattern: str) -> re.Pattern[str]:
    """A pattern from a request, compiled.

    Raises:
        Refusal: ``validation_error`` where it is not one.
    """
    tokens = pattern.split(".")
    for at, token in enumerate(tokens):
        is_wild = token == "*" or (token == ">" and at == len(tokens) - 1)
        if not is_wild and (not token or re.search(r"[\s*>]", token)):
            raise invalid(name, "Expected dot-separated tokens; * is a whole token and > only the last.")
    if len(pattern) > 255:
        raise invalid(name, "Expected at most 255 characters.")
    return compiled(pattern)
