"""The judge of the random run refuses what came in another order than is documented."""

import pytest

from tests.streams.groups.model import Flight, GroupModel, StreamModel, is_as_documented

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


def test_no_answer_covers_what_was_replayed_before_it_went_out_again() -> None:
    group = GroupModel(
        StreamModel(), out={1: Flight(0), 2: Flight(1, "member", "1-2-1")}, leases={"1-1-1": 1}
    )
    assert group.targets([1, 2]) == group.targets([2], covers=True) == {2}
    assert group.targets_of_leases(["1-1-1"]) == set()
    assert group.targets([1], also_undelivered=True) == {1}
