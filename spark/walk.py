"""What a parsed plan may be made of: named node by node, so that what nobody has read is refused.

A new version of Spark may add nodes; they are refused until somebody has read what they do, and has named them here.
"""

from collections.abc import Collection, Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark import functions
from spark.statements import in_sql

MOST_NODES = 5_000
"""Nodes of a parsed plan: its walk is a few calls into the JVM each."""

CATALYST = "org.apache.spark.sql.catalyst."

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


class QueryRefused(ValueError):
    """A query is not understood, or does more than read what it may; the message is a sentence for a person."""


class Walk:
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
        if name.startswith(CATALYST) and not name.startswith(VALUES):
            self._catalyst(found, name.rpartition(".")[2])
        elif name.startswith("scala.collection.") and not name.startswith(VALUES):
            for each in elements(found):
                self.node(each)
        elif name.startswith(("scala.Some", "scala.Tuple")):
            for each in parts_of(found):
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
                for each in elements(found.cteRelations()):
                    self.defined.add(str(each._1()).lower())
            case "UnresolvedFunction":
                self._call(found)
            case "UnresolvedTableValuedFunction":
                name = _function(list(map(str, elements(found.name()))), functions.TABLES)
                arguments = list(elements(found.functionArgs()))
                _few(name, arguments)
                if name == "range":
                    _counts(
                        arguments[3:], functions.MOST_PARTITIONS, "The function 'range' takes", "partitions"
                    )
            case "UnresolvedGenerator":
                name = found.name()
                _function(str(name.unquotedString()).split("."), functions.TABLES)
                for each in elements(found.children()):
                    self.node(each)
                return
            case "Literal" if str(found.dataType().typeName()).startswith(("date", "time")):
                self.moments.append(found)
            case "UnresolvedAttribute" | "UnresolvedStar" | "UnresolvedNamedLambdaVariable":
                parts = _texts(found)
                if any(part.lower() == "_metadata" for part in parts):
                    raise QueryRefused("There is no column '_metadata'.")
        for each in parts_of(found):
            self.node(each)

    def _call(self, found: Any) -> None:
        name = _function(list(map(str, elements(found.nameParts()))), functions.ALLOWED)
        arguments = list(elements(found.arguments()))
        _few(name, arguments)
        if name in functions.APPROXIMATE:
            accuracy = [each for n, each in enumerate(arguments) if n > 1 or _is_star(each)]
            _counts(accuracy, functions.MOST_ACCURATE, f"The function {name!r} takes", "as its accuracy")
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
        parts = [str(part) for part in elements(found.multipartIdentifier())]
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


def _counts(found: list[Any], most: int, whose: str, what: str) -> None:
    """Refuse arguments but whole numbers that are written down, from 1 to ``most``."""
    for each in found:
        number = each.value() if kind_of(each) == "Literal" else None
        if not isinstance(number, int) or not 0 < number <= most:
            raise QueryRefused(f"{whose} no more than {most:,} {what} here.")


def _options(found: Any) -> None:
    """Refuse options but those on the list, each written down: some name a class, which Spark loads."""
    written = list(map(_text, elements(found.arguments()))) if _is_call(found, "map") else [None]
    for name in written[::2]:
        if name is not None and name.lower() not in functions.NAMES_OF_OPTIONS:
            raise QueryRefused(f"The option {name!r} cannot be used here.")
    if None in written:
        raise QueryRefused("Options are written as map('name', 'value', …).")


def _is_call(found: Any, name: str) -> bool:
    return kind_of(found) == "UnresolvedFunction" and [
        str(part).lower() for part in elements(found.nameParts())
    ] == [name]


def _is_star(found: Any) -> bool:
    return kind_of(found).startswith("UnresolvedStar")


def _text(found: Any) -> str | None:
    """What a text that is written down says; None for anything else."""
    if kind_of(found) != "Literal" or found.dataType().typeName() != "string":
        return None
    return str(found.value())


def _not_reading(kind: str) -> QueryRefused:
    if kind == "UnresolvedHint":
        return QueryRefused("A hint (/*+ … */) is not possible here; leave it out.")
    what = in_sql(kind) or kind.rstrip("$").rpartition("$")[2].removeprefix("Unresolved")
    return QueryRefused(f"Only one reading query (SELECT) is possible; {what} is not.")


def kind_of(found: Any) -> str:
    return str(found.getClass().getSimpleName())


def elements(found: Any) -> Iterator[Any]:
    elements = found.iterator()
    while elements.hasNext():
        yield elements.next()


def parts_of(found: Any) -> Iterator[Any]:
    parts = found.productIterator()
    while parts.hasNext():
        yield parts.next()


def _texts(found: Any) -> list[str]:
    """The strings that a node holds directly or in a list."""
    texts = []
    for part in parts_of(found):
        name = "" if isinstance(part, (str, int, bool)) or part is None else str(part.getClass().getName())
        if isinstance(part, str):
            texts.append(part)
        elif name == "scala.Some":
            texts += [str(each) for each in elements(part.get())]
        elif name.startswith("scala.collection."):
            texts += [str(each) for each in elements(part)]
    return texts
