"""The checker is checked: a clean history has no fault, and of each planted one the right count tells."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from okmq.prove.checking import COUNTS, check
from okmq.prove.history import (
    Commit,
    Fetch,
    GroupAtRest,
    History,
    Operation,
    Publish,
    Read,
    Remains,
    Seen,
    Settle,
    Taken,
    in_flight,
)

STREAM, GROUP = "s", "g"
ACK_WAIT_S = 2.0
Kind = TypeVar("Kind", bound=Operation)


def message(offset: int) -> Seen:
    content = (f"2026-01-01T00:00:{offset:02d}.000Z", offset)
    return Seen(offset=offset, id=f"m{offset}", content=content, key="k" if offset in {2, 4} else "")


def taken(offset: int, number: int = 1) -> Taken:
    seen = message(offset)
    return Taken(offset=offset, id=seen.id, content=seen.content, key=seen.key, number=number)


def publish(began: float, *offsets: int) -> Publish:
    return Publish(
        began=began,
        ended=began + 0.5,
        outcome="ok",
        stream=STREAM,
        ids=tuple(f"m{offset}" for offset in offsets),
        bodies=offsets,
        offsets=offsets,
        known=(False,) * len(offsets),
        durability="fsync",
    )


def fetch(began: float, member: str, *deliveries: Taken) -> Fetch:
    return Fetch(
        began=began,
        ended=began + 0.1,
        outcome="ok",
        stream=STREAM,
        group=GROUP,
        member=member,
        taken=deliveries,
    )


def ack(began: float, *offsets: int, number: int = 1) -> Settle:
    about = tuple((offset, number) for offset in offsets)
    return Settle(
        began=began,
        ended=began + 0.1,
        outcome="ok",
        stream=STREAM,
        group=GROUP,
        kind="ack",
        about=about,
    )


def read(began: float, *offsets: int) -> Read:
    return Read(
        began=began,
        ended=began + 0.1,
        outcome="ok",
        stream=STREAM,
        start=offsets[0],
        limit=len(offsets),
        messages=tuple(map(message, offsets)),
    )


def commit(began: float, offset: int, previous: int) -> Commit:
    return Commit(
        began=began, ended=began + 0.1, outcome="ok", stream=STREAM, offset=offset, previous=previous
    )


def clean() -> History:
    """Six messages in three batches, of which one was sent twice, read, delivered, committed, all of it as promised."""
    lost_answer = replace(publish(1, 3, 4), outcome="info", offsets=(), known=())
    again = replace(publish(2, 3, 4), known=(True, True))
    refused = replace(publish(2.6, 90), outcome="fail", offsets=(), known=(), code="message_too_large")
    history = History(ack_wait_s=ACK_WAIT_S, by_key=frozenset({GROUP}))
    history.operations = [
        *(publish(0, 1, 2), lost_answer, again, refused, publish(3, 5, 6)),
        *(read(4, 1, 2, 3), read(5, 4, 5, 6)),
        fetch(4, "a", taken(1), taken(2), taken(3)),
        ack(4.2, 1, 2),
        fetch(7, "b", taken(3, 2), taken(4), taken(5), taken(6)),
        replace(ack(7.2, 3, 4), kind="nack", about=((3, 2), (4, 1))),
        fetch(7.4, "a", taken(3, 3), taken(4, 2)),
        *(ack(7.6, 3, number=3), ack(7.6, 4, number=2), ack(7.6, 5, 6)),
        *(commit(5, 2, 0), commit(6, 4, 2)),
    ]
    history.remains[STREAM] = Remains(
        messages=tuple(map(message, range(1, 7))),
        offset=6,
        count=6,
        committed=4,
        groups=(GroupAtRest(name=GROUP, lag=0, pending=0),),
    )
    return history


def keep(history: History, *offsets: int) -> None:
    """Leave only these in the stream, and let it count them rightly."""
    left = tuple(each for each in history.remains[STREAM].messages if each.offset in offsets)
    history.remains[STREAM] = replace(
        history.remains[STREAM], messages=left, offset=max(offsets), count=len(left)
    )


def change(history: History, kind: type[Kind], number: int, make: Callable[[Kind], Operation]) -> None:
    """Put another in the place of the n-th operation of a kind."""
    places = [at for at, each in enumerate(history.operations) if isinstance(each, kind)]
    found = history.operations[places[number]]
    assert isinstance(found, kind)
    history.operations[places[number]] = make(found)


def end_lost(history: History) -> None:
    keep(history, 1, 2, 3, 4)


def middle_lost(history: History) -> None:
    keep(history, 1, 2, 5, 6)


def stored_twice(history: History) -> None:
    change(history, Publish, 2, lambda each: replace(each, offsets=(7, 8), known=(False, False)))
    again = tuple(
        replace(message(offset + 4), id=f"m{offset}", content=(f"{offset}", 0)) for offset in (3, 4)
    )
    history.remains[STREAM] = replace(
        history.remains[STREAM],
        messages=(*history.remains[STREAM].messages, *again),
        offset=8,
        count=8,
    )


def older_above_newer(history: History) -> None:
    change(history, Publish, 4, lambda each: replace(each, began=-2.0, ended=-1.0))


def time_backwards(history: History) -> None:
    change(
        history,
        Read,
        1,
        lambda each: replace(
            each, messages=tuple(replace(m, content=(f"{9 - m.offset}", m.offset)) for m in each.messages)
        ),
    )


def half_a_batch(history: History) -> None:
    change(history, Publish, 4, lambda each: replace(each, outcome="info", offsets=(), known=()))
    keep(history, 1, 2, 3, 4, 5)


def scattered_batch(history: History) -> None:
    change(history, Publish, 0, lambda each: replace(each, offsets=(1, 3)))


def offset_given_again(history: History) -> None:
    change(
        history,
        Fetch,
        0,
        lambda each: replace(each, taken=(taken(1), replace(taken(2), id="m9"), taken(3))),
    )


def body_changed(history: History) -> None:
    changed = tuple(
        replace(each, content=(each.content[0], 77)) if each.offset == 6 else each
        for each in history.remains[STREAM].messages
    )
    history.remains[STREAM] = replace(history.remains[STREAM], messages=changed)


def refused_is_read(history: History) -> None:
    change(history, Publish, 3, lambda each: replace(each, ids=("m6",)))
    change(
        history,
        Publish,
        4,
        lambda each: replace(each, ids=("m5",), bodies=(5,), offsets=(5,), known=(False,)),
    )


def acknowledged_comes_back(history: History) -> None:
    history.note(fetch(20, "c", taken(1, 2)))


def two_hold_one(history: History) -> None:
    change(history, Fetch, 1, lambda each: replace(each, began=5.0, ended=5.1))


def same_delivery_twice(history: History) -> None:
    change(history, Fetch, 1, lambda each: replace(each, taken=(taken(3, 1), *each.taken[1:])))


def commit_goes_back(history: History) -> None:
    change(history, Commit, 1, lambda each: replace(each, previous=1))


def commit_is_forgotten(history: History) -> None:
    history.remains[STREAM] = replace(history.remains[STREAM], committed=2)


def read_skips(history: History) -> None:
    change(history, Read, 0, lambda each: replace(each, messages=(message(1), message(3))))


def read_is_stale(history: History) -> None:
    change(history, Read, 1, lambda each: replace(each, messages=()))


def from_nowhere(history: History) -> None:
    stranger = replace(message(7), id="stranger")
    history.remains[STREAM] = replace(
        history.remains[STREAM],
        messages=(*history.remains[STREAM].messages, stranger),
        offset=7,
        count=7,
    )


def counted_wrongly(history: History) -> None:
    history.remains[STREAM] = replace(history.remains[STREAM], count=7)


def group_is_left_without(history: History) -> None:
    change(history, Fetch, 1, lambda each: replace(each, taken=each.taken[:-1]))
    change(history, Settle, 4, lambda each: replace(each, about=((5, 1),)))


def old_lease_is_taken(history: History) -> None:
    history.note(ack(7.8, 3, number=1))


def first_is_called_known(history: History) -> None:
    change(history, Publish, 4, lambda each: replace(each, known=(False, True)))


def refused_is_called_known(history: History) -> None:
    history.note(replace(publish(2.8, 5, 6), outcome="fail", offsets=(), known=()))
    change(history, Publish, 4, lambda each: replace(each, known=(True, True)))


def read_begins_below(history: History) -> None:
    change(history, Read, 1, lambda each: replace(each, start=5))


def tail_is_stale(history: History) -> None:
    change(history, Read, 1, lambda each: replace(each, messages=each.messages[:2], limit=9))


def back_after_a_refused_nack(history: History) -> None:
    nack = next(
        at for at, each in enumerate(history.operations) if isinstance(each, Settle) and each.kind == "nack"
    )
    history.operations[nack] = replace(history.operations[nack], outcome="fail")


def back_before_its_nack(history: History) -> None:
    nack = next(
        at for at, each in enumerate(history.operations) if isinstance(each, Settle) and each.kind == "nack"
    )
    history.operations[nack] = replace(history.operations[nack], began=7.55, ended=7.56)


def nobody_looks_at_the_end(history: History) -> None:
    history.remains.clear()


def key_out_of_turn(history: History) -> None:
    change(history, Settle, 0, lambda each: replace(each, about=((1, 1),)))
    history.note(ack(8, 2))


PLANTED: list[tuple[Callable[[History], None], str]] = [
    (end_lost, "lost"),
    (middle_lost, "lost"),
    (group_is_left_without, "lost"),
    (stored_twice, "doubled"),
    (older_above_newer, "reordered"),
    (time_backwards, "reordered"),
    (half_a_batch, "torn batches"),
    (scattered_batch, "torn batches"),
    (offset_given_again, "one offset, two contents"),
    (body_changed, "one offset, two contents"),
    (refused_is_read, "refused, yet read"),
    (acknowledged_comes_back, "acknowledged, yet came back"),
    (two_hold_one, "overlapping leases"),
    (same_delivery_twice, "overlapping leases"),
    (commit_goes_back, "commits backwards"),
    (commit_is_forgotten, "commits backwards"),
    (read_skips, "skipped by a read"),
    (read_is_stale, "skipped by a read"),
    (from_nowhere, "never sent"),
    (counted_wrongly, "miscounted"),
    (old_lease_is_taken, "overlapping leases"),
    (first_is_called_known, "doubled"),
    (refused_is_called_known, "doubled"),
    (read_begins_below, "skipped by a read"),
    (tail_is_stale, "skipped by a read"),
    (back_after_a_refused_nack, "overlapping leases"),
    (back_before_its_nack, "overlapping leases"),
    (nobody_looks_at_the_end, "lost"),
    (key_out_of_turn, "reordered"),
]


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


def test_operations_are_in_flight_from_their_sending_to_their_answer() -> None:
    operations = clean().operations
    assert in_flight(operations, [(100.0, 101.0)]) == 0
    assert in_flight(operations, [(0.2, 0.3), (0.4, 1.2)]) == 2
