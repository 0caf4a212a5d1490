"""A stream and its groups driven at random beside a model in plain Python; nothing may differ, to the byte."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from streams.log import commit, config, entries, groups, keys, pending, standing, stats, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage
from streams.log.groups import Settings
from tests.streams.log.messages import browse

KEYS = (None, "a.x", "a.y", "b.x")
FILTER = "a.*"


@dataclass
class GroupModel:
    """What a group has delivered, what it has in flight (offset → deliveries), how many it lost before it got them."""

    delivered: int = 0
    lost: int = 0
    flying: dict[int, int] = field(default_factory=dict)
    ripe: set[int] = field(default_factory=set)
    dead: set[int] = field(default_factory=set)
    leases: dict[int, str] = field(default_factory=dict)

    def done(self, offsets: set[int]) -> None:
        for offset in offsets:
            del self.flying[offset]
        self.ripe -= offsets


def wants(name: str, key: str | None) -> bool:
    return name == "all" or (key is not None and key.startswith("a."))


class LogMachine(RuleBasedStateMachine):
    """Publishes, deletes, trims, limits, fetches and answers."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.log = Log(self.url)
        self.stream = keys.stream_id()
        self.limits: dict[str, int | None] = {
            "max_messages": None,
            "max_bytes": None,
            "max_messages_per_key": None,
        }
        self.last = 0
        self.ids: dict[str, int] = {}
        self.held: dict[int, tuple[bytes, str | None]] = {}
        self.ever: dict[int, tuple[bytes, str | None]] = {}
        self.committed = 0
        self.group = {"all": GroupModel(), "some": GroupModel()}
        self.publish_settings()
        for name, patterns in (("all", ()), ("some", (FILTER,))):
            group_settings = Settings(filter_keys=patterns, max_deliver=3, max_ack_pending=100_000)
            self.log.run(groups.group_publish(self.stream, name, group_settings))

    def publish_settings(self) -> None:
        registered = config.Registered(
            stream_id=self.stream, name=self.stream, workspace="w", workspace_id=9, archive=True
        )
        self.log.run(
            config.stream_publish(
                registered,
                {
                    "dedup_window": 86_400,
                    "max_message_bytes": 1000,
                    "discard": "old",
                    "archive": True,
                    **self.limits,
                },
            )
        )

    @contextmanager
    def stream_changes(self) -> Iterator[None]:
        """What goes is out no more, and lost to a group that was not given it."""
        before, last = dict(self.held), self.last
        yield
        ever = before | {offset: self.ever[offset] for offset in range(last + 1, self.last + 1)}
        gone = {offset: key for offset, (_, key) in ever.items() if offset not in self.held}
        for name, model in self.group.items():
            model.lost += sum(offset > model.delivered and wants(name, key) for offset, key in gone.items())
            for offset in gone.keys() & model.flying.keys():
                del model.flying[offset]
                model.ripe.discard(offset)

    def keep_within_limits(self) -> None:
        most, size = self.limits["max_messages"], self.limits["max_bytes"]
        while self.held and (
            (most is not None and len(self.held) > most)
            or (size is not None and sum(len(body) for body, _ in self.held.values()) > size)
        ):
            del self.held[min(self.held)]

    def keep_newest_of_keys(self) -> None:
        most = self.limits["max_messages_per_key"]
        if most is None:
            return
        for key in KEYS[1:]:
            of_key = sorted(offset for offset, (_, held) in self.held.items() if held == key)
            for offset in of_key[:-most]:
                del self.held[offset]

    @rule(
        batch=st.lists(
            st.tuples(st.integers(0, 60), st.integers(1, 40), st.sampled_from(KEYS)), min_size=1, max_size=12
        )
    )
    def publish(self, batch: list[tuple[int, int, str | None]]) -> None:
        messages = [NewMessage(id=str(n), body=b"7" * size, key=key) for n, size, key in batch]
        stored = self.log.run(append(self.stream, messages))
        with self.stream_changes():
            for message, answer in zip(messages, stored, strict=True):
                known = self.ids.get(message.id)
                assert answer.duplicate == (known is not None)
                if known is None:
                    self.last += 1
                    self.ids[message.id] = self.last
                    self.held[self.last] = self.ever[self.last] = (message.body, message.key)
                assert answer.offset == self.ids[message.id]
            self.keep_newest_of_keys()
            self.keep_within_limits()

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        offsets = data.draw(st.lists(st.integers(0, self.last + 2), max_size=6))
        removed = self.log.run(trim.delete(self.stream, offsets))
        with self.stream_changes():
            gone = {offset: self.held.pop(offset) for offset in set(offsets) if offset in self.held}
        assert removed == trim.Removed(len(gone), sum(len(body) for body, _ in gone.values()))

    @rule(data=st.data())
    def purge_below(self, data: st.DataObject) -> None:
        below = data.draw(st.integers(0, self.last + 3))
        removed = self.log.run(trim.purge(self.stream, below=below))
        gone = [offset for offset in self.held if offset < below]
        assert removed.messages == len(gone)
        with self.stream_changes():
            for offset in gone:
                del self.held[offset]

    @rule(keep=st.integers(0, 20))
    def purge_keeping(self, keep: int) -> None:
        removed = self.log.run(trim.purge(self.stream, keep=keep))
        gone = sorted(self.held)[: max(0, len(self.held) - keep)]
        assert removed.messages == len(gone)
        with self.stream_changes():
            for offset in gone:
                del self.held[offset]

    @rule(
        most=st.none() | st.integers(1, 30),
        size=st.none() | st.integers(1, 300),
        of_key=st.none() | st.integers(1, 5),
    )
    def limit(self, most: int | None, size: int | None, of_key: int | None) -> None:
        self.limits = {"max_messages": most, "max_bytes": size, "max_messages_per_key": of_key}
        self.publish_settings()
        self.log.run(trim.keep_newest_of_keys(self.stream))
        with self.stream_changes():
            self.keep_within_limits()
            self.keep_newest_of_keys()

    @rule(data=st.data())
    def archive(self, data: st.DataObject) -> None:
        self.log.run(config.archived_set(self.stream, data.draw(st.integers(0, self.last))))

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.last))
        assert self.log.run(commit.commit(self.stream, offset)) == self.committed
        self.committed = offset

    @rule()
    def drop(self) -> None:
        self.log.run(trim.drop(self.stream))

    @rule(name=st.sampled_from(["all", "some"]), limit=st.integers(1, 9))
    def fetch(self, name: str, limit: int) -> None:
        model = self.group[name]
        fetched = self.log.run(groups.fetch(self.stream, name, limit=limit))
        expected: list[tuple[int, int]] = []
        for offset in sorted(model.ripe)[: max(limit, 100)]:
            if model.flying[offset] >= 3:
                del model.flying[offset]
                model.ripe.discard(offset)
                model.dead.add(offset)
            elif len(expected) < limit:
                model.flying[offset] += 1
                model.ripe.discard(offset)
                expected.append((offset, model.flying[offset]))
        for offset in sorted(self.held):
            if offset <= model.delivered or len(expected) >= limit:
                continue
            model.delivered = offset
            if wants(name, self.held[offset][1]):
                model.flying[offset] = 1
                expected.append((offset, 1))
        got = [(entries.position(d.entry)[0], d.deliveries) for d in fetched.deliveries]
        assert got == expected
        model.leases |= {entries.position(d.entry)[0]: d.lease for d in fetched.deliveries}

    @rule(name=st.sampled_from(["all", "some"]), data=st.data())
    def ack(self, name: str, data: st.DataObject) -> None:
        model = self.group[name]
        offsets = data.draw(st.lists(st.integers(1, self.last + 1), max_size=5))
        done = {offset for offset in offsets if offset in model.flying}
        assert self.log.run(groups.ack(self.stream, name, "offsets", offsets)) == len(done)
        model.done(done)

    @rule(name=st.sampled_from(["all", "some"]), data=st.data())
    def ack_neighbours(self, name: str, data: st.DataObject) -> None:
        model = self.group[name]
        first = data.draw(st.sampled_from(sorted(model.flying) or [1]))
        offsets = list(range(first, first + data.draw(st.integers(1, 9))))
        done = {offset for offset in offsets if offset in model.flying}
        assert self.log.run(groups.ack(self.stream, name, "offsets", offsets)) == len(done)
        model.done(done)

    @rule(name=st.sampled_from(["all", "some"]), data=st.data())
    def ack_by_lease(self, name: str, data: st.DataObject) -> None:
        model = self.group[name]
        given = sorted(model.leases)
        first = data.draw(st.integers(0, len(given)))
        offsets = given[first : first + data.draw(st.integers(1, 9))]
        done = model.flying.keys() & offsets
        leases = [model.leases[offset] for offset in offsets]
        assert self.log.run(groups.ack(self.stream, name, "leases", leases)) == len(done)
        model.done(done)

    @rule(name=st.sampled_from(["all", "some"]), data=st.data())
    def ack_up_to(self, name: str, data: st.DataObject) -> None:
        model = self.group[name]
        upto = data.draw(st.integers(0, self.last + 1))
        done = {offset for offset in model.flying if offset <= upto}
        assert self.log.run(groups.ack(self.stream, name, "up_to", [upto])) == len(done)
        model.done(done)

    @rule(name=st.sampled_from(["all", "some"]), data=st.data())
    def term(self, name: str, data: st.DataObject) -> None:
        model = self.group[name]
        offsets = data.draw(st.lists(st.integers(1, self.last + 1), max_size=3))
        done = {offset for offset in offsets if offset in model.flying}
        ended = self.log.run(groups.term(self.stream, name, "offsets", offsets, reason=""))
        assert sorted(ended) == sorted(done)
        model.done(done)
        model.dead |= done

    @rule(name=st.sampled_from(["all", "some"]), data=st.data())
    def working(self, name: str, data: st.DataObject) -> None:
        model = self.group[name]
        offsets = data.draw(st.lists(st.integers(1, self.last + 1), max_size=3))
        longer = {offset for offset in offsets if offset in model.flying}
        assert self.log.run(groups.working(self.stream, name, "offsets", offsets)) == len(longer)
        model.ripe -= longer

    @rule(name=st.sampled_from(["all", "some"]), data=st.data())
    def nack(self, name: str, data: st.DataObject) -> None:
        model = self.group[name]
        offsets = data.draw(st.lists(st.integers(1, self.last + 1), max_size=5))
        back = {offset for offset in offsets if offset in model.flying}
        assert self.log.run(groups.nack(self.stream, name, "offsets", offsets)) == len(back)
        model.ripe |= back

    @precondition(lambda self: self.last > 0)
    @rule(name=st.sampled_from(["all", "some"]), data=st.data())
    def seek(self, name: str, data: st.DataObject) -> None:
        to = data.draw(st.integers(1, self.last + 1))
        self.log.run(groups.seek(self.stream, name, next_offset=to))
        before = self.group[name]
        self.group[name] = GroupModel(delivered=to - 1, dead=before.dead, lost=before.lost)

    @invariant()
    def nothing_differs(self) -> None:
        state = self.log.run(stats.inspect(self.stream))
        assert state.messages == len(self.held)
        assert state.bytes == sum(len(body) for body, _ in self.held.values())
        assert state.offset == self.last
        assert state.first_offset == min(self.held, default=self.last + 1)
        assert state.lag == sum(offset > self.committed for offset in self.held)
        found = {each.offset: (each.body, each.key) for each in browse(self.log, self.stream)}
        assert found == self.held
        for name, model in self.group.items():
            group = self.log.run(standing.inspect(self.stream, name))
            ahead = [offset for offset in self.held if offset > model.delivered]
            assert group.lag == sum(wants(name, self.held[offset][1]) for offset in ahead)
            assert group.lost == model.lost
            assert group.ack_pending == len(model.flying)
            assert group.dead_letters == len(model.dead)
        out, _ = self.log.run(pending.page(self.stream, "all", limit=1000))
        assert {each.offset: each.deliveries for each in out} == self.group["all"].flying

    def teardown(self) -> None:
        self.log.run(config.stream_remove(self.stream, workspace_id=9, name=self.stream))
        self.log.close()


def test_a_limit_a_key_takes_the_bytes_of_what_was_there_before_it(machine: type[LogMachine]) -> None:
    state = machine()
    state.publish([(1, 5, "b.x")])
    state.limit(None, None, 1)
    state.publish([(2, 1, "a.x"), (3, 1, "b.x")])
    state.publish([(4, 1, "a.x")])
    state.nothing_differs()
    assert state.log.run(stats.inspect(state.stream)).bytes == 2
    state.teardown()


@pytest.fixture
def machine(redis_url: str) -> type[LogMachine]:
    class Bound(LogMachine):
        url = redis_url

    return Bound


@pytest.mark.long
def test_no_sequence_of_calls_tells_the_log_from_the_model(machine: type[LogMachine]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=60,
            phases=[Phase.generate],
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
