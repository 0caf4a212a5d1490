"""Name patterns of narrowed callers, and expressions that are looked for, as conditions of the database."""

import json
from collections.abc import Iterable, Sequence
from typing import TypeVar

from django.db import connection
from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import RawSQL

from streams import expressions

Row = TypeVar("Row", bound=Model)


def inside(patterns: Iterable[str], column: str) -> Q:
    """The rows whose column matches one of the patterns that narrow a caller."""
    inside = Q(pk__in=[])
    for pattern in patterns:
        regex = "^" + ".*".join(_literal(part) for part in pattern.split("*")) + "$"
        inside |= Q(**{f"{column}__regex": regex})
    return inside


def named_like(found: QuerySet[Row], expression: str) -> QuerySet[Row]:
    """Those of some rows whose name a regular expression matches somewhere; one without a fault.

    The names are read and matched here: a database's own expressions take as long as they like.
    """
    names = list(found.order_by().values_list("pk", "name"))
    fits = expressions.matching(expression, [name for _, name in names])
    return found.filter(pk__in=_rows([pk for (pk, _), is_one in zip(names, fits, strict=True) if is_one]))


def _rows(pks: Sequence[int]) -> RawSQL:
    """Any number of keys in one parameter: a database bounds how many one statement takes."""
    if connection.vendor == "postgresql":
        return RawSQL("SELECT value::bigint FROM json_array_elements_text(%s::json)", [json.dumps(pks)])
    return RawSQL("SELECT value FROM json_each(%s)", [json.dumps(pks)])


def _literal(text: str) -> str:
    """A part of a stream name pattern, safe inside a regular expression of any database."""
    return "".join(char if char.isalnum() or char == "_" else "\\" + char for char in text)
