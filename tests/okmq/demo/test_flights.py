"""The table that the demo publishes is the package's, in the order of the year."""

import itertools

import pytest

from okmq.demo import flights
from okmq.demo.flights import Flights
from tests.okmq.demo.reading import data_set

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def table() -> Flights:
    return flights.load()


def test_every_departure_has_an_id_of_its_own(table: Flights) -> None:
    ids = {table.message_id(rank) for rank in range(len(table))}
    assert len(ids) == len(table) == 336_776
    assert max(map(len, ids)) <= 50


def test_the_bodies_are_the_rows_of_the_data_set(table: Flights) -> None:
    published = [table.message(rank)["body"] for rank in range(len(table))]
    expected = sorted(data_set(), key=lambda row: (row["time_hour"], row["minute"]))
    assert published == expected


def test_they_are_in_the_order_of_the_year(table: Flights) -> None:
    bodies = (table.message(rank)["body"] for rank in range(len(table)))
    times = ((body["time_hour"], body["minute"]) for body in bodies)
    assert all(earlier <= later for earlier, later in itertools.pairwise(times))


def test_a_key_is_the_airport_and_the_carrier(table: Flights) -> None:
    assert table.message(0)["key"] == "flights.EWR.UA"
    assert table.day(0) == "2013-01-01"


def test_what_is_missing_is_null(table: Flights) -> None:
    cancelled = next(
        row["body"] for row in map(table.message, range(len(table))) if row["body"]["dep_time"] is None
    )
    assert cancelled["arr_delay"] is None
    assert isinstance(cancelled["sched_dep_time"], int)
