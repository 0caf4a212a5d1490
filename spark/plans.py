"""Whether a query only reads, and only the tables that it was given: decided on Spark's own parse of it.

Nothing of the text is looked at. Every node of the parsed plan, every expression in it and everything that they are
made of must be named in the lists of ``spark.walk``. A table is one of those offered or one that the query itself
defines, by one plain name; a function is one of ``spark.functions``, and a text that it takes for a type or an option
is one that names no code. The analyzed plan is looked at once more for where its rows come from (docs/adr/0019).
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from spark.growth import Keeps, refuse_growth
from spark.listening import listening
from spark.nesting import MOST_VALUES, refuse_endless, too_nested, too_wide, values_in
from spark.planned import refuse_large, refuse_sets
from spark.sentences import follows_a_statement, sentence
from spark.session import activate
from spark.walk import QueryRefused, Walk, elements, kind_of

LEAVES = frozenset({"OneRowRelation", "LocalRelation", "Range", "CTERelationRef"})
"""Where the rows of an analyzed plan may come from beside the tables."""

_OF_NOW = """
CurrentDate CurrentTime CurrentTimestamp LocalTimestamp Now ScalarSubquery Exists ListQuery LateralSubquery
"""
OF_NOW = frozenset(_OF_NOW.split())
"""What an analyzed plan may take from its surroundings: the time; the queries within it are nodes of their own."""


_FIXED_MOMENT = re.compile(r"""\w+\s*r?['"]\s*[-+0-9]""", re.IGNORECASE)
"""A date or time as it is written where it says no ``now``, ``today``, ``tomorrow`` or ``yesterday``."""

NAMING = frozenset({"Alias", "MultiAlias"})
"""What a parsed text is where a name follows the condition, also without AS: ``n > 3 AND`` is ``n > 3``, named AND."""

NOT_THE_SAME = (
    "A condition has to choose the same messages each time; rand(), now(), 'today' and the like do not."
)


@dataclass(slots=True)
class Checked:
    """A parsed plan that only reads.

    Attributes:
        plan: the JVM's object.
        tables: those of the offered tables that it names.
        keeps: the rows of a group that it keeps at once, which may need more memory than there is.
    """

    plan: Any
    tables: set[str] = field(default_factory=set)
    keeps: Keeps = Keeps.NOTHING


def parse(session: SparkSession, sql: str, *, tables: Collection[str]) -> Checked:
    """Parse a query and check that it only reads.

    Args:
        tables: the names that stand for tables.

    Raises:
        QueryRefused: with what is wrong.
    """
    if not sql.strip():
        raise QueryRefused("The query is empty.")
    parser = _parser(session)
    refuse_sets(sql, session._jvm)
    try:
        plan = parser.parsePlan(sql)
    except PySparkException as error:  # also of a value that is written down and too large
        if follows_a_statement(error, sql):
            raise QueryRefused("Only one statement is allowed.") from None
        raise QueryRefused(sentence(error)) from None
    except Py4JJavaError:  # the parser's stack has an end
        raise QueryRefused("The query is nested too deeply.") from None
    walk = Walk(session, tables=frozenset(tables))
    walk.whole(plan)
    for name in sorted(walk.named - walk.defined):
        if name not in walk.tables:
            raise QueryRefused(f"There is no table {name!r}; there are {', '.join(sorted(tables))}.")
    refuse_endless(plan, session._jvm)
    refuse_large(plan, session._jvm)
    keeps = refuse_growth(plan, session._jvm)
    return Checked(plan, walk.named & walk.tables, keeps)


def condition(session: SparkSession, text: str) -> Column:
    """A text that is one condition on a message, and only looks at it.

    Raises:
        QueryRefused: with what is wrong.
    """
    parser = _parser(session)
    refuse_sets(text, session._jvm)
    try:
        expression = parser.parseExpression(text)
    except PySparkException as error:  # also of a value that is written down and too large
        raise QueryRefused(sentence(error)) from None
    except Py4JJavaError:
        raise QueryRefused("The condition is nested too deeply.") from None
    if kind_of(expression) in NAMING:
        raise QueryRefused(_named_sentence(expression))
    walk = Walk(session, tables=frozenset())
    walk.whole(expression)
    if walk.has_plan:
        raise QueryRefused("A condition looks at one message; it holds no query of its own.")
    if not all(map(_is_fixed, walk.moments)):
        raise QueryRefused(NOT_THE_SAME)
    jvm: Any = session._jvm
    refuse_endless(expression, jvm)
    refuse_growth(expression, jvm)
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _named_sentence(expression: Any) -> str:
    """That a condition has no name, and which words were taken for one."""
    names = [expression.name()] if kind_of(expression) == "Alias" else elements(expression.names())
    written = ", ".join(map(str, names))
    return f"A condition takes no name: {written} at its end is read as one; did you leave out what follows?"


def chosen(frame: DataFrame, wanted: Column) -> DataFrame:
    """The rows of a frame that meet a checked condition on its columns, the frame being called ``messages``.

    Raises:
        QueryRefused: a name or a type does not fit, it tells of the machine, or it would choose other rows the next
            time, as with ``rand``, ``now`` and ``timestamp('today')``.
    """
    try:
        # By a name of its own: of a bare selection Spark's filter also finds columns that were not selected.
        found = frame.alias("messages").where(wanted)
    except AnalysisException as error:
        raise QueryRefused(sentence(error)) from None
    inner: Any = found._jdf
    plan = inner.queryExecution().analyzed()
    current = _current(found.sparkSession)
    _refuse_what_tells_of_the_machine(plan, current)
    if not plan.deterministic() or plan.containsPattern(current) or _takes_the_time(found.sparkSession, plan):
        raise QueryRefused(NOT_THE_SAME)
    return found


def analyzed(session: SparkSession, checked: Checked) -> DataFrame:
    """The data frame of a checked plan, on the session whose temporary views are its tables.

    Raises:
        QueryRefused: a name or a type does not fit, it has no column, or its rows come from elsewhere.
    """
    jvm: Any = session._jvm
    try:
        frame = DataFrame(
            jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, checked.plan), session
        )
    except AnalysisException as error:
        raise QueryRefused(sentence(error)) from None
    plan: Any = frame._jdf.queryExecution().analyzed()
    if plan.output().isEmpty():
        raise QueryRefused("The query has no column.")
    known: dict[int, int] = {}
    for node in _nodes(plan, frozenset(checked.tables)):
        values = [values_in(each.dataType(), known, jvm) for each in elements(node.output())]
        if max(values, default=0) > MOST_VALUES:
            raise too_nested()
        if sum(values) > MOST_VALUES:
            raise too_wide()
        leaf = kind_of(node)
        if node.children().isEmpty() and leaf not in LEAVES:
            raise QueryRefused(f"{leaf} is not one of the tables that can be asked.")
    _refuse_what_tells_of_the_machine(plan, _current(session))
    return listening(frame) if checked.keeps else frame


def _parser(session: SparkSession) -> Any:
    """The parser, following this session on whatever thread asks."""
    activate(session)
    jvm: Any = session._jvm
    if jvm.org.apache.spark.sql.internal.SQLConf.get().variableSubstituteEnabled():
        raise RuntimeError("Spark would put this process's environment into the text of a query.")
    inner: Any = session._jsparkSession
    return inner.sessionState().sqlParser()


def _current(session: SparkSession) -> Any:
    """Spark's mark of what is written without parentheses, or with them, and is computed from the surroundings."""
    jvm: Any = session._jvm
    return jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()


def _is_fixed(literal: Any) -> bool:
    """Whether a date or time was written with digits: of a word such as ``now`` the parser keeps only what it meant."""
    origin = literal.origin()
    if not (
        origin.sqlText().isDefined() and origin.startIndex().isDefined() and origin.stopIndex().isDefined()
    ):
        return False
    written = str(origin.sqlText().get())[origin.startIndex().get() : origin.stopIndex().get() + 1]
    return _FIXED_MOMENT.match(written) is not None


def _takes_the_time(session: SparkSession, plan: Any) -> bool:
    """Whether Spark would make a date or time of a constant text such as ``'now'``, and so take its own."""
    jvm: Any = session._jvm
    rules = jvm.org.apache.spark.sql.catalyst.optimizer
    written, put = (
        getattr(getattr(rules, f"{name}$"), "MODULE$")
        for name in ("ReplaceExpressions", "SpecialDatetimeValues")
    )
    plain = written.apply(plan)
    return not plain.fastEquals(put.apply(plain))


def _refuse_what_tells_of_the_machine(plan: Any, current: Any) -> None:
    """Refuse ``current_user`` and its like, which mean their functions where no column has their name."""
    if not plan.containsPattern(current):
        return
    for node in _nodes(plan):
        waiting = list(elements(node.expressions()))
        while waiting:
            found = waiting.pop()
            if found.containsPattern(current):
                inner = list(elements(found.children()))
                if not inner and kind_of(found) not in OF_NOW:
                    raise QueryRefused(f"{found.sql()} cannot be used here.")
                waiting += inner


def _nodes(plan: Any, views: frozenset[str] = frozenset()) -> Iterator[Any]:
    """The nodes of an analyzed plan, without the views that were made for it."""
    if plan.nodeName() == "View" and plan.isTempView() and plan.desc().identifier().table() in views:
        return
    yield plan
    for held in (plan.children(), plan.subqueries(), plan.innerChildren()):
        for each in elements(held):
            yield from _nodes(each, views)
