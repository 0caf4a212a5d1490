"""Names, keys and patterns: what may be called what, and whose pattern a key matches."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.naming import PatternIndex, matches_any

TOKENS = st.sampled_from(["a", "b", "eu"])
KEYS = st.lists(TOKENS, min_size=1, max_size=4).map(".".join)
PATTERNS = st.tuples(st.lists(TOKENS | st.just("*"), max_size=3), st.sampled_from(["a", "eu", "*", ">"])).map(
    lambda parts: ".".join([*parts[0], parts[1]])
)


@given(patterns=st.lists(st.lists(PATTERNS, max_size=3), max_size=8), key=KEYS)
def test_an_index_finds_whose_patterns_match(patterns: list[list[str]], key: str) -> None:
    expected = {owner for owner, its_patterns in enumerate(patterns) if matches_any(key, its_patterns)}
    assert PatternIndex(enumerate(patterns)).owners(key) == expected


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders.>", ["orders.eu", "orders.eu.7"], ["orders", "order.eu"]),
        ("orders.*", ["orders.eu"], ["orders", "orders.eu.7"]),
        ("*.eu", ["orders.eu"], ["eu", "orders.us"]),
        (">", ["a", "a.b.c"], []),
        ("a", ["a"], ["b", "a.b"]),
    ],
)
def test_a_star_is_one_token_and_the_rest_is_one_at_least(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    index = PatternIndex([(1, [pattern])])
    assert [key for key in [*matching, *others] if index.owners(key)] == matching


def test_ten_thousand_patterns_cost_a_question_no_more_than_ten() -> None:
    few, many = (PatternIndex((n, [f"k.{n}.>", f"{n}.*"]) for n in range(count)) for count in (10, 10_000))
    took = {}
    for name, index in (("few", few), ("many", many)):
        attempts = []
        for _ in range(5):
            began = time.thread_time()
            assert all(index.owners(f"k.{n % 10}.x") == {n % 10} for n in range(1000))
            attempts.append(time.thread_time() - began)
        took[name] = min(attempts)
    assert took["many"] < 5 * took["few"]
