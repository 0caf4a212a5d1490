"""Regular expressions that people write, over names: RE2's, whose time grows with the text and not with its powers.

What repeats is written out by RE2, so that a few characters may stand for thousands; how much that may come to is
bounded (``docs/adr/0041-regular-expressions-over-names.md``).
"""

import re
from collections.abc import Sequence

from django.utils.translation import gettext as _

LONGEST = 100
"""Characters of an expression."""

MOST_WRITTEN_OUT = 1000
"""Characters of an expression times the counts of its repetitions."""

_BY_UNICODE = re.compile(r"\\[pP]")
_COUNT = re.compile(r"\{([0-9]+)(?:,([0-9]*))?\}")


def fault(expression: str) -> str | None:
    """What is wrong with an expression, as a sentence; None for one that can be looked for."""
    if len(expression) > LONGEST:
        return _("A regular expression has at most %(most)s characters.") % {"most": LONGEST}
    if _BY_UNICODE.search(expression):
        return _(r"Names are of ASCII: write [A-Za-z] or [0-9] in place of \p or \P.")
    written_out = len(expression)
    for least, most in _COUNT.findall(expression):
        written_out *= max(int(least), int(most or 0), 1)
    if written_out > MOST_WRITTEN_OUT:
        return _(
            "Too many repetitions: the counts in {…}, multiplied, are too large for so long an expression."
        )
    try:
        matching(expression, [""])
    except ValueError as error:
        return str(error)
    return None


def matching(expression: str, names: Sequence[str]) -> list[bool]:
    """Which names an expression without a fault matches somewhere, as ``re.search`` would.

    Raises:
        ValueError: a sentence; it cannot be read.
    """
    # Tens of megabytes, which a process has only once somebody looks for an expression.
    import pyarrow as pa
    from pyarrow import compute

    try:
        found: list[bool] = compute.match_substring_regex(
            pa.array(names, pa.string()), expression
        ).to_pylist()
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        said = str(error).removeprefix("Invalid regular expression: ")
        raise ValueError(_("This is not a regular expression: %(fault)s.") % {"fault": said}) from None
    return found
