"""What the history gets while people, limits and undos take from a stream at random, beside a model in plain Python."""

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import pytest

from spark import reading, schemas
from spark.positions import Position, positions
from spark.ranges import Range
from streams.log import config, entries, errors, keys, removals, trim, undo
from streams.log.entries import NewMessage
from tests.spark.published import Published

HOUR_MS = 3_600_000
MOST = 6
STEPS = 60
ARROW = schemas.arrow(schemas.MESSAGES)
REFUSED = (errors.RemovalNotFound, errors.RemovedSince, errors.RemovalTaken)


@dataclass
class Model:
    """Where each offset is: ``there``, ``hidden`` by a limit, ``gone`` by a person, or the number of its removal."""

    most: int | None
    is_compacted: bool
    key: dict[int, str] = field(default_factory=dict)
    at: dict[int, str | int] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    ranges: set[int] = field(default_factory=set)
    archived: int = 0

    def offsets(self, *states: str | int) -> list[int]:
        return [offset for offset, state in self.at.items() if state in states]

    def become(self, offsets: list[int], state: str | int) -> None:
        for offset in offsets:
            self.at[offset] = state

    def removals_below(self, offset: int) -> None:
        """What was removed for a while below a floor that rose is gone for good."""
        reached = [each for each, state in self.at.items() if each < offset and isinstance(state, int)]
        shortened = {self.at[each] for each in reached} & self.ranges
        self.become(reached, "gone")
        for number in shortened:
            # What is left of a purge begins with what can come back.
            self.become(list(takewhile(self.over.__contains__, self.offsets(number))), "gone")

    def undo(self, number: int) -> None:
        """What came back, but for what is over by its own time."""
        for offset in self.offsets(number):
            self.at[offset] = "hidden" if offset in self.over else "there"
        self.limit()

    def time_over(self, offset: int) -> None:
        self.over.add(offset)
        if self.at[offset] == "there":
            self.at[offset] = "hidden"

    def publish(self, keys: Sequence[str]) -> None:
        for key in keys:
            offset = len(self.at) + 1
            self.key[offset], self.at[offset] = key, "there"
            self.limit()

    def limit(self) -> None:
        there = self.offsets("there")
        if self.is_compacted:
            newest = {self.key[each]: each for each in there}
            self.become([each for each in there if each != newest[self.key[each]]], "hidden")
        if self.most is not None and len(there) > self.most:
            taken = there[: len(there) - self.most]
            self.become(taken, "hidden")
            self.removals_below(taken[-1] + 1)

    @property
    def ready(self) -> int:
        waits = [each for each, state in self.at.items() if each > self.archived and isinstance(state, int)]
        return min(waits, default=len(self.at) + 1) - 1

    def unarchived(self, upto: int) -> list[int]:
        """What the history should get of what lies above what it has."""
        return [each for each in self.offsets("there", "hidden") if self.archived < each <= upto]

    def stored(self) -> list[int]:
        """What has to be physically there."""

        def stays(offset: int, state: str | int) -> bool:
            waits = state == "hidden" or (isinstance(state, int) and offset in self.over)
            return offset > self.archived if waits else state != "gone"

        return [offset for offset, state in self.at.items() if stays(offset, state)]


@dataclass
class Program:
    """One stream, driven at random; what was done is printed where the two differ."""

    published: Published
    stream: str
    model: Model
    random: random.Random
    is_timed: bool
    did: Counter[str] = field(default_factory=Counter)

    def position(self) -> Position:
        return self.published.log.run(positions([self.stream], strict=True))[self.stream]

    def read(self, first: int, last: int, *, with_aside: bool) -> list[int]:
        wanted = Range(
            workspace_id=self.published.workspace_id,
            stream_id=self.stream,
            stream="s",
            first=first,
            last=last,
        )
        pages = reading.archive_pages(self.published.log, wanted, with_aside=with_aside)
        return [entries.position(entry)[0] for page in pages for entry in page]

    def step(self) -> None:
        name, do = self.random.choice(
            [
                ("publish", self.publish),
                ("publish", self.publish),
                ("purge", self.purge),
                ("purge for a while", self.purge_for_a_while),
                ("delete", self.delete),
                ("delete for a while", self.delete_for_a_while),
                ("undo", self.undo),
                ("end", self.end),
                ("archive", self.archive),
                ("drop", self.drop),
                *([("time over", self.time_over)] if self.is_timed else []),
            ]
        )
        self.did[name] += 1
        do()

    def publish(self) -> None:
        given = self.random.choices("abc", k=self.random.randint(1, 5))
        first = len(self.model.at) + 1
        ttl_s = 3_600 if self.is_timed else None
        messages = [
            NewMessage(id=f"{n}", body=b"1", key=key, ttl_s=ttl_s) for n, key in enumerate(given, first)
        ]
        self.published.publish(self.stream, messages)
        self.model.publish(given)

    def upto(self) -> int:
        return self.random.randint(1, len(self.model.at) + 1)

    def purge(self) -> None:
        if self.random.random() < 0.5:
            self.purge_keeping(self.random.randint(0, 6))
            return
        below = self.upto()
        self.published.log.run(trim.purge(self.stream, below=below))
        self.model.become([each for each in self.model.offsets("there") if each < below], "gone")
        self.model.removals_below(below)

    def purge_keeping(self, keep: int) -> None:
        self.published.log.run(trim.purge(self.stream, keep=keep))
        there = self.model.offsets("there")
        if taken := there[: max(0, len(there) - keep)]:
            self.model.become(taken, "gone")
            self.model.removals_below(taken[-1] + 1)
        if not keep:
            self.model.removals_below(len(self.model.at) + 1)

    def purge_for_a_while(self) -> None:
        below = self.upto()
        _, number = self.published.log.run(
            removals.purge(self.stream, keep_ms=HOUR_MS, facts={}, below=below)
        )
        if number is not None:
            self.model.become([each for each in self.model.offsets("there") if each < below], number)
            self.model.ranges.add(number)

    def some(self) -> list[int]:
        there = self.model.offsets("there")
        return sorted(self.random.sample(there, min(len(there), self.random.randint(1, 3))))

    def delete(self) -> None:
        if some := self.some():
            self.published.log.run(trim.delete(self.stream, some))
            self.model.become(some, "gone")

    def delete_for_a_while(self) -> None:
        if some := self.some():
            _, number = self.published.log.run(removals.delete(self.stream, some, keep_ms=HOUR_MS, facts={}))
            assert number is not None
            self.model.become(some, number)

    def removal(self) -> int | None:
        held = sorted({state for state in self.model.at.values() if isinstance(state, int)})
        return self.random.choice(held) if held else None

    def undo(self) -> None:
        if number := self.removal():
            with suppress(*REFUSED):
                self.published.log.run(undo.undo(self.stream, number, partial=self.model.most is None))
                self.model.undo(number)

    def end(self) -> None:
        if number := self.removal():
            self.published.log.run(undo.end(self.stream, number))
            self.model.become(self.model.offsets(*range(number + 1)), "gone")

    def time_over(self) -> None:
        """The own time of one message ends; not of one that was deleted for a while, which is told by its entry."""
        if self.model.at:
            offset = self.random.randint(1, len(self.model.at))
            state = self.model.at[offset]
            if isinstance(state, int) and state not in self.model.ranges:
                return
            self.published.log.client.zadd(keys.expiry(self.stream), {str(offset): 1}, xx=True)
            self.published.log.run(trim.expire(self.stream))
            self.model.time_over(offset)

    def archive(self) -> None:
        self.published.log.run(undo.end(self.stream))  # as the worker does within a second
        at = self.position()
        assert at.ready <= self.model.ready
        assert at.ready == self.model.ready or self.model.ready < len(self.model.at)
        found = self.read(at.next_offset(archive=True), at.ready, with_aside=True)
        assert found == self.model.unarchived(at.ready)
        self.published.log.run(config.archived_set(self.stream, at.ready))
        self.model.archived = max(self.model.archived, at.ready)

    def drop(self) -> None:
        self.published.log.run(undo.end(self.stream))
        self.published.log.run(trim.drop(self.stream, hold_ms=HOUR_MS))
        stored = [
            entries.position(each)[0] for each in self.published.log.client.xrange(keys.log(self.stream))
        ]
        assert stored == self.model.stored()

    def compare(self) -> None:
        """What a query reads of the log: what the history would get, and nothing that was removed."""
        first, last = self.model.archived + 1, len(self.model.at)
        assert self.read(first, last, with_aside=False) == self.model.unarchived(last)


@pytest.mark.parametrize("seed", range(30))
def test_the_history_gets_what_nobody_took_and_nothing_else(published: Published, seed: int) -> None:
    chance = random.Random(seed)
    limits: Sequence[dict[str, Any]] = [{}, {"max_messages": MOST}, {"max_messages_per_key": 1}]
    limit = limits[seed % 3]
    stream = published.stream("s", **limit)
    model = Model(limit.get("max_messages"), "max_messages_per_key" in limit)
    program = Program(published, stream, model, chance, is_timed=seed % 6 > 2)
    for _ in range(STEPS):
        program.step()
        program.compare()
    program.archive()
    program.drop()
    assert len(program.did) == 9 + program.is_timed
