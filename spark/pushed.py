"""What Spark pushes down to the source: comparisons of offset, timestamp and key, taken over whole. Pure.

Offsets and times bound what is read of the log; keys are looked at before any column is built. What is not taken over
goes back to Spark, which then looks at each row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

# Its filters are named where they are used: PySpark 4.0 has none.
from pyspark.sql import datasource

from spark import schemas

_NEVER_NULL = frozenset(field.name for field in schemas.MESSAGES.fields if not field.nullable)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)

KeyTest = Callable[[str | None], bool]
"""Whether a message with this key can be wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """Which messages a query can want at most; bounds are both included, and None is no bound.

    Attributes:
        first, last: offsets.
        since_ms, until_ms: unix ms.
        keys: each must hold of a message's key.
    """

    first: int | None = None
    last: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    keys: tuple[KeyTest, ...] = ()

    def wants_key(self, key: str | None) -> bool:
        """Whether a message with this key can be wanted."""
        return all(wants(key) for wants in self.keys)

    def narrowed(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
    ) -> "Pushed":
        """The same with bounds that are at least as narrow as those given."""
        return replace(
            self,
            first=_bound(max, self.first, first),
            last=_bound(min, self.last, last),
            since_ms=_bound(max, self.since_ms, since_ms),
            until_ms=_bound(min, self.until_ms, until_ms),
        )


def _bound(tighter: Callable[[int, int], int], held: int | None, more: int | None) -> int | None:
    if held is None or more is None:
        return more if held is None else held
    return tighter(held, more)


NOTHING = Pushed()


def take(
    filters: Iterable["datasource.Filter"], *, by_time: bool
) -> tuple[Pushed, list["datasource.Filter"]]:
    """What of these filters the source does itself, and those that are left to Spark.

    Args:
        by_time: whether times bound what is read.
    """
    pushed, left = NOTHING, []
    for each in filters:
        more = _taken(pushed, each, by_time=by_time)
        if more is None:
            left.append(each)
        else:
            pushed = more
    return pushed, left


def _taken(pushed: Pushed, each: "datasource.Filter", *, by_time: bool) -> Pushed | None:
    """With one filter more; None where it is Spark's."""
    column: tuple[str, ...] = getattr(each, "attribute", ())
    value = getattr(each, "value", None)
    if isinstance(each, datasource.IsNotNull) and len(column) == 1 and column[0] in _NEVER_NULL:
        return pushed
    if column == ("key",):
        wants = _key_test(each)
        return None if wants is None else replace(pushed, keys=(*pushed.keys, wants))
    if column == ("offset",):
        return _by_offset(pushed, each, value)
    if column == ("timestamp",) and by_time:
        return _by_time(pushed, each, value)
    return None


def _by_offset(pushed: Pushed, each: "datasource.Filter", value: Any) -> Pushed | None:
    if type(value) is not int:
        return None
    match each:
        case datasource.EqualTo() | datasource.EqualNullSafe():
            return pushed.narrowed(first=value, last=value)
        case datasource.GreaterThan():
            return pushed.narrowed(first=value + 1)
        case datasource.GreaterThanOrEqual():
            return pushed.narrowed(first=value)
        case datasource.LessThan():
            return pushed.narrowed(last=value - 1)
        case datasource.LessThanOrEqual():
            return pushed.narrowed(last=value)
    return None


def _by_time(pushed: Pushed, each: "datasource.Filter", value: Any) -> Pushed | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    # A message's time is a whole millisecond; a literal may lie between two.
    below, above = (value - _EPOCH) // _MS, -((_EPOCH - value) // _MS)
    match each:
        case datasource.EqualTo() | datasource.EqualNullSafe():
            return pushed.narrowed(since_ms=above, until_ms=below)
        case datasource.GreaterThan():
            return pushed.narrowed(since_ms=below + 1)
        case datasource.GreaterThanOrEqual():
            return pushed.narrowed(since_ms=above)
        case datasource.LessThan():
            return pushed.narrowed(until_ms=above - 1)
        case datasource.LessThanOrEqual():
            return pushed.narrowed(until_ms=below)
    return None


def _key_test(each: "datasource.Filter") -> KeyTest | None:
    """What a filter of the key asks of it; None where it is Spark's."""
    match each:
        case datasource.EqualTo(value=str() as text) | datasource.EqualNullSafe(value=str() as text):
            return lambda key: key == text
        case datasource.In(value=texts) if all(item is None or isinstance(item, str) for item in texts):
            return lambda key: key is not None and key in texts
        case datasource.IsNull():
            return lambda key: key is None
        case datasource.IsNotNull():
            return lambda key: key is not None
        case datasource.StringStartsWith(value=str() as text):
            return lambda key: key is not None and key.startswith(text)
        case datasource.StringEndsWith(value=str() as text):
            return lambda key: key is not None and key.endswith(text)
        case datasource.StringContains(value=str() as text):
            return lambda key: key is not None and text in key
    return None
