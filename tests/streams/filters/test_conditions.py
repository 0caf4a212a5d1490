"""Several conditions in one filter: all must hold, quotes make text of anything, and what is no operator is refused."""

import pytest

from streams.filters.bodies import body_test
from streams.filters.conditions import LONGEST, conditions
from streams.filters.headers import header_test

BODY = (
    b'{"status": "paid", "n": 7, "note": "salt && pepper", "said": "this or that || \\"none\\"", "state": "OR",'
    b' "items": [{"sku": "A-1"}, {"sku": "B-2"}]}'
)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (".status = paid && .n > 5", True),
        (".status = paid && .n > 7", False),
        (".status = refused && .n > 5", False),
        (".status=paid&&.n=7&&pepper", True),
        ("paid && .n", True),
        ("paid && refused", False),
        ('.note = "salt && pepper"', True),
        ('.note ~ "t && p" && .n = 7', True),
        ('"salt && pepper"', True),
        ('"salt  && pepper"', False),
        ('"note": "salt && pepper"', True),
        ('"this or that || "', True),
        ('"\\"none\\""', True),
        ('.said ~ "this or that"', True),
        (".state = OR", True),
        (".status !~ refused", True),
        (".status !~ ai", False),
        (".missing !~ x", False),
        (".items[*].sku ~ A-", True),
        (".items[*].sku !~ A-", False),
        (".items[*].sku !~ C-", True),
        (".n !~ 7", False),
        ("!~ refused", True),
        ("!~ paid", False),
        ('!~ "salt && pepper"', False),
        (".status = paid && !~ test", True),
        (".status = paid && !~ pepper", False),
    ],
)
def test_all_conditions_of_a_filter_must_hold(text: str, passes: bool) -> None:
    assert body_test(text)(BODY) is passes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (".status = paid or refused", "“or” is no operator"),
        ('.status = "paid" or "refused"', "“or” is no operator"),
        ("paid OR refused", "“OR” is no operator"),
        (".a or .b", "“or” is no operator"),
        (".status = paid and .n > 5", "“and” is no operator: conditions are joined by &&"),
        (".n > 5 AND .n < 9", "“AND” is no operator"),
        (".status = paid &&", "Enter a condition on both sides of &&"),
        ("&& .n", "Enter a condition on both sides of &&"),
        ("a && && b", "Enter a condition on both sides of &&"),
        ('.note = "salt && pepper', "A quote is not closed"),
        ('.status = paid && .note = "salt', "A quote is not closed"),
        (".n > 5 && .n >> 9", "“>>” is no comparison"),
        (".n !~", "Enter a path and a value"),
        ("!~", "Enter the text that shall not be in the body"),
        ('""', "Enter some text in the quotes"),
        ('"\\x" && a', "is not a quoted string"),
    ],
)
def test_what_would_be_taken_for_text_and_find_nothing_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as refused:
        body_test(text)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "text", ["rock & roll", "a|b", '5" pipe', '5" || 6"', "order", "for and", "orchid", "|", "&"]
)
def test_other_signs_and_words_are_text(text: str) -> None:
    assert conditions(text) == [text]


def test_a_filter_is_so_long_and_no_longer() -> None:
    assert conditions("x" * LONGEST) == ["x" * LONGEST]
    with pytest.raises(ValueError, match=r"^A filter has at most 500 characters\.$"):
        conditions("x" * (LONGEST + 1))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("trace = 4bf9 && region", True),
        ("trace = 4bf9 && region = us", False),
        ("trace !~ 4b", False),
        ("trace !~ xx", True),
        ("other !~ xx", False),
        ('"two words" = "a && b" && trace', True),
    ],
)
def test_headers_are_filtered_in_the_same_way(text: str, passes: bool) -> None:
    assert header_test(text)(b'{"trace":"4bf9","region":"eu","two words":"a && b"}') is passes


@pytest.mark.parametrize("text", ["trace = a or b", "trace and region", "trace &&"])
def test_what_is_no_operator_is_refused_of_headers_too(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no operator|on both sides of &&"):
        header_test(text)
