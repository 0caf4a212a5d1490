import time

import pytest

from streams.bearer import streams_cover


@pytest.mark.parametrize(
    ("pattern", "name", "covers"),
    [
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("*", "orders", True),
        ("orders*", "orders", True),
        ("orders*", "my-orders", False),
        ("*.eu", "orders.eu", True),
        ("*.eu", "orders.eu.1", False),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("*ab*ab*", "abab", True),
        ("*ab*ab", "ab", False),
        ("a.c", "abc", False),
    ],
)
def test_a_star_stands_for_anything(pattern: str, name: str, covers: bool) -> None:
    assert streams_cover([pattern], name) is covers


def test_many_stars_cost_no_more_than_few() -> None:
    began = time.thread_time()
    assert not streams_cover(["*a" * 24 + "*b"], "a" * 50)
    assert time.thread_time() - began < 0.1
