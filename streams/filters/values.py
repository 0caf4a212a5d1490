"""What a value in JSON is compared with: numbers by value and to the last digit, text as it is, ``true`` is not 1."""

import json
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

NOT = "!~"
"""Does not contain."""

OPERATIONS = ("=", "==", "!=", "<", "<=", ">", ">=", "~", NOT)

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value_test(operation: str, written: str) -> Callable[[Any], bool]:
    """Whether a value stands in a relation to what is written: JSON, or else text.

    Args:
        operation: one of ``OPERATIONS``, but for ``NOT``.

    Raises:
        ValueError: a sentence for the form.
    """
    try:
        wanted = json.loads(written, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        if operation in _COMPARISONS:
            raise ValueError(
                _(
                    "After %(operation)s enter a number or text in quotes: "
                    '%(operation)s 99.5, %(operation)s "2026-11-21".'
                )
                % {"operation": operation}
            ) from None
        if written.startswith('"') and operation != "~":
            raise ValueError(_("“%(text)s” is not a quoted string.") % {"text": written}) from None
        wanted = written
    if operation == "~":
        part = wanted if isinstance(wanted, str) else written
        return lambda value: part in value if isinstance(value, str) else part in _as_text(value)
    if operation in ("=", "=="):
        return lambda value: _equal(value, wanted)
    if operation == "!=":
        return lambda value: not _equal(value, wanted)
    if isinstance(wanted, bool) or not isinstance(wanted, int | Decimal | str):
        raise ValueError(
            _("Only numbers and text in quotes can be compared with %(operation)s.")
            % {"operation": operation}
        )
    compare = _COMPARISONS[operation]
    return lambda value: (
        _is_number(value) == _is_number(wanted)
        and (compare(value, wanted) if _is_number(value) or isinstance(value, str) else False)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _equal(value: Any, wanted: Any) -> bool:
    """Equality of JSON values: ``true`` is not 1, and 1.0 is 1."""
    if _is_number(value) and _is_number(wanted):
        return bool(value == wanted)
    return type(value) is type(wanted) and bool(value == wanted)


def _as_text(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)
