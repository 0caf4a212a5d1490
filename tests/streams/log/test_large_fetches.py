"""Many new messages at once are leased by number and read beside the script; nothing may differ from a small fetch."""

import re

import pytest

from streams.log import entries, errors, groups, keys, pending, standing, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Fetched, Settings
from tests.streams.log.messages import fill, message

MANY = 100


def group(log: Log, stream: str, **settings: object) -> str:
    log.run(groups.group_publish(stream, "g", Settings(**settings)))  # type: ignore[arg-type]
    return "g"


def offsets(fetched: Fetched) -> list[int]:
    return [entries.position(delivery.entry)[0] for delivery in fetched.deliveries]


def test_every_message_has_a_lease_of_its_own_that_an_answer_may_name(log: Log, stream: str) -> None:
    fill(log, stream, MANY)
    name = group(log, stream)
    fetched = log.run(groups.fetch(stream, name, limit=MANY))
    assert offsets(fetched) == list(range(1, MANY + 1))
    assert {delivery.deliveries for delivery in fetched.deliveries} == {1}
    leases = [delivery.lease for delivery in fetched.deliveries]
    assert log.run(groups.nack(stream, name, "leases", leases[:40])) == 40
    assert log.run(groups.ack(stream, name, "leases", leases[40:])) == MANY - 40
    again = log.run(groups.fetch(stream, name, limit=MANY))
    assert (offsets(again), {delivery.deliveries for delivery in again.deliveries}) == (
        list(range(1, 41)),
        {2},
    )
    with pytest.raises(errors.LeaseLost):
        log.run(groups.ack(stream, name, "leases", leases[:1]))


def test_what_went_or_expires_by_itself_is_passed_over(log: Log, stream: str) -> None:
    fill(log, stream, MANY)
    name = group(log, stream)
    log.run(trim.delete(stream, [7, 8, 50]))
    log.run(append(stream, [message(MANY + 1, ttl_s=100)]))
    gone = {7, 8, 50}
    expected = [offset for offset in range(1, MANY + 2) if offset not in gone]
    assert offsets(log.run(groups.fetch(stream, name, limit=500))) == expected


@pytest.mark.parametrize(
    ("limit", "max_ack_pending", "expected"), [(60, 1000, 60), (500, 45, 45), (500, 1000, MANY)]
)
def test_no_more_are_taken_than_there_is_room_for(
    log: Log, stream: str, limit: int, max_ack_pending: int, expected: int
) -> None:
    fill(log, stream, MANY)
    name = group(log, stream, max_ack_pending=max_ack_pending)
    fetched = log.run(groups.fetch(stream, name, limit=limit))
    assert (len(fetched.deliveries), fetched.left) == (expected, MANY - expected)
    assert log.run(standing.inspect(stream, name)).ack_pending == expected


def test_a_fetch_of_thousands_goes_on_until_it_has_them(log: Log, stream: str) -> None:
    fill(log, stream, 2500)
    name = group(log, stream, max_ack_pending=10_000)
    assert offsets(log.run(groups.fetch(stream, name, limit=10_000))) == list(range(1, 2501))


def test_an_answer_stops_at_its_bytes(log: Log, stream: str) -> None:
    fill(log, stream, MANY, body=b"x" * 100)
    name = group(log, stream)
    fetched = log.run(groups.fetch(stream, name, limit=MANY, max_bytes=5_000))
    assert offsets(fetched) == list(range(1, 51))


def test_a_group_that_advances_by_itself_has_nothing_in_flight(log: Log, stream: str) -> None:
    fill(log, stream, MANY)
    name = group(log, stream, ack="none")
    assert len(log.run(groups.fetch(stream, name, limit=MANY)).deliveries) == MANY
    state = log.run(standing.inspect(stream, name))
    assert (state.ack_pending, state.delivered_offset, state.lag) == (0, MANY, 0)


def test_what_is_purged_before_it_is_read_is_not_delivered_empty(log: Log, stream: str) -> None:
    fill(log, stream, MANY)
    name = group(log, stream)
    op = groups.fetch(stream, name, limit=MANY)
    command = next(op)
    fetched = None
    while fetched is None:
        if isinstance(command, tuple) and command[:2] == ("XRANGE", keys.log(stream)):
            log.run(trim.purge(stream, below=31))
        try:
            command = op.send(log._send(command))
        except StopIteration as done:
            fetched = done.value
    assert offsets(fetched) == list(range(31, MANY + 1))
    assert log.run(groups.ack(stream, name, "offsets", list(range(1, MANY + 1)))) == MANY - 30


def test_what_is_due_comes_in_slices_between_which_others_are_served(log: Log, stream: str) -> None:
    count = 1050
    fill(log, stream, count)
    name = group(log, stream, max_ack_pending=2000)
    log.run(groups.fetch(stream, name, limit=1000))
    log.run(groups.nack(stream, name, "offsets", range(1, 1001)))
    log.client.execute_command("CONFIG", "RESETSTAT")
    again = log.run(groups.fetch(stream, name, limit=5000, consumer="b"))
    assert offsets(again) == list(range(1, count + 1))
    assert [delivery.deliveries for delivery in again.deliveries] == [2] * 1000 + [1] * 50
    told = log.client.execute_command("INFO", "commandstats").decode()
    calls, looked_up = (
        int(re.search(rf"cmdstat_{each}:calls=(\d+)", told)[1])  # type: ignore[index]
        for each in ("fcall", "xrange")
    )
    assert calls >= 10
    assert looked_up <= 1000 + 2 * calls
    assert {
        consumer: member.messages for consumer, member in log.run(pending.members(stream, name)).items()
    } == {"": 0, "b": count}


def test_nothing_comes_twice_in_one_fetch_however_soon_it_is_due_again(log: Log, stream: str) -> None:
    fill(log, stream, 500)
    name = group(log, stream, ack_wait_ms=1, max_deliver=-1)
    log.run(groups.fetch(stream, name, limit=500))
    log.run(groups.nack(stream, name, "offsets", range(1, 501)))
    again = log.run(groups.fetch(stream, name, limit=2000))
    assert sorted(offsets(again)) == list(range(1, 501))


def test_more_that_is_due_than_an_answer_holds_comes_with_the_next_fetches(log: Log, stream: str) -> None:
    fill(log, stream, 300)
    name = group(log, stream)
    log.run(groups.fetch(stream, name, limit=300))
    log.run(groups.nack(stream, name, "offsets", range(1, 301)))
    got: list[int] = []
    while len(got) < 300:
        one = offsets(log.run(groups.fetch(stream, name, limit=1000, max_bytes=500)))
        assert one
        got += one
    assert sorted(got) == list(range(1, 301))


def test_nothing_overtakes_one_that_is_due_and_does_not_fit(log: Log, stream: str) -> None:
    log.run(
        append(stream, [message(n, body=b"7" * size) for n, size in enumerate((50, 500, 50, 1), start=1)])
    )
    name = group(log, stream)
    log.run(groups.fetch(stream, name, limit=3))
    log.run(groups.nack(stream, name, "offsets", [1, 2, 3]))
    seen = []
    while page := offsets(log.run(groups.fetch(stream, name, limit=10, max_bytes=200))):
        seen.append(page)
    assert seen == [[1], [2], [3, 4]]


def test_nothing_new_overtakes_one_whose_turn_has_come_and_does_not_fit(log: Log, stream: str) -> None:
    sized = ((1, "k", 50), (2, "k", 500), (3, "a", 50), (4, "a", 50))
    log.run(append(stream, [message(n, key=key, body=b"7" * size) for n, key, size in sized]))
    name = group(log, stream, ordered_by_key=True)
    assert offsets(log.run(groups.fetch(stream, name, limit=10))) == [1, 3]
    log.run(groups.ack(stream, name, "offsets", [1]))
    log.run(groups.nack(stream, name, "offsets", [3]))
    log.run(append(stream, [message(5, key="b", body=b"7")]))
    assert offsets(log.run(groups.fetch(stream, name, limit=10, max_bytes=200))) == [3]
    assert offsets(log.run(groups.fetch(stream, name, limit=10, max_bytes=200))) == [2]
    assert offsets(log.run(groups.fetch(stream, name, limit=10, max_bytes=200))) == [5]
