"""Paths in JSON, as a filter and a column name them: ``.customer.id``, ``.items[*].sku``, ``.["odd name"][0]``."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _

Step = str | int | None
"""One step of a path: a name, a place in an array, or None for every element."""

_STEP = re.compile(r'\.([^\s.\[\]=!<>~"]+)|\.?\[(?:([0-9]{1,9})|(\*)|("(?:[^"\\]|\\.)*"))\]')
_BODY_ITSELF = re.compile(r"\.(?:\s|[=!<>~]|\Z)")


def path_of(text: str) -> tuple[list[Step], str]:
    """The steps at the beginning of a filter, and what follows them; a dot alone is the body itself.

    Raises:
        ValueError: a sentence for the form.
    """
    if _BODY_ITSELF.match(text):
        return [], text[1:]
    steps: list[Step] = []
    place = 0
    while match := _STEP.match(text, place):
        name, index, every, quoted = match.groups()
        try:
            steps.append(name or (int(index) if index else None if every else json.loads(quoted)))
        except ValueError:
            raise ValueError(_("%(text)s is not a quoted name.") % {"text": quoted}) from None
        place = match.end()
    if not steps:
        raise ValueError(_("A path begins with a dot and a name: .customer.id, .items[0].sku."))
    return steps, text[place:]


def values_at(value: Any, steps: Sequence[Step], depth: int = 0) -> Iterator[Any]:
    """What stands at a path in a JSON value, from its step ``depth`` on."""
    if depth == len(steps):
        yield value
        return
    step = steps[depth]
    if isinstance(step, str):
        if isinstance(value, dict) and step in value:
            yield from values_at(value[step], steps, depth + 1)
    elif isinstance(value, list):
        if step is None:
            for each in value:
                yield from values_at(each, steps, depth + 1)
        elif step < len(value):
            yield from values_at(value[step], steps, depth + 1)
