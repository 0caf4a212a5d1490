"""Removing for a while and undoing it, driven at random beside a model in plain Python; nothing may differ."""

import random
from dataclasses import dataclass, field

import pytest

from streams.log import entries, errors, groups, keys, removals, standing, stats, trim, undo
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage
from streams.log.groups import Settings
from tests.streams.log.conftest import MakeStream, Publish
from tests.streams.log.messages import browse

HOUR_MS = 3_600_000
STEPS = 150


@dataclass
class Gone:
    """A removal of the model: its messages, and whether the floor rose over everything below."""

    messages: dict[int, bytes]
    upto: int


@dataclass
class Model:
    """What is there, what can come back, and what two groups have: one answers at once, one leaves messages out."""

    last: int = 0
    most: int | None = None
    limited: int = 0
    held: dict[int, bytes] = field(default_factory=dict)
    aside: dict[int, Gone] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    untaken: set[int] = field(default_factory=set)
    out: set[int] = field(default_factory=set)

    def limit(self) -> None:
        if self.most is not None and len(self.held) > self.most:
            for offset in sorted(self.held)[: len(self.held) - self.most]:
                del self.held[offset]
                self.limited = offset + 1

    def left_of(self, number: int) -> set[int]:
        """What of a removal would come back: of a purge as if it had never been, of single messages what fits."""
        there = sorted(each for each in self.aside[number].messages if each >= self.limited)
        if not self.aside[number].upto:
            room = len(there) if self.most is None else max(0, self.most - len(self.held))
            return set(there[max(0, len(there) - room) :])
        after = sorted([*self.held, *there])
        return set(after if self.most is None else after[-self.most :]).intersection(there)

    def later_than(self, number: int) -> list[int]:
        first = min(self.aside[number].messages)
        return [
            each
            for each, gone in self.aside.items()
            if each > number and gone.upto > first and max(gone.messages) >= self.limited
        ]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_no_sequence_of_removals_and_undos_tells_the_log_from_the_model(
    log: Log, make_stream: MakeStream, publish_settings: Publish, seed: int
) -> None:
    rng, model, stream = random.Random(seed), Model(), make_stream()
    log.run(groups.group_publish(stream, "g", Settings(max_ack_pending=100_000)))
    log.run(groups.group_publish(stream, "slow", Settings(max_ack_pending=100_000, ack_wait_ms=HOUR_MS)))
    for _ in range(STEPS):
        match rng.choice(
            (
                "publish",
                "publish",
                "delete",
                "aside",
                "purge",
                "for good",
                "undo",
                "limit",
                "drop",
                "fetch",
                "take",
            )
        ):
            case "publish":
                bodies = [b"7" * rng.randint(1, 30) for _ in range(rng.randint(1, 12))]
                batch = [NewMessage(id=f"{model.last + n}", body=body) for n, body in enumerate(bodies, 1)]
                log.run(append(stream, batch))
                for body in bodies:
                    model.last += 1
                    model.held[model.last] = body
                    model.unread.add(model.last)
                    model.untaken.add(model.last)
                model.limit()
            case "delete" if model.held:
                chosen = rng.sample(sorted(model.held), min(len(model.held), rng.randint(1, 5)))
                assert log.run(trim.delete(stream, chosen)).messages == len(chosen)
                for offset in chosen:
                    del model.held[offset]
            case "aside" if model.held:
                chosen = rng.sample(sorted(model.held), min(len(model.held), rng.randint(1, 5)))
                removed, number = log.run(removals.delete(stream, chosen, keep_ms=HOUR_MS, facts={}))
                assert number
                assert removed.messages == len(chosen)
                model.aside[number] = Gone({each: model.held.pop(each) for each in chosen}, 0)
            case "purge" if model.held:
                below = rng.randint(min(model.held), model.last + 2)
                removed, purged = log.run(removals.purge(stream, below=below, keep_ms=HOUR_MS, facts={}))
                gone = {each: model.held.pop(each) for each in sorted(model.held) if each < below}
                assert removed.messages == len(gone)
                if purged:
                    upto = min(model.held, default=model.last + 1)
                    model.aside[purged] = Gone(gone, upto)
            case "for good" if model.last:
                below = rng.randint(1, model.last + 2)
                assert log.run(trim.purge(stream, below=below)).messages == sum(
                    each < below for each in model.held
                )
                model.held = {each: body for each, body in model.held.items() if each >= below}
                floor = min(model.held, default=model.last + 1)
                model.limited = max(model.limited, min(below, floor))
            case "undo" if model.aside:
                _undo(log, stream, model, rng.choice(sorted(model.aside)), partial=rng.random() < 0.3)
            case "limit":
                model.most = rng.choice((None, None, rng.randint(1, 40)))
                publish_settings(stream, max_messages=model.most)
                log.run(trim.apply_limits(stream))
                model.limit()
            case "drop":
                log.run(undo.end(stream))
                log.run(trim.drop(stream))
                model.aside = {
                    number: gone
                    for number, gone in model.aside.items()
                    if max(gone.messages) >= model.limited
                }
            case "fetch":
                _fetch(log, stream, model, rng.randint(1, 20))
            case "take":
                _take(log, stream, model, rng)
        _compare(log, stream, model)
        if rng.random() < 0.5:  # what is out is looked at now and then: a look moves what went
            assert log.run(standing.inspect(stream, "slow")).ack_pending == len(model.out & model.held.keys())


def _undo(log: Log, stream: str, model: Model, number: int, *, partial: bool) -> None:
    gone, left, later = model.aside[number], model.left_of(number), model.later_than(number)
    undoing = undo.undo(stream, number, partial=partial)
    if later or not left or (len(left) < len(gone.messages) and not partial):
        with pytest.raises((errors.RemovedSince, errors.RemovalTaken, errors.RemovalNotFound)):
            log.run(undoing)
        return
    assert log.run(undoing).messages == len(left)
    model.held |= {each: gone.messages[each] for each in left}
    del model.aside[number]


def _fetch(log: Log, stream: str, model: Model, limit: int) -> None:
    found = log.run(groups.fetch(stream, "g", limit=limit)).deliveries
    got = [entries.position(each.entry)[0] for each in found]
    assert len(got) == min(limit, len(model.unread & model.held.keys()))
    assert len(set(got)) == len(got)
    assert set(got) <= model.unread & model.held.keys()
    model.unread -= set(got)
    log.run(groups.ack(stream, "g", "offsets", got))


def _take(log: Log, stream: str, model: Model, rng: random.Random) -> None:
    """The group that answers only some of what it has out."""
    found = log.run(groups.fetch(stream, "slow", limit=rng.randint(1, 20))).deliveries
    got = {entries.position(each.entry)[0] for each in found}
    assert got <= (model.untaken | model.out) & model.held.keys()
    model.untaken -= got
    model.out |= got
    answered = rng.sample(sorted(model.out & model.held.keys()), len(model.out & model.held.keys()) // 3)
    assert log.run(groups.ack(stream, "slow", "offsets", answered)) == len(answered)
    model.out -= set(answered)


def _compare(log: Log, stream: str, model: Model) -> None:
    state = log.run(stats.inspect(stream))
    assert state.messages == len(model.held)
    assert state.bytes == sum(map(len, model.held.values()))
    assert state.first_offset == min(model.held, default=model.last + 1)
    assert {each.offset: each.body for each in browse(log, stream)} == model.held
    assert log.run(standing.inspect(stream, "g")).lag == len(model.unread & model.held.keys())
    assert log.client.exists(keys.meta(stream))
