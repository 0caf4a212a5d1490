"""The API of a running product driven at random beside a model in plain Python; nothing may differ.

``--hypothesis-profile=long`` (see CONTRIBUTING.md) takes more steps, others each time.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, islice
from typing import Any, ClassVar

import httpx
import pytest
from hypothesis import HealthCheck, Phase, reject, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from okmq.env import private_socket
from streams.log import config, trim
from streams.log.client import Log
from tests.product import Product
from tests.streams.groups.model import GroupModel, Held, OrderedModel, StreamModel
from tests.streams.groups.restarts import kill_and_wait
from tests.waiting import Stopwatch, until

IS_LONG = settings.get_current_profile_name() == "long"

pytestmark = [pytest.mark.running, pytest.mark.timeout(0 if IS_LONG else 900)]

KEYS = (None, "a.x", "a.y", "b.x")
PREFIXES = (None, "a.", "b.")
LONG_S, SHORT_S = 3600, 0.1
LATEST_S = 0.5
"""A delivery comes again at most so much later than it was due."""
CLOCK_S = 0.002
"""Times are told in whole ms."""
BRIEF_S, SOON_S = 1, 0.8
"""The shortest own time of a message, and how much of it a call or two may take."""

GROUPS: dict[str, dict[str, Any]] = {
    "each": {"max_deliver": 3, "max_ack_pending": 6},
    "some": {"max_deliver": -1, "filter_keys": ["a.>"]},
    "all": {"max_deliver": 4, "ack": "all"},
    "none": {"ack": "none"},
    "turn": {"ordered_by_key": True, "max_deliver": 3, "max_ack_pending": 8},
}

MEMBERS = ("member-0", "member-1", "member-2")

names = st.sampled_from(sorted(GROUPS))
few = st.integers(0, 2**16)


LEAST_STEPS = 5_000 if IS_LONG else 2_000
"""Each compared."""
EXAMPLES = 8
"""Drawn from one seed; after ten hypothesis mixes old ones, and what a busy product does is not the same twice."""
KILL_EVERY = 100 if IS_LONG else 190
KILLS = ("valkey", "web", "valkey", "worker", "valkey")
"""These in turns are killed, one after every so many steps, whatever is drawn."""
EXPIRE_EVERY = 2 if IS_LONG else 8
"""One of so many batches expires within the test, which takes a second."""
COUNT_EVERY = 3
"""What is stored is compared whenever it may have changed, the counts of the stream every third time."""


class GroupsMachine(RuleBasedStateMachine):
    """Members, operators and producers of one stream with five groups."""

    product: Product
    taken: ClassVar[int] = 0
    """Steps that touched something, each compared."""
    killed: ClassVar[Counter[str]] = Counter()
    out_at_kills: ClassVar[int] = 0
    listings: ClassVar[int] = 0
    too_slow: ClassVar[int] = 0
    """Examples given up because the machine was busy while messages expired."""
    made: ClassVar[int] = 0
    latest_s: ClassVar[float] = 0.0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        self.client, self.other = self.product.client(), self.product.client()
        self.path = f"/streams/m{self.made}"
        self.call("POST", "/streams/", 201, name=self.path.rpartition("/")[2])
        self.stream = StreamModel()
        self.groups: dict[str, GroupModel] = {}
        self.listed: dict[str, dict[int, Any]] = {}
        self.told: dict[str, dict[str, Any]] = {}
        self.touched = set(GROUPS)
        for name, wanted in GROUPS.items():
            self.call("POST", f"{self.path}/groups/", 201, name=name, ack_wait=LONG_S, **wanted)
            kind = OrderedModel if "ordered_by_key" in wanted else GroupModel
            self.groups[name] = kind(
                self.stream,
                ack=wanted.get("ack", "explicit"),
                max_deliver=wanted.get("max_deliver", 5),
                max_ack_pending=wanted.get("max_ack_pending", 1000),
                prefix="a." if "filter_keys" in wanted else None,
            )
            self.listed[name] = {}
        self.look()

    def call(self, method: str, path: str, status: int = 200, /, **fields: Any) -> Any:
        answer = self.client.request(method, path, json=fields or None)
        assert answer.status_code == status, f"{method} {path} {fields}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    @contextmanager
    def stream_changes(self) -> Iterator[None]:
        """Every group may lose what it has not seen."""
        self.touched |= set(GROUPS)
        self.let_go()
        before, last = {name: group.ahead for name, group in self.groups.items()}, self.stream.last
        yield
        for name, group in self.groups.items():
            group.loses(before[name], last=last)

    def let_go(self) -> None:
        """Where messages are kept by interest: what the worker takes away within a second is gone now."""
        if not self.stream.by_interest:
            return
        data_dir, name = self.product.data_dir, self.path.rpartition("/")[2]
        log = Log(f"unix://{private_socket(data_dir)}")
        (stream_id,) = (each.stream_id for each in log.run(config.streams()) if each.name == name)
        log.run(trim.release(stream_id))
        log.close()
        self.stream.release(self.groups.values())

    def of(self, name: str, verb: str, **fields: Any) -> Any:
        self.touched.add(name)
        return self.call("POST", f"{self.path}/groups/{name}/{verb}", **fields)

    # producers

    @rule(
        batch=st.lists(
            st.tuples(st.integers(0, 80), st.integers(0, 30), st.sampled_from(KEYS)), min_size=1, max_size=9
        )
    )
    def publish(self, batch: list[tuple[int, int, str | None]], ttl: int | None = None) -> None:
        sent = [{"id": str(n), "body": "7" * size} | ({"key": key} if key else {}) for n, size, key in batch]
        first = self.stream.last + 1
        with self.stream_changes():
            more = {} if ttl is None else {"ttl": ttl}
            answer = self.client.post(f"{self.path}/messages", json=[each | more for each in sent]).json()
            for (n, size, key), stored in zip(batch, answer, strict=True):
                assert stored["offset"] == self.stream.append(Held(str(n), "7" * size, key, ""))
            self.stream.keep_newest_of_keys()
            self.stream.evict()
        stored = self.call("GET", f"{self.path}/messages?offset={first}&limit=100")
        assert [each["offset"] for each in stored] == [n for n in self.stream.held if n >= first]
        for each in stored:
            held = self.stream.held[each["offset"]]
            self.stream.held[each["offset"]] = Held(held.id, held.body, held.key, each["timestamp"])

    @rule(
        batch=st.lists(st.tuples(st.integers(0, 400), st.sampled_from(KEYS)), min_size=1, max_size=6),
        name=names,
        limit=st.integers(0, 9),
        chance=few,
    )
    def publish_what_expires(
        self, batch: list[tuple[int, str | None]], name: str, limit: int, chance: int
    ) -> None:
        """Messages whose own time ends, some of them when a group has them out, others before it got them."""
        sent = [(n, 3, key) for n, key in batch]
        if chance % EXPIRE_EVERY != 1:
            self.publish(sent, ttl=LONG_S)
            return
        first, began = self.stream.last + 1, time.monotonic()
        try:
            self.publish(sent, ttl=BRIEF_S)
            if limit:
                self.fetch(name, limit=limit)
        except AssertionError:
            self.unless_late(began)
            raise
        self.unless_late(began)
        brief = [offset for offset in self.stream.held if offset >= first]
        if brief:
            path = f"{self.path}/messages/{brief[-1]}"
            until(lambda: self.client.get(path).status_code == 404, within_s=5, what="they expire")
        with self.stream_changes():
            self.stream.delete(brief)

    def unless_late(self, began: float) -> None:
        """Give the example up where messages may have expired before they were looked at."""
        if time.monotonic() - began > SOON_S:
            type(self).too_slow += 1
            reject()

    # members

    def fetch(self, name: str, *, limit: int = 1000, wait: float = 0, **more: Any) -> int:
        """One fetch, compared; how many it got."""
        answer = self.of(name, "fetch", limit=limit, wait=wait, **more)
        self.same(
            name, answer, limit=limit, consumer=more.get("consumer", ""), max_bytes=more.get("max_bytes")
        )
        group = self.groups[name]
        if answer:
            assert answer[-1]["pending"] == len(group.ahead)
            assert [each["pending"] for each in answer] == list(
                range(len(group.ahead) + len(answer) - 1, len(group.ahead) - 1, -1)
            )
        return len(answer)

    def same(
        self,
        name: str,
        answer: Any,
        *,
        limit: int,
        consumer: str = "",
        max_bytes: int | None = None,
        by_offset: bool = False,
    ) -> None:
        """What members got is what the model gives; ``by_offset``: put into that order."""
        group = self.groups[name]
        if isinstance(group, OrderedModel):
            found = [each["offset"] for each in answer]
            expected = group.judge(found, limit=limit, consumer=consumer, is_in_order=not by_offset)
        else:
            expected = group.fetch(limit=limit, max_bytes=max_bytes or 2**24, consumer=consumer)
        if by_offset:
            expected.sort(key=lambda given: given[0])
        got = [
            (each["offset"], (each["id"], each["body"], each.get("key")), each["deliveries"])
            for each in answer
        ]
        assert got == [(offset, (h.id, h.body, h.key), n) for offset, h, n in expected], name
        for each in answer:
            group.leased(each["offset"], each["lease"])

    @rule(name=names, limits=st.tuples(st.integers(1, 6), st.integers(1, 6)))
    def take_together(self, name: str, limits: tuple[int, int]) -> None:
        """Two members fetch at the same time and share what one would have got."""
        self.touched.add(name)
        path, members = f"{self.path}/groups/{name}/fetch", MEMBERS[:2]

        def ask(client: httpx.Client, member: str, limit: int) -> Any:
            answer = client.post(path, json={"limit": limit, "wait": 0, "consumer": member})
            assert answer.status_code == 200, answer.text
            return answer.json()

        with ThreadPoolExecutor(2) as both:
            got = list(both.map(ask, (self.client, self.other), members, limits))
        group = self.groups[name]
        together = sorted(got[0] + got[1], key=lambda each: int(each["offset"]))
        self.same(name, together, limit=sum(limits), by_offset=True)
        for member, taken in zip(members, got, strict=True):
            for each in taken:
                if each["offset"] in group.out:
                    group.out[each["offset"]].consumer = member

    def long_enough(self, name: str) -> float:
        """How long a fetch may wait for what comes in a moment; not long where nothing will."""
        group = deepcopy(self.groups[name])
        if isinstance(group, OrderedModel):
            return 5 if group.can_get() else 1.5 * SHORT_S
        return 5 if group.fetch(limit=1, max_bytes=1, consumer="") else 1.5 * SHORT_S

    @rule(name=names, limit=st.integers(1, 9), max_bytes=st.none() | st.integers(1, 60), n=st.integers(0, 2))
    def take(self, name: str, limit: int, max_bytes: int | None, n: int) -> None:
        is_bounded = max_bytes is not None and not isinstance(self.groups[name], OrderedModel)
        more: dict[str, Any] = {"max_bytes": max_bytes} if is_bounded else {}
        self.fetch(name, limit=limit, consumer=MEMBERS[n], **more)

    def some_offsets(self, data: st.DataObject, name: str) -> list[int]:
        """Mostly what is out, sometimes what never was."""
        out = sorted(self.groups[name].out)
        known = st.sampled_from(out) if out else st.nothing()
        return data.draw(st.lists(known | st.integers(1, self.stream.last + 2), max_size=5))

    def some_leases(self, data: st.DataObject, name: str) -> list[str]:
        known = sorted(self.groups[name].leases, key=lambda lease: int(lease.rpartition("-")[2]))
        return data.draw(
            st.lists(st.sampled_from(known[-12:]) if known else st.just("1-1-1"), min_size=1, max_size=4)
        )

    def answered(self, name: str, verb: str, data: st.DataObject, **more: Any) -> set[int]:
        """Answer by offsets or by leases; what it applied to. A lost lease is told by both and does nothing."""
        group = self.groups[name]
        covers = verb == "ack" and group.ack == "all"
        count = "acked" if verb == "ack" else "count"
        if data.draw(st.booleans()):
            offsets, holder = self.some_offsets(data, name), data.draw(st.none() | st.sampled_from(MEMBERS))
            found = group.targets(
                offsets,
                covers=covers,
                holder=holder,
                also_undelivered=verb == "term" and holder is None,
            )
            named = {} if holder is None else {"consumer": holder}
            assert self.of(name, verb, offsets=offsets, **named, **more) == {count: len(found)}
            return found
        leases = self.some_leases(data, name)
        by_lease = group.targets_of_leases(leases, covers=covers)
        if by_lease is None:
            path = f"{self.path}/groups/{name}/{verb}"
            self.touched.add(name)
            refused = self.call("POST", path, 409, leases=leases, **more)
            assert refused["error"]["code"] == "lease_lost"
            return set()
        assert self.of(name, verb, leases=leases, **more) == {count: len(by_lease)}
        return by_lease

    @rule(name=names, data=st.data())
    def ack(self, name: str, data: st.DataObject) -> None:
        self.groups[name].settle(self.answered(name, "ack", data))

    @rule(name=names, data=st.data())
    def ack_up_to(self, name: str, data: st.DataObject) -> None:
        group, up_to = self.groups[name], data.draw(st.integers(0, self.stream.last + 1))
        found = group.targets([up_to], covers=True)
        assert self.of(name, "ack", up_to=up_to) == {"acked": len(found)}
        group.settle(found)

    @rule(name=names, data=st.data())
    def nack(self, name: str, data: st.DataObject) -> None:
        self.groups[name].due(self.answered(name, "nack", data))

    @rule(name=names, data=st.data())
    def nack_for_long(self, name: str, data: st.DataObject) -> None:
        self.groups[name].wait(self.answered(name, "nack", data, delay=LONG_S))

    @rule(name=names, data=st.data())
    def working(self, name: str, data: st.DataObject) -> None:
        self.groups[name].wait(self.answered(name, "working", data))

    @rule(name=names, data=st.data(), reason=st.sampled_from(["no", "ünlesbar", ""]))
    def term(self, name: str, data: st.DataObject, reason: str) -> None:
        self.groups[name].term(self.answered(name, "term", data, reason=reason), reason)

    @rule(name=names, data=st.data(), how=st.sampled_from(["nack", "ack_wait", "backoff"]))
    def come_due(self, name: str, data: st.DataObject, how: str) -> None:
        """Some deliveries run out, or were given back for a moment; nothing else comes again with them."""
        group = self.groups[name]
        if group.paused or not group.out:
            return
        while self.fetch(name):
            pass  # until nothing comes but what comes due below
        targets = group.targets(self.some_offsets(data, name))
        if not targets:
            return
        began = time.monotonic()
        if how == "nack":
            self.of(name, "nack", offsets=sorted(targets), delay=SHORT_S)
        else:
            short: dict[str, Any] = {"ack_wait": SHORT_S}
            usual: dict[str, Any] = {"ack_wait": LONG_S}
            if how == "backoff":
                # The waits of the first deliveries; the last one repeats.
                number = data.draw(st.integers(1, 3))
                if number > group.max_deliver > 0:
                    return
                short, usual = {"backoff": [LONG_S] * (number - 1) + [SHORT_S]}, {"backoff": []}
            self.change(name, **short)
            began = time.monotonic()
            self.of(name, "working", offsets=sorted(targets))
            if how == "backoff":
                group.wait(targets)
                targets = {offset for offset in targets if group.out[offset].deliveries >= number}
        due_by = time.monotonic() + SHORT_S
        if how != "nack":
            self.change(name, **usual)
        watch = Stopwatch()
        ahead_s = max(due_by - time.monotonic(), 0)
        group.due(targets)
        if self.fetch(name, wait=self.long_enough(name)):
            assert time.monotonic() - began >= SHORT_S
            type(self).latest_s = max(self.latest_s, watch.elapsed_s - ahead_s)

    # operators

    def change(self, name: str, **settings: Any) -> None:
        self.touched.add(name)
        self.call("PATCH", f"{self.path}/groups/{name}", **settings)

    @rule(
        name=names,
        max_deliver=st.sampled_from([-1, 1, 2, 3]),
        max_ack_pending=st.integers(1, 12),
        ack=st.sampled_from(["explicit", "explicit", "all", "none"]),
    )
    def change_limits(self, name: str, max_deliver: int, max_ack_pending: int, ack: str) -> None:
        if name == "turn":
            ack = "explicit"
        self.change(name, max_deliver=max_deliver, max_ack_pending=max_ack_pending, ack=ack)
        group = self.groups[name]
        group.max_deliver, group.max_ack_pending, group.ack = max_deliver, max_ack_pending, ack
        group.retire()

    @rule(name=names, data=st.data(), position=st.sampled_from(["earliest", "latest", "offset", "timestamp"]))
    def seek(self, name: str, data: st.DataObject, position: str) -> None:
        group, stream = self.groups[name], self.stream
        self.let_go()
        wanted: dict[str, Any] = {"position": position}
        expected = sorted(stream.held)
        if position == "latest":
            expected = []
        if position == "offset":
            wanted["offset"] = data.draw(st.integers(0, stream.last + 3))
            expected = [offset for offset in expected if offset >= wanted["offset"]]
        if position == "timestamp":
            times = sorted({held.timestamp for held in stream.held.values()})
            times.append(
                "2001-01-01T00:00:00Z"
            )  # how many there are differs from run to run, the draw must not
            wanted["timestamp"] = times[data.draw(few) % len(times)]
            expected = [offset for offset in expected if stream.held[offset].timestamp >= wanted["timestamp"]]
        dry = self.of(name, "seek", **wanted, dry_run=True)
        self.look()
        removes = dry.pop("removes", None)
        done = self.of(name, "seek", **wanted)
        assert done == dry
        assert done["from"] == self.told[name]["delivered_offset"] + 1
        assert [offset for offset in sorted(stream.held) if offset >= done["to"]] == expected
        low, high = sorted((done["from"], done["to"]))
        between = [held for offset, held in stream.held.items() if low <= offset < high]
        waiting = sum(offset < low for offset in group.ahead)  # for an earlier message of its key
        assert done["messages"] == sum(map(group.wants, between)) + waiting
        assert done["skipped"] == (done["messages"] if done["to"] >= done["from"] else waiting)
        group.seek(done["to"])
        held = len(stream.held)
        self.let_go()
        assert (removes is not None) == stream.by_interest
        if removes is not None and removes["complete"]:
            assert removes["messages"] == held - len(stream.held)

    @rule(name=names)
    def pause(self, name: str) -> None:
        assert self.of(name, "pause")["paused"] is True
        self.groups[name].paused = True

    @rule(name=names)
    def resume(self, name: str) -> None:
        assert self.of(name, "resume")["paused"] is False
        self.groups[name].paused = False

    @rule(name=names)
    def pause_for_a_moment(self, name: str) -> None:
        """A poll that outlasts the pause is served when it ends, not before."""
        path, self.touched = f"{self.path}/groups/{name}/pause", {name}
        for moment_s in (SHORT_S, 1, 5):  # a busy machine may let one pass before it is asked for
            ends = datetime.now(UTC) + timedelta(seconds=moment_s)
            if self.client.post(path, json={"until": ends.isoformat()}).is_success:
                break
        group = self.groups[name]
        group.paused = False
        if self.fetch(name, wait=max(self.long_enough(name), 1.5 * moment_s)):
            assert datetime.now(UTC) > ends - timedelta(milliseconds=1)

    @precondition(lambda self: any(group.dead for group in self.groups.values()))
    @rule(data=st.data(), whole=st.booleans(), replay=st.booleans())
    def handle_dead_letters(self, data: st.DataObject, whole: bool, replay: bool) -> None:
        name = data.draw(st.sampled_from([name for name, group in self.groups.items() if group.dead]))
        group = self.groups[name]
        offset = data.draw(st.sampled_from(sorted(group.dead)))
        if replay:
            offsets = list(group.dead) if whole else [offset, self.stream.last + 1]
            wanted = {"all": True} if whole else {"offsets": offsets}
            assert self.of(name, "dead-letters/replay", **wanted) == {"count": group.replay(offsets)}
            return
        path = f"{self.path}/groups/{name}/dead-letters/"
        self.touched.add(name)
        answer = self.call("DELETE", path if whole else f"{path}?offset={offset}")
        assert answer == {"deleted": len(group.dead) if whole else 1}
        group.dead = {} if whole else {n: letter for n, letter in group.dead.items() if n != offset}

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(1, self.stream.last + 1))
        path = f"{self.path}/messages/{offset}"
        if offset not in self.stream.held:
            self.call("DELETE", path, 404)
            return
        with self.stream_changes():
            self.stream.delete([offset])
        self.call("DELETE", path)

    @rule(data=st.data(), mode=st.sampled_from(["offset", "keep", "key"]))
    def purge(self, data: st.DataObject, mode: str) -> None:
        with self.stream_changes():
            if mode == "key":
                gone = self.stream.delete([n for n, held in self.stream.held.items() if held.key == "a.x"])
                value: int | str = "a.x"
            elif mode == "keep":
                value = data.draw(st.integers(0, 12))
                gone = self.stream.purge(keep=value)
            else:
                value = data.draw(st.integers(0, self.stream.last + 2))
                gone = self.stream.purge(below=value)
        assert self.call("DELETE", f"{self.path}/messages?{mode}={value}") == {"deleted": gone}

    @rule(
        most=st.none() | st.integers(3, 30),
        size=st.none() | st.integers(20, 400),
        of_key=st.none() | st.integers(1, 6),
    )
    def limit(self, most: int | None, size: int | None, of_key: int | None) -> None:
        self.call("PATCH", self.path, max_messages=most, max_bytes=size, max_messages_per_key=of_key)
        self.stream.max_messages, self.stream.max_bytes, self.stream.max_of_key = most, size, of_key
        with self.stream_changes():
            self.stream.evict()
            self.stream.keep_newest_of_keys()

    @rule(is_on=st.booleans())
    def keep_by_interest(self, is_on: bool) -> None:
        self.call("PATCH", self.path, retention="interest" if is_on else "limits")
        self.stream.by_interest = is_on
        with self.stream_changes():
            pass

    # what must hold after every step

    @invariant()
    def nothing_differs(self) -> None:
        if not self.touched:
            return
        type(self).taken += 1
        if self.taken % KILL_EVERY == 0:
            self.crash(KILLS[(self.taken // KILL_EVERY - 1) % len(KILLS)])
        self.look()

    def crash(self, process: str) -> None:
        """What was answered before a process is killed, the last step too, holds after it is back."""
        type(self).killed[process] += 1
        type(self).out_at_kills += sum(len(group.out) for group in self.groups.values())
        self.touched |= set(GROUPS)
        self.client.close()
        self.other.close()
        kill_and_wait(self.product, process)
        self.client, self.other = self.product.client(), self.product.client()

    def look(self) -> None:
        """Compare what was touched."""
        asked = datetime.now(UTC)
        if len(self.touched) == 1:
            (name,) = self.touched
            found = [self.call("GET", f"{self.path}/groups/{name}")]
        else:
            self.let_go()
            self.compare_stream()
            found = self.call("GET", f"{self.path}/groups/")
            assert [told["name"] for told in found] == sorted(self.groups)
        for told in found:
            self.told[told["name"]] = told
            self.compare(told["name"], self.groups[told["name"]], told)
            self.compare_age(self.groups[told["name"]], told, asked=asked)
        self.touched = set()

    def compare_stream(self) -> None:
        stored = self.call("GET", f"{self.path}/messages?offset=1&limit=1000")
        got = [(each["offset"], each["id"], each["body"], each.get("key")) for each in stored]
        assert got == [(n, held.id, held.body, held.key) for n, held in sorted(self.stream.held.items())]
        type(self).listings += 1
        if self.listings % COUNT_EVERY == 0:
            stream = self.call("GET", self.path)
            assert (stream["messages"], stream["offset"]) == (len(got), self.stream.last)

    def compare(self, name: str, group: GroupModel, told: dict[str, Any]) -> None:
        figures = ("lag", "ack_pending", "dead_letters", "redelivered", "lost", "paused")
        expected = (
            len(group.ahead),
            len(group.out),
            len(group.dead),
            group.redelivered,
            group.lost,
            group.paused,
        )
        assert tuple(told[figure] for figure in figures) == expected, (name, figures)
        members = Counter(flight.consumer for flight in group.out.values() if flight.deliveries)
        held = {each["name"]: each["ack_pending"] for each in told["consumers"] if each["ack_pending"]}
        assert held == members, name
        floor, open_ = told["ack_floor"], [*group.out, *group.ahead]
        assert floor < min(open_, default=floor + 1), (name, "something up to the floor is not done")
        if not isinstance(group, OrderedModel):  # its position goes past what waits for its key
            assert floor + 1 in open_ or floor == told["delivered_offset"], (
                name,
                "the floor could be higher",
            )
            assert group.delivered <= told["delivered_offset"] < min(group.ahead, default=2**53), name
        if group.dead != self.listed[name]:
            letters = self.call("GET", f"{self.path}/groups/{name}/dead-letters/")
            assert [
                (
                    each["offset"],
                    each["id"],
                    each["body"],
                    each.get("key"),
                    each["reason"],
                    each["deliveries"],
                )
                for each in letters
            ] == [
                (n, each.held.id, each.held.body, each.held.key, each.reason, each.deliveries)
                for n, each in sorted(group.dead.items())
            ]
            self.listed[name] = dict(group.dead)

    def compare_age(self, group: GroupModel, told: dict[str, Any], *, asked: datetime) -> None:
        """``lag_seconds`` is the age of the oldest that is not done, at some moment since it was asked for."""
        oldest = group.content(min([*group.out, *group.ahead], default=0))
        if oldest is None:
            assert told["lag_seconds"] == 0
            return
        since = datetime.fromisoformat(oldest.timestamp)
        least, most = (asked - since).total_seconds(), (datetime.now(UTC) - since).total_seconds()
        assert least - CLOCK_S <= told["lag_seconds"] <= most + CLOCK_S, (told["name"], oldest)

    def teardown(self) -> None:
        try:
            self.client.delete(self.path)
        except httpx.HTTPError:
            return  # the product is down, and the test says why
        finally:
            self.client.close()
            self.other.close()


@pytest.mark.long
def test_no_sequence_of_calls_tells_the_groups_from_the_model(
    mortal: Product, pytestconfig: pytest.Config
) -> None:
    class Bound(GroupsMachine):
        product = mortal

    began = time.monotonic()
    usual = random.SystemRandom().randrange(2**32) if IS_LONG else 0
    drawn = pytestconfig.getoption("--hypothesis-seed") or usual
    print(f"--hypothesis-seed={drawn}")
    for more in count():
        if Bound.taken >= LEAST_STEPS:
            break
        run_state_machine_as_test(
            seed(f"{drawn}-{more}")(Bound),
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=60,
                database=None,
                deadline=None,
                phases=[Phase.generate],  # to shrink against a real product takes longer than to read
                suppress_health_check=list(HealthCheck),
            ),
        )
    killed = ", ".join(f"{process} {count}" for process, count in sorted(Bound.killed.items()))
    print(
        f"{Bound.taken} steps, {Bound.made} streams, killed: {killed} ({Bound.out_at_kills} deliveries out), "
        f"{Bound.too_slow} given up as too slow, latest redelivery {Bound.latest_s * 1000:.0f} ms late, "
        f"{time.monotonic() - began:.0f} s"
    )
    assert Bound.taken >= LEAST_STEPS
    assert Bound.killed == Counter(islice(cycle(KILLS), Bound.taken // KILL_EVERY))
    assert Bound.killed >= Counter(valkey=6, web=2, worker=2)
    assert Bound.latest_s < LATEST_S
