"""Name patterns of narrowed callers, as conditions of the database."""

from collections.abc import Iterable

from django.db.models import Q


def inside(patterns: Iterable[str], column: str) -> Q:
    """The rows whose column matches one of the patterns that narrow a caller."""
    inside = Q(pk__in=[])
    for pattern in patterns:
        regex = "^" + ".*".join(_literal(part) for part in pattern.split("*")) + "$"
        inside |= Q(**{f"{column}__regex": regex})
    return inside


def _literal(text: str) -> str:
    """A part of a stream name pattern, safe inside a regular expression of any database."""
    return "".join(char if char.isalnum() or char == "_" else "\\" + char for char in text)
