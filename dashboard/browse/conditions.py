"""A filter as its conditions: joined by ``&&``, all of which must hold. What stands in quotes is text.

``||``, ``or`` and ``and`` between words are refused where they stand outside quotes: taken for text, they would find
nothing, and not say so.
"""

import re

from django.utils.translation import gettext as _

_PIECE = re.compile(r'("(?:[^"\\]|\\.)*")|(&&)|(\|\|)|(")|[^"&|]+|.', re.DOTALL)
# After an operator such a word is a value: .state = OR.
_WORD = re.compile(r"[^\s=!<>~]\s+(and|or)\s+\S", re.IGNORECASE)


def conditions(text: str) -> list[str]:
    """The conditions of a filter, as they were written.

    Raises:
        ValueError: a sentence for the form.
    """
    found, outside = [""], [""]  # what is outside quotes has nothing between them
    opened = False
    for match in _PIECE.finditer(text):
        quoted, joined, either, opening = match.groups()
        if either:
            raise _either(either)
        if joined:
            found.append("")
            outside.append("")
            continue
        opened = opened or bool(opening)
        found[-1] += match[0]
        outside[-1] += '""' if quoted else match[0]
    for condition in outside:
        if word := _WORD.search(condition):
            raise _either(word[1]) if word[1].lower() == "or" else _and(word[1])
    found = [condition.strip() for condition in found]
    if not all(found):
        raise ValueError(
            _('Enter a condition on both sides of &&; text that contains && is written in quotes: "a && b".')
        )
    if opened and len(found) > 1:
        raise ValueError(_('A quote is not closed; a quote within quotes is written \\".'))
    return found


def _either(written: str) -> ValueError:
    return ValueError(
        _(
            "“%(written)s” is no operator: conditions are joined by && and must all hold; search for each alternative "
            'by itself. Text that contains it is written in quotes: "this %(written)s that".'
        )
        % {"written": written}
    )


def _and(written: str) -> ValueError:
    return ValueError(
        _(
            "“%(written)s” is no operator: conditions are joined by &&, such as .status = paid && .total > 5. "
            'Text that contains it is written in quotes: "this %(written)s that".'
        )
        % {"written": written}
    )
