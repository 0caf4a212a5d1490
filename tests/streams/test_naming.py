"""Names, keys and patterns: what may be called what, and whose pattern a key matches."""

import tracemalloc

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


def test_only_patterns_that_begin_as_the_key_does_are_looked_at() -> None:
    index = PatternIndex((n, [f"k.{n}.>", f"plain.{n}", f"*.{n}"]) for n in range(1000))
    assert index.candidates("k.7.x") == 1 + 1000
    assert index.owners("k.7.x") == {7}
    assert index.owners("plain.7") == {7}


def test_long_patterns_take_little_more_memory_than_their_text() -> None:
    tracemalloc.start()
    patterns = [f"p{n}{'.a' * 120}" for n in range(2000)]
    text_bytes, _ = tracemalloc.get_traced_memory()
    index = PatternIndex(enumerate([pattern] for pattern in patterns))
    whole_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert index.owners(patterns[7]) == {7}
    assert whole_bytes < 3 * text_bytes
