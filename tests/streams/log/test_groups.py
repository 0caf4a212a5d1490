import threading
from collections.abc import Callable

import pytest

from streams.log import (
    client,
    config,
    dead_letters,
    entries,
    errors,
    groups,
    keys,
    lag,
    pending,
    removals,
    standing,
    trim,
)
from streams.log import spent as retiring
from streams.log.append import append
from streams.log.client import Log
from streams.log.clock import ROUGH_MS
from streams.log.entries import NewMessage
from streams.log.groups import Fetched, Settings
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import fill, message
from tests.waiting import until

MakeGroup = Callable[..., str]


@pytest.fixture
def make_group(log: Log, stream: str) -> MakeGroup:
    def make(name: str = "g", *, delivered: int = 0, on: str = stream, **settings: object) -> str:
        log.run(groups.group_publish(on, name, Settings(**settings), delivered=delivered))  # type: ignore[arg-type]
        return name

    return make


def fetch(log: Log, stream: str, limit: int = 100, name: str = "g", consumer: str = "") -> Fetched:
    return log.run(groups.fetch(stream, name, limit=limit, consumer=consumer))


def offsets(fetched: Fetched) -> list[int]:
    return [entries.position(delivery.entry)[0] for delivery in fetched.deliveries]


def counts(fetched: Fetched) -> list[int]:
    return [delivery.deliveries for delivery in fetched.deliveries]


def again(log: Log, stream: str, name: str = "g") -> Fetched:
    """What comes again, as soon as it does."""
    return until(lambda: (found := fetch(log, stream, name=name)).deliveries and found, within_s=5)  # type: ignore[return-value]


def test_fetches_are_disjoint_and_in_order(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 5)
    first, second = fetch(log, stream, 3), fetch(log, stream, 3)
    assert (offsets(first), offsets(second)) == ([1, 2, 3], [4, 5])
    assert (first.left, second.left) == (2, 0)
    assert counts(first) == [1, 1, 1]


def test_other_groups_each_get_everything(log: Log, stream: str, make_group: MakeGroup) -> None:
    fill(log, stream, 3)
    for name in (make_group("a"), make_group("b")):
        assert offsets(fetch(log, stream, name=name)) == [1, 2, 3]


def test_a_group_may_start_anywhere(log: Log, stream: str, make_group: MakeGroup) -> None:
    fill(log, stream, 5)
    make_group(delivered=3)
    assert offsets(fetch(log, stream)) == [4, 5]


def test_what_is_acknowledged_never_comes_again(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(ack_wait_ms=100)
    fill(log, stream, 3)
    fetch(log, stream)
    assert log.run(groups.ack(stream, "g", "offsets", [1, 3])) == 2
    assert log.run(groups.ack(stream, "g", "offsets", [1])) == 0
    assert offsets(again(log, stream)) == [2]
    state = log.run(standing.inspect(stream, "g"))
    assert (state.ack_floor, state.ack_pending, state.acked, state.redelivered) == (1, 1, 2, 1)


def test_an_ack_after_the_wait_counts_until_the_redelivery(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack_wait_ms=1)
    fill(log, stream, 1)
    fetch(log, stream)
    until(lambda: log.run(standing.inspect(stream, "g")).now_ms and not fetch(log, stream, 0).deliveries)
    assert log.run(groups.ack(stream, "g", "offsets", [1])) == 1
    assert offsets(fetch(log, stream)) == []


def test_a_lost_lease_is_refused_and_does_nothing(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(ack_wait_ms=50)
    fill(log, stream, 2)
    old = [delivery.lease for delivery in fetch(log, stream).deliveries]
    log.run(groups.nack(stream, "g", "offsets", [1]))
    new = [delivery.lease for delivery in fetch(log, stream, 1).deliveries]
    with pytest.raises(errors.LeaseLost):
        log.run(groups.ack(stream, "g", "leases", [old[1], old[0]]))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 2
    assert log.run(groups.ack(stream, "g", "leases", [new[0], new[0], "nonsense", "1-99-1"])) == 1


def test_up_to_and_cumulative_acks_cover_what_came_before(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group("a")
    make_group("b", ack="all")
    fill(log, stream, 5)
    for name in ("a", "b"):
        fetch(log, stream, 4, name)
    assert log.run(groups.ack(stream, "a", "up_to", [3])) == 3
    assert log.run(groups.ack(stream, "b", "offsets", [3])) == 3
    assert log.run(standing.inspect(stream, "b")).ack_floor == 3


def test_ack_none_advances_at_fetch(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(ack="none")
    fill(log, stream, 3)
    assert offsets(fetch(log, stream, 2)) == [1, 2]
    assert log.run(standing.inspect(stream, "g")).ack_floor == 2


def test_a_nack_comes_again_after_its_delay(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 2)
    fetch(log, stream)
    log.run(groups.nack(stream, "g", "offsets", [1]))
    assert offsets(fetch(log, stream)) == [1]
    log.run(groups.nack(stream, "g", "offsets", [2], delay_ms=60_000))
    later = fetch(log, stream)
    assert offsets(later) == []
    assert later.due_in_ms


def test_working_restarts_the_clock(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(ack_wait_ms=60_000)
    fill(log, stream, 1)
    before = fetch(log, stream)
    assert before.due_in_ms is not None
    assert 60_000 <= before.due_in_ms <= 60_000 + 3 * ROUGH_MS
    until(lambda: (fetch(log, stream).due_in_ms or 0) < 59_900)
    assert log.run(groups.working(stream, "g", "offsets", [1])) == 1
    assert (fetch(log, stream).due_in_ms or 0) > 59_900


def test_working_waits_as_its_delivery_does(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(ack_wait_ms=1, backoff_ms=(60_000,), filter_keys=(">",))
    log.run(append(stream, [message(1, key="k")]))
    log.run(groups.fetch(stream, "g", limit=1))

    def due_ms() -> float:
        return float(log.client.zscore(keys.due(stream, "g"), "1"))

    before = due_ms()
    assert log.run(groups.working(stream, "g", "offsets", [1])) == 1
    assert due_ms() >= before


def test_backoff_replaces_the_wait_and_its_last_repeats(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(backoff_ms=(20, 60_000), max_deliver=-1)
    fill(log, stream, 1)
    fetch(log, stream)
    second = again(log, stream)
    assert counts(second) == [2]
    assert (second.due_in_ms or 0) >= 59_000


def test_delivered_too_often_is_a_dead_letter_and_the_floor_passes_it(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack_wait_ms=1, max_deliver=2)
    log.run(append(stream, [message(1, body=b'{"a":"\xc3\xa9"}', key="k")]))
    fetch(log, stream)
    again(log, stream)
    until(lambda: (fetch(log, stream, 0), log.run(dead_letters.page(stream, "g")))[1])
    (letter,) = log.run(dead_letters.page(stream, "g"))
    assert (letter.offset, letter.id, letter.key) == (1, "id-1", "k")
    assert (letter.body, letter.reason, letter.deliveries) == ('{"a":"é"}', "max_deliver", 2)
    state = log.run(standing.inspect(stream, "g"))
    assert (state.dead_letters, state.ack_floor, state.ack_pending, state.lag) == (1, 1, 0, 0)


def test_a_terminated_message_keeps_its_reason_and_its_body_after_a_purge(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    fill(log, stream, 2, body=b"[7]")
    fetch(log, stream)
    assert log.run(groups.term(stream, "g", "offsets", [2], reason="bad")) == [2]
    log.run(trim.purge(stream))
    (letter,) = log.run(dead_letters.page(stream, "g"))
    assert (letter.offset, letter.reason, letter.body) == (2, "bad", "[7]")
    assert log.run(dead_letters.replay(stream, "g", [2, 99])) == 1
    replayed = fetch(log, stream)
    assert (offsets(replayed), counts(replayed)) == ([2], [1])
    assert replayed.deliveries[0].entry[1][3] == b"[7]"
    assert log.run(groups.ack(stream, "g", "offsets", [2])) == 1


def test_dead_letters_are_deleted_one_and_all(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 3)
    fetch(log, stream)
    log.run(groups.term(stream, "g", "offsets", [1, 2, 3], reason=""))
    assert log.run(dead_letters.delete(stream, "g", offset=2)) == 1
    with pytest.raises(errors.MessageNotFound):
        log.run(dead_letters.delete(stream, "g", offset=2))
    assert log.run(dead_letters.delete(stream, "g")) == 2


def test_max_ack_pending_holds_over_all_members(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(max_ack_pending=3)
    fill(log, stream, 5)
    assert offsets(fetch(log, stream, consumer="a")) == [1, 2, 3]
    assert offsets(fetch(log, stream, consumer="b")) == []
    log.run(groups.ack(stream, "g", "offsets", [2]))
    assert offsets(fetch(log, stream, consumer="b")) == [4]
    assert {name: held.messages for name, held in log.run(pending.members(stream, "g")).items()} == {
        "a": 2,
        "b": 1,
    }


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.*", [1, 3]),
        ("a.>", [1, 3, 4]),
        ("*.x", [1, 2]),
        (">", [1, 2, 3, 4, 6]),
        ("a-b%.é", [6]),
        ("a", []),
    ],
)
def test_a_filter_skips_other_keys_and_counts_only_its_own(
    log: Log, stream: str, make_group: MakeGroup, pattern: str, expected: list[int]
) -> None:
    for n, key in enumerate(("a.x", "b.x", "a.y", "a.y.z", None, "a-b%.é"), start=1):
        log.run(append(stream, [message(n, key=key)]))
    make_group(filter_keys=(pattern,))
    lag = log.run(standing.inspect(stream, "g")).lag
    assert (lag, offsets(fetch(log, stream))) == (len(expected), expected)
    state = log.run(standing.inspect(stream, "g"))
    assert (state.lag, state.delivered_offset) == (0, 6)


def test_lag_is_exact_under_deletes_and_trims(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 100)
    fetch(log, stream, 10)
    log.run(trim.delete(stream, [5, 20, 21]))
    assert log.run(standing.inspect(stream, "g")).lag == 88
    log.run(trim.purge(stream, below=51))
    state = log.run(standing.inspect(stream, "g"))
    assert (state.lag, state.lost) == (50, 40)


def test_a_leased_message_that_is_purged_is_never_delivered_empty(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack_wait_ms=1)
    fill(log, stream, 3)
    fetch(log, stream)
    log.run(trim.purge(stream))
    until(lambda: (fetch(log, stream), log.run(standing.inspect(stream, "g")))[1].ack_pending == 0)
    assert log.run(groups.ack(stream, "g", "offsets", [1])) == 0
    state = log.run(standing.inspect(stream, "g"))
    assert (state.lost, state.unfinished) == (0, 3)


@pytest.mark.parametrize(("ack_wait_ms", "dead"), [(1, [1]), (1500, [])])
def test_what_had_its_time_before_its_last_delivery_was_over_is_no_dead_letter(
    log: Log, stream: str, make_group: MakeGroup, ack_wait_ms: int, dead: list[int]
) -> None:
    make_group(ack_wait_ms=ack_wait_ms, max_deliver=1)
    log.run(append(stream, [message(1, ttl_s=1)]))
    fetch(log, stream)
    due_ms = float(log.client.zscore(keys.due(stream, "g"), "1"))
    expires_ms = float(log.client.zscore(keys.expiry(stream), "1"))

    def is_over() -> bool:
        seconds, micros = map(int, log.client.time())
        return steady_ms(log) > due_ms and seconds * 1000 + micros / 1000 > expires_ms

    until(is_over)
    log.run(retiring.retire_these([(stream, "g")]))
    assert [letter.offset for letter in log.run(dead_letters.page(stream, "g"))] == dead
    assert log.run(pending.page(stream, "g", start=0, limit=10))[0] == []


def steady_ms(log: Log) -> int:
    def op() -> client.Op[int]:
        return int((yield client.Steady()))

    return log.run(op())


def test_a_seek_voids_what_is_in_flight(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 5)
    old = fetch(log, stream)
    assert log.run(groups.seek(stream, "g", next_offset=2)) == (6, 2)
    assert log.run(groups.ack(stream, "g", "leases", [old.deliveries[3].lease])) == 0
    renewed = fetch(log, stream)
    assert (offsets(renewed), counts(renewed)) == ([2, 3, 4, 5], [1, 1, 1, 1])
    with pytest.raises(errors.LeaseLost):  # another delivery has it now
        log.run(groups.ack(stream, "g", "leases", [old.deliveries[3].lease]))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 4
    assert log.run(groups.seek(stream, "g", next_offset=10**9)) == (6, 6)


def test_a_paused_group_delivers_nothing_and_acks_count(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 3)
    fetch(log, stream, 1)
    log.run(groups.pause(stream, "g", until_ms=None))
    assert offsets(fetch(log, stream)) == []
    assert log.run(groups.ack(stream, "g", "offsets", [1])) == 1
    assert log.run(standing.inspect(stream, "g")).paused_until_ms == -1
    log.run(groups.resume(stream, "g"))
    assert offsets(fetch(log, stream)) == [2, 3]


def test_a_pause_ends_by_itself(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 1)
    now_ms = log.run(standing.inspect(stream, "g")).now_ms
    log.run(groups.pause(stream, "g", until_ms=now_ms + 200))
    assert 0 < (fetch(log, stream).due_in_ms or 0) <= 200
    assert offsets(again(log, stream)) == [1]


def test_a_group_goes_with_its_stream_and_alone(
    log: Log, make_stream: MakeStream, make_group: MakeGroup
) -> None:
    stream = make_stream()
    make_group("a", on=stream)
    make_group("b", on=stream)
    fill(log, stream, 1)
    fetch(log, stream, name="a")
    log.run(groups.group_remove(stream, "a"))
    with pytest.raises(errors.GroupNotFound):
        fetch(log, stream, name="a")
    log.run(config.stream_remove(stream, workspace_id=1, name="x"))
    assert log.client.execute_command("KEYS", f"okmq:{{{stream}}}:*") == []


def test_changing_settings_keeps_the_position(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 3)
    fetch(log, stream, 2)
    make_group(ack_wait_ms=5)
    assert offsets(fetch(log, stream, 1)) == [3]


def test_what_was_given_back_was_no_delivery(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(max_deliver=1)
    fill(log, stream, 3)
    unseen = [delivery.lease for delivery in fetch(log, stream, 2).deliveries]
    assert log.run(groups.give_back(stream, "g", unseen)) == 2
    found = fetch(log, stream)
    assert (offsets(found), counts(found)) == ([1, 2, 3], [1, 1, 1])
    assert log.run(groups.give_back(stream, "g", unseen)) == 0
    assert log.run(standing.inspect(stream, "g")).redelivered == 0


def test_what_nobody_saw_comes_again_once_where_nothing_is_acknowledged(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack="none")
    fill(log, stream, 2)
    log.run(groups.give_back(stream, "g", [delivery.lease for delivery in fetch(log, stream, 1).deliveries]))
    assert offsets(fetch(log, stream)) == [1, 2]
    assert offsets(fetch(log, stream)) == []


def test_a_cumulative_ack_by_lease_covers_what_came_before(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack="all")
    fill(log, stream, 4)
    leases = [delivery.lease for delivery in fetch(log, stream).deliveries]
    assert log.run(groups.ack(stream, "g", "leases", [leases[2]])) == 3


def test_a_lease_of_a_group_that_had_the_name_before_settles_nothing(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    fill(log, stream, 1)
    old = fetch(log, stream).deliveries[0].lease
    log.run(groups.group_remove(stream, "g"))
    make_group()
    assert log.run(groups.ack(stream, "g", "leases", [old])) == 0
    fetch(log, stream)
    with pytest.raises(errors.LeaseLost):
        log.run(groups.ack(stream, "g", "leases", [old]))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 1


def test_a_seek_keeps_the_count_of_what_was_lost(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 10)
    log.run(trim.purge(stream, below=5))
    assert log.run(standing.inspect(stream, "g")).lost == 4
    assert log.run(groups.seek(stream, "g", next_offset=8)) == (5, 8)
    assert log.run(standing.inspect(stream, "g")).lost == 4


def test_a_message_that_dies_again_after_a_seek_is_one_dead_letter(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    fill(log, stream, 1)
    for reason in ("first", "second"):
        fetch(log, stream)
        log.run(groups.term(stream, "g", "offsets", [1], reason=reason))
        log.run(groups.seek(stream, "g", next_offset=1))
    assert [letter.reason for letter in log.run(dead_letters.page(stream, "g"))] == ["second"]


def test_a_dead_letter_replayed_after_a_seek_is_out_once(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    fill(log, stream, 3)
    fetch(log, stream)
    log.run(groups.term(stream, "g", "offsets", [1, 3], reason="bad"))
    log.run(groups.seek(stream, "g", next_offset=1))
    held = fetch(log, stream, 1).deliveries[0].lease
    assert log.run(dead_letters.replay(stream, "g", [1, 3])) == 2
    assert offsets(fetch(log, stream)) == [2, 3]
    assert offsets(fetch(log, stream)) == []
    assert log.run(groups.ack(stream, "g", "leases", [held])) == 1


def test_a_replayed_dead_letter_comes_once_where_nothing_is_acknowledged(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    fill(log, stream, 1)
    fetch(log, stream)
    log.run(groups.term(stream, "g", "offsets", [1], reason="bad"))
    make_group(ack="none")
    log.run(dead_letters.replay(stream, "g", [1]))
    assert offsets(fetch(log, stream)) == [1]
    assert offsets(fetch(log, stream)) == []


def test_max_bytes_holds_over_bodies_of_different_sizes(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    for n, size in enumerate((6, 6, 1, 1), start=1):
        log.run(append(stream, [message(n, body=b"7" * size)]))
    assert offsets(log.run(groups.fetch(stream, "g", limit=10, max_bytes=10))) == [1]
    assert offsets(log.run(groups.fetch(stream, "g", limit=10, max_bytes=7))) == [2, 3]


def test_max_bytes_counts_headers(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    for n in range(3):
        log.run(append(stream, [NewMessage(id=f"h-{n}", body=b"1", headers=b'{"a":"b"}')]))
    assert offsets(log.run(groups.fetch(stream, "g", limit=10, max_bytes=20))) == [1, 2]
    assert offsets(log.run(groups.fetch(stream, "g", limit=10, max_bytes=9))) == [3]


def test_ten_members_lose_and_double_nothing(
    redis_url: str, log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack_wait_ms=60_000, max_ack_pending=100_000, max_deliver=-1)
    fill(log, stream, 3000)
    taken: list[int] = []

    def member(n: int) -> None:
        own = Log(redis_url)
        while found := offsets(own.run(groups.fetch(stream, "g", limit=17, consumer=f"m{n}"))):
            if n % 2 and len(found) > 5:  # this member leaves without an answer for some; they are given back
                own.run(groups.nack(stream, "g", "offsets", found[5:]))
                found = found[:5]
            own.run(groups.ack(stream, "g", "offsets", found))
            taken.extend(found)
        own.close()

    threads = [threading.Thread(target=member, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rest = offsets(log.run(groups.fetch(stream, "g", limit=10_000)))
    log.run(groups.ack(stream, "g", "offsets", rest))
    assert sorted(taken + rest) == list(range(1, 3001))
    assert log.run(standing.inspect(stream, "g")).ack_floor == 3000


def test_no_script_is_left_with_a_half_written_group(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 2000)
    log.run(groups.fetch(stream, "g", limit=1000))
    log.run(groups.nack(stream, "g", "offsets", range(1, 1001)))
    pending, due, held = (
        log.client.execute_command("ZCARD", keys.pending(stream, "g")),
        log.client.execute_command("ZCARD", keys.due(stream, "g")),
        log.client.execute_command("HLEN", keys.leases(stream, "g")),
    )
    assert pending == due == held == 1000
    assert not log.client.execute_command("EXISTS", keys.runs(stream, "g"))


def test_a_pause_of_a_group_that_was_removed_leaves_nothing(log: Log, stream: str) -> None:
    for op in (groups.pause(stream, "g", until_ms=None), groups.resume(stream, "g")):
        with pytest.raises(errors.GroupNotFound):
            log.run(op)
    assert not log.client.execute_command("EXISTS", keys.group(stream, "g"))


def test_all_dead_letters_are_replayed_in_slices(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group(max_ack_pending=1000)
    fill(log, stream, 250)
    fetch(log, stream, 1000)
    log.run(groups.term(stream, "g", "offsets", list(range(1, 251)), reason=""))
    assert log.run(dead_letters.replay_all(stream, "g")) == 250
    assert offsets(fetch(log, stream, 1000)) == list(range(1, 251))


def test_any_message_that_is_out_for_the_last_time_is_told_of(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(max_deliver=2)
    fill(log, stream, 3)
    fetch(log, stream)
    log.run(groups.nack(stream, "g", "offsets", [1, 2]))
    assert counts(fetch(log, stream)) == [2, 2]
    for answered, is_left in ((2, True), (1, False)):
        log.run(groups.ack(stream, "g", "offsets", [answered]))
        assert log.run(standing.inspect(stream, "g")).is_last_chance is is_left


def test_messages_that_are_out_for_the_last_time_are_counted_up_to_a_bound(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(max_deliver=2, max_ack_pending=1000)
    fill(log, stream, 250)
    fetch(log, stream, 250)
    log.run(groups.nack(stream, "g", "offsets", range(1, 251)))
    assert counts(fetch(log, stream, 250)) == [2] * 250
    assert log.run(standing.inspect(stream, "g")).on_last == standing.LAST_COUNTED
    log.run(groups.ack(stream, "g", "offsets", [*range(1, 150), *range(200, 248)]))
    assert log.run(standing.inspect(stream, "g")).on_last == 53
    log.run(groups.ack(stream, "g", "offsets", range(150, 251)))
    assert log.run(standing.inspect(stream, "g")).on_last == 0


def spent(log: Log, stream: str) -> None:
    """Message 1 is out for the last time, and its time is over."""
    fill(log, stream, 3)
    fetch(log, stream, 1)
    until(lambda: log.run(pending.held(stream, "g", after_ms=log.run(client.one(client.Steady())))) == 0)


def test_a_message_out_for_the_last_time_is_a_dead_letter_although_nobody_fetches(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack_wait_ms=50, max_deliver=1)
    spent(log, stream)
    state = log.run(standing.inspect(stream, "g"))
    assert (state.dead_letters, state.ack_pending, state.ack_floor, state.dead_lettered) == (1, 0, 1, 1)
    assert log.run(retiring.retire(stream, "g")) == 0


@pytest.mark.parametrize("way", ["delete", "purge", "limits", "set aside"])
def test_a_dead_letter_is_kept_although_the_stream_loses_its_message_first(
    log: Log, stream: str, make_group: MakeGroup, publish_settings: Publish, way: str
) -> None:
    make_group(ack_wait_ms=50, max_deliver=1)
    spent(log, stream)
    if way == "delete":
        log.run(trim.delete(stream, [1]))
    elif way == "purge":
        log.run(trim.purge(stream))
    elif way == "set aside":
        log.run(removals.delete(stream, [1], keep_ms=60_000, facts={}))
    else:
        publish_settings(stream, max_messages=1)
        log.run(trim.apply_limits(stream))
        log.run(trim.drop(stream))
    [letter] = log.run(dead_letters.page(stream, "g"))
    assert (letter.offset, letter.reason, bool(letter.body)) == (1, "max_deliver", True)
    state = log.run(standing.inspect(stream, "g"))
    assert (state.dead_letters, state.unfinished, state.ack_pending) == (1, 0, 0)


@pytest.mark.parametrize("archive", [False, True])
def test_a_dead_letter_is_kept_although_a_publish_pushes_its_message_out_first(
    log: Log, make_stream: MakeStream, archive: bool
) -> None:
    stream = make_stream(max_messages_per_key=1, archive=archive)
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=50, max_deliver=1)))
    log.run(append(stream, [message(1, key="a")]))
    log.run(config.archived_set(stream, 1))
    fetch(log, stream)
    until(lambda: log.run(pending.held(stream, "g", after_ms=log.run(client.one(client.Steady())))) == 0)
    log.run(append(stream, [message(2, key="a"), message(3, key="b")]))
    log.run(trim.drop(stream))
    assert [letter.offset for letter in log.run(dead_letters.page(stream, "g"))] == [1]
    state = log.run(standing.inspect(stream, "g"))
    assert (state.dead_letters, state.unfinished, state.lag) == (1, 0, 2)
    assert log.run(client.one(("XLEN", keys.log(stream)))) == 2


def test_a_fetch_buries_what_a_limit_has_taken_from_sight(
    log: Log, stream: str, make_group: MakeGroup, publish_settings: Publish
) -> None:
    make_group(ack_wait_ms=50, max_deliver=1)
    spent(log, stream)
    publish_settings(stream, max_messages=1)
    fetch(log, stream)
    assert [letter.offset for letter in log.run(dead_letters.page(stream, "g"))] == [1]


def test_what_is_nacked_after_its_last_delivery_is_found_by_the_next_look(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack_wait_ms=50, max_deliver=2)
    fill(log, stream, 2)
    fetch(log, stream)
    until(lambda: log.run(pending.held(stream, "g", after_ms=log.run(client.one(client.Steady())))) == 0)
    assert log.run(retiring.retire(stream, "g")) == 0
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=60_000, max_deliver=2)))
    assert offsets(fetch(log, stream)) == [1, 2]
    log.run(groups.nack(stream, "g", "offsets", [2]))
    assert log.run(retiring.retire(stream, "g")) == 1


def test_the_look_for_spent_messages_goes_through_more_than_a_slice(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(ack_wait_ms=60_000, max_deliver=2, max_ack_pending=5000)
    fill(log, stream, 1300)
    for _ in range(2):
        fetch(log, stream, 1300)
        log.run(groups.nack(stream, "g", "offsets", list(range(1, 1301))))
    assert log.run(retiring.retire(stream, "g")) == 1300


def replay(log: Log, stream: str) -> None:
    """Message 1 became a dead letter and was replayed; 2 and 3 are out."""
    fill(log, stream, 3)
    fetch(log, stream)
    log.run(groups.term(stream, "g", "offsets", [1], reason="bad"))
    assert log.run(dead_letters.replay(stream, "g", [1])) == 1


@pytest.mark.parametrize("is_out", [False, True], ids=["waits", "out"])
def test_a_seek_puts_replayed_letters_back_among_the_dead(
    log: Log, stream: str, make_group: MakeGroup, is_out: bool
) -> None:
    make_group()
    replay(log, stream)
    if is_out:
        fetch(log, stream)
    log.run(trim.delete(stream, [1]))
    log.run(groups.seek(stream, "g", next_offset=4))
    [letter] = log.run(dead_letters.page(stream, "g"))
    assert (letter.offset, letter.reason, bool(letter.body)) == (1, "bad", True)
    assert offsets(fetch(log, stream)) == []


def test_a_seek_puts_back_more_replayed_letters_than_a_slice(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    fill(log, stream, 250)
    fetch(log, stream, 250)
    every = list(range(1, 251))
    log.run(groups.term(stream, "g", "offsets", every, reason="bad"))
    log.run(dead_letters.replay(stream, "g", every))
    log.run(groups.seek(stream, "g", next_offset=1))
    assert log.run(standing.inspect(stream, "g")).dead_letters == 250


@pytest.mark.parametrize("named", ["up_to", "offsets"])
@pytest.mark.parametrize("ack", ["explicit", "all"])
def test_an_ack_does_not_cover_a_replayed_letter_that_was_not_delivered_since(
    log: Log, stream: str, make_group: MakeGroup, named: groups.Named, ack: str
) -> None:
    make_group(ack=ack)
    replay(log, stream)
    log.run(groups.ack(stream, "g", named, [3] if named == "up_to" else [1, 2, 3]))
    found = fetch(log, stream)
    assert (offsets(found), counts(found)) == ([1], [1])
    assert log.run(groups.ack(stream, "g", named, [1])) == 1


def test_an_ack_does_not_cover_what_was_given_back(log: Log, stream: str, make_group: MakeGroup) -> None:
    make_group()
    fill(log, stream, 3)
    first = fetch(log, stream)
    log.run(groups.give_back(stream, "g", [first.deliveries[0].lease]))
    assert log.run(groups.ack(stream, "g", "up_to", [3])) == 2
    assert offsets(fetch(log, stream)) == [1]


def test_an_ack_goes_past_more_replayed_letters_than_a_slice(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(max_ack_pending=5000)
    fill(log, stream, 1105)
    every = list(range(1, 1101))
    fetch(log, stream, 1100)
    log.run(groups.term(stream, "g", "offsets", every, reason="bad"))
    fetch(log, stream, 5)
    log.run(dead_letters.replay(stream, "g", every))
    assert log.run(groups.ack(stream, "g", "up_to", [1105])) == 5


def test_a_replayed_letter_is_as_old_as_its_message_also_when_the_stream_has_lost_it(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    replay(log, stream)
    before = log.run(standing.inspect(stream, "g")).oldest_ms
    assert before
    log.run(trim.purge(stream))
    state = log.run(standing.inspect(stream, "g"))
    assert (state.ack_pending, state.oldest_ms) == (1, before)


def test_a_replayed_letter_that_nobody_has_yet_is_with_no_consumer(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    replay(log, stream)
    log.run(groups.ack(stream, "g", "offsets", [2, 3]))
    assert {name: member.messages for name, member in log.run(pending.members(stream, "g")).items()} == {
        "": 0
    }


@pytest.mark.parametrize("answer", ["ack", "nack", "working", "term"])
def test_a_lease_of_before_a_replay_is_no_other_s_until_it_is_fetched_again(
    log: Log, stream: str, make_group: MakeGroup, answer: str
) -> None:
    make_group()
    fill(log, stream, 1)
    lease = fetch(log, stream).deliveries[0].lease
    log.run(groups.term(stream, "g", "offsets", [1], reason="bad"))
    log.run(dead_letters.replay(stream, "g", [1]))
    answers = {
        "ack": groups.ack(stream, "g", "leases", [lease]),
        "nack": groups.nack(stream, "g", "leases", [lease]),
        "working": groups.working(stream, "g", "leases", [lease]),
        "term": groups.term(stream, "g", "leases", [lease], reason="late"),
    }
    assert log.run(answers[answer]) == ([] if answer == "term" else 0)
    assert offsets(fetch(log, stream)) == [1]
    with pytest.raises(errors.LeaseLost):
        log.run(groups.ack(stream, "g", "leases", [lease]))


@pytest.mark.parametrize("opened", [False, True])
def test_of_very_many_in_flight_each_is_counted(
    log: Log, stream: str, make_group: MakeGroup, opened: bool
) -> None:
    make_group(max_ack_pending=100_000)
    fill(log, stream, 5000)
    for consumer, count in (("old", 1500), ("middle", 2000), ("new", 1500)):
        fetch(log, stream, count, consumer=consumer)
    if opened:
        log.run(groups.working(stream, "g", "offsets", range(1, 5001)))
    log.run(groups.ack(stream, "g", "offsets", [*range(1, 1501), 2000, 2500, 3600]))
    found = log.run(pending.members(stream, "g"))
    assert {name: member.messages for name, member in found.items()} == {
        "old": 0,
        "middle": 1998,
        "new": 1499,
    }


@pytest.mark.long
def test_who_has_what_is_told_of_more_members_than_a_slice(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group(max_ack_pending=100_000)
    fill(log, stream, 2100)
    for number in range(2100):
        fetch(log, stream, 1, consumer=f"member {number}")
    assert dict.fromkeys(log.run(pending.members(stream, "g")), 1) == {
        f"member {number}": 1 for number in range(2100)
    }


def test_a_seek_keeps_who_is_there_and_since_when_with_nothing_in_flight(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    fill(log, stream, 3)
    fetch(log, stream, 2, consumer="a:1")
    fetch(log, stream, 1, consumer="b")
    before = log.run(pending.members(stream, "g"))
    log.run(groups.seek(stream, "g", next_offset=1))
    assert log.run(pending.members(stream, "g")) == {
        name: member._replace(messages=0) for name, member in before.items()
    }
    fetch(log, stream, 3, consumer="b")
    assert {name: held.messages for name, held in log.run(pending.members(stream, "g")).items()} == {
        "a:1": 0,
        "b": 3,
    }


def test_a_seek_of_very_many_members_has_them_begin_anew(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    many = {f"member {number}": "1:1" for number in range(1101)}
    log.client.hset(keys.members(stream, "g"), mapping=many)
    log.run(groups.seek(stream, "g", next_offset=1))
    assert not log.client.execute_command("EXISTS", keys.members(stream, "g"))


def test_who_fetches_in_vain_or_answers_is_active_and_who_does_neither_is_forgotten(
    log: Log, stream: str, make_group: MakeGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_group()
    fetch(log, stream, consumer="idle")
    fill(log, stream, 2)
    fetch(log, stream, 1, consumer="busy")
    before = log.run(pending.members(stream, "g"))
    assert {name: member.messages for name, member in before.items()} == {"idle": 0, "busy": 1}
    until(
        lambda: (
            log.run(groups.working(stream, "g", "offsets", [1]))
            and log.run(pending.members(stream, "g"))["busy"].active_ms > before["busy"].active_ms
        )
    )
    assert log.run(pending.members(stream, "g"))["idle"] == before["idle"]
    monkeypatch.setattr(pending, "QUIET_MS", -60_000)
    assert list(log.run(pending.members(stream, "g"))) == ["busy"]
    log.run(groups.ack(stream, "g", "offsets", [1]))
    assert log.run(pending.members(stream, "g")) == {}
    assert not log.client.execute_command("EXISTS", keys.members(stream, "g"))


def rates(log: Log, stream: str) -> dict[str, float | None]:
    return {name: member.ack_rate for name, member in log.run(pending.members(stream, "g")).items()}


@pytest.mark.parametrize("how", ["offsets", "apart", "leases", "up_to", "all"])
def test_how_fast_each_member_acknowledges_is_told_of_what_it_acknowledged(
    log: Log, stream: str, make_group: MakeGroup, how: str
) -> None:
    """Not of what it gave back, ended or lost, and of nothing that another one had."""
    make_group(ack="all" if how == "all" else "explicit", max_ack_pending=1000)
    fill(log, stream, 400)
    taken = {name: fetch(log, stream, 100, consumer=name).deliveries for name in ("a", "b", "c", "d")}
    assert set(rates(log, stream).values()) == {None}
    leases = [each.lease for each in taken["a"]]
    answer = {
        "offsets": groups.ack(stream, "g", "offsets", range(1, 101)),
        "apart": groups.ack(stream, "g", "offsets", [*range(1, 101, 2), *range(2, 101, 2)]),
        "leases": groups.ack(stream, "g", "leases", leases),
        "up_to": groups.ack(stream, "g", "up_to", [100]),
        "all": groups.ack(stream, "g", "offsets", [100]),
    }[how]
    if how == "apart":
        log.run(groups.working(stream, "g", "offsets", range(1, 101)))
    assert log.run(answer) == 100
    log.run(trim.delete(stream, range(101, 111)))
    log.run(groups.nack(stream, "g", "offsets", range(101, 151)))
    if how != "all":
        log.run(groups.ack(stream, "g", "offsets", range(101, 111)))
    log.run(groups.term(stream, "g", "offsets", range(201, 301), reason="bad"))
    told = rates(log, stream)
    assert told.pop("a") == pytest.approx(10, rel=0.5), "a hundred in ten seconds"
    assert told == {"b": None, "c": None, "d": None}


@pytest.mark.parametrize(
    ("acked", "into_s", "told"),
    [
        ("", 0, None),
        ("170:30:50", 0, 8.0),
        ("170:30:50", 5, 5.5),
        ("170:30:50", 10, 3.0),
        ("170:30:50", 15, 1.5),
        ("170:30:50", 20, 0.0),
        ("170:30:50", 59, 0.0),
        ("170:30:50", 60, None),
        ("170:30:50", 600, None),
    ],
)
def test_a_rate_is_of_the_last_ten_seconds_and_of_nobody_who_answered_none_for_a_minute(
    acked: str, into_s: int, told: float | None
) -> None:
    assert pending.ack_rate(acked, now_ms=1_700_000 + into_s * 1000) == told


@pytest.mark.parametrize("ago", [1, 2, 9])
def test_what_was_acknowledged_in_the_span_before_is_kept_and_nothing_older(
    log: Log, stream: str, make_group: MakeGroup, ago: int
) -> None:
    make_group()
    fill(log, stream, 2)
    fetch(log, stream, consumer="a")
    key = keys.acks(stream, "g")
    for offset in (1, 2):
        log.run(groups.ack(stream, "g", "offsets", [offset]))
        at, inside, before = map(int, log.client.execute_command("HGET", key, "a").split(b":"))
        if offset == 1:
            assert (inside, before) == (1, 0)
            since = at - ago
            log.client.execute_command("HSET", key, "a", f"{since}:70:5")
    assert (inside, before) == (1, 70 if at == since + 1 else 0)
    assert 0 < log.client.execute_command("TTL", key) <= 60


@pytest.mark.long
def test_of_names_that_are_made_up_a_bounded_number_is_counted(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    fill(log, stream, 2)
    fetch(log, stream, 1, consumer="a")
    many = [word for n in range(5000) for word in (f"made up {n}", "1:1:1")]
    log.client.execute_command("HSET", keys.acks(stream, "g"), *many)
    log.run(groups.ack(stream, "g", "offsets", [1]))
    assert log.client.execute_command("HKEYS", keys.acks(stream, "g")) == [b"a"]


@pytest.mark.long
def test_of_those_who_have_nothing_a_bounded_number_is_remembered(
    log: Log, stream: str, make_group: MakeGroup
) -> None:
    make_group()
    for number in range(1010):
        fetch(log, stream, 1, consumer=f"{number}")
    # The thousandth made the idlest hundred go.
    assert log.client.execute_command("HLEN", keys.members(stream, "g")) == 910


def test_what_lies_between_two_positions_is_counted_without_what_went(log: Log, stream: str) -> None:
    fill(log, stream, 10)
    log.run(trim.delete(stream, [4, 9]))
    log.run(trim.purge(stream, below=3))
    for start, stop, count in ((1, None, 6), (4, 7, 2), (5, 4, 0), (11, 50, 0)):
        assert log.run(lag.matching_count(stream, start, stop, [])) == count
