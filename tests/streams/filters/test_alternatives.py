"""Alternatives in a filter: one must hold, ``&&`` binds more tightly, parentheses group, and both are bounded."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.filters.bodies import body_test
from streams.filters.conditions import DEEPEST, MOST_CONDITIONS, Either, conditions
from streams.filters.headers import header_test

BODY = b'{"status": "paid", "n": 7, "note": "salt || pepper", "said": "f(x)", "name": "Zo\\u00eb"}'
HEADERS = b'{"trace":"4bf9","region":"eu","two words":"a || (b)"}'

NAMES = "abcdef"


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (".status = paid || .status = refused", True),
        (".status = refused || .status = paid", True),
        (".status = refused || .status = new", False),
        (".status=paid||refused", True),
        ("refused || late || .n > 5", True),
        # && binds more tightly
        (".status = paid || .n = 7 && .n = 8", True),
        (".n = 8 && .n = 7 || .status = paid", True),
        (".n = 8 && .status = paid || .n = 9 && .status = paid", False),
        # parentheses group
        ("(.status = paid || .n = 7) && .n = 8", False),
        (".n = 8 && (.n = 7 || .status = paid)", False),
        (".n = 7 && (.status = new || .status = paid)", True),
        ("(.n = 8 || .n = 7) && (.status = new || .status = paid)", True),
        ("(.n = 8 || .n = 7) && (.status = new || .status = late)", False),
        ("(.status = paid && (.n = 8 || (.n = 7 && paid))) || refused", True),
        ("((.n = 8))||((.n = 7))", True),
        # what is in quotes is text, and each alternative is a condition as it is alone
        ('"salt || pepper"', True),
        ('"pepper || salt"', False),
        ('.note = "salt || pepper" || late', True),
        ('"f(x)" || late', True),
        ('late || .said ~ "(x"', True),
        (".note ~ | || late", True),
        ("!~ paid || .n = 8", False),
        ("!~ refused || .n = 8", True),
        (".status !~ pa || .n = 8", False),
        (".missing !~ pa || .n !~ 8", True),
        (".missing || Zoë", True),
    ],
)
def test_one_alternative_must_hold(text: str, passes: bool) -> None:
    assert body_test(text)(BODY) is passes


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("trace = 5 || region = eu", True),
        ("trace = 5 || region = us", False),
        ("other || trace && region = us", False),
        ("(other || trace) && region = eu", True),
        ("other !~ x || other != x", False),
        ('"two words" = "a || (b)" && (other || trace)', True),
    ],
)
def test_headers_have_alternatives_in_the_same_way(text: str, passes: bool) -> None:
    assert header_test(text)(HEADERS) is passes


@pytest.mark.parametrize(
    "text", ["(a)", "f(x)", "f(x) or", ":)", "(", ")", "()", ".note = (a)", '.note = "f(x)"', "(or b)"]
)
def test_without_alternatives_a_parenthesis_is_text_as_it_was(text: str) -> None:
    assert conditions(text) == [text]
    assert conditions(f"{text} && b") == [text, "b"]
    assert conditions("(a && b)") == ["(a", "b)"]


def test_signs_group_as_they_are_read_aloud() -> None:
    assert conditions("a && b || c") == [Either([["a", "b"], ["c"]])]
    assert conditions("a && (b || c) && d") == ["a", Either([["b"], ["c"]]), "d"]
    assert conditions("((a || b))") == [Either([["a"], ["b"]])]
    assert conditions("(a && b) && c || d") == [Either([["a", "b", "c"], ["d"]])]


BOTH_SIDES = "Enter a condition on both sides of"
IN_QUOTES = 'text that contains a parenthesis is written in quotes: "f(x)".'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a ||", f"{BOTH_SIDES} ||"),
        ("|| a", f"{BOTH_SIDES} ||"),
        ("||", f"{BOTH_SIDES} ||"),
        ("a || || b", f"{BOTH_SIDES} ||"),
        ("a && || b", f"{BOTH_SIDES} ||"),
        ("a || && b", f"{BOTH_SIDES} &&"),
        ("a || b &&", f"{BOTH_SIDES} &&"),
        ("(a ||) && b", f"{BOTH_SIDES} ||"),
        ("(|| a)", f"{BOTH_SIDES} ||"),
        ("a ||| b", "“|||” is no operator: alternatives are joined by ||"),
        ("a |||| b", "“||||” is no operator: alternatives are joined by ||"),
        ("a || ()", "Enter a condition between ( and )"),
        ("(a || b", "A ( is not closed"),
        ("a || (", "A ( is not closed"),
        ("a || b)", "A ) closes no ("),
        (") || a", "A ) closes no ("),
        ("(a || b)) && c", "A ) closes no ("),
        ("f(x) || a", f"Join conditions and parentheses by && or ||; {IN_QUOTES}"),
        ("a || .note = (b)", "Join conditions and parentheses by && or ||"),
        ("(a || b) c", "Join conditions and parentheses by && or ||"),
        ("(a || b)(c || d)", "Join conditions and parentheses by && or ||"),
        ("!~ (a || b)", "Join conditions and parentheses by && or ||"),
        ("a || b or c", "“or” is no operator: alternatives are joined by ||"),
        ("(a || b) or c", "“or” is no operator"),
        ("a OR (b || c)", "“OR” is no operator"),
        ("(a || b) and (c || d)", "“and” is no operator: conditions are joined by &&"),
        ('"a || b', "A quote is not closed"),
        ('a || "b', "A quote is not closed"),
        ('a || ""', "Enter some text in the quotes"),
        ("a || .n >> 5", "“>>” is no comparison"),
        (".n >> 5 || .n =", "“>>” is no comparison"),
        ("a || .n =", "Enter a path and a value"),
        ("a || !~", "Enter the text that shall not be in the body"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_expected(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as refused:
        body_test(text)
    assert says in str(refused.value)


@pytest.mark.parametrize("text", ["trace ||", "(trace || region", "trace || two words", "trace || = 5"])
def test_headers_are_refused_in_the_same_way(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        header_test(text)


def test_conditions_and_depth_are_bounded_where_there_are_alternatives() -> None:
    most = "||".join(["a"] * MOST_CONDITIONS)
    assert conditions(most) == [Either([["a"] for _each in range(MOST_CONDITIONS)])]
    with pytest.raises(ValueError, match=r"^A filter with \|\| has at most 50 conditions\.$"):
        conditions(f"{most}&&a")
    assert len(conditions("&&".join(["a"] * 100))) == 100, "as it was"
    assert conditions("(" * DEEPEST + "a||b" + ")" * DEEPEST) == [Either([["a"], ["b"]])]
    with pytest.raises(ValueError, match=r"^Parentheses may be nested at most 8 deep\.$"):
        conditions("(" * (DEEPEST + 1) + "a||b" + ")" * (DEEPEST + 1))


class Asked(bytes):
    """A body that notes what is looked for in it."""

    asked: list[bytes]

    def __contains__(self, needle: object) -> bool:
        assert isinstance(needle, bytes)
        self.asked.append(needle)
        return super().__contains__(needle)


def asked_of(text: str, body: bytes) -> list[bytes]:
    looked_at = Asked(body)
    looked_at.asked = []
    body_test(text)(looked_at)
    return looked_at.asked


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("a || c || d", [b"a"]),
        ("d || a || c", [b"d", b"a"]),
        ("d && (a || c) || b", [b"d", b"b"]),
        ("(a || d) && (d || b) && a", [b"a", b"d", b"b", b"a"]),
        ("(a && d || b && d) && a", [b"a", b"d", b"b", b"d"]),
    ],
)
def test_no_more_is_looked_at_than_decides(text: str, asked: list[bytes]) -> None:
    assert asked_of(text, b"a b") == asked


def test_of_the_largest_filter_each_condition_is_looked_at_once() -> None:
    text = "&&".join(["(d||a)"] * (MOST_CONDITIONS // 2))
    assert len(asked_of(text, b"a b")) == MOST_CONDITIONS


Node = str | tuple[str, "Sequence[Node]"]
"""A name that must be in the body, or ``&&`` or ``||`` and what it joins."""

nodes: st.SearchStrategy[Node] = st.recursive(
    st.sampled_from(NAMES),
    lambda inner: st.tuples(st.sampled_from(("&&", "||")), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=DEEPEST + 1,
)
FORMS = ('"{}"', "{}", '.["{}"]', '.["{}"] = 1')


def written(node: Node, form: str, blank: str, *, grouped: bool, inside: str = "") -> str:
    """A node as a person writes it.

    Args:
        grouped: whether all that is joined stands in parentheses, or only what would be read otherwise without.
        inside: the sign that joins it with others.
    """
    if isinstance(node, str):
        return form.format(node)
    sign, parts = node
    if len(parts) == 1:
        return written(parts[0], form, blank, grouped=grouped, inside=inside)
    text = f"{blank}{sign}{blank}".join(
        written(part, form, blank, grouped=grouped, inside=sign) for part in parts
    )
    is_needed = inside == "&&" and sign == "||"
    return f"({blank}{text}{blank})" if is_needed or (inside and grouped) else text


def holds(node: Node, there: frozenset[str]) -> bool:
    if isinstance(node, str):
        return node in there
    sign, parts = node
    return (all if sign == "&&" else any)(holds(part, there) for part in parts)


@given(
    nodes,
    st.sampled_from(FORMS),
    st.sampled_from(("", " ")),
    st.booleans(),
    st.frozensets(st.sampled_from(NAMES)),
)
def test_any_filter_says_what_a_plain_evaluation_says(
    node: Node, form: str, blank: str, grouped: bool, there: frozenset[str]
) -> None:
    has_alternatives = "||" in written(node, form, blank, grouped=False)
    text = written(node, form, blank, grouped=grouped and has_alternatives)
    body = ("{" + ", ".join(f'"{name}": 1' for name in sorted(there)) + "}").encode()
    assert body_test(text)(body) is holds(node, there), text
    if not form.startswith("."):
        assert header_test(text)(body) is holds(node, there), text


def refusal(text: str) -> str:
    """Why a filter is refused; empty for one that is not."""
    try:
        assert body_test(text)(b"a") in (True, False)
    except ValueError as error:
        return str(error)
    return ""


PIECES = ("a", "b", ".a", " ", "or ", "&&", "&", "(", ")", '"', "\\", "!~", "=")


@given(st.lists(st.sampled_from((*PIECES, "||", "|", '"(||"')), max_size=14).map("".join))
def test_anything_is_read_or_refused_with_a_sentence(text: str) -> None:
    assert re.fullmatch(r'([A-Z“"].*\.)?', refusal(text), re.DOTALL)


def joined(text: str) -> list[str]:
    """The conditions of a filter, as they were read before there were alternatives."""
    found, at = [""], 0
    while at < len(text):
        if quoted := re.match(r'"(?:[^"\\]|\\.)*"', text[at:], re.DOTALL):
            piece = quoted[0]
        elif text.startswith("&&", at):
            piece = "&&"
        else:
            piece = text[at]
        if piece == "&&":
            found.append("")
        else:
            found[-1] += piece
        at += len(piece)
    return [each.strip() for each in found]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_a_filter_without_alternatives_is_read_as_it_was(text: str) -> None:
    try:
        found = conditions(text)
    except ValueError as error:
        # One sentence tells of an operator that is missing its condition, and no other is new.
        said = str(error)
    else:
        said = ""
        assert found == joined(text)
    assert "parenthes" not in said
    assert "||" not in said or "“or”" in said.lower()
