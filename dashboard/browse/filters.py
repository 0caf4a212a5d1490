"""What a person looks for in a stream: key patterns, text, and values at a path, as tests of an entry.

A body filter is text to be found in the body as it was sent (capitals count), or, beginning with a dot, a path in
its JSON and what stands there::

    refused                    the text anywhere in the body
    .customer.id = 42          a number, exactly: 9007199254740993 is not 9007199254740992
    .status = "paid"           a string; without quotes too
    .items[*].sku ~ SKU-4      any element; ~ is "contains"
    .total >= 99.5             < <= > >= compare numbers with numbers,
    .day >= "2026-11-21"       and text in quotes with text
    .["odd name"][0] != null   names that are not plain words, places in an array
    .discount                  there is something at the path

A body that is read decoded is looked at decoded, too: of what comes out, as much as is shown.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from dashboard.browse import coded
from dashboard.browse.coded import Reading
from streams import naming
from streams.log import entries
from streams.log.entries import Entry
from streams.log.read import Wanted
from streams.nesting import is_deeper

BodyTest = Callable[[bytes], bool]
Step = str | int | None
"""One step of a path: a name, a place in an array, or None for every element."""

_STEP = re.compile(r'\.([^\s.\[\]=!<>~"]+)|\.?\[(?:([0-9]{1,9})|(\*)|("(?:[^"\\]|\\.)*"))\]')
_TEST = re.compile(r"\s*([=!<>~]+)\s*(.*)", re.DOTALL)
_OPERATIONS = ("=", "==", "!=", "<", "<=", ">", ">=", "~")
_HEADER = re.compile(r'(?:("(?:[^"\\]|\\.)*")|([^\s=!~"]+))\s*(?:(==|=|!=|~)(.*))?', re.DOTALL)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def body_test(text: str) -> BodyTest:
    """The test that a body filter asks for.

    Raises:
        ValueError: a sentence for the form.
    """
    if not text.startswith((".", '["', "$.", "$[")):
        return _contains(text)
    steps, rest = path_of(text.removeprefix("$"))
    if not rest.strip():
        return _at_path(steps, lambda value: True)
    match = _TEST.fullmatch(rest)
    if match is None or not match[2].strip():
        raise ValueError("Enter a path and a value, such as .customer.id = 42 or .status ~ paid.")
    if match[1] not in _OPERATIONS:
        raise ValueError(f"“{match[1]}” is no comparison; use one of = != < <= > >= ~.")
    return _at_path(steps, _value_test(match[1], match[2].strip()))


def header_test(text: str) -> BodyTest:
    """The test of headers (JSON) that a filter asks for: ``trace``, ``trace = 4bf9``, ``"two words" ~ part``.

    Raises:
        ValueError: a sentence for the form.
    """
    match = _HEADER.fullmatch(text.strip())
    if match is None:
        raise ValueError("Enter the name of a header, or a name and a value: trace = 4bf9, trace ~ part.")
    name = json.loads(match[1]) if match[1] else match[2]
    operation, wanted = match[3] or "", (match[4] or "").strip()
    if operation and not wanted:
        raise ValueError(f"Enter what the header {name} is compared with.")
    if wanted.startswith('"'):
        try:
            wanted = json.loads(wanted)
        except ValueError:
            raise ValueError(f"{wanted} is not a quoted string.") from None

    def passes(headers: bytes) -> bool:
        value = json.loads(headers).get(name)
        match operation:
            case "":
                return value is not None
            case "~":
                return value is not None and wanted in value
            case "!=":
                return value is not None and value != wanted
            case _:
                return bool(value == wanted)

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
        tests.append(lambda entry: _passes_as_read(entry[1][3], passes, reading))
    if not tests:
        return None
    return lambda entry: all(test(entry) for test in tests)


def _passes_as_read(body: bytes, passes: BodyTest, reading: Reading) -> bool:
    if passes(body):
        return True
    shown = coded.decoded(body, reading) if coded.is_string(body) else None
    return shown is not None and not shown.fault and passes(shown.body)


def _key_test(pattern: str) -> Wanted:
    wanted = naming.compiled(pattern)

    def test(entry: Entry) -> bool:
        key = entries.key(entry)
        return key is not None and wanted.fullmatch(key.decode()) is not None

    return test


def _contains(text: str) -> BodyTest:
    """Text in a body: as typed, or as JSON may write it (quotes escaped, letters as ``\\u00e9``)."""
    needles = {
        text.encode("utf-8", "surrogatepass"),
        json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
        json.dumps(text)[1:-1].encode(),
    }
    return lambda body: any(needle in body for needle in needles)


def path_of(text: str) -> tuple[list[Step], str]:
    """The steps at the beginning of a filter, and what follows them; a dot alone is the body itself."""
    if re.match(r"\.(?:\s|[=!<>~]|\Z)", text):
        return [], text[1:]
    steps: list[Step] = []
    place = 0
    while match := _STEP.match(text, place):
        name, index, every, quoted = match.groups()
        try:
            steps.append(name or (int(index) if index else None if every else json.loads(quoted)))
        except ValueError:
            raise ValueError(f"{quoted} is not a quoted name.") from None
        place = match.end()
    if not steps:
        raise ValueError("A path begins with a dot and a name: .customer.id, .items[0].sku.")
    return steps, text[place:]


def _at_path(steps: list[Step], test: Callable[[Any], bool]) -> BodyTest:
    # Most bodies that lack the path lack its last name: they need no parsing. An escape may hide a name.
    last = next((step.encode() for step in reversed(steps) if isinstance(step, str)), b"")

    def passes(body: bytes) -> bool:
        if last not in body and b"\\" not in body:
            return False
        return any(test(value) for value in _values(_parsed(body), steps))

    return passes


def _parsed(body: bytes) -> Any:
    if is_deeper(body, coded.DEEPEST):
        return None
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError):
        pass  # an integer of more digits than Python turns into one, or an exponent beyond all bounds
    try:
        return json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except (ValueError, ArithmeticError):
        return None


def _values(value: Any, steps: list[Step], depth: int = 0) -> Iterator[Any]:
    if depth == len(steps):
        yield value
        return
    step = steps[depth]
    if isinstance(step, str):
        if isinstance(value, dict) and step in value:
            yield from _values(value[step], steps, depth + 1)
    elif isinstance(value, list):
        if step is None:
            for each in value:
                yield from _values(each, steps, depth + 1)
        elif step < len(value):
            yield from _values(value[step], steps, depth + 1)


def _value_test(operation: str, written: str) -> Callable[[Any], bool]:
    try:
        wanted = json.loads(written, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError):
        if operation in _COMPARISONS:
            raise ValueError(
                f'After {operation} enter a number or text in quotes: {operation} 99.5, {operation} "2026-11-21".'
            ) from None
        if written.startswith('"') and operation != "~":
            raise ValueError(f"“{written}” is not a quoted string.") from None
        wanted = written
    if operation == "~":
        part = wanted if isinstance(wanted, str) else written
        return lambda value: part in value if isinstance(value, str) else part in _as_text(value)
    if operation in ("=", "=="):
        return lambda value: _equal(value, wanted)
    if operation == "!=":
        return lambda value: not _equal(value, wanted)
    if isinstance(wanted, bool) or not isinstance(wanted, int | Decimal | str):
        raise ValueError(f"Only numbers and text in quotes can be compared with {operation}.")
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
