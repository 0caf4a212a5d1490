"""Ranges say of every offset what a set of all of them says."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streams.log import ranges
from streams.log.ranges import Range

BOUNDS = st.integers(1, 60)
SPANS = st.lists(st.tuples(BOUNDS, st.integers(0, 9)), max_size=8).map(
    lambda found: sorted((first, first + more) for first, more in found)
)


def every(found: list[Range]) -> set[int]:
    return {offset for first, last in found for offset in range(first, last + 1)}


@given(SPANS, BOUNDS, BOUNDS)
def test_they_hold_what_is_in_them_and_leave_the_rest(spans: list[Range], first: int, last: int) -> None:
    joined = ranges.joined(spans, first, last)
    bounds = set(range(first, last + 1))
    assert every(joined) == every(spans) & bounds
    assert ranges.count(joined) == len(every(joined))
    assert all(one[1] + 1 < other[0] for one, other in pairwise(joined))
    assert {offset for offset in range(80) if ranges.holds(joined, offset)} == every(joined)
    assert every(list(ranges.between(joined, first, last))) == bounds - every(spans)


@given(BOUNDS, st.integers(0, 40), st.integers(1, 20))
def test_no_part_reaches_over_a_block(first: int, more: int, size: int) -> None:
    parts = list(ranges.in_blocks(first, first + more, size))
    assert every(parts) == every([(first, first + more)])
    assert all(low // size == high // size for low, high in parts)
