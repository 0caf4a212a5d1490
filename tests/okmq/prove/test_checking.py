"""The checker is checked: a clean history has no fault, and of each planted one the right count tells."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from okmq.prove.checking import COUNTS, check
from okmq.prove.history import Fetch, History, Publish, Read, in_flight
from tests.okmq.prove.clean import GROUP, change, clean, keep
from tests.okmq.prove.planted import PLANTED


def test_a_clean_history_has_no_fault() -> None:
    verdict = check(clean())
    assert verdict.holds, verdict.found
    assert verdict.lost_in_window == 0


@pytest.mark.parametrize(("plant", "count"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_a_planted_fault_is_found(plant: Callable[[History], None], count: str) -> None:
    history = clean()
    plant(history)
    assert check(history).count(count) > 0


def test_every_count_has_a_planted_fault() -> None:
    assert {count for _, count in PLANTED} == set(COUNTS)


def test_what_was_promised_less_may_go_and_is_told() -> None:
    history = clean()
    change(history, Publish, 4, lambda each: replace(each, durability="window"))
    keep(history, 1, 2, 3, 4)
    verdict = check(history)
    assert (verdict.count("lost"), verdict.lost_in_window) == (0, 2)


@pytest.mark.parametrize("label", ["", "none"])
def test_an_answer_without_a_label_that_says_less_promises_all_of_it(label: str) -> None:
    history = clean()
    change(history, Publish, 4, lambda each: replace(each, durability=label))
    keep(history, 1, 2, 3, 4)
    verdict = check(history)
    assert (verdict.count("lost") > 0, verdict.lost_in_window) == (True, 0)


def test_a_redelivery_whose_first_answer_was_lost_is_none() -> None:
    history = clean()
    change(history, Fetch, 0, lambda each: replace(each, taken=each.taken[:2]))
    assert check(history).holds


def test_each_group_is_held_against_its_own_time() -> None:
    history = clean()
    history.ack_waits_s = {GROUP: 60.0}
    found = check(history).found["overlapping leases"]
    assert found == ["s: 3: the leases of a and b of g overlap by 56900 ms"]


def test_what_a_full_read_did_not_come_to_is_not_over() -> None:
    history = clean()
    change(history, Read, 2, lambda each: replace(each, messages=each.messages[:1], limit=1))
    assert check(history).holds


def test_operations_are_in_flight_from_their_sending_to_their_answer() -> None:
    operations = clean().operations
    assert in_flight(operations, [(100.0, 101.0)]) == 0
    assert in_flight(operations, [(0.2, 0.3), (0.4, 1.2)]) == 2
