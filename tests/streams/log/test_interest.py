"""Kept by interest: a message goes once every group is done with it, and not before."""

import random
from typing import Any

import pytest

from streams.log import config, groups, standing, stats, trim
from streams.log.append import append
from streams.log.client import Log, Script
from streams.log.entries import position
from streams.log.groups import Settings
from streams.log.preview import preview
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import fill, message, offsets


def group(log: Log, stream: str, name: str, **settings: object) -> None:
    log.run(groups.group_publish(stream, name, Settings(**settings)))  # type: ignore[arg-type]


def take(log: Log, stream: str, name: str, limit: int = 100) -> list[int]:
    fetched = log.run(groups.fetch(stream, name, limit=limit))
    return [position(each.entry)[0] for each in fetched.deliveries]


def left(log: Log, stream: str) -> list[int]:
    log.run(trim.release(stream))
    return offsets(log, stream)


def test_what_every_group_acknowledged_goes_also_out_of_order(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(retention="interest")
    group(log, stream, "a")
    group(log, stream, "b")
    fill(log, stream, 5)
    for name in ("a", "b"):
        assert take(log, stream, name) == [1, 2, 3, 4, 5]
    log.run(groups.ack(stream, "a", "offsets", [2, 3, 5]))
    assert left(log, stream) == [1, 2, 3, 4, 5]
    log.run(groups.ack(stream, "b", "offsets", [1, 3, 5]))
    assert left(log, stream) == [1, 2, 4]
    log.run(groups.ack(stream, "b", "offsets", [2]))
    assert left(log, stream) == [1, 4]
    state = log.run(stats.inspect(stream))
    assert (state.messages, state.bytes) == (2, 2)


def test_without_a_group_nothing_goes(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(retention="interest")
    fill(log, stream, 3)
    assert left(log, stream) == [1, 2, 3]


def test_what_is_terminated_filtered_out_or_given_without_ack_is_done(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(retention="interest")
    group(log, stream, "some", filter_keys=("a.*",))
    log.run(append(stream, [message(1, key="a.x"), message(2, key="b"), message(3), message(4, key="a.y")]))
    assert left(log, stream) == [1, 4]
    assert take(log, stream, "some") == [1, 4]
    log.run(groups.term(stream, "some", "offsets", [1], reason="no"))
    assert left(log, stream) == [4]
    group(log, stream, "none", ack="none")
    log.run(groups.ack(stream, "some", "offsets", [4]))
    assert left(log, stream) == [4]
    assert take(log, stream, "none") == [4]
    assert left(log, stream) == []


def test_removing_the_last_group_that_holds_a_message_lets_it_go(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(retention="interest")
    group(log, stream, "a")
    group(log, stream, "b")
    fill(log, stream, 3)
    take(log, stream, "a")
    log.run(groups.ack(stream, "a", "up_to", [2]))
    assert left(log, stream) == [1, 2, 3]
    log.run(groups.group_remove(stream, "b"))
    assert left(log, stream) == [3]


def test_messages_that_wait_for_the_turn_of_their_key_stay(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(retention="interest")
    group(log, stream, "a", ordered_by_key=True)
    log.run(append(stream, [message(n, key="k") for n in range(1, 5)]))
    assert take(log, stream, "a") == [1]
    log.run(groups.ack(stream, "a", "offsets", [1]))
    assert left(log, stream) == [2, 3, 4]
    assert take(log, stream, "a") == [2]


def test_a_hard_limit_still_holds_and_what_it_took_unread_is_counted(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(retention="interest", max_messages=3)
    group(log, stream, "a")
    fill(log, stream, 10)
    assert left(log, stream) == [8, 9, 10]
    take(log, stream, "a")
    assert log.run(standing.inspect(stream, "a")).lost == 7


def test_the_history_gets_it_first(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(retention="interest", archive=True)
    group(log, stream, "a", ack="none")
    fill(log, stream, 3)
    take(log, stream, "a")
    assert left(log, stream) == []
    assert log.run(trim.drop(stream)).entries == 0
    log.run(config.archived_set(stream, 3))
    assert log.run(trim.drop(stream)).entries == 3


@pytest.mark.long
def test_no_sequence_of_answers_tells_it_from_a_model(log: Log, make_stream: MakeStream) -> None:
    chance = random.Random(11)
    for _ in range(25):
        stream = make_stream(retention="interest", archive=chance.random() < 0.3)
        filters = {"a": None, "b": "x", "c": None}
        want: dict[str, set[int]] = {}
        keys_: dict[int, str] = {}
        for name, key in filters.items():
            group(log, stream, name, filter_keys=(key,) if key else ())
            want[name] = set()
        flying: dict[str, set[int]] = {name: set() for name in filters}
        for _ in range(30):
            name = chance.choice(list(want))
            match chance.randint(0, 3):
                case 0:
                    first = len(keys_) + 1
                    new = {n: chance.choice("xy") for n in range(first, first + chance.randint(1, 5))}
                    log.run(append(stream, [message(n, key=key) for n, key in new.items()]))
                    keys_ |= new
                    for each in want:
                        want[each] |= {n for n, key in new.items() if filters[each] in (None, key)}
                case 1:
                    flying[name] |= set(take(log, stream, name, chance.randint(1, 6)))
                case _:
                    done = set(chance.sample(sorted(flying[name]), len(flying[name]) // 2))
                    log.run(groups.ack(stream, name, "offsets", sorted(done)))
                    flying[name] -= done
                    want[name] -= done
            assert left(log, stream) == sorted(set().union(*want.values()) & keys_.keys())


class Counting(Log):
    """Counts the calls that look for what no group wants any more."""

    calls = 0

    def _send(self, command: Any) -> Any:
        self.calls += isinstance(command, Script) and command.name == "release"
        return super()._send(command)


def test_what_stays_is_looked_at_once_a_turn_however_much_is_new(
    redis_url: str, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(retention="interest", archive=False)
    group(log, stream, "g", filter_keys=("a",))
    pages, counting = 100, Counting(redis_url)
    for first in range(0, pages * trim.PAGE, 1000):
        log.run(append(stream, [message(n, key="ab"[n % 2]) for n in range(first, first + 1000)]))
    removed, _ = counting.run(trim.release(stream))
    assert (removed.messages, counting.calls) == (pages * trim.PAGE // 2, pages + 1)
    again, _ = counting.run(trim.release(stream))
    counting.close()
    assert (again.messages, counting.calls) == (0, pages + 1 + pages // 2 + 1)


def test_a_preview_of_interest_says_what_then_goes(log: Log, stream: str, publish_settings: Publish) -> None:
    group(log, stream, "a")
    group(log, stream, "b", filter_keys=("x",))
    log.run(append(stream, [message(n, key="xy"[n % 2]) for n in range(1, 11)]))
    log.run(groups.ack(stream, "a", "offsets", take(log, stream, "a")[:7]))
    log.run(groups.ack(stream, "b", "offsets", take(log, stream, "b")[:2]))
    told = log.run(preview(stream, {"retention": "interest"}, {"a": (), "b": ("x",)}))
    publish_settings(stream, retention="interest")
    assert log.run(trim.release(stream))[0] == trim.Removed(told.messages, told.bytes)
    assert (told.unread, told.first_offset) == ({"a": 0, "b": 0}, left(log, stream)[0])
