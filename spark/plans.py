"""Whether a query only reads, and only the tables that it was given: decided on Spark's own parse of it.

Nothing of the text is looked at. Every node of the parsed plan, every expression in it and everything that they are
made of must be named in the lists below; what a new version of Spark adds is refused until somebody has read what it
does. A table is one of those offered or one that the query itself defines, by one plain name; a function is one of
``spark.functions``, and a text that it takes for a type or an option is one that names no code. The analyzed plan is
looked at once more for where its rows come from (docs/adr/0019).
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from spark import functions
from spark.session import activate

MOST_NODES = 5_000
"""Nodes of a parsed plan: its walk is a few calls into the JVM each."""

_CATALYST = "org.apache.spark.sql.catalyst."

_PLANS = """
Project Filter Aggregate Join JoinHint Sort GlobalLimit LocalLimit Offset Distinct Union Intersect Except
SubqueryAlias UnresolvedWith UnresolvedHaving OneRowRelation LocalRelation UnresolvedInlineTable Generate
Pivot Unpivot Sample SampleMethod$Bernoulli$ WithWindowDefinition LateralJoin UnresolvedRelation
UnresolvedTableValuedFunction UnresolvedTVFAliases UnresolvedSubqueryColumnAliases Inner$ LeftOuter$
RightOuter$ FullOuter$ LeftSemi$ LeftAnti$ Cross$ NaturalJoin UsingJoin JoinHint$
"""
PLANS = frozenset(_PLANS.split())
_EXPRESSIONS = """
UnresolvedAttribute UnresolvedStar UnresolvedStarExceptOrReplace UnresolvedExtractValue UnresolvedAlias
UnresolvedFunction UnresolvedGenerator UnresolvedNamedLambdaVariable UnresolvedOrdinal UnresolvedCollation
Alias MultiAlias AttributeReference Literal GenericInternalRow GenericRowWithSchema Cast
SemiStructuredExtract And Or Not EqualTo EqualNullSafe GreaterThan GreaterThanOrEqual LessThan
LessThanOrEqual Between Like ILike LikeAll LikeAny NotLikeAll NotLikeAny ILikeAll ILikeAny NotILikeAll
NotILikeAny RLike Collate In InSubquery ListQuery Exists ScalarSubquery LateralSubquery IsNull IsNotNull
IsUnknown IsNotUnknown Add Subtract Multiply Divide Remainder IntegralDivide UnaryMinus UnaryPositive
BitwiseAnd BitwiseOr BitwiseXor BitwiseNot ShiftLeft ShiftRight ShiftRightUnsigned Concat Coalesce
CaseWhen LambdaFunction CreateNamedStruct CreateStruct$ NamePlaceholder$ SortOrder Ascending$ Descending$
NullsFirst$ NullsLast$ WindowExpression WindowSpecDefinition WindowSpecReference SpecifiedWindowFrame
RowFrame$ RangeFrame$ UnboundedPreceding$ UnboundedFollowing$ CurrentRow$ UnspecifiedFrame$ StringTrim
StringTrimLeft StringTrimRight StringTrimBoth StringLocate Substring Overlay TimestampAdd TimestampDiff
CurrentDate CurrentTimestamp LocalTimestamp Now Rollup Cube GroupingSets GroupingAnalytics ExprId
NumericEvalContext
"""
EXPRESSIONS = frozenset(_EXPRESSIONS.split())
VALUES = (
    "java.lang.",
    "java.util.UUID",
    "java.math.",
    "scala.math.",
    "scala.Enumeration$Val",
    "scala.collection.immutable.Range",
    "org.apache.spark.sql.types.",
    "org.apache.spark.unsafe.types.",
    "org.apache.spark.sql.catalyst.AliasIdentifier",
    "org.apache.spark.sql.catalyst.util.",
)
"""What nodes are made of beside nodes: values and types, which do nothing."""

LEAVES = frozenset({"OneRowRelation", "LocalRelation", "Range", "CTERelationRef"})
"""Where the rows of an analyzed plan may come from beside the tables."""

_OF_NOW = """
CurrentDate CurrentTime CurrentTimestamp LocalTimestamp Now ScalarSubquery Exists ListQuery LateralSubquery
"""
OF_NOW = frozenset(_OF_NOW.split())
"""What an analyzed plan may take from its surroundings: the time; the queries within it are nodes of their own."""


_FIXED_MOMENT = re.compile(r"""\w+\s*r?['"]\s*[-+0-9]""", re.IGNORECASE)
"""A date or time as it is written where it says no ``now``, ``today``, ``tomorrow`` or ``yesterday``."""

NOT_THE_SAME = (
    "A condition has to choose the same messages each time; rand(), now(), 'today' and the like do not."
)


class QueryRefused(ValueError):
    """A query is not understood, or does more than read what it may; the message is a sentence for a person."""


@dataclass(slots=True)
class Checked:
    """A parsed plan that only reads.

    Attributes:
        plan: the JVM's object.
        tables: those of the offered tables that it names.
    """

    plan: Any
    tables: set[str] = field(default_factory=set)


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
    try:
        plan = parser.parsePlan(sql)
    except ParseException as error:
        raise QueryRefused(sentence(error)) from None
    except Py4JJavaError:  # the parser's stack has an end
        raise QueryRefused("The query is nested too deeply.") from None
    walk = _Walk(session, tables=frozenset(tables))
    walk.whole(plan)
    for name in sorted(walk.named - walk.defined):
        if name not in walk.tables:
            raise QueryRefused(f"There is no table {name!r}; there are {', '.join(sorted(tables))}.")
    return Checked(plan, walk.named & walk.tables)


def condition(session: SparkSession, text: str) -> Column:
    """A text that is one condition on a message, and only looks at it.

    Raises:
        QueryRefused: with what is wrong.
    """
    parser = _parser(session)
    try:
        expression = parser.parseExpression(text)
    except ParseException as error:
        raise QueryRefused(sentence(error)) from None
    except Py4JJavaError:
        raise QueryRefused("The condition is nested too deeply.") from None
    walk = _Walk(session, tables=frozenset())
    walk.whole(expression)
    if walk.has_plan:
        raise QueryRefused("A condition looks at one message; it holds no query of its own.")
    if not all(map(_is_fixed, walk.moments)):
        raise QueryRefused(NOT_THE_SAME)
    jvm: Any = session._jvm
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def chosen(frame: DataFrame, wanted: Column) -> DataFrame:
    """The rows of a frame that meet a checked condition.

    Raises:
        QueryRefused: a name or a type does not fit, it tells of the machine, or it would choose other rows the next
            time, as with ``rand``, ``now`` and ``timestamp('today')``.
    """
    try:
        found = frame.where(wanted)
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
    for node in _nodes(plan, frozenset(checked.tables)):
        leaf = _kind(node)
        if node.children().isEmpty() and leaf not in LEAVES:
            raise QueryRefused(f"{leaf} is not one of the tables that can be asked.")
    _refuse_what_tells_of_the_machine(plan, _current(session))
    return frame


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
        waiting = list(_elements(node.expressions()))
        while waiting:
            found = waiting.pop()
            if found.containsPattern(current):
                inner = list(_elements(found.children()))
                if not inner and _kind(found) not in OF_NOW:
                    raise QueryRefused(f"{found.sql()} cannot be used here.")
                waiting += inner


def sentence(error: PySparkException) -> str:
    """What Spark says of a query, without its code, its plan and its trace."""
    text = str(error).strip()
    text = text.split("\n\n", 1)[0].split(";\n", 1)[0].split("\n", 1)[0]
    before, _, after = text.partition("SQLSTATE:")
    if before.startswith("["):
        before = before.partition("] ")[2] or before
    place = after.strip().partition(" ")[2].lstrip("; ").strip("()").replace("pos ", "position ")
    said = before.strip()
    return f"{said.rstrip('.')} ({place})." if place else said


class _Walk:
    """Goes through everything that a parsed plan is made of."""

    def __init__(self, session: SparkSession, *, tables: frozenset[str]) -> None:
        self.jvm: Any = session._jvm
        self.tables = tables
        self.named: set[str] = set()
        self.defined: set[str] = set()
        self.moments: list[Any] = []
        self.nodes = 0
        self.has_plan = False

    def whole(self, found: Any) -> None:
        """Check what the parser made.

        Raises:
            QueryRefused: something in it is not in the lists, or lies too deep in it to be looked at.
        """
        try:
            self.node(found)
        except RecursionError:
            raise QueryRefused("It is nested too deeply.") from None

    def node(self, found: Any) -> None:
        """Check one object of the JVM and all that it holds.

        Raises:
            QueryRefused: it is not in the lists.
        """
        if found is None or isinstance(found, (str, int, float, bool, bytes, bytearray)):
            return
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise QueryRefused("The query is too large.")
        name = str(found.getClass().getName())
        if name.startswith(_CATALYST) and not name.startswith(VALUES):
            self._catalyst(found, name.rpartition(".")[2])
        elif name.startswith("scala.collection.") and not name.startswith(VALUES):
            for each in _elements(found):
                self.node(each)
        elif name.startswith(("scala.Some", "scala.Tuple")):
            for each in _parts(found):
                self.node(each)
        elif not name.startswith(VALUES) and name != "scala.None$":
            raise _not_reading(name.rpartition(".")[2])

    def _catalyst(self, found: Any, kind: str) -> None:
        if kind not in PLANS and kind not in EXPRESSIONS:
            raise _not_reading(kind)
        self.has_plan = self.has_plan or kind in PLANS
        if kind in {"GenericInternalRow", "GenericRowWithSchema"}:
            return  # the values of VALUES (…)
        match kind:
            case "UnresolvedRelation":
                self._relation(found)
                return
            case "UnresolvedWith":
                if found.allowRecursion():
                    raise QueryRefused("WITH RECURSIVE is not possible here.")
                for each in _elements(found.cteRelations()):
                    self.defined.add(str(each._1()).lower())
            case "UnresolvedFunction":
                self._call(found)
            case "UnresolvedTableValuedFunction":
                name = _function(list(map(str, _elements(found.name()))), functions.TABLES)
                _few(name, list(_elements(found.functionArgs())))
            case "UnresolvedGenerator":
                name = found.name()
                _function(str(name.unquotedString()).split("."), functions.TABLES)
                for each in _elements(found.children()):
                    self.node(each)
                return
            case "Literal" if str(found.dataType().typeName()).startswith(("date", "time")):
                self.moments.append(found)
            case "UnresolvedAttribute" | "UnresolvedStar":
                parts = _texts(found)
                if any(part.lower() == "_metadata" for part in parts):
                    raise QueryRefused("There is no column '_metadata'.")
        for each in _parts(found):
            self.node(each)

    def _call(self, found: Any) -> None:
        name = _function(list(map(str, _elements(found.nameParts()))), functions.ALLOWED)
        arguments = list(_elements(found.arguments()))
        _few(name, arguments)
        type_at, options_at = functions.TYPES.get(name), functions.OPTIONS.get(name)
        if (type_at or options_at) and any(map(_is_star, arguments)):
            raise QueryRefused(f"What {name} takes is written down one by one, without '*'.")
        if type_at is not None and len(arguments) > type_at:
            self._type(arguments[type_at])
        if options_at is not None and len(arguments) > options_at:
            _options(arguments[options_at])

    def _type(self, found: Any) -> None:
        """Refuse the text of a type but in the words of SQL, of which Spark makes nothing but a type.

        It is analysis that reads the text, and makes what it names; so an expression that gives a text cannot be
        waited for. ``schema_of_json`` writes such words.
        """
        if _is_call(found, "schema_of_json"):
            return
        text = _text(found)
        try:
            if text is not None:
                self.jvm.org.apache.spark.sql.types.DataType.fromDDL(text)
                return
        except (PySparkException, Py4JJavaError):
            pass
        raise QueryRefused(
            "A type is a text in SQL's words, such as 'a INT, b ARRAY<STRING>', or schema_of_json('…')."
        )

    def _relation(self, found: Any) -> None:
        parts = [str(part) for part in _elements(found.multipartIdentifier())]
        if len(parts) != 1:
            raise QueryRefused(
                f"{'.'.join(parts)!r} is no table here: only {', '.join(sorted(self.tables))} can be asked, "
                "no files and no other catalogs."
            )
        if not found.options().isEmpty():
            raise QueryRefused("A table takes no options here.")
        self.named.add(parts[0].lower())


def _function(parts: list[str], allowed: Collection[str]) -> str:
    name = ".".join(parts).lower()
    if name not in allowed:
        raise QueryRefused(f"The function {name!r} cannot be used here.")
    return name


def _few(name: str, arguments: list[Any]) -> None:
    most = functions.MOST_ARGUMENTS.get(name)
    if most is not None and (len(arguments) > most or any(map(_is_star, arguments))):
        raise QueryRefused(f"The function {name!r} takes no more than {most} arguments here.")


def _options(found: Any) -> None:
    """Refuse options but those on the list, each written down: some name a class, which Spark loads."""
    written = list(map(_text, _elements(found.arguments()))) if _is_call(found, "map") else [None]
    for name in written[::2]:
        if name is not None and name.lower() not in functions.NAMES_OF_OPTIONS:
            raise QueryRefused(f"The option {name!r} cannot be used here.")
    if None in written:
        raise QueryRefused("Options are written as map('name', 'value', …).")


def _is_call(found: Any, name: str) -> bool:
    return _kind(found) == "UnresolvedFunction" and [
        str(part).lower() for part in _elements(found.nameParts())
    ] == [name]


def _is_star(found: Any) -> bool:
    return _kind(found).startswith("UnresolvedStar")


def _text(found: Any) -> str | None:
    """What a text that is written down says; None for anything else."""
    if _kind(found) != "Literal" or found.dataType().typeName() != "string":
        return None
    return str(found.value())


def _not_reading(kind: str) -> QueryRefused:
    what = kind.rstrip("$").rpartition("$")[2].removeprefix("Unresolved")
    return QueryRefused(f"Only one reading query (SELECT) is possible; {what} is not.")


def _kind(found: Any) -> str:
    return str(found.getClass().getSimpleName())


def _elements(found: Any) -> Iterator[Any]:
    elements = found.iterator()
    while elements.hasNext():
        yield elements.next()


def _parts(found: Any) -> Iterator[Any]:
    parts = found.productIterator()
    while parts.hasNext():
        yield parts.next()


def _texts(found: Any) -> list[str]:
    """The strings that a node holds directly or in a list."""
    texts = []
    for part in _parts(found):
        name = "" if isinstance(part, (str, int, bool)) or part is None else str(part.getClass().getName())
        if isinstance(part, str):
            texts.append(part)
        elif name == "scala.Some":
            texts += [str(each) for each in _elements(part.get())]
        elif name.startswith("scala.collection."):
            texts += [str(each) for each in _elements(part)]
    return texts


def _nodes(plan: Any, views: frozenset[str] = frozenset()) -> Iterator[Any]:
    """The nodes of an analyzed plan, without the views that were made for it."""
    if plan.nodeName() == "View" and plan.isTempView() and plan.desc().identifier().table() in views:
        return
    yield plan
    for held in (plan.children(), plan.subqueries(), plan.innerChildren()):
        for each in _elements(held):
            yield from _nodes(each, views)
