"""Turns by key switched on and off at random, beside removals, beside a model in plain Python; nothing may differ."""

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import pytest

from streams.log import entries, groups, removals, standing, undo
from streams.log.append import append
from streams.log.client import Log, Op
from streams.log.entries import NewMessage
from streams.log.groups import Settings
from tests.streams.log.conftest import MakeStream

HOUR_MS = 3_600_000
STEPS = 200
KEYS = ("a", "a", "b", None)


@dataclass
class Model:
    """The key of every message, what a group has to be given, what it has out, and what is taken away for a while."""

    key: dict[int, str | None] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    out: set[int] = field(default_factory=set)
    given_back: set[int] = field(default_factory=set)
    aside: dict[int, set[int]] = field(default_factory=dict)
    takes_turns: bool = False

    @property
    def hidden(self) -> set[int]:
        return set().union(*self.aside.values())

    @property
    def visible(self) -> set[int]:
        return self.key.keys() - self.hidden

    def give(self, got: list[int]) -> None:
        """What one fetch may have been given: turns are kept by what is given for the first time."""
        new = [each for each in got if each in self.waiting]
        assert set(got) <= (self.waiting | self.given_back) & self.visible
        assert len(set(got)) == len(got)
        if self.takes_turns:
            keyed = [self.key[each] for each in got if self.key[each]]
            assert len(set(keyed)) == len(keyed)
            for each in new:
                same = {
                    other for other in self.visible if self.key[each] and self.key[other] == self.key[each]
                }
                assert not same & self.out
                assert each == min(same & self.waiting, default=each)
        self.waiting -= set(got)
        self.given_back -= set(got)
        self.out |= set(got)


def cut_short(op: Op[Any], commands: int) -> Generator[Any, Any, None]:
    """An operation whose process dies after so many commands."""
    reply = None
    for _ in range(commands):
        try:
            command = op.send(reply)
        except StopIteration:
            return
        reply = yield command
    op.close()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_no_sequence_of_switches_and_removals_gives_a_key_twice_or_keeps_one_back(
    log: Log, make_stream: MakeStream, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(groups, "ORDER_SLICE", 3)
    rng, model, stream = random.Random(seed), Model(), make_stream()
    switch(log, stream, model)
    for _ in range(STEPS):
        match rng.choice(
            ("publish", "publish", "fetch", "fetch", "ack", "ack", "nack", "switch", "aside", "undo")
        ):
            case "publish":
                first = len(model.key) + 1
                for offset in range(first, first + rng.randint(1, 6)):
                    model.key[offset] = rng.choice(KEYS)
                    model.waiting.add(offset)
                new = range(first, len(model.key) + 1)
                log.run(append(stream, [NewMessage(id=f"{n}", body=b"7", key=model.key[n]) for n in new]))
            case "fetch":
                model.give(fetch(log, stream, rng.choice((1, 2, 1000))))
            case "ack":
                answer(log, stream, model, rng)
            case "nack" if model.out & model.visible:
                back = rng.sample(sorted(model.out & model.visible), 1)
                assert log.run(groups.nack(stream, "g", "offsets", back)) == 1
                model.given_back |= set(back)
            case "switch":
                model.takes_turns = not model.takes_turns
                switch(log, stream, model, cut_after=rng.choice((None, None, 2, 3, 4, 5)))
            case "aside" if model.visible:
                chosen = rng.sample(sorted(model.visible), min(len(model.visible), rng.randint(1, 6)))
                _, number = log.run(removals.delete(stream, chosen, keep_ms=HOUR_MS, facts={}))
                assert number
                model.aside[number] = set(chosen)
            case "undo" if model.aside:
                number = rng.choice(sorted(model.aside))
                log.run(undo.undo(stream, number))
                # What was out when it went comes again.
                model.given_back |= model.aside.pop(number) & model.out
        compare(log, stream, model)
    drain(log, stream, model, rng)


def switch(log: Log, stream: str, model: Model, *, cut_after: int | None = None) -> None:
    settings = Settings(ack_wait_ms=HOUR_MS, ordered_by_key=model.takes_turns)
    op = groups.group_publish(stream, "g", settings)
    log.run(op if cut_after is None else cut_short(op, cut_after))


def fetch(log: Log, stream: str, limit: int) -> list[int]:
    found = log.run(groups.fetch(stream, "g", limit=limit)).deliveries
    return [entries.position(each.entry)[0] for each in found]


def answer(log: Log, stream: str, model: Model, rng: random.Random) -> None:
    out = sorted(model.out & model.visible)
    done = rng.sample(out, min(len(out), rng.randint(1, 5)))
    if done:
        assert log.run(groups.ack(stream, "g", "offsets", done)) == len(done)
    model.out -= set(done)
    model.given_back -= set(done)


def compare(log: Log, stream: str, model: Model) -> None:
    stands = log.run(standing.inspect(stream, "g"))
    assert stands.lag == len(model.waiting & model.visible)
    assert stands.ack_pending == len(model.out & model.visible)
    assert stands.lost == len(model.waiting & model.hidden)


def drain(log: Log, stream: str, model: Model, rng: random.Random) -> None:
    """Everything that is there comes, once what is out is answered."""
    while model.visible & (model.waiting | model.out):
        before = len(model.waiting & model.visible), len(model.out & model.visible)
        model.give(fetch(log, stream, 1000))
        answer(log, stream, model, rng)
        assert (len(model.waiting & model.visible), len(model.out & model.visible)) < before
        compare(log, stream, model)
