"""What a person looks for in a stream: key patterns, text, and values at a path, as tests of an entry.

A body filter is one condition or several, joined by ``&&``; all must hold. One is text to be found in the body as it
was sent (capitals count), or, beginning with a dot, a path in its JSON and what stands there::

    refused                    the text anywhere in the body
    !~ refused                 the text nowhere in the body
    "salt && pepper"           text in quotes: all in them is text, \\" is a quote
    .customer.id = 42          a number, exactly: 9007199254740993 is not 9007199254740992
    .status = "paid"           a string; without quotes too
    .items[*].sku ~ SKU-4      any element; ~ is "contains"
    .items[*].sku !~ SKU-4     there are some, and none contains it
    .total >= 99.5             < <= > >= compare numbers with numbers,
    .day >= "2026-11-21"       and text in quotes with text
    .["odd name"][0] != null   names that are not plain words, places in an array
    .discount                  there is something at the path
    .status = paid && .total > 99.5 && !~ test

A body that is read decoded is looked at decoded, too: of what comes out, as much as is shown.
"""

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from dashboard.browse import coded
from dashboard.browse.coded import Reading
from dashboard.browse.conditions import conditions
from dashboard.browse.paths import Step, path_of, values_at
from streams import naming
from streams.log import entries
from streams.log.entries import Entry
from streams.log.read import Wanted
from streams.nesting import is_deeper

AS_SENT = Reading(is_raw=True)
NOT = "!~"
"""Does not contain."""

_TEST = re.compile(r"\s*([=!<>~]+)\s*(.*)", re.DOTALL)
_OPERATIONS = ("=", "==", "!=", "<", "<=", ">", ">=", "~", NOT)
_HEADER = re.compile(r'(?:("(?:[^"\\]|\\.)*")|([^\s=!~"]+))\s*(?:(==|=|!=|!~|~)(.*))?', re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_DECODERS = (
    json.JSONDecoder(parse_float=Decimal).decode,
    # An integer may have more digits than Python turns into one, and an exponent be beyond all bounds.
    json.JSONDecoder(parse_float=Decimal, parse_int=Decimal).decode,
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _View:
    """A body as it is looked at, as sent or decoded; parsed once, when a path first asks."""

    __slots__ = ("_values", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._values: list[Any] | None = None

    @property
    def values(self) -> list[Any]:
        """The JSON value that it is, its numbers exact; none for what is no JSON, or too deep to be read."""
        if self._values is None:
            self._values = _parsed(self.data)
        return self._values


def _parsed(data: bytes) -> list[Any]:
    if is_deeper(data, coded.DEEPEST):
        return []
    text = data.decode("utf-8", "replace")
    for decode in _DECODERS:
        try:
            return [decode(text)]
        except (ValueError, ArithmeticError):
            continue
    return []


@dataclass(frozen=True, slots=True)
class _Condition:
    """What must hold of a body as sent or as decoded, or, negated, of neither."""

    holds: Callable[[_View], bool]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class BodyTest:
    """Whether a body passes all conditions: as it was sent, or, each for itself, as what it is decoded to."""

    conditions: tuple[_Condition, ...]

    def __call__(self, body: bytes, reading: Reading = AS_SENT) -> bool:
        sent = _View(body)
        shown: _View | None = None
        is_decoded = False
        for condition in self.conditions:
            found = condition.holds(sent)
            if not found and not is_decoded:
                shown, is_decoded = _shown(body, reading), True
            if (found or (shown is not None and condition.holds(shown))) == condition.is_negated:
                return False
        return True


def _shown(body: bytes, reading: Reading) -> _View | None:
    """The body decoded; None where it is shown as it was sent."""
    found = coded.decoded(body, reading) if coded.is_string(body) else None
    return None if found is None or found.fault else _View(found.body)


def body_test(text: str) -> BodyTest:
    """The test that a body filter asks for.

    Raises:
        ValueError: a sentence for the form.
    """
    return BodyTest(tuple(part for condition in conditions(text) for part in _conditions_of(condition)))


def _conditions_of(text: str) -> list[_Condition]:
    """What a condition as it is written comes to; ``!~`` of a path asks that there is something, too."""
    if text.startswith(NOT):
        if not (unwanted := text.removeprefix(NOT).strip()):
            raise ValueError(_("Enter the text that shall not be in the body: !~ refused."))
        return [_Condition(_contains(_unquoted(unwanted)), is_negated=True)]
    if not text.startswith((".", '["', "$.", "$[")):
        return [_Condition(_contains(_unquoted(text)))]
    steps, rest = path_of(text.removeprefix("$"))
    is_there = _Condition(_at_path(steps, lambda value: True))
    if not rest.strip():
        return [is_there]
    match = _TEST.fullmatch(rest)
    if match is None or not match[2].strip():
        raise ValueError(_("Enter a path and a value, such as .customer.id = 42 or .status ~ paid."))
    if match[1] not in _OPERATIONS:
        raise ValueError(
            _("“%(text)s” is no comparison; use one of = != < <= > >= ~ !~.") % {"text": match[1]}
        )
    if match[1] == NOT:
        contains = _at_path(steps, _value_test("~", match[2].strip()))
        return [is_there, _Condition(contains, is_negated=True)]
    return [_Condition(_at_path(steps, _value_test(match[1], match[2].strip())))]


def _unquoted(text: str) -> str:
    """What is in the quotes, where a text is in quotes as a whole."""
    if not _QUOTED.fullmatch(text):
        return text
    try:
        inner: str = json.loads(text)
    except ValueError:
        raise ValueError(_("%(text)s is not a quoted string.") % {"text": text}) from None
    if not inner:
        raise ValueError(_("Enter some text in the quotes."))
    return inner


def header_test(text: str) -> Callable[[bytes], bool]:
    """The test of headers (JSON) that a filter asks for: ``trace``, ``trace = 4bf9``, ``"two words" ~ part``; several,
    joined by ``&&``, must all hold.

    Raises:
        ValueError: a sentence for the form.
    """
    tests = [_one_header_test(condition) for condition in conditions(text)]

    def passes(headers: bytes) -> bool:
        held = json.loads(headers)
        return all(test(held) for test in tests)

    return passes


def _one_header_test(text: str) -> Callable[[dict[str, str]], bool]:
    match = _HEADER.fullmatch(text)
    if match is None:
        raise ValueError(_("Enter the name of a header, or a name and a value: trace = 4bf9, trace ~ part."))
    try:
        name: str = json.loads(match[1]) if match[1] else match[2]
    except ValueError:
        raise ValueError(_("%(text)s is not a quoted name.") % {"text": match[1]}) from None
    operation, wanted = match[3] or "", (match[4] or "").strip()
    if operation and not wanted:
        raise ValueError(_("Enter what the header %(name)s is compared with.") % {"name": name})
    if wanted.startswith('"'):
        try:
            wanted = json.loads(wanted)
        except ValueError:
            raise ValueError(_("%(text)s is not a quoted string.") % {"text": wanted}) from None

    def passes(headers: dict[str, str]) -> bool:
        value = headers.get(name)
        if value is None:
            return False
        match operation:
            case "":
                return True
            case "~":
                return wanted in value
            case "!~":
                return wanted not in value
            case "!=":
                return value != wanted
            case _:
                return value == wanted

    return passes


def entry_test(
    *,
    key: str = "",
    body: str = "",
    message_id: str = "",
    header: str = "",
    reading: Reading = coded.AUTOMATIC,
) -> Wanted | None:
    """The test of an entry that passes all that is given; None when nothing is.

    Args:
        key: a checked key pattern.
        body: a body filter.
        message_id: a whole id.
        header: a filter of headers.
        reading: how bodies are read; one that is decoded passes as what it is shown as, or as it was sent.
    """
    tests: list[Wanted] = []
    if message_id:
        wanted_id = message_id.encode("utf-8", "surrogatepass")
        tests.append(lambda entry: bool(entry[1][1] == wanted_id))
    if key:
        tests.append(_key_test(key))
    if header:
        has_header = header_test(header)
        tests.append(lambda entry: (held := entries.headers(entry)) is not None and has_header(held))
    if body:
        passes = body_test(body)
        tests.append(lambda entry: passes(entry[1][3], reading))
    if not tests:
        return None
    return lambda entry: all(test(entry) for test in tests)


def _key_test(pattern: str) -> Wanted:
    wanted = naming.compiled(pattern)

    def test(entry: Entry) -> bool:
        key = entries.key(entry)
        return key is not None and wanted.fullmatch(key.decode()) is not None

    return test


def _contains(text: str) -> Callable[[_View], bool]:
    """Text in a body: as typed, or as JSON may write it (quotes escaped, letters as ``\\u00e9``)."""
    needles = {
        text.encode("utf-8", "surrogatepass"),
        json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
        json.dumps(text)[1:-1].encode(),
    }
    return lambda view: any(needle in view.data for needle in needles)


def _at_path(steps: list[Step], test: Callable[[Any], bool]) -> Callable[[_View], bool]:
    # Most bodies that lack the path lack its last name: they need no parsing. An escape may hide a name.
    last = next((step.encode() for step in reversed(steps) if isinstance(step, str)), b"")

    def holds(view: _View) -> bool:
        if last not in view.data and b"\\" not in view.data:
            return False
        return any(test(found) for value in view.values for found in values_at(value, steps))

    return holds


def _value_test(operation: str, written: str) -> Callable[[Any], bool]:
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
