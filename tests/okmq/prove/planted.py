"""The faults that are planted in a clean history, each with the count that has to tell of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from okmq.prove.history import Commit, Fetch, History, Publish, Read, Seen, Settle, Taken
from tests.okmq.prove.clean import STREAM, ack, change, commit, end_with, fetch, keep, message, publish, taken

Held = TypeVar("Held", bound=Seen)


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
    end_with(history, 6, lambda each: replace(each, content=(each.content[0], 77)))


def key_changed_in_a_look(history: History) -> None:
    change(history, Read, 1, lambda each: replace(each, messages=(other_key(message(4)), *each.messages[1:])))


def key_changed_everywhere(history: History) -> None:
    """Nobody has seen it with the key that it was sent with."""
    change(history, Read, 1, lambda each: replace(each, messages=(other_key(message(4)), *each.messages[1:])))
    for number, place in ((1, 1), (2, 1)):
        change(history, Fetch, number, lambda each, at=place: swapped(each, at, other_key))  # type: ignore[misc]
    end_with(history, 4, other_key)


def headers_changed(history: History) -> None:
    end_with(history, 4, lambda each: replace(each, headers=8))


def headers_went(history: History) -> None:
    change(history, Fetch, 0, lambda each: swapped(each, 0, lambda delivery: replace(delivery, headers=0)))


def other_key(seen: Held) -> Held:
    return replace(seen, key="l")


def swapped(fetched: Fetch, at: int, make: Callable[[Taken], Taken]) -> Fetch:
    taken = list(fetched.taken)
    taken[at] = make(taken[at])
    return replace(fetched, taken=tuple(taken))


def refused_is_read(history: History) -> None:
    change(history, Publish, 3, lambda each: replace(each, ids=("m6",)))
    change(
        history,
        Publish,
        4,
        lambda each: replace(
            each, ids=("m5",), bodies=(5,), keys=("",), headers=(0,), offsets=(5,), known=(False,)
        ),
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


def commit_jumps_ahead(history: History) -> None:
    change(history, Commit, 1, lambda each: replace(each, previous=5))


def commit_is_ahead_in_the_end(history: History) -> None:
    history.remains[STREAM] = replace(history.remains[STREAM], committed=6)


def commit_is_of_a_refused_one(history: History) -> None:
    history.note(replace(commit(5.2, 3, 0), outcome="fail", previous=0))
    change(history, Commit, 1, lambda each: replace(each, previous=3))


def commit_is_ahead_of_its_time(history: History) -> None:
    """It stood where somebody put it only later."""
    history.note(commit(8, 5, 4))
    history.remains[STREAM] = replace(history.remains[STREAM], committed=5)
    change(history, Commit, 1, lambda each: replace(each, previous=5))


def read_brings_too_many(history: History) -> None:
    change(history, Read, 0, lambda each: replace(each, limit=2))


def fetch_brings_too_many(history: History) -> None:
    change(history, Fetch, 1, lambda each: replace(each, limit=3))


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


def over_early(history: History) -> None:
    change(history, Read, 2, lambda each: replace(each, messages=()))


def one_is_over_early(history: History) -> None:
    change(history, Read, 2, lambda each: replace(each, messages=(message(2),)))


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
    (key_changed_in_a_look, "one offset, two contents"),
    (key_changed_everywhere, "one offset, two contents"),
    (headers_changed, "one offset, two contents"),
    (headers_went, "one offset, two contents"),
    (refused_is_read, "refused, yet read"),
    (acknowledged_comes_back, "acknowledged, yet came back"),
    (two_hold_one, "overlapping leases"),
    (same_delivery_twice, "overlapping leases"),
    (commit_goes_back, "commits backwards"),
    (commit_is_forgotten, "commits backwards"),
    (commit_jumps_ahead, "commits by nobody"),
    (commit_is_ahead_in_the_end, "commits by nobody"),
    (commit_is_of_a_refused_one, "commits by nobody"),
    (commit_is_ahead_of_its_time, "commits by nobody"),
    (read_brings_too_many, "more than asked for"),
    (fetch_brings_too_many, "more than asked for"),
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
    (over_early, "over early"),
    (one_is_over_early, "over early"),
]
