"""What a fetch took as a whole is one record; to everybody who asks it is as many messages in flight as it says."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from streams.log import (
    config,
    dead_letters,
    entries,
    errors,
    groups,
    keys,
    pending,
    removals,
    spent,
    standing,
    trim,
    undo,
)
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Fetched, Settings
from tests.servers import store
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import fill, message
from tests.streams.log.messages import offsets as stored
from tests.waiting import until

HOUR_MS = 3_600_000


@pytest.fixture
def taken(log: Log, stream: str) -> Callable[..., Fetched]:
    """Has a consumer take ten messages of a group at once; answers them."""

    def take(**settings: object) -> Fetched:
        publish(log, stream, **settings)
        fill(log, stream, 10)
        return log.run(groups.fetch(stream, "g", limit=10, consumer="anna"))

    return take


def publish(log: Log, stream: str, **settings: object) -> None:
    log.run(groups.group_publish(stream, "g", Settings(**settings)))  # type: ignore[arg-type]


def fetch(log: Log, stream: str, limit: int = 100) -> list[tuple[int, int]]:
    """Offset and deliveries of what comes."""
    fetched = log.run(groups.fetch(stream, "g", limit=limit))
    return [(offset(delivery), delivery.deliveries) for delivery in fetched.deliveries]


def offset(delivery: groups.Delivery) -> int:
    return entries.position(delivery.entry)[0]


def ack(log: Log, stream: str, *offsets: int) -> int:
    return log.run(groups.ack(stream, "g", "offsets", offsets))


def out(log: Log, stream: str) -> list[int]:
    """The offsets in flight, as the pending desk lists them and the other counts have to agree."""
    state = log.run(standing.inspect(stream, "g"))
    rows, _ = log.run(pending.page(stream, "g", limit=1000))
    members = log.run(pending.members(stream, "g"))
    assert len(rows) == state.ack_pending == sum(held.messages for held in members.values())
    return [row.offset for row in rows]


def records(log: Log, stream: str) -> int:
    return int(log.client.execute_command("ZCARD", keys.runs(stream, "g")))


def singles(log: Log, stream: str) -> int:
    return int(log.client.execute_command("ZCARD", keys.pending(stream, "g")))


def test_what_is_taken_and_answered_as_a_whole_is_one_record_and_then_none(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    assert (records(log, stream), singles(log, stream)) == (1, 0)
    assert ack(log, stream, *range(1, 11)) == 10
    in_flight = [make(stream, "g") for make in (keys.runs, keys.pending, keys.due, keys.leases)]
    assert not log.client.execute_command("EXISTS", *in_flight)


def test_an_answer_to_neighbours_leaves_the_rest_a_run(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    fetched = taken()
    assert ack(log, stream, 4, 5, 6) == 3
    assert out(log, stream) == [1, 2, 3, 7, 8, 9, 10]
    assert (records(log, stream), singles(log, stream)) == (2, 0)
    leases = [delivery.lease for delivery in fetched.deliveries]
    assert log.run(groups.ack(stream, "g", "leases", leases)) == 7
    assert out(log, stream) == []


def test_an_answer_in_any_order_and_twice_settles_what_it_names_once(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    assert ack(log, stream, 9, 2, 2, 5, 77, 4) == 4
    assert out(log, stream) == [1, 3, 6, 7, 8, 10]
    assert ack(log, stream, 9, 2, 2, 5, 77, 4) == 0
    assert ack(log, stream, *range(1, 11)) == 6
    assert log.run(standing.inspect(stream, "g")).acked == 10


def test_everything_up_to_an_offset_is_settled_over_runs_and_single_messages(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    fill(log, stream, 10, first=11)
    fetch(log, stream)
    log.run(groups.working(stream, "g", "offsets", [3, 17]))
    assert log.run(groups.ack(stream, "g", "up_to", [18])) == 18
    assert out(log, stream) == [19, 20]


@pytest.mark.parametrize("named", ["offsets", "leases"])
def test_a_cumulative_group_answers_with_the_last(
    log: Log, stream: str, taken: Callable[..., Fetched], named: groups.Named
) -> None:
    last = taken(ack="all").deliveries[6]
    values: list[int | str] = [7 if named == "offsets" else last.lease]
    assert log.run(groups.ack(stream, "g", named, values)) == 7
    assert out(log, stream) == [8, 9, 10]


def test_more_runs_than_one_call_settles_are_settled_in_slices(log: Log, stream: str) -> None:
    publish(log, stream, max_ack_pending=10_000)
    fill(log, stream, 450)
    for _ in range(225):
        log.run(groups.fetch(stream, "g", limit=2))
    log.run(groups.working(stream, "g", "offsets", [5, 6]))
    assert log.run(groups.ack(stream, "g", "up_to", [449])) == 449
    assert out(log, stream) == [450]


def test_a_part_that_is_given_back_comes_again_alone(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    log.run(groups.nack(stream, "g", "offsets", [2, 3]))
    assert fetch(log, stream) == [(2, 2), (3, 2)]
    assert out(log, stream) == list(range(1, 11))


def test_a_lease_that_has_passed_on_is_lost_and_nothing_is_done(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    leases = [delivery.lease for delivery in taken().deliveries]
    log.run(groups.nack(stream, "g", "offsets", [5]))
    fetch(log, stream)
    with pytest.raises(errors.LeaseLost):
        log.run(groups.ack(stream, "g", "leases", leases))
    assert out(log, stream) == list(range(1, 11))
    assert log.run(groups.ack(stream, "g", "leases", leases[:4] + leases[5:])) == 9


def test_a_lease_with_another_sequence_is_lost(log: Log, stream: str, taken: Callable[..., Fetched]) -> None:
    generation = taken().generation
    wrong = [f"{generation}-3-9", f"{generation}-4-10"]
    for answer in (groups.ack, groups.nack, groups.working):
        with pytest.raises(errors.LeaseLost):
            log.run(answer(stream, "g", "leases", wrong))
    assert out(log, stream) == list(range(1, 11))


def test_working_on_a_part_leaves_the_rest_due_when_it_was(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken(ack_wait_ms=200)
    until(lambda: all(row.due_in_ms < 100 for row in log.run(pending.page(stream, "g"))[0]))
    log.run(groups.working(stream, "g", "offsets", [4]))
    rows, _ = log.run(pending.page(stream, "g"))
    assert [row.offset for row in sorted(rows, key=lambda row: row.due_in_ms)][-1] == 4
    assert {row.lease.rpartition("-")[2] for row in rows} == set(map(str, range(1, 11)))


def test_a_part_may_go_to_the_dead_letters(log: Log, stream: str, taken: Callable[..., Fetched]) -> None:
    taken()
    assert log.run(groups.term(stream, "g", "offsets", [1, 10], reason="no")) == [1, 10]
    letters = log.run(dead_letters.page(stream, "g"))
    assert [(letter.offset, letter.deliveries, letter.reason) for letter in letters] == [
        (1, 1, "no"),
        (10, 1, "no"),
    ]
    assert out(log, stream) == list(range(2, 10))


def test_what_nobody_answers_comes_again_in_slices(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken(ack_wait_ms=1)
    first = until(lambda: fetch(log, stream, 3))
    assert first == [(1, 2), (2, 2), (3, 2)]
    rest = until(lambda: [each for each in fetch(log, stream, 100) if each[0] > 3])
    assert rest == [(n, 2) for n in range(4, 11)]


def test_a_large_run_is_opened_only_as_far_as_a_fetch_needs_it(log: Log, stream: str) -> None:
    publish(log, stream, ack_wait_ms=1)
    fill(log, stream, 1000)
    log.run(groups.fetch(stream, "g", limit=1000))
    assert until(lambda: fetch(log, stream, 5)) == [(n, 2) for n in range(1, 6)]
    assert (records(log, stream), singles(log, stream)) == (1, 100)


def test_with_another_limit_what_is_out_once_becomes_a_dead_letter(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken(ack_wait_ms=1)
    publish(log, stream, ack_wait_ms=1, max_deliver=1)
    until(lambda: log.run(spent.retire(stream, "g")) or not out(log, stream))
    letters = log.run(dead_letters.page(stream, "g"))
    assert [(letter.offset, letter.reason) for letter in letters] == [
        (n, "max_deliver") for n in range(1, 11)
    ]


def test_a_part_that_a_purge_took_is_out_no_more(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    log.run(trim.purge(stream, below=4))
    assert ack(log, stream, 2, 3, 4) == 1
    assert out(log, stream) == list(range(5, 11))
    assert log.run(standing.inspect(stream, "g")).unfinished == 3


def test_what_was_deleted_from_a_run_is_counted_by_nobody(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    log.run(trim.delete(stream, [5]))
    assert ack(log, stream, *range(1, 11)) == 9
    assert out(log, stream) == []


def test_an_answer_to_everything_passes_over_what_went(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    log.run(trim.delete(stream, [2, 9]))
    assert log.run(groups.ack(stream, "g", "up_to", [10])) == 8
    assert out(log, stream) == []


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_purge_that_is_undone_gives_a_run_back(
    log: Log, stream: str, taken: Callable[..., Fetched], looked_at: bool
) -> None:
    taken()
    _, number = log.run(removals.purge(stream, below=6, keep_ms=HOUR_MS, facts={}))
    if looked_at:
        assert out(log, stream) == [6, 7, 8, 9, 10]
    assert number is not None
    log.run(undo.undo(stream, number))
    assert fetch(log, stream) == []
    assert out(log, stream) == list(range(1, 11))
    assert ack(log, stream, *range(1, 11)) == 10


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_deletion_that_is_undone_gives_a_message_of_a_run_back(
    log: Log, stream: str, taken: Callable[..., Fetched], looked_at: bool
) -> None:
    taken()
    _, number = log.run(removals.delete(stream, [5], keep_ms=HOUR_MS, facts={}))
    if looked_at:
        assert 5 not in out(log, stream)
    assert number is not None
    log.run(undo.undo(stream, number))
    assert fetch(log, stream) == []
    assert ack(log, stream, *range(1, 11)) == 10


def test_a_seek_voids_a_run(log: Log, stream: str, taken: Callable[..., Fetched]) -> None:
    leases = [delivery.lease for delivery in taken().deliveries]
    log.run(groups.seek(stream, "g", next_offset=8))
    assert out(log, stream) == []
    assert log.run(groups.ack(stream, "g", "leases", leases)) == 0
    assert fetch(log, stream) == [(8, 1), (9, 1), (10, 1)]
    with pytest.raises(errors.LeaseLost):  # another delivery has three of them now
        log.run(groups.ack(stream, "g", "leases", leases))
    assert log.run(groups.ack(stream, "g", "leases", leases[:7])) == 0
    assert out(log, stream) == [8, 9, 10]


def test_what_never_reached_anyone_was_no_delivery(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    leases = [delivery.lease for delivery in taken().deliveries]
    assert log.run(groups.give_back(stream, "g", leases[3:5])) == 2
    assert fetch(log, stream) == [(4, 1), (5, 1)]


def test_a_dead_letter_is_replayed_where_its_message_is_out_again(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    log.run(groups.term(stream, "g", "offsets", [3], reason="no"))
    log.run(groups.seek(stream, "g", next_offset=1))
    fetch(log, stream)
    assert log.run(dead_letters.replay(stream, "g", [3])) == 1
    assert out(log, stream) == list(range(1, 11))
    assert ack(log, stream, *range(1, 11)) == 10
    assert fetch(log, stream) == []


def test_a_group_that_takes_turns_from_now_on_begins_with_what_is_out(log: Log, stream: str) -> None:
    publish(log, stream)
    log.run(append(stream, [message(1, key="a"), message(2, key="b"), message(3, key="a")]))
    assert fetch(log, stream, 2) == [(1, 1), (2, 1)]
    publish(log, stream, ordered_by_key=True)
    assert fetch(log, stream) == []
    ack(log, stream, 1)
    assert fetch(log, stream) == [(3, 1)]


def test_members_and_times_are_told_of_runs_as_of_single_messages(
    log: Log, stream: str, taken: Callable[..., Fetched]
) -> None:
    taken()
    fill(log, stream, 4, first=11)
    log.run(groups.fetch(stream, "g", limit=4, consumer="bert"))
    log.run(groups.working(stream, "g", "offsets", [2]))
    members = log.run(pending.members(stream, "g"))
    assert {name: held.messages for name, held in members.items()} == {"anna": 10, "bert": 4}
    rows, following = log.run(pending.page(stream, "g", start=9, limit=3))
    assert [(row.offset, row.consumer, row.deliveries) for row in rows] == [
        (9, "anna", 1),
        (10, "anna", 1),
        (11, "bert", 1),
    ]
    assert following == 12
    state = log.run(standing.inspect(stream, "g"))
    assert log.run(pending.held(stream, "g", after_ms=state.steady_ms)) == 14
    assert log.run(pending.held(stream, "g", after_ms=state.steady_ms + HOUR_MS)) == 0


def test_the_ack_floor_is_below_the_first_run(log: Log, stream: str, taken: Callable[..., Fetched]) -> None:
    taken()
    ack(log, stream, 1, 2)
    assert log.run(standing.inspect(stream, "g")).ack_floor == 2
    log.run(groups.working(stream, "g", "offsets", [5]))
    ack(log, stream, 3, 4)
    assert log.run(standing.inspect(stream, "g")).ack_floor == 4


def test_no_more_goes_out_than_may_be_in_flight(log: Log, stream: str) -> None:
    publish(log, stream, max_ack_pending=8)
    fill(log, stream, 20)
    assert len(fetch(log, stream, 5)) == 5
    assert len(fetch(log, stream, 5)) == 3
    ack(log, stream, 2)
    assert fetch(log, stream, 5) == [(9, 1)]


def test_a_message_of_a_run_is_kept_by_interest_until_it_is_answered(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(retention="interest")
    publish(log, stream)
    fill(log, stream, 5)
    fetch(log, stream)
    ack(log, stream, 2, 3)
    log.run(trim.release(stream))
    assert stored(log, stream) == [1, 4, 5]


def test_a_limit_set_later_takes_what_is_out(
    log: Log, stream: str, taken: Callable[..., Fetched], publish_settings: Publish
) -> None:
    taken()
    publish_settings(stream, max_messages=4)
    assert ack(log, stream, *range(5, 9)) == 2
    assert out(log, stream) == [9, 10]


def test_a_kill_of_the_server_loses_no_run(tmp_path: Path) -> None:
    with store(tmp_path) as own:
        log = Log(own.url)
        registered = config.Registered(
            stream_id=keys.stream_id(), name="s", workspace="w", workspace_id=1, archive=False
        )
        settings = {"dedup_window": 0, "max_message_bytes": 1000, "discard": "old", "archive": False}
        log.run(config.stream_publish(registered, settings))
        stream = registered.stream_id
        publish(log, stream)
        fill(log, stream, 10)
        leases = [each.lease for each in log.run(groups.fetch(stream, "g", limit=10)).deliveries]
        ack(log, stream, 3)
        own.kill()
        own.start()
        log = Log(own.url)
        assert out(log, stream) == [1, 2, *range(4, 11)]
        assert log.run(groups.ack(stream, "g", "leases", leases)) == 9
        log.close()


@pytest.mark.parametrize("count", [10, 1000])
def test_a_fetch_and_an_answer_send_the_store_as_many_commands_whatever_their_size(
    log: Log, stream: str, count: int
) -> None:
    publish(log, stream)
    fill(log, stream, count)
    before = writes(log)
    log.run(groups.fetch(stream, "g", limit=count))
    assert ack(log, stream, *range(1, count + 1)) == count
    told = {name: calls - before.get(name, 0) for name, calls in writes(log).items()}
    assert {name: calls for name, calls in told.items() if calls} == {
        "zadd": 2,
        "zrem": 2,
        "hset": 5,
    }


def writes(log: Log) -> dict[str, int]:
    """How often the commands that write groups were called."""
    text = log.client.execute_command("INFO", "commandstats").decode()
    found = re.findall(r"cmdstat_(zadd|zrem|hset|hdel|unlink|del):calls=(\d+)", text)
    return {name: int(calls) for name, calls in found}
