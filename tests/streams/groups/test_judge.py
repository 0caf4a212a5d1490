"""The judge of the random run refuses what came in another order than is documented."""

import pytest

from tests.streams.groups.model import is_as_documented

AGAIN, REPLAYED = {3, 7}, {2, 9}


@pytest.mark.parametrize(
    "got",
    [
        [],
        [3, 7],
        [2, 3, 7, 9, 4, 5],
        [3, 7, 2, 4, 9, 10, 11],
        [3, 7, 4, 5, 10],
        [3, 7, 9, 2],
        [3, 7, 5, 4],
        [5, 4],
    ],
)
def test_what_is_due_again_comes_first(got: list[int]) -> None:
    assert is_as_documented(got, again=AGAIN, replayed=REPLAYED)


@pytest.mark.parametrize(
    "got",
    [
        [7, 3],
        [4, 3, 7],
        [3, 4, 7],
        [3, 9, 7],
        [2, 9, 3],
        [5, 3],
    ],
)
def test_any_other_order_is_found(got: list[int]) -> None:
    assert not is_as_documented(got, again=AGAIN, replayed=REPLAYED)
