"""What a person looks for in bodies: text, and values at a path.

A filter of bodies is one condition or several, joined by ``&&`` and ``||`` (``conditions``). One is text to be found in
the body as it was sent (capitals count), or, beginning with a dot, a path in its JSON and what stands there::

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
    (.status = paid || .status = new) && .total > 99.5

A body that is read decoded is looked at decoded, too: of what comes out, as much as is shown.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from streams.decoding import DEEPEST
from streams.filters.branches import Branch, Condition, first_branch
from streams.filters.paths import Step, path_of, values_at
from streams.filters.values import NOT, OPERATIONS, value_test
from streams.nesting import is_deeper

_TEST = re.compile(r"\s*([=!<>~]+)\s*(.*)", re.DOTALL)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_DECODERS = (
    json.JSONDecoder(parse_float=Decimal).decode,
    # An integer may have more digits than Python turns into one, and an exponent be beyond all bounds.
    json.JSONDecoder(parse_float=Decimal, parse_int=Decimal).decode,
)

Decode = Callable[[bytes], bytes | None]
"""A body as it is read; None where that is as it was sent."""


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
    if is_deeper(data, DEEPEST):
        return []
    text = data.decode("utf-8", "replace")
    for decode in _DECODERS:
        try:
            return [decode(text)]
        except (ValueError, ArithmeticError):
            continue
    return []


def _as_sent(_body: bytes) -> None:
    """No body is read decoded."""


@dataclass(frozen=True, slots=True)
class BodyTest:
    """Whether a body passes a filter; a condition holds of it as it was sent or as what it is decoded to, each for
    itself, and a negated one of neither.
    """

    first: Branch[_View] | bool

    def __call__(self, body: bytes, decode: Decode = _as_sent) -> bool:
        sent = _View(body)
        shown: _View | None = None
        is_decoded = False
        at = self.first
        while at is not True and at is not False:
            found = at.holds(sent)
            if not found:
                if not is_decoded:
                    is_decoded = True
                    data = decode(body)
                    shown = None if data is None else _View(data)
                found = shown is not None and at.holds(shown)
            at = at.then if found else at.otherwise
        return at


def body_test(text: str) -> BodyTest:
    """The test that a filter of bodies asks for.

    Raises:
        ValueError: a sentence for the form.
    """
    return BodyTest(first_branch(text, _conditions_of))


def _conditions_of(text: str) -> list[Condition[_View]]:
    """What a condition as it is written comes to; ``!~`` of a path asks that there is something, too."""
    if text.startswith(NOT):
        if not (unwanted := text.removeprefix(NOT).strip()):
            raise ValueError(_("Enter the text that shall not be in the body: !~ refused."))
        return [Condition(_contains(_unquoted(unwanted)), is_negated=True)]
    if not text.startswith((".", '["', "$.", "$[")):
        return [Condition(_contains(_unquoted(text)))]
    steps, rest = path_of(text.removeprefix("$"))
    is_there = Condition(_at_path(steps, lambda value: True))
    if not rest.strip():
        return [is_there]
    match = _TEST.fullmatch(rest)
    if match is None or not match[2].strip():
        raise ValueError(_("Enter a path and a value, such as .customer.id = 42 or .status ~ paid."))
    if match[1] not in OPERATIONS:
        raise ValueError(
            _("“%(text)s” is no comparison; use one of = != < <= > >= ~ !~.") % {"text": match[1]}
        )
    if match[1] == NOT:
        contains = _at_path(steps, value_test("~", match[2].strip()))
        return [is_there, Condition(contains, is_negated=True)]
    return [Condition(_at_path(steps, value_test(match[1], match[2].strip())))]


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


def _contains(text: str) -> Callable[[_View], bool]:
    """Text in a body: as typed, or as JSON may write it (quotes escaped, letters as ``\\u00e9``)."""
    needles = {
        text.encode("utf-8", "surrogatepass"),
        json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
        json.dumps(text)[1:-1].encode(),
    }
    if len(needles) > 1:
        return lambda view: any(needle in view.data for needle in needles)
    (needle,) = needles
    return lambda view: needle in view.data


def _at_path(steps: list[Step], test: Callable[[Any], bool]) -> Callable[[_View], bool]:
    # Most bodies that lack the path lack its last name: they need no parsing. An escape may hide a name.
    name = next((step for step in reversed(steps) if isinstance(step, str)), "")
    last = name.encode("utf-8", "surrogatepass")

    def holds(view: _View) -> bool:
        if last not in view.data and b"\\" not in view.data:
            return False
        return any(test(found) for value in view.values for found in values_at(value, steps))

    return holds
