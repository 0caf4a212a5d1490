"""Name patterns of narrowed callers, and expressions that are looked for, as conditions of the database."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Lookup, Model, Q, QuerySet, Transform
from django.db.models.expressions import RawSQL
from django.db.models.sql.compiler import SQLCompiler

from streams import expressions

Row = TypeVar("Row", bound=Model)


class Covered(Lookup):
    """Whether a name is as a pattern says, ``*`` being anything: as ``bearer.streams_cover`` has it.

    Not as a regular expression: SQLite's are Python's, which try each ``*`` again for each one before it, and keep
    every other thread waiting meanwhile. Its GLOB does neither, and is as particular about case as LIKE on PostgreSQL.
    """

    prepare_rhs = False

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        name, params = self.process_lhs(compiler, connection)
        return f"{name} GLOB %s", [*params, re.sub(r"[?\[]", r"[\g<0>]", self.rhs)]

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, list[Any]]:
        name, params = self.process_lhs(compiler, connection)
        literal = re.sub(r"[%_\\]", r"\\\g<0>", self.rhs)
        return f"{name} LIKE %s", [*params, literal.replace("*", "%")]


def inside(patterns: Iterable[str], column: str | Transform) -> Q:
    """The rows whose column, or text in a column of JSON, matches one of the patterns that narrow a caller."""
    name = F(column) if isinstance(column, str) else column
    inside = Q(pk__in=[])
    for pattern in patterns:
        inside |= Q(Covered(name, pattern))
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
