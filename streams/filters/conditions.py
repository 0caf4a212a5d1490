"""A filter as its conditions: joined by ``&&``, all of which must hold, and by ``||``, one of which must; ``&&`` binds
more tightly, and parentheses group. What stands in quotes is text.

Only a filter that has ``||`` outside quotes has groups: in any other a parenthesis is text, as nothing needs one there
(``docs/adr/0053-alternatives-in-filters.md``). ``or`` and ``and`` between words are refused where they stand outside
quotes: taken for text, they would find nothing, and not say so.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

LONGEST = 500
"""Characters of a filter."""

MOST_CONDITIONS = 50
DEEPEST = 8
"""Of a filter with ``||``: its conditions, and parentheses that are open at once. ``LONGEST`` bounds all others."""

_PIECE = re.compile(
    r'(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<sign>&&|\|\|+|[()])|(?P<opened>")|[^"&|()]+|.', re.DOTALL
)
# After an operator such a word is a value: .state = OR.
_WORD = re.compile(r"[^\s=!<>~]\s+(and|or)\s+\S", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Either:
    """Alternatives, of which one must hold; an alternative is conditions, all of which must."""

    alternatives: "list[list[str | Either]]"


@dataclass(slots=True)
class _Stretch:
    """What stands before a sign, or after the last.

    Attributes:
        written: as it was written.
        outside: the same with nothing in its quotes.
        sign: ``&&``, ``||`` (perhaps of more bars), ``(`` or ``)``; empty at the end.
    """

    written: str = ""
    outside: str = ""
    sign: str = ""


def conditions(text: str) -> list[str | Either]:
    """The conditions of a filter, all of which must hold: as they were written, or alternatives.

    Raises:
        ValueError: a sentence for the form.
    """
    if len(text) > LONGEST:
        raise ValueError(_("A filter has at most %(most)s characters.") % {"most": LONGEST})
    pieces = list(_PIECE.finditer(text))
    has_alternatives = any(piece["sign"] and piece["sign"].startswith("||") for piece in pieces)
    stretches = _stretches(pieces, has_alternatives=has_alternatives)
    _refuse_words(stretches)
    found = _grouped(stretches)
    if len(stretches) > 1 and any(piece["opened"] for piece in pieces):
        raise ValueError(_('A quote is not closed; a quote within quotes is written \\".'))
    if has_alternatives and sum(1 for _each in each_written(found)) > MOST_CONDITIONS:
        raise ValueError(_("A filter with || has at most %(most)s conditions.") % {"most": MOST_CONDITIONS})
    return found


def each_written(found: Sequence[str | Either]) -> Iterator[str]:
    """The conditions as they were written, those of alternatives among them, in their order."""
    for condition in found:
        if isinstance(condition, Either):
            for alternative in condition.alternatives:
                yield from each_written(alternative)
        else:
            yield condition


def _stretches(pieces: Sequence[re.Match[str]], *, has_alternatives: bool) -> list[_Stretch]:
    """A filter cut at its signs; without alternatives only ``&&`` is one."""
    found = [_Stretch()]
    for piece in pieces:
        if piece["sign"] == "&&" or (piece["sign"] and has_alternatives):
            found[-1].sign = piece["sign"]
            found.append(_Stretch())
        else:
            found[-1].written += piece[0]
            found[-1].outside += '""' if piece["quoted"] else piece[0]
    return found


def _refuse_words(stretches: Sequence[_Stretch]) -> None:
    """Refuse what looks like an operator and is none: ``or`` and ``and`` between words or parentheses, and ``|||``."""
    before = ""
    for stretch in stretches:
        closed = ")" if before == ")" else ""
        opened = "(" if stretch.sign == "(" else ""
        if word := _WORD.search(closed + stretch.outside + opened):
            raise _no_or(word[1]) if word[1].lower() == "or" else _no_and(word[1])
        if stretch.sign.startswith("|||"):
            raise _no_or(stretch.sign)
        before = stretch.sign


def _grouped(stretches: Sequence[_Stretch]) -> list[str | Either]:
    """The conditions between the signs, as the signs join and group them."""
    # Of the whole, and of each parenthesis that is open, the alternatives so far; the last one is being read.
    groups: list[list[list[str | Either]]] = [[[]]]
    is_complete, before = False, ""
    for stretch in stretches:
        sign, written = stretch.sign, stretch.written.strip()
        if written:
            if is_complete:
                raise _unjoined()
            groups[-1][-1].append(written)
            is_complete = True
        if sign == "(":
            if is_complete:
                raise _unjoined()
            if len(groups) > DEEPEST:
                raise ValueError(_("Parentheses may be nested at most %(most)s deep.") % {"most": DEEPEST})
            groups.append([[]])
        elif sign == ")":
            if len(groups) == 1:
                raise ValueError(
                    _('A ) closes no (; text that contains a parenthesis is written in quotes: "f(x)".')
                )
            if not is_complete:
                raise _missing(before)
            closed = groups.pop()
            groups[-1][-1] += _one_of(closed)
        elif not sign and len(groups) > 1:
            raise ValueError(
                _('A ( is not closed; text that contains a parenthesis is written in quotes: "f(x)".')
            )
        elif not is_complete:
            raise _missing(sign or before)
        elif sign == "||":
            groups[-1].append([])
        is_complete, before = sign == ")", sign
    return _one_of(groups[0])


def _one_of(alternatives: list[list[str | Either]]) -> list[str | Either]:
    return alternatives[0] if len(alternatives) == 1 else [Either(alternatives)]


def _missing(sign: str) -> ValueError:
    """There is no condition where a sign wants one."""
    if sign == "(":
        return ValueError(
            _(
                "Enter a condition between ( and ); text that contains a parenthesis is written in quotes: "
                '"f(x)".'
            )
        )
    return ValueError(
        _(
            "Enter a condition on both sides of %(sign)s; text that contains %(sign)s is written in quotes: "
            '"a %(sign)s b".'
        )
        % {"sign": sign or "&&"}
    )


def _unjoined() -> ValueError:
    return ValueError(
        _(
            "Join conditions and parentheses by && or ||; text that contains a parenthesis is written in quotes: "
            '"f(x)".'
        )
    )


def _no_or(written: str) -> ValueError:
    return ValueError(
        _(
            "“%(written)s” is no operator: alternatives are joined by ||, such as .status = paid || .status = new. "
            'Text that contains it is written in quotes: "this %(written)s that".'
        )
        % {"written": written}
    )


def _no_and(written: str) -> ValueError:
    return ValueError(
        _(
            "“%(written)s” is no operator: conditions are joined by &&, such as .status = paid && .total > 5. "
            'Text that contains it is written in quotes: "this %(written)s that".'
        )
        % {"written": written}
    )
