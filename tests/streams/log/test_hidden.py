"""Whoever asks for one message beyond many that went, and are kept for a while, is answered in a few round trips."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streams.log import entries, groups, read, removals, search, standing, undo
from streams.log.append import append
from streams.log.client import Log, Op
from streams.log.commands import Clocks, Script, Steady
from streams.log.entries import Entry
from streams.log.groups import Settings
from tests.streams.log.messages import message
from tests.waiting import until

HIDDEN = 5000
LAST = HIDDEN + 2
HOUR_MS = 3_600_000
FEW = 8


class Counting(Log):
    """Counts the round trips but for those that ask for the clock, and how many of them fetch."""

    trips = fetches = 0

    def _send(self, command: Any) -> Any:
        self.trips += not isinstance(command, Steady | Clocks)
        self.fetches += isinstance(command, Script) and command.name == "fetch"
        return super()._send(command)


@pytest.fixture
def counting(redis_url: str) -> Iterator[Counting]:
    client = Counting(redis_url)
    yield client
    client.close()


def _publish(log: Log, stream: str, *, ttl_s: int | None = None) -> None:
    """One message that stays, many that will not, and one that stays."""
    log.run(append(stream, [message(0, key="stays")]))
    for first in range(1, HIDDEN + 1, 1000):
        batch = [message(n, key="goes", ttl_s=ttl_s) for n in range(first, first + 1000)]
        log.run(append(stream, batch))
    log.run(append(stream, [message(HIDDEN + 1, key="stays")]))


def _purge(log: Log, stream: str) -> int:
    """Set aside what is between the first and the last."""
    goes = list(range(2, LAST))
    number = None
    for first in range(0, len(goes), 500):
        _, number = log.run(
            removals.delete(stream, goes[first : first + 500], keep_ms=HOUR_MS, facts={}, number=number)
        )
    assert number is not None
    return number


def _of(found: list[Entry]) -> list[int]:
    return [entries.position(entry)[0] for entry in found]


def _ahead(stream: str) -> Op[list[Entry]]:
    at = yield from read.position(stream)
    return (yield from read.forward(stream, at, 2, 1))


def _back(stream: str) -> Op[list[Entry]]:
    at = yield from read.position(stream)
    return (yield from read.backward(stream, at, LAST, 1))


def _searched(stream: str, *, newest_first: bool) -> Op[list[Entry]]:
    at = yield from read.position(stream)
    start, stop = (0, LAST) if newest_first else (2, None)
    found = yield from search.search(stream, at, start=start, stop=stop, limit=1, newest_first=newest_first)
    return found.found


LOOKS: dict[str, tuple[Callable[[str], Op[list[Entry]]], int]] = {
    "forward": (_ahead, LAST),
    "backward": (_back, 1),
    "search": (lambda stream: _searched(stream, newest_first=False), LAST),
    "search, newest first": (lambda stream: _searched(stream, newest_first=True), 1),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_passes_what_was_set_aside(log: Log, counting: Counting, stream: str, name: str) -> None:
    look, found = LOOKS[name]
    _publish(log, stream)
    _purge(log, stream)
    assert _of(counting.run(look(stream))) == [found]
    assert counting.trips <= FEW


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_passes_what_has_expired_in_growing_pages(
    log: Log, counting: Counting, stream: str, name: str
) -> None:
    look, found = LOOKS[name]
    _publish(log, stream, ttl_s=1)
    until(lambda: _of(log.run(_ahead(stream))) == [LAST], within_s=10)
    assert _of(counting.run(look(stream))) == [found]
    assert counting.trips <= 2 * (HIDDEN // read.PAGE + FEW)


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_a_fetch_passes_what_was_set_aside(log: Log, counting: Counting, stream: str, limit: int) -> None:
    _publish(log, stream)
    log.run(groups.group_publish(stream, "g", Settings(), delivered=1))
    _purge(log, stream)
    fetched = counting.run(groups.fetch(stream, "g", limit=limit))
    assert _of([each.entry for each in fetched.deliveries]) == [LAST]
    assert counting.trips <= FEW
    assert log.run(standing.inspect(stream, "g")).lost == HIDDEN


def test_a_fetch_into_little_room_passes_what_was_set_aside(
    log: Log, counting: Counting, stream: str
) -> None:
    _publish(log, stream)
    log.run(groups.group_publish(stream, "g", Settings(max_ack_pending=1), delivered=1))
    _purge(log, stream)
    fetched = counting.run(groups.fetch(stream, "g", limit=100))
    assert _of([each.entry for each in fetched.deliveries]) == [LAST]
    assert counting.trips <= FEW


def test_what_a_fetch_passed_comes_back_to_the_group_with_an_undo(log: Log, stream: str) -> None:
    _publish(log, stream)
    log.run(groups.group_publish(stream, "g", Settings(), delivered=1))
    number = _purge(log, stream)
    log.run(groups.fetch(stream, "g", limit=1))
    log.run(undo.undo(stream, number))
    got: list[int] = []
    while found := log.run(groups.fetch(stream, "g", limit=900)).deliveries:
        got += _of([each.entry for each in found])
        log.run(groups.ack(stream, "g", "offsets", got[-len(found) :]))
    assert sorted(got) == list(range(2, LAST))
    assert log.run(standing.inspect(stream, "g")).lost == 0


@pytest.mark.parametrize("limit", [1, 100])
def test_a_fetch_passes_what_has_expired_in_growing_pages(
    log: Log, counting: Counting, stream: str, limit: int
) -> None:
    _publish(log, stream, ttl_s=1)
    log.run(groups.group_publish(stream, "g", Settings(), delivered=1))
    until(lambda: _of(log.run(_ahead(stream))) == [LAST], within_s=10)
    fetched = counting.run(groups.fetch(stream, "g", limit=limit))
    assert _of([each.entry for each in fetched.deliveries]) == [LAST]
    assert counting.fetches <= HIDDEN // 1000 + 1
