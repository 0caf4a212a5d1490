"""A pickle as the list of its operations. It is never loaded: to load one runs what it says."""

import pickletools

from django.utils.translation import gettext as _

MOST_OPERATIONS = 2000
"""What is listed of one body; a page shows no more of it."""

LONGEST_ARGUMENT = 2000


def listing(data: bytes, *, whole: bool, most_bytes: int) -> tuple[str, bool]:
    """A line for each operation: where it stands, its name, its argument; and whether these are all.

    Raises:
        ValueError: it is no pickle; the text says why.
    """
    lines: list[str] = []
    left, end = most_bytes, 0
    try:
        for operation, argument, place in pickletools.genops(data):
            line = f"{place or 0:6} {operation.name} {_shown(argument)}".rstrip()
            left -= len(line.encode()) + 1
            if len(lines) == MOST_OPERATIONS or left < 0:
                return "\n".join(lines), False
            lines.append(line)
            end = (place or 0) + 1
    except (ValueError, IndexError, OverflowError) as error:
        if whole or not lines:
            raise ValueError(_said(error)) from None
        return "\n".join(lines), False
    if end < len(data):
        raise ValueError(_("there is data after its end"))
    return "\n".join(lines), True


def _shown(argument: object) -> str:
    text = "" if argument is None else repr(argument)
    return text if len(text) <= LONGEST_ARGUMENT else f"{text[:LONGEST_ARGUMENT]}…"


def _said(error: Exception) -> str:
    """Why an operation cannot be read: the beginning of what pickletools says."""
    return str(error).partition(";")[0][:100]
