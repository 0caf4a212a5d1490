"""Regular expressions over names: RE2's, and none that takes long."""

import re
import time

import pytest

from streams import expressions

NAMES = [f"orders-{number:05}-eu-west-production-a.b.c.d.e.f.g.h"[:50] for number in range(10_000)]
MOST_S = 1.0


@pytest.mark.parametrize(
    "expression",
    ["^orders-0{4}", "eu|us", "(?i)ORDERS-.*7-", "-[0-9]{5}-", r"\.h$", "[^a-z0-9.-]", "orders-(1|2)+1-"],
)
def test_an_expression_finds_what_pythons_own_finds(expression: str) -> None:
    assert expressions.fault(expression) is None
    found = expressions.matching(expression, NAMES)
    assert found == [re.search(expression, name) is not None for name in NAMES]


@pytest.mark.parametrize(
    "expression", ["(", "a**", "(?=a)", r"(a)\1", "[", "\ud800", "x" * 101, "a\\", r"\pL"]
)
def test_what_cannot_be_read_is_said_in_a_sentence(expression: str) -> None:
    said = expressions.fault(expression)
    assert said is not None
    assert said.endswith(".")


# RE2 writes these out, and looked for some of them in 10,000 names for more than a minute.
@pytest.mark.parametrize(
    "expression", ["(.{0,20}){50}" * 6 + "Z", "(" + ".?" * 46 + "){100}Z", ".{0,1000}" * 11 + "Z", "a{1001}"]
)
def test_what_would_repeat_too_much_is_refused(expression: str) -> None:
    assert expressions.fault(expression) is not None


@pytest.mark.parametrize(
    "expression",
    [
        *("(a*)*b", "(x+x+)+y", "(.*)*" * 19 + "Z", "(.|.)*" * 16 + "Z", ".?" * 49 + "Z"),
        *("(" + ".?" * 20 + "){20}Z", "(" + "[^a]?" * 17 + "){10}Z", "(.{0,10}){5}Z", ".*[0-9].{20}Z"),
    ],
)
def test_no_expression_without_a_fault_takes_long(expression: str) -> None:
    assert expressions.fault(expression) is None
    expressions.matching(expression, NAMES[:1])
    begin = time.process_time()
    expressions.matching(expression, NAMES)
    assert time.process_time() - begin < MOST_S
