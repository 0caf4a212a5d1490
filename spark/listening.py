"""Has the tasks of a query that keeps rows hear that they are to end, row by row.

A task is told to end, and looks for it between the batches of what it reads. Where a join or an ``explode`` makes
millions of rows out of one batch, that is long after the heap is full. So below each aggregate stands a filter that
looks for the interruption with every row.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark.walk import CATALYST, elements, kind_of, parts_of

HEARD = """
CASE WHEN reflect('java.lang.Thread', 'interrupted') = 'true' THEN raise_error('cancelled') ELSE true END
"""
"""Ours, and not to be had in a query: ``reflect`` calls Java."""

QUERIES = frozenset({"ScalarSubquery", "Exists", "ListQuery"})
"""The queries within expressions. Those that take a column of the query around them are as they were: Spark makes joins
of them, and takes no filter there that might choose otherwise the next time."""


def listening(frame: DataFrame) -> DataFrame:
    """The same frame, whose aggregates end when their task is told to."""
    session: SparkSession = frame.sparkSession
    inner: Any = frame._jdf
    found = _Listening(session).plan(inner.queryExecution().analyzed())
    if found is None:
        return frame
    jvm: Any = session._jvm
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, found), session)


class _Listening:
    """Rebuilds what holds an aggregate; None stands for what is as it was."""

    def __init__(self, session: SparkSession) -> None:
        self._jvm: Any = session._jvm
        self._gateway: Any = session.sparkContext._gateway
        inner: Any = session._jsparkSession
        self._parser = inner.sessionState().sqlParser()

    def plan(self, node: Any) -> Any | None:
        """A node of an analyzed plan, with what it stands on."""
        if kind_of(node) == "View":
            return None
        rebuilt = None if node.subqueries().isEmpty() else self._with_subqueries(node)
        whole = node if rebuilt is None else rebuilt
        children = list(elements(whole.children()))
        made = [self.plan(each) for each in children]
        if kind_of(whole) == "Aggregate":
            logical = self._jvm.org.apache.spark.sql.catalyst.plans.logical
            (below,) = _either(children, made)
            made = [logical.Filter(self._parser.parseExpression(HEARD.strip()), below)]
        return self._with_children(whole, children, made) or rebuilt

    def _with_subqueries(self, node: Any) -> Any | None:
        """A node in whose expressions stand queries."""
        parts = list(parts_of(node))
        made = [self._part(each) for each in parts]
        if all(each is None for each in made):
            return None
        copied = self._gateway.new_array(self._jvm.java.lang.Object, len(parts))
        for n, each in enumerate(_either(parts, made)):
            copied[n] = each
        return node.makeCopy(copied)

    def _part(self, part: Any) -> Any | None:
        name = "" if isinstance(part, (str, int, float)) or part is None else str(part.getClass().getName())
        if name.startswith(f"{CATALYST}expressions."):
            return self._expression(part)
        if name.startswith("scala.collection."):
            inside = list(elements(part))
            made = [self._part(each) for each in inside]
            return None if all(each is None for each in made) else self._seq(_either(inside, made))
        return None

    def _expression(self, found: Any) -> Any | None:
        children = list(elements(found.children()))
        rebuilt = self._with_children(found, children, [self._expression(each) for each in children])
        if kind_of(found) not in QUERIES or not found.outerAttrs().isEmpty():
            return rebuilt
        whole = found if rebuilt is None else rebuilt
        inner = self.plan(whole.plan())
        return rebuilt if inner is None else whole.withNewPlan(inner)

    def _with_children(self, found: Any, children: list[Any], made: list[Any | None]) -> Any | None:
        if all(each is None for each in made):
            return None
        return found.withNewChildren(self._seq(_either(children, made)))

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(items)


def _either(before: list[Any], made: list[Any | None]) -> list[Any]:
    return [old if new is None else new for old, new in zip(before, made, strict=True)]
