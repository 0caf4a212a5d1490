"""What a person looks for in headers: that one is there, and its value.

Conditions are joined by ``&&`` and ``||`` (``conditions``). None holds where the header is not there::

    trace                      the header is there
    trace = 4bf9               = == != compare the value, which is text
    trace ~ 4b                 ~ contains, !~ does not
    "two words" = "a && b"     names and values in quotes
    trace = 4bf9 && (region = eu || region = us)
"""

import json
import re
from collections.abc import Callable

from django.utils.translation import gettext as _

from streams.filters.branches import Condition, first_branch

_HEADER = re.compile(r'(?:("(?:[^"\\]|\\.)*")|([^\s=!~"]+))\s*(?:(==|=|!=|!~|~)(.*))?', re.DOTALL)


def header_test(text: str) -> Callable[[bytes], bool]:
    """The test of headers (JSON) that a filter asks for.

    Raises:
        ValueError: a sentence for the form.
    """
    first = first_branch(text, _conditions_of)

    def passes(headers: bytes) -> bool:
        held = json.loads(headers)
        at = first
        while at is not True and at is not False:
            at = at.then if at.holds(held) else at.otherwise
        return at

    return passes


def _conditions_of(text: str) -> list[Condition[dict[str, str]]]:
    """What a condition as it is written comes to: one."""
    match = _HEADER.fullmatch(text)
    if match is None:
        raise ValueError(_("Enter the name of a header, or a name and a value: trace = 4bf9, trace ~ part."))
    try:
        name: str = json.loads(match[1]) if match[1] else match[2]
    except ValueError:
        raise ValueError(_("%(text)s is not a quoted name.") % {"text": match[1]}) from None
    operation, wanted = match[3] or "", (match[4] or "").strip()
    if operation and not wanted:
        raise ValueError(_("Enter what the header %(name)s is compared with.") % {"name": name})
    if wanted.startswith('"'):
        try:
            wanted = json.loads(wanted)
        except ValueError:
            raise ValueError(_("%(text)s is not a quoted string.") % {"text": wanted}) from None

    def passes(headers: dict[str, str]) -> bool:
        value = headers.get(name)
        if value is None:
            return False
        match operation:
            case "":
                return True
            case "~":
                return wanted in value
            case "!~":
                return wanted not in value
            case "!=":
                return value != wanted
            case _:
                return value == wanted

    return [Condition(passes)]
