"""What would go by interest were a group done with more than it is: told as the stream then loses it."""

import random
from collections.abc import Mapping, Sequence

import pytest

from streams.log import groups, stats
from streams.log.append import append
from streams.log.client import Log
from streams.log.preview import Preview, Supposed, preview
from tests.streams.log.conftest import MakeStream
from tests.streams.log.messages import fill, message, offsets
from tests.streams.log.test_interest import group, left, take

INTEREST = {"retention": "interest"}


def told(log: Log, stream: str, of: Mapping[str, Sequence[str]], supposed: Supposed) -> Preview:
    found = log.run(preview(stream, INTEREST, of, supposed=supposed))
    assert found.is_complete
    return found


def goes(found: Preview) -> tuple[int, int]:
    return found.messages - found.already, found.bytes - found.already_bytes


def test_a_group_that_would_be_moved_on_lets_go_of_what_only_it_wants(
    log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(retention="interest")
    group(log, stream, "a")
    group(log, stream, "b")
    fill(log, stream, 10)
    take(log, stream, "b", limit=6)
    log.run(groups.ack(stream, "b", "offsets", [1, 2, 3, 5]))
    assert goes(told(log, stream, {"a": [], "b": []}, Supposed(group="a", delivered=10))) == (4, 4)
    assert goes(told(log, stream, {"a": [], "b": []}, Supposed(group="a", delivered=2))) == (2, 2)
    assert goes(told(log, stream, {"a": [], "b": []}, Supposed(group="b", delivered=10))) == (0, 0)
    assert offsets(log, stream) == [*range(1, 11)], "to ask changes nothing"
    log.run(groups.seek(stream, "a", next_offset=11))
    assert left(log, stream) == [4, 6, 7, 8, 9, 10]


def test_what_goes_already_is_not_of_the_move(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(retention="interest")
    group(log, stream, "a")
    fill(log, stream, 10)
    take(log, stream, "a", limit=5)
    log.run(groups.ack(stream, "a", "up_to", [3]))
    found = told(log, stream, {"a": []}, Supposed(group="a", delivered=7))
    assert (found.messages, found.already, goes(found)) == (7, 3, (4, 4))
    found = told(log, stream, {"a": []}, Supposed(group="a", answered=(5,)))
    assert (found.messages, found.already) == (4, 3)


def test_a_move_back_lets_go_of_what_is_in_flight_before_it(log: Log, make_stream: MakeStream) -> None:
    stream = make_stream(retention="interest")
    group(log, stream, "a")
    group(log, stream, "b")
    fill(log, stream, 10)
    take(log, stream, "a")
    take(log, stream, "b")
    log.run(groups.ack(stream, "b", "up_to", [10]))
    log.run(groups.ack(stream, "a", "offsets", [*range(3, 11)]))
    assert goes(told(log, stream, {"a": [], "b": []}, Supposed(group="a", delivered=1))) == (1, 1)
    log.run(groups.seek(stream, "a", next_offset=2))
    assert 1 not in left(log, stream)


@pytest.mark.parametrize("filters", [[], ["k.>"]], ids=["arithmetic", "counted"])
def test_of_more_in_flight_than_are_looked_at_alone(
    log: Log, make_stream: MakeStream, filters: list[str]
) -> None:
    stream = make_stream(retention="interest")
    group(log, stream, "a", filter_keys=tuple(filters), max_ack_pending=10_000)
    for first in range(0, 3000, 1000):
        log.run(append(stream, [message(first + n, key=f"k.{n % 7}") for n in range(1000)]))
    while take(log, stream, "a", limit=1000):
        pass
    chosen = tuple(range(1, 2901))
    assert goes(told(log, stream, {"a": filters}, Supposed(group="a", answered=chosen)))[0] == 2900
    assert goes(told(log, stream, {"a": filters}, Supposed(group="a", delivered=2500)))[0] == 2500


@pytest.mark.parametrize("seed", range(12))
def test_what_is_told_is_what_then_goes(log: Log, make_stream: MakeStream, seed: int) -> None:
    chance = random.Random(seed)
    stream = make_stream(retention="interest")
    of: dict[str, list[str]] = {}
    for name in "abc"[: chance.randint(1, 3)]:
        of[name] = ["k.1", "k.2"] if chance.random() < 0.4 else []
        group(log, stream, name, filter_keys=tuple(of[name]), ordered_by_key=chance.random() < 0.3)
    log.run(append(stream, [message(n, key=f"k.{chance.randint(0, 3)}") for n in range(60)]))
    for name in of:
        taken = take(log, stream, name, limit=chance.randint(0, 60))
        done = [offset for offset in taken if chance.random() < 0.5]
        if done:
            log.run(groups.ack(stream, name, "offsets", done))
    name = chance.choice([*of])
    out = take(log, stream, name, limit=10)
    if chance.random() < 0.5 and out:
        chosen = tuple(sorted(chance.sample(out, chance.randint(1, len(out)))))
        found = told(log, stream, of, Supposed(group=name, answered=chosen))
        left(log, stream)
        before = log.run(stats.inspect(stream))
        log.run(groups.ack(stream, name, "offsets", list(chosen)))
    else:
        to = chance.randint(0, 60)
        found = told(log, stream, of, Supposed(group=name, delivered=to))
        left(log, stream)
        before = log.run(stats.inspect(stream))
        log.run(groups.seek(stream, name, next_offset=to + 1))
    left(log, stream)
    after = log.run(stats.inspect(stream))
    assert goes(found) == (before.messages - after.messages, before.bytes - after.bytes)
