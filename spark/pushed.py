"""What Spark pushes down to the source: comparisons of offset, timestamp and key, taken over whole. Pure.

Offsets and times bound what is read of the log; keys are looked at before any column is built. What is not taken over
goes back to Spark, which then looks at each row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from spark import schemas

_NEVER_NULL = frozenset(field.name for field in schemas.MESSAGES.fields if not field.nullable)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


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
    keys: tuple[Filter, ...] = ()

    def wants_key(self, key: str | None) -> bool:
        """Whether a message with this key can be wanted."""
        return all(_KEY_TESTS[type(each)](key, getattr(each, "value", None)) for each in self.keys)

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


def take(filters: Iterable[Filter], *, by_time: bool) -> tuple[Pushed, list[Filter]]:
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


def _taken(pushed: Pushed, each: Filter, *, by_time: bool) -> Pushed | None:
    """With one filter more; None where it is Spark's."""
    column: tuple[str, ...] = getattr(each, "attribute", ())
    value = getattr(each, "value", None)
    if isinstance(each, IsNotNull) and len(column) == 1 and column[0] in _NEVER_NULL:
        return pushed
    if column == ("key",) and type(each) in _KEY_TESTS and _is_text(value, each):
        return replace(pushed, keys=(*pushed.keys, each))
    if column == ("offset",):
        return _by_offset(pushed, each, value)
    if column == ("timestamp",) and by_time:
        return _by_time(pushed, each, value)
    return None


def _by_offset(pushed: Pushed, each: Filter, value: Any) -> Pushed | None:
    if type(value) is not int:
        return None
    match each:
        case EqualTo() | EqualNullSafe():
            return pushed.narrowed(first=value, last=value)
        case GreaterThan():
            return pushed.narrowed(first=value + 1)
        case GreaterThanOrEqual():
            return pushed.narrowed(first=value)
        case LessThan():
            return pushed.narrowed(last=value - 1)
        case LessThanOrEqual():
            return pushed.narrowed(last=value)
    return None


def _by_time(pushed: Pushed, each: Filter, value: Any) -> Pushed | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    # A message's time is a whole millisecond; a literal may lie between two.
    below, above = (value - _EPOCH) // _MS, -((_EPOCH - value) // _MS)
    match each:
        case EqualTo() | EqualNullSafe():
            return pushed.narrowed(since_ms=above, until_ms=below)
        case GreaterThan():
            return pushed.narrowed(since_ms=below + 1)
        case GreaterThanOrEqual():
            return pushed.narrowed(since_ms=above)
        case LessThan():
            return pushed.narrowed(until_ms=above - 1)
        case LessThanOrEqual():
            return pushed.narrowed(until_ms=below)
    return None


def _is_text(value: Any, each: Filter) -> bool:
    if isinstance(each, (IsNull, IsNotNull)):
        return True
    if isinstance(each, In):
        return all(item is None or isinstance(item, str) for item in value)
    return isinstance(value, str)


_KEY_TESTS: dict[type[Filter], Callable[[str | None, Any], bool]] = {
    EqualTo: lambda key, value: key == value,
    EqualNullSafe: lambda key, value: key == value,
    In: lambda key, value: key is not None and key in value,
    IsNull: lambda key, value: key is None,
    IsNotNull: lambda key, value: key is not None,
    StringStartsWith: lambda key, value: key is not None and key.startswith(value),
    StringEndsWith: lambda key, value: key is not None and key.endswith(value),
    StringContains: lambda key, value: key is not None and value in key,
}
