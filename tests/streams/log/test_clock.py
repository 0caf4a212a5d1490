"""The steady clock: what is due follows it, whatever happens to the wall clock of the server."""

import time
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.log import answers, append, bringing, clock, config, entries, fsck, groups, keys, meta, standing
from streams.log.client import Log, Script, Steady
from streams.log.clock import SteadyClock
from streams.log.comparing import compared_ms
from streams.log.groups import Settings
from tests.streams.log.clocks import DAY_MS, HOUR_MS, WAIT_MS, Faked, steady, used_to
from tests.streams.log.messages import fill
from tests.waiting import Stopwatch, until


def take(log: Log, stream: str) -> list[int]:
    fetched = log.run(groups.fetch(stream, "g", limit=100))
    return [entries.position(delivery.entry)[0] for delivery in fetched.deliveries]


@pytest.mark.parametrize("jump_s", [3600, -3600, 86_400, -86_400])
def test_a_jump_brings_nothing_back_early_and_holds_nothing_up(faked: Faked, jump_s: int) -> None:
    worker, member = used_to(faked.connect(keeps_clock=True)), used_to(faked.connect())
    before_ms = steady(worker)
    delivered = time.monotonic()
    assert len(take(member, faked.stream)) == 20
    faked.set_clock(jump_s)
    assert take(member, faked.stream) == []
    until(lambda: steady(worker) and worker.client.execute_command("GET", keys.SKEW))
    assert abs(steady(worker) - before_ms) < 5_000
    late = faked.connect()
    assert take(late, faked.stream) == []
    asked, watch = time.monotonic(), Stopwatch()
    assert len(until(lambda: take(late, faked.stream))) == 20
    came, took_s, due = time.monotonic(), watch.elapsed_s, delivered + WAIT_MS / 1000
    assert due - 0.05 <= came
    assert took_s <= max(due - asked, 0) + 0.5
    state = late.run(standing.inspect(faked.stream, "g"))
    assert (state.quiet_ms or 0) < 5_000
    for each in (worker, member, late):
        each.close()


def test_a_jump_is_remembered_over_a_crash_of_the_server(faked: Faked) -> None:
    worker = used_to(faked.connect(keeps_clock=True))
    delivered = time.monotonic()
    assert len(take(worker, faked.stream)) == 20
    faked.set_clock(86_400)
    until(lambda: steady(worker) and worker.client.execute_command("GET", keys.SKEW))
    faked.store.kill()
    faked.store.start()
    late = faked.connect()
    assert len(until(lambda: take(late, faked.stream), within_s=5)) == 20
    assert time.monotonic() - delivered >= WAIT_MS / 1000 - 0.05
    for each in (worker, late):
        each.close()


def test_a_pause_is_by_the_wall_clock_also_after_that_was_ahead(faked: Faked) -> None:
    worker = used_to(faked.connect(keeps_clock=True))
    faked.set_clock_noted(86_400, worker)
    fill(worker, faked.stream, 1, first=21)
    faked.set_clock_noted(0, worker)
    until_ms = int(time.time() * 1000) + HOUR_MS
    worker.run(groups.pause(faked.stream, "g", until_ms=until_ms))
    assert worker.run(standing.inspect(faked.stream, "g")).paused_until_ms == until_ms
    fetched = worker.run(groups.fetch(faked.stream, "g", limit=100))
    assert fetched.deliveries == []
    assert 0 < (fetched.due_in_ms or 0) <= HOUR_MS
    generation = worker.run(bringing.generation(faked.stream, "g"))
    known = bringing.Brought(0, 0, 0)
    brought = bringing.bring_back(faked.stream, "g", replay=1, generation=generation, known=known)
    assert worker.run(brought).is_paused
    worker.run(groups.pause(faked.stream, "g", until_ms=int(time.time() * 1000) - 1))
    assert worker.run(standing.inspect(faked.stream, "g")).paused_until_ms is None
    assert len(take(worker, faked.stream)) == 21
    worker.close()


def publish(log: Log, stream: str, *ids: str) -> list[bool]:
    """Whether each of some messages, published one after the other, was known already."""
    found: list[bool] = []
    for id_ in ids:
        message = entries.NewMessage(id=id_, body=b"1")
        if len(found) % 2:
            batch = append.Batch(stream, is_unbounded=True, messages=[message])
            (told,) = log.run(append.append_each([batch]))
        else:
            told = log.run(append.append(stream, [message]))
        assert isinstance(told, list)
        found.append(told[0].duplicate)
    return found


def remembering(log: Log, window_s: int) -> str:
    """A stream that remembers ids for so long."""
    made = config.Registered(
        stream_id=keys.stream_id(), name=f"for {window_s}", workspace="w", workspace_id=1, archive=False
    )
    log.run(
        config.stream_publish(made, {"dedup_window": window_s, "max_message_bytes": 1000, "discard": "old"})
    )
    return made.stream_id


@pytest.mark.parametrize("jump_s", [3600, -3600, 86_400, -86_400])
def test_an_id_is_remembered_for_its_window_whatever_the_wall_clock_does(faked: Faked, jump_s: int) -> None:
    worker, publisher = used_to(faked.connect(keeps_clock=True)), used_to(faked.connect())
    stream = remembering(publisher, 600)
    assert publish(publisher, stream, "a", "b") == [False, False]
    faked.set_clock(jump_s)
    # Nobody has noted it yet.
    assert publish(publisher, stream, "a", "b", "c", "d") == [True, True, False, False]
    until(lambda: steady(worker) and worker.client.execute_command("GET", keys.SKEW))
    late = faked.connect()
    assert publish(late, stream, "a", "b", "c", "d") == [True] * 4
    faked.set_clock(0)
    assert publish(publisher, stream, "a", "b", "c", "d") == [True] * 4
    looked = late.run(fsck.look(stream))
    assert looked is not None
    assert looked.findings == ()
    for each in (worker, publisher, late):
        each.close()


@pytest.mark.parametrize("jump_s", [86_400, -86_400])
def test_an_id_is_forgotten_after_its_window_whatever_the_wall_clock_does(faked: Faked, jump_s: int) -> None:
    publisher = used_to(faked.connect(keeps_clock=True))
    stream = remembering(publisher, 1)
    assert publish(publisher, stream, "a", "b") == [False, False]
    faked.set_clock(jump_s)
    published = time.monotonic()
    until(lambda: publish(publisher, stream, "b", "a") == [False, False])
    assert time.monotonic() - published >= 0.9
    held = publisher.run(meta.counters_of([stream]))[stream]
    assert abs(held.ids_since - held.ids_ahead - steady(publisher)) < 3_000
    looked = publisher.run(fsck.look(stream))
    assert looked is not None
    assert looked.findings == ()
    publisher.close()


def test_windows_end_also_where_the_steady_clock_begins_anew_and_earlier(log: Log, stream: str) -> None:
    publish(log, stream, "a")
    held = log.run(meta.counters_of([stream]))[stream]
    far = msgspec.structs.replace(held, ids_ahead=held.ids_ahead - DAY_MS)
    log.client.hset(keys.meta(stream), "counters", meta.pack(far))
    assert publish(log, stream, "a", "b") == [True, False]
    held = log.run(meta.counters_of([stream]))[stream]
    assert abs(held.ids_since - held.ids_ahead - steady(log)) < 3_000


@dataclass
class Machine:
    """A machine's own clock, moved by hand."""

    ms: float = 1_000_000.0

    def __call__(self) -> float:
        return self.ms


def known(machine: Machine, *, corrects: bool = False) -> SteadyClock:
    """A clock that has agreed with a server 7 s ahead of the machine often enough to trust itself."""
    made = SteadyClock(corrects=corrects, machine=machine)
    for _ in range(clock.KNOWN_AFTER):
        assert made.compare(machine.ms + 7_000, asked_ms=machine.ms) == 0
    return made


def test_drift_is_followed() -> None:
    machine = Machine()
    follower = known(machine)
    assert follower.compare(machine.ms + 7_000 + clock.STEP_MS, asked_ms=machine.ms) == 0
    assert follower.now_ms() == machine.ms + 7_000 + clock.STEP_MS


@pytest.mark.parametrize(("corrects", "noted"), [(True, HOUR_MS), (False, 0)])
def test_only_the_keeper_notes_a_jump_and_everybody_keeps_the_time(corrects: bool, noted: int) -> None:
    machine = Machine()
    one_of_them = known(machine, corrects=corrects)
    assert one_of_them.compare(machine.ms + 7_000 + HOUR_MS, asked_ms=machine.ms) == noted
    assert one_of_them.now_ms() == machine.ms + 7_000


def test_a_newcomer_takes_the_servers_time() -> None:
    machine = Machine()
    newcomer = SteadyClock(corrects=True, machine=machine)
    newcomer.compare(machine.ms + DAY_MS, asked_ms=machine.ms)
    assert newcomer.compare(machine.ms + 5, asked_ms=machine.ms) == 0
    assert newcomer.now_ms() == machine.ms + 5


def test_a_slow_answer_tells_nothing() -> None:
    machine = Machine()
    asking = known(machine, corrects=True)
    asked_ms = machine.ms
    machine.ms += 10_000
    assert asking.compare(asked_ms + 7_000, asked_ms=asked_ms) == 0
    assert 0 <= machine.ms + 7_000 - asking.now_ms() <= 10_000 * clock.DRIFT


def test_one_that_disagrees_for_long_gives_in() -> None:
    machine = Machine()
    stubborn = known(machine)
    machine.ms += clock.ADOPT_AFTER_MS
    stubborn.compare(machine.ms, asked_ms=machine.ms)
    assert stubborn.now_ms() == machine.ms


def test_the_server_is_asked_once_a_second() -> None:
    machine = Machine()
    asking = known(machine)
    assert asking.fresh_ms() == machine.ms + 7_000
    machine.ms += clock.LOOK_EVERY_MS
    assert asking.fresh_ms() is None
    told = asking.fresh_ms()
    assert told is not None
    assert 0 <= machine.ms + 7_000 - told <= clock.LOOK_EVERY_MS * clock.DRIFT


@dataclass
class Looks:
    """A process that compares its clock with a server whose answers take their time, by hand."""

    now_ms: float = 0.0
    ahead_ms: float = 1_000_000.0
    skew_ms: int = 0
    jumps: str | None = None

    def begin(self, ours: SteadyClock) -> None:
        self.op = compared_ms(ours, Steady())
        next(self.op)

    def answer(self, *, before_ms: float = 0.0, after_ms: float = 0.0) -> int | None:
        """The server reads its clock between two waits; what is noted of it, the steady time once it is known."""
        self.now_ms += before_ms
        microseconds = int((self.ahead_ms + self.now_ms) * 1000)
        self.now_ms += after_ms
        try:
            command = self.op.send([divmod(microseconds, 1_000_000), str(self.skew_ms), self.jumps])
            if isinstance(command, Script):
                self.skew_ms = int(command.args[1])
                self.jumps = f"0 0 1 {self.skew_ms}"
                self.op.send(1)
        except StopIteration as done:
            return int(done.value)
        return None


def test_a_process_whose_first_look_was_slow_looks_again_until_one_is_quick() -> None:
    looks = Looks()
    ours = SteadyClock(machine=lambda: looks.now_ms)
    looks.begin(ours)
    assert looks.answer(after_ms=900) is None
    assert looks.answer(after_ms=400) is None
    told = looks.answer(after_ms=0.99 * clock.ROUGH_MS)
    assert told is not None
    assert 0 <= looks.ahead_ms + looks.now_ms - told <= clock.ROUGH_MS + 1
    assert not ours.is_rough


def test_slow_looks_together_tell_the_time_better_than_each() -> None:
    looks = Looks()
    looks.begin(SteadyClock(machine=lambda: looks.now_ms))
    assert looks.answer(before_ms=1, after_ms=300) is None
    told = looks.answer(before_ms=300, after_ms=1)
    assert told is not None
    assert abs(told - (looks.ahead_ms + looks.now_ms)) <= 2


@given(
    waits=st.lists(st.tuples(*[st.floats(0, 900)] * 3), min_size=1, max_size=30),
    drift=st.floats(-clock.DRIFT, clock.DRIFT),
)
def test_the_time_is_between_what_it_is_at_least_and_at_most(
    waits: list[tuple[float, float, float]], drift: float
) -> None:
    machine = Machine()
    ours = SteadyClock(machine=machine)

    def server_ms() -> float:
        return 7_000 + machine.ms * (1 + drift)

    for before_ms, after_ms, idle_ms in waits:
        asked_ms = machine.ms
        machine.ms += before_ms
        read_ms = server_ms()
        machine.ms += after_ms
        assert ours.compare(read_ms, asked_ms=asked_ms) == 0
        assert ours.now_ms() <= server_ms() <= ours.now_ms(latest=True)
        machine.ms += idle_ms
        assert ours.now_ms() <= server_ms() <= ours.now_ms(latest=True)


def looked_slowly(server_ms: float, *, slow_ms: float, read: Literal["first", "last"]) -> SteadyClock:
    """A clock that knows the time by one look, which took so long; the server read its own first, or last."""
    ours, now_ms = SteadyClock(), clock.machine_ms()
    ours.compare(server_ms - (slow_ms if read == "first" else 0), asked_ms=now_ms - slow_ms)
    return ours


@pytest.mark.parametrize("renewed", [False, True])
def test_processes_whose_clocks_differ_keep_each_others_leases(
    log: Log, redis_url: str, stream: str, renewed: bool
) -> None:
    slow_ms, ack_wait_s = 300.0, 0.5
    log.run(groups.group_publish(stream, "g", Settings(ack_wait_ms=int(ack_wait_s * 1000))))
    fill(log, stream, 1)
    behind, ahead = Log(redis_url), Log(redis_url)
    with closing(behind), closing(ahead):
        seconds, microseconds = log.client.execute_command("TIME")
        server_ms = int(seconds) * 1000 + int(microseconds) / 1000
        behind.clock = looked_slowly(server_ms, slow_ms=slow_ms, read="first")
        ahead.clock = looked_slowly(server_ms, slow_ms=slow_ms, read="last")
        began = time.monotonic()
        (delivery,) = behind.run(groups.fetch(stream, "g", limit=1)).deliveries
        if renewed:
            began = time.monotonic()
            behind.run(answers.working(stream, "g", "leases", [delivery.lease]))
        until(lambda: take(ahead, stream))
        assert time.monotonic() - began >= ack_wait_s


def used_keeper(looks: Looks) -> SteadyClock:
    """The worker's clock, which has looked often enough to trust itself."""
    keeper = SteadyClock(corrects=True, machine=lambda: looks.now_ms)
    for _ in range(clock.KNOWN_AFTER):
        looks.begin(keeper)
        assert looks.answer() is not None
    return keeper


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -DAY_MS])
def test_how_far_a_clock_was_set_is_noted_to_the_millisecond_on_a_busy_machine(jump_ms: int) -> None:
    looks = Looks()
    keeper = used_keeper(looks)
    looks.ahead_ms += jump_ms
    looks.begin(keeper)
    for _ in range(2):
        assert looks.answer(before_ms=200, after_ms=40) is None
        assert looks.skew_ms == 0, "too slow a look to tell how far"
    assert looks.answer(after_ms=1) is None
    assert abs(looks.skew_ms - jump_ms) <= 1
    assert looks.answer() is not None


def test_how_far_a_clock_was_set_is_noted_even_where_no_look_is_quick() -> None:
    looks = Looks()
    keeper = used_keeper(looks)
    looks.ahead_ms += HOUR_MS
    looks.begin(keeper)
    for _ in range(clock.FIRST_LOOKS):
        assert looks.skew_ms == 0
        looks.answer(before_ms=20, after_ms=20)
    assert abs(looks.skew_ms - HOUR_MS) <= 20


def test_what_was_left_long_ago_or_on_another_machine_counts_for_nothing(log: Log, stream: str) -> None:
    machine = Machine(ms=10 * HOUR_MS)
    for left, is_told in ((b"7000 7000 0", False), (b"7000 7000 35000000", True)):
        newcomer = SteadyClock(corrects=True, machine=machine)
        jump_ms = newcomer.compare(machine.ms + DAY_MS, asked_ms=machine.ms, left=left)
        assert (jump_ms > HOUR_MS) is is_told
        assert newcomer.machine_name == ""
