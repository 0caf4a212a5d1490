"""Groups that are ordered by key: one message of a key at a time, in order, whatever happens to it."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from streams.log import config, dead_letters, entries, groups, keys, removals, standing, trim, undo
from streams.log.append import append
from streams.log.client import Log
from streams.log.groups import Fetched, Settings
from streams.log.standing import GroupState
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import message
from tests.waiting import until

Ordered = Callable[..., None]


@pytest.fixture
def ordered(log: Log, stream: str) -> Ordered:
    """Makes the group g, or changes it."""

    def make(*, on: str = stream, ordered_by_key: bool = True, **settings: object) -> None:
        wanted = Settings(ordered_by_key=ordered_by_key, **settings)  # type: ignore[arg-type]
        log.run(groups.group_publish(on, "g", wanted))

    return make


@pytest.fixture
def publish(log: Log, stream: str) -> Callable[..., None]:
    """Appends one message a key; ``-`` stands for none."""
    number = iter(range(1, 1_000_000))

    def act(*of_keys: str, on: str = stream, ttl_s: int | None = None) -> None:
        for first in range(0, len(of_keys), 1000):
            part = of_keys[first : first + 1000]
            log.run(
                append(
                    on,
                    [
                        message(next(number), key=None if key == "-" else key, ttl_s=ttl_s, body=b"[1]")
                        for key in part
                    ],
                )
            )

    return act


def take(log: Log, stream: str, limit: int = 100) -> list[int]:
    return offsets(log.run(groups.fetch(stream, "g", limit=limit)))


def offsets(fetched: Fetched) -> list[int]:
    return [entries.position(delivery.entry)[0] for delivery in fetched.deliveries]


def done(log: Log, stream: str, *named: int) -> None:
    log.run(groups.ack(stream, "g", "offsets", named))


def stands(log: Log, stream: str) -> GroupState:
    return log.run(standing.inspect(stream, "g"))


def test_of_each_key_one_is_out_and_keyless_ones_are_free(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered()
    publish("a", "a", "b", "-", "a", "-", "b")
    assert take(log, stream) == [1, 3, 4, 6]
    assert take(log, stream) == []
    done(log, stream, 1)
    assert take(log, stream) == [2]
    done(log, stream, 2, 3)
    assert take(log, stream) == [5, 7]


def test_what_waits_for_its_key_is_lag_and_not_pending(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered()
    publish("a", "a", "a", "b")
    fetched = log.run(groups.fetch(stream, "g", limit=100))
    assert (offsets(fetched), fetched.left) == ([1, 4], 2)
    state = stands(log, stream)
    assert (state.lag, state.ack_pending, state.ack_floor) == (2, 2, 0)
    done(log, stream, 1)
    state = stands(log, stream)
    assert (state.lag, state.ack_pending, state.ack_floor) == (2, 1, 1)


def test_a_key_waits_for_a_delayed_message_and_for_a_redelivery(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(ack_wait_ms=60_000)
    publish("a", "a", "b")
    take(log, stream)
    log.run(groups.nack(stream, "g", "offsets", [1], delay_ms=100))
    publish("a", "b")
    assert take(log, stream) == []
    assert until(lambda: take(log, stream), within_s=5) == [1]
    assert take(log, stream) == []
    done(log, stream, 1)
    assert take(log, stream) == [2]


def test_a_key_goes_on_after_a_dead_letter(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(ack_wait_ms=1, max_deliver=1)
    publish("a", "a", "b", "b")
    assert take(log, stream, 1) == [1]
    log.run(groups.term(stream, "g", "offsets", [1], reason="bad"))
    assert take(log, stream, 1) == [2]
    assert take(log, stream, 1) == [3]
    assert until(lambda: take(log, stream, 1), within_s=5) == [4]
    assert [letter.offset for letter in log.run(dead_letters.page(stream, "g"))][:1] == [1]


def test_a_replayed_dead_letter_waits_for_its_key(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered()
    publish("a", "a", "a")
    take(log, stream)
    log.run(groups.term(stream, "g", "offsets", [1], reason="bad"))
    assert take(log, stream) == [2]
    log.run(dead_letters.replay(stream, "g", [1]))
    assert take(log, stream) == []
    done(log, stream, 2)
    assert take(log, stream) == [3]
    done(log, stream, 3)
    assert take(log, stream) == [1]
    done(log, stream, 1)
    assert stands(log, stream).ack_pending == 0


def test_one_that_waits_for_its_key_takes_no_room_from_what_its_key_waits_for(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(max_ack_pending=2)
    publish("a", "a", "a", "a", "b", "c", "d")
    assert take(log, stream) == [1, 5]
    for dead, following in ((1, 2), (2, 3)):
        log.run(groups.term(stream, "g", "offsets", [dead], reason="bad"))
        assert take(log, stream) == [following]
    log.run(dead_letters.replay(stream, "g", [1, 2]))
    assert take(log, stream) == [], "two are out"
    done(log, stream, 3)
    assert take(log, stream) == [4], "no more than two"
    done(log, stream, 4, 5)
    assert take(log, stream) == [1, 6]
    done(log, stream, 1)
    assert take(log, stream) == [2]
    done(log, stream, 2, 6)
    assert take(log, stream) == [7]
    done(log, stream, 7)
    assert stands(log, stream).ack_pending == 0


def test_a_seek_begins_every_key_anew(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered()
    publish("a", "a", "b", "b")
    take(log, stream)
    log.run(groups.seek(stream, "g", next_offset=2))
    assert stands(log, stream).lag == 3
    assert take(log, stream) == [2, 3]
    done(log, stream, 2, 3)
    assert take(log, stream) == [4]


def test_the_limit_and_the_room_for_pending_ones_hold(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(max_ack_pending=2)
    publish("a", "a", "b", "b", "c")
    assert take(log, stream, 1) == [1]
    assert take(log, stream, 9) == [3]
    assert take(log, stream, 9) == []
    done(log, stream, 1, 3)
    assert take(log, stream, 1) == [2]
    assert take(log, stream, 9) == [4]
    done(log, stream, 2)
    assert take(log, stream) == [5]


def test_what_was_removed_while_it_waited_is_no_lag_and_its_key_goes_on(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered()
    publish(*"aaaaaab")
    take(log, stream)
    log.run(trim.delete(stream, [2, 4]))
    state = stands(log, stream)
    assert (state.lag, state.lost) == (3, 2)
    log.run(trim.purge(stream, below=4))
    state = stands(log, stream)
    assert (state.lag, state.lost) == (2, 3)
    done(log, stream, 1)
    assert take(log, stream) == [5]
    done(log, stream, 5)
    assert take(log, stream) == [6]
    state = stands(log, stream)
    assert (state.lag, state.lost) == (0, 3)


def test_what_expires_while_it_waits_is_no_lag(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered()
    publish("a", "a")
    publish("a", "a", ttl_s=1)
    publish("a")
    assert take(log, stream) == [1]
    assert until(lambda: (state := stands(log, stream)).lag == 2 and state, within_s=5)
    done(log, stream, 1)
    assert take(log, stream) == [2]
    done(log, stream, 2)
    assert take(log, stream) == [5]


def test_a_purge_of_a_long_list_is_passed_over_in_one_fetch(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered()
    publish(*["hot"] * 5000)
    publish("hot")
    take(log, stream)
    log.run(trim.purge(stream, below=5001))
    assert take(log, stream) == [5001]  # what is out is gone, too, and its key's turn with it
    done(log, stream, 1)
    assert take(log, stream) == []
    assert stands(log, stream).lost == 4999


def test_it_may_be_switched_on_and_off_at_any_time(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(ordered_by_key=False)
    publish("a", "b", "b")
    assert take(log, stream, 2) == [1, 2]
    ordered()
    publish("a")
    assert take(log, stream) == []
    done(log, stream, 1, 2)
    assert take(log, stream) == [3, 4]
    publish("a", "a")
    assert take(log, stream) == []
    ordered(ordered_by_key=False)
    publish("a")
    assert take(log, stream) == [5, 6, 7]
    publish("a")
    ordered()
    done(log, stream, 4, 5, 6)
    assert take(log, stream) == []
    done(log, stream, 7)
    assert take(log, stream) == [8]


def test_what_was_out_when_it_was_switched_on_comes_again_one_at_a_time(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(ordered_by_key=False)
    publish("a", "b", "a", "a")
    assert take(log, stream) == [1, 2, 3, 4]
    ordered()
    log.run(groups.nack(stream, "g", "offsets", [1, 2, 3, 4]))
    assert take(log, stream) == [1, 2]
    assert stands(log, stream).ack_pending == 4
    done(log, stream, 4, 1)
    again = log.run(groups.fetch(stream, "g", limit=100))
    assert [(delivery.deliveries, offsets(again)) for delivery in again.deliveries] == [(2, [3])]
    done(log, stream, 2, 3)
    assert (take(log, stream), stands(log, stream).ack_pending) == ([], 0)
    assert stands(log, stream).redelivered == 3


def test_a_group_that_acknowledges_nothing_takes_no_turns(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(ack="none")
    publish("a", "a", "b")
    assert take(log, stream) == [1, 2, 3]


def test_a_cumulative_ack_lets_every_key_of_it_go_on(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(ack="all")
    publish("a", "b", "a", "b")
    assert take(log, stream) == [1, 2]
    done(log, stream, 2)
    assert take(log, stream) == [3, 4]


@pytest.mark.long
def test_a_hundred_thousand_that_wait_do_not_slow_a_fetch(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(max_ack_pending=100_000)
    publish(*["hot"] * 100_000)
    publish("cold")
    assert take(log, stream, 1000) == [1]
    assert take(log, stream, 1000) == [100_001]
    took = []
    for n in range(20):
        publish("cold")
        done(log, stream, 100_001 + n)
        started = time.perf_counter()
        assert take(log, stream, 1000) == [100_002 + n]
        took.append(time.perf_counter() - started)
    # Not one of them would be as fast if a fetch looked at what waits, however quiet the machine.
    assert min(took) < 0.010
    done(log, stream, 1)
    assert take(log, stream, 1000) == [2]
    assert stands(log, stream).lag == 99_998


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_no_order_of_calls_lets_two_of_a_key_out_or_one_before_its_turn(
    log: Log, make_stream: MakeStream, seed: int
) -> None:
    chance = random.Random(seed)
    stream = make_stream()
    settings = Settings(ordered_by_key=True, ack_wait_ms=60_000, max_deliver=-1, max_ack_pending=7)
    log.run(groups.group_publish(stream, "g", settings))
    key_of: dict[int, str | None] = {}
    waiting: dict[str, list[int]] = defaultdict(list)
    out: dict[int, str] = {}
    finished: set[int] = set()
    last = 0

    def fetched() -> Iterator[tuple[int, int]]:
        got = log.run(groups.fetch(stream, "g", limit=chance.randint(1, 5)))
        return ((entries.position(each.entry)[0], each.deliveries) for each in got.deliveries)

    for _ in range(300):
        match chance.randrange(6):
            case 0:
                batch = [chance.choice(["a", "b", "c", None]) for _ in range(chance.randint(1, 6))]
                log.run(append(stream, [message(last + n + 1, key=key) for n, key in enumerate(batch)]))
                for key in batch:
                    last += 1
                    key_of[last] = key
                    if key:
                        waiting[key].append(last)
            case 1 | 2:
                for offset, _ in fetched():
                    assert offset not in finished
                    key = key_of[offset]
                    if key:
                        assert waiting[key][0] == offset, "out before its turn"
                    out[offset] = "out"
            case 3 if out:
                offset = chance.choice(sorted(out))
                done(log, stream, offset)
                finished.add(offset)
                del out[offset]
                if key := key_of[offset]:
                    waiting[key].remove(offset)
            case 4 if out:
                log.run(groups.nack(stream, "g", "offsets", [chance.choice(sorted(out))]))
            case 5 if out:
                offset = chance.choice(sorted(out))
                log.run(groups.term(stream, "g", "offsets", [offset], reason=""))
                finished.add(offset)
                del out[offset]
                if key := key_of[offset]:
                    waiting[key].remove(offset)
        state = stands(log, stream)
        assert (state.ack_pending, state.lag) == (len(out), last - len(finished) - len(out))
    settings = Settings(ordered_by_key=True, max_deliver=-1, max_ack_pending=1000)
    log.run(groups.group_publish(stream, "g", settings))
    log.run(groups.nack(stream, "g", "offsets", sorted(out)))
    while got := take(log, stream):
        done(log, stream, *got)
        finished.update(got)
    assert finished == set(range(1, last + 1))
    assert not log.client.execute_command("EXISTS", keys.turns(stream, "g"), keys.parked(stream, "g"))
    log.run(config.stream_remove(stream, workspace_id=1, name="x"))


def dies(log: Log, stream: str, offset: int) -> None:
    assert log.run(groups.term(stream, "g", "offsets", [offset], reason="")) == [offset]


def test_replayed_dead_letters_that_wait_for_their_key_need_no_room(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered(max_ack_pending=2)
    publish("a", "a", "a", "b", "b", "b")
    for offset in (1, 2):
        take(log, stream)
        dies(log, stream, offset)
    assert 3 in take(log, stream)
    assert log.run(dead_letters.replay(stream, "g", [1, 2])) == 2
    done(log, stream, 3)
    assert take(log, stream) == [1]
    done(log, stream, 1)
    assert take(log, stream) == [2]


def test_a_dead_letter_that_dies_and_is_replayed_before_its_turn_has_one_turn(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    ordered()
    publish("a", "a")
    take(log, stream)
    dies(log, stream, 1)
    assert take(log, stream) == [2]
    for _ in range(2):
        assert log.run(dead_letters.replay(stream, "g", [1])) == 1
        dies(log, stream, 1)
    log.run(dead_letters.replay(stream, "g", [1]))
    assert take(log, stream) == []
    done(log, stream, 2)
    assert take(log, stream) == [1]
    done(log, stream, 1)
    publish("a")
    assert take(log, stream) == [3]


def test_a_new_filter_reaches_what_waits_for_its_key(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    publish(*["a"] * 5, *["z"] * 3)
    ordered()
    assert take(log, stream) == [1, 6]
    ordered(filter_keys=("z",))
    state = log.run(standing.inspect(stream, "g"))
    assert (state.lag, state.lost) == (2, 0)
    log.run(groups.ack(stream, "g", "offsets", [1, 6]))
    assert take(log, stream) == [7]
    log.run(groups.ack(stream, "g", "offsets", [7]))
    assert take(log, stream) == [8]


def test_a_new_filter_holds_for_what_waited_for_its_key_and_comes_back(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    publish(*["a"] * 3, *["z"] * 2)
    ordered()
    assert take(log, stream) == [1, 4]
    _, number = log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
    ordered(filter_keys=("z",))
    log.run(undo.undo(stream, number or 0))
    state = log.run(standing.inspect(stream, "g"))
    assert (state.lag, state.ack_pending, state.lost) == (1, 2, 0)
    log.run(groups.ack(stream, "g", "offsets", [1, 4]))
    assert take(log, stream) == [5]


def test_an_answer_that_brings_the_next_turn_wakes_who_waits(
    log: Log, stream: str, ordered: Ordered, publish: Callable[..., None]
) -> None:
    publish("a", "a")
    ordered()
    assert take(log, stream) == [1]
    with log.client.pubsub() as heard:
        heard.subscribe(keys.wake(stream))
        until(lambda: heard.get_message(timeout=1.0), what="the subscription")
        log.run(groups.ack(stream, "g", "offsets", [1]))
        told = until(lambda: heard.get_message(timeout=1.0), what="the next turn")
    assert told["data"] == b"room"
