"""Answers to many deliveries at once, and answers that name whose deliveries they mean."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from streams.log import dead_letters, entries, errors, groups, pending, standing
from streams.log.append import append
from streams.log.client import Log, Op
from streams.log.groups import Delivery, Settings
from tests.streams.log.beside import beside
from tests.streams.log.messages import fill, message

MANY = 2500
VERBS = ["ack", "nack", "working", "term"]


def group(log: Log, stream: str, **settings: Any) -> None:
    given: dict[str, Any] = {"max_ack_pending": 10_000, "max_deliver": -1, **settings}
    log.run(groups.group_publish(stream, "g", Settings(**given)))


def fetch(log: Log, stream: str, consumer: str = "a", *, limit: int = MANY) -> list[Delivery]:
    return log.run(groups.fetch(stream, "g", limit=limit, consumer=consumer)).deliveries


def offsets(deliveries: Sequence[Delivery]) -> list[int]:
    return [entries.position(each.entry)[0] for each in deliveries]


def answer(verb: str, stream: str, named: str, values: Sequence[Any], **more: Any) -> Any:
    """The operation of an answer."""
    if verb == "term":
        more["reason"] = "no"
    return getattr(groups, verb)(stream, "g", named, values, **more)


def count(told: int | list[int]) -> int:
    return told if isinstance(told, int) else len(told)


def out(log: Log, stream: str) -> int:
    return log.run(standing.inspect(stream, "g")).ack_pending


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("by_lease", [False, True])
def test_an_answer_to_thousands_is_about_all_of_them(
    log: Log, stream: str, verb: str, by_lease: bool
) -> None:
    fill(log, stream, MANY)
    group(log, stream)
    had = fetch(log, stream)
    chosen = had[::2]
    named, values = ("leases", [each.lease for each in chosen]) if by_lease else ("offsets", offsets(chosen))
    told = log.run(answer(verb, stream, named, values))
    assert count(told) == len(chosen)
    if verb == "term":
        assert (
            told
            == offsets(chosen)
            == [each.offset for each in log.run(dead_letters.page(stream, "g", limit=MANY))]
        )
    assert out(log, stream) == (MANY if verb in ("nack", "working") else MANY - len(chosen))
    if verb == "nack":
        assert sorted(offsets(fetch(log, stream, limit=5000))) == offsets(chosen)


@pytest.mark.parametrize("verb", VERBS)
def test_one_lease_that_passed_on_refuses_thousands_before_anything_is_done(
    log: Log, stream: str, verb: str
) -> None:
    fill(log, stream, MANY)
    group(log, stream)
    leases = [each.lease for each in fetch(log, stream)]
    log.run(groups.nack(stream, "g", "offsets", [MANY - 1]))
    assert offsets(fetch(log, stream, "b")) == [MANY - 1]
    with pytest.raises(errors.LeaseLost):
        log.run(answer(verb, stream, "leases", leases))
    assert out(log, stream) == MANY
    assert fetch(log, stream) == []


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("many", [3, MANY])
def test_a_lease_of_before_a_seek_is_lost_once_its_message_is_out_again(
    log: Log, stream: str, verb: str, many: int
) -> None:
    fill(log, stream, many)
    group(log, stream)
    leases = [each.lease for each in fetch(log, stream)]
    log.run(groups.seek(stream, "g", next_offset=1))
    assert count(log.run(answer(verb, stream, "leases", leases))) == 0  # nobody has any of them
    assert offsets(fetch(log, stream, "b", limit=2)) == [1, 2]
    with pytest.raises(errors.LeaseLost):
        log.run(answer(verb, stream, "leases", leases))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 2


def test_a_lease_that_passes_on_between_two_slices_refuses_what_is_left(log: Log, stream: str) -> None:
    fill(log, stream, MANY)
    group(log, stream)
    leases = [each.lease for each in fetch(log, stream)]

    def passes_on() -> None:
        log.run(groups.nack(stream, "g", "offsets", [MANY - 1]))
        assert offsets(fetch(log, stream, "b")) == [MANY - 1]

    op = groups.ack(stream, "g", "leases", leases)
    with pytest.raises(errors.LeaseLost):
        step_through(log, op, before="ack", act=passes_on)
    assert out(log, stream) == MANY - 2000
    assert log.run(groups.ack(stream, "g", "leases", leases[:-2])) == MANY - 2000 - 2, "again is no harm"
    assert [each.consumer for each in log.run(pending.page(stream, "g"))[0]] == ["b", "a"]


def step_through(log: Log, op: Generator[Any, Any, Any], *, before: str, act: Callable[[], None]) -> Any:
    """Run an operation, and do something before the first call of a script."""
    command, acted = next(op), False
    try:
        while True:
            if not acted and getattr(command, "name", "") == before:
                act()
                acted = True
            try:
                reply = log.run(just(command))
            except errors.LogError as error:
                command = op.throw(error)
            else:
                command = op.send(reply)
    except StopIteration as done:
        return done.value


def just(command: Any) -> Generator[Any, Any, Any]:
    return (yield command)


def test_large_bodies_are_ended_some_at_a_time(log: Log, stream: str) -> None:
    body = b'"' + b"x" * 1_000_000 + b'"'
    for n in range(1, 12):
        log.run(append(stream, [message(n, body=body)]))
    group(log, stream)
    leases = [each.lease for each in fetch(log, stream)]
    assert log.run(groups.term(stream, "g", "leases", leases, reason="no")) == list(range(1, 12))
    assert (out(log, stream), log.run(standing.inspect(stream, "g")).dead_letters) == (0, 11)


def test_neighbours_of_many_fetches_are_settled(log: Log, stream: str) -> None:
    fill(log, stream, 700)
    group(log, stream)
    for _ in range(650):
        fetch(log, stream, limit=1)
    log.run(groups.nack(stream, "g", "offsets", [3, 400], delay_ms=60_000))
    assert log.run(groups.ack(stream, "g", "offsets", range(1, 701))) == 650
    assert out(log, stream) == 0


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("passed", [range(2, 4), range(1, 101)], ids=["some", "neighbours"])
def test_by_offset_and_consumer_only_what_it_holds_is_answered(
    log: Log, stream: str, verb: str, passed: range
) -> None:
    fill(log, stream, 100)
    group(log, stream)
    fetch(log, stream, "a", limit=100)
    log.run(groups.nack(stream, "g", "offsets", list(passed)))
    assert offsets(fetch(log, stream, "b", limit=100)) == [*passed]
    every = list(range(1, 101))
    assert count(log.run(answer(verb, stream, "offsets", every, consumer="a"))) == 100 - len(passed)
    held = [each for each in log.run(pending.page(stream, "g", limit=100))[0] if each.consumer == "b"]
    assert [each.offset for each in held] == [*passed]
    assert all(each.due_in_ms for each in held)
    assert count(log.run(answer(verb, stream, "offsets", every, consumer="b"))) == len(passed)


def test_runs_of_others_are_left_whole_by_an_answer_with_a_consumer(log: Log, stream: str) -> None:
    fill(log, stream, 300)
    group(log, stream)
    for consumer in ("a", "b", "a"):
        fetch(log, stream, consumer, limit=100)
    assert log.run(groups.ack(stream, "g", "offsets", range(1, 301), consumer="a")) == 200
    assert {each.consumer for each in log.run(pending.page(stream, "g", limit=300))[0]} == {"b"}
    assert log.run(groups.ack(stream, "g", "offsets", range(1, 301), consumer="c")) == 0
    assert log.run(groups.ack(stream, "g", "offsets", range(1, 301))) == 100


def test_what_is_with_nobody_is_answered_by_no_consumer(log: Log, stream: str) -> None:
    fill(log, stream, 3)
    group(log, stream)
    fetch(log, stream, "a")
    log.run(groups.term(stream, "g", "offsets", [1], reason="bad"))
    log.run(dead_letters.replay(stream, "g", [1]))
    assert log.run(groups.term(stream, "g", "offsets", [1], reason="bad", consumer="a")) == []
    assert log.run(groups.term(stream, "g", "offsets", [1], reason="bad", consumer="")) == []
    assert log.run(groups.term(stream, "g", "offsets", [1], reason="bad")) == [1]


@pytest.mark.parametrize("named", [[1, 2, 3, 4], [4, 2]])
def test_under_ack_all_what_a_consumer_holds_covers_what_is_before_it(
    log: Log, stream: str, named: list[int]
) -> None:
    fill(log, stream, 6)
    group(log, stream, ack="all")
    fetch(log, stream, "a", limit=2)
    fetch(log, stream, "b", limit=4)
    assert log.run(groups.ack(stream, "g", "offsets", named, consumer="c")) == 0
    assert log.run(groups.ack(stream, "g", "offsets", named, consumer="a")) == 2
    assert log.run(groups.ack(stream, "g", "offsets", named, consumer="b")) == 2
    assert out(log, stream) == 2


def test_under_ack_all_the_highest_of_very_many_neighbours_that_a_consumer_holds_counts(
    log: Log, stream: str
) -> None:
    fill(log, stream, MANY)
    group(log, stream, ack="all")
    fetch(log, stream, "a", limit=100)
    fetch(log, stream, "b", limit=MANY)
    every = range(1, MANY + 1)
    assert log.run(groups.ack(stream, "g", "offsets", every, consumer="c")) == 0
    assert log.run(groups.ack(stream, "g", "offsets", every, consumer="a")) == 100
    assert log.run(groups.ack(stream, "g", "offsets", every, consumer="b")) == MANY - 100


@pytest.mark.parametrize(
    ("ends", "offsets_told"),
    [
        (lambda stream: groups.term(stream, "g", "offsets", range(1, 251), reason="no"), True),
        (lambda stream: dead_letters.replay(stream, "g", range(1, 251)), False),
        (lambda stream: dead_letters.replay_all(stream, "g"), False),
    ],
    ids=["term", "replay", "replay all"],
)
def test_what_ends_in_the_middle_tells_what_was_done(
    log: Log, stream: str, ends: Callable[[str], Op[object]], offsets_told: bool
) -> None:
    group(log, stream)
    fill(log, stream, 250)
    fetch(log, stream)
    if not offsets_told:
        log.run(groups.term(stream, "g", "offsets", range(1, 251), reason="no"))

    def remove(call: int) -> None:
        if call == 3:
            log.run(groups.group_remove(stream, "g"))

    with pytest.raises(errors.DoneInPart) as ended:
        log.run(beside(ends(stream), {"term", "dead_replay"}, remove))
    assert isinstance(ended.value.why, errors.GroupNotFound)
    assert ended.value.messages == 200
    assert list(ended.value.offsets) == (list(range(1, 201)) if offsets_told else [])
