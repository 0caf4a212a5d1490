"""Limits alone and together, on a server whose clock can be moved, beside a model: exact counts and bytes at any time.

Beside ``test_model.py`` (groups, losses, seeks) and ``test_removals_model.py`` (undo) this one lets time pass.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streams.log import config, entries, groups, keys, stats, trim
from streams.log.append import append
from streams.log.client import Log
from streams.log.clock import machine_ms
from streams.log.entries import NewMessage
from streams.log.errors import StreamFull
from streams.log.groups import Settings
from tests.servers import store
from tests.streams.log.conftest import DEFAULTS
from tests.streams.log.messages import browse
from tests.waiting import until

HOUR_S = 3600
STREAMS, STEPS = 12, 40
"""Time passes by hours, and what lives lives so many and a half, so the minutes that the test takes decide nothing."""


@dataclass
class Held:
    made: int
    size: int
    key: str | None
    lives: int | None


@dataclass
class Model:
    hour: int = 0
    last: int = 0
    held: dict[int, Held] = field(default_factory=dict)
    acked: set[int] = field(default_factory=set)
    delivered: int = 0
    limits: dict[str, int | None] = field(default_factory=dict)
    retention: str = "limits"
    discard: str = "old"

    @property
    def size(self) -> int:
        return sum(each.size for each in self.held.values())

    def is_over(self) -> bool:
        most, size = self.limits.get("max_messages"), self.limits.get("max_bytes")
        return (most is not None and len(self.held) > most) or (size is not None and self.size > size)

    def pass_time(self) -> None:
        ttl = self.limits.get("ttl")
        for offset, each in list(self.held.items()):
            if any(lives is not None and self.hour - each.made > lives for lives in (ttl, each.lives)):
                del self.held[offset]

    def limit(self) -> None:
        self.pass_time()
        while self.is_over():
            del self.held[min(self.held)]
        self.keep_newest()

    def keep_newest(self) -> None:
        most = self.limits.get("max_messages_per_key")
        if most is None:
            return
        for key in {each.key for each in self.held.values()} - {None}:
            for offset in sorted(at for at, each in self.held.items() if each.key == key)[:-most]:
                del self.held[offset]

    def published(self, batch: list[Held]) -> bool:
        """Whether it is taken; a full stream that refuses what comes keeps what it has."""
        before, last = dict(self.held), self.last
        for each in batch:
            self.last += 1
            self.held[self.last] = each
        self.keep_newest()
        if self.discard == "new" and self.is_over():
            self.held, self.last = before, last
            return False
        while self.is_over():
            del self.held[min(self.held)]
        return True

    def release(self) -> None:
        if self.retention == "interest":
            for offset in self.acked:
                self.held.pop(offset, None)


@dataclass
class Faked:
    """A server's log, and its clock in whole hours from now. Time passes for both: nobody has set a clock."""

    log: Log
    clock: Path

    def set_hour(self, hour: int) -> None:
        self.clock.write_text(f"+{hour * HOUR_S}")
        self.log.clock.machine = lambda: machine_ms() + hour * HOUR_S * 1000
        until(lambda: self._server_s() - time.time() > hour * HOUR_S - 60, within_s=5)

    def _server_s(self) -> int:
        return int(self.log.client.execute_command("TIME")[0])


@pytest.fixture
def faked(tmp_path: Path) -> Iterator[Faked]:
    clock = tmp_path / "offset"
    clock.write_text("+0")
    library = next(Path("/usr/lib").rglob("libfaketimeMT.so.1"), None)
    assert library, "libfaketime is missing: run scripts/system-packages"
    environ = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with store(tmp_path / "store", fsync=None, environ=environ) as running:
        log = Log(running.url)
        yield Faked(log, clock)
        log.close()


def publish_settings(log: Log, stream: str, model: Model, *, archive: bool) -> None:
    ttl = model.limits.get("ttl")
    wanted = {**model.limits, "ttl": None if ttl is None else ttl * HOUR_S + HOUR_S // 2}
    registered = config.Registered(
        stream_id=stream, name=stream, workspace="w", workspace_id=1, archive=archive
    )
    changed = {"archive": archive, "retention": model.retention, "discard": model.discard}
    log.run(config.stream_publish(registered, {**DEFAULTS, **wanted, **changed}))


@pytest.mark.long
def test_limits_and_time_leave_exactly_what_the_model_says(faked: Faked) -> None:
    chance, log, hour = random.Random(11), faked.log, 0
    for number in range(STREAMS):
        stream, model = keys.stream_id(), Model(hour=hour)
        archive = number % 3 == 0
        publish_settings(log, stream, model, archive=archive)
        log.run(groups.group_publish(stream, "g", Settings(max_ack_pending=100_000, max_deliver=-1)))
        for step in range(STEPS):
            match chance.choice(("publish",) * 4 + ("time", "limit", "delete", "sweep", "fetch", "purge")):
                case "publish":
                    batch = [
                        Held(hour, chance.randint(1, 30), chance.choice([None, "a", "b"]), lives)
                        for lives in chance.choices([None, None, 0, 1, 3], k=chance.randint(1, 6))
                    ]
                    model.pass_time()
                    messages = [
                        NewMessage(
                            id=f"{step}-{n}",
                            body=b"7" * each.size,
                            key=each.key,
                            ttl_s=None if each.lives is None else each.lives * HOUR_S + HOUR_S // 2,
                        )
                        for n, each in enumerate(batch)
                    ]
                    try:
                        log.run(append(stream, messages))
                        is_taken = True
                    except StreamFull:
                        is_taken = False
                    assert is_taken == model.published(batch)
                case "time":
                    hour += chance.randint(1, 2)
                    model.hour = hour
                    faked.set_hour(hour)
                case "limit":
                    model.pass_time()
                    model.limits = {
                        "ttl": chance.choice([None, 1, 4]),
                        "max_messages": chance.choice([None, 5, 12]),
                        "max_bytes": chance.choice([None, 60, 200]),
                        "max_messages_per_key": chance.choice([None, 2, 4]),
                    }
                    model.retention = chance.choice(["limits", "interest"])
                    model.discard = chance.choice(["old", "old", "new"])
                    publish_settings(log, stream, model, archive=archive)
                    log.run(trim.expire(stream))
                    log.run(trim.apply_limits(stream))
                    log.run(trim.keep_newest_of_keys(stream))
                    model.limit()
                case "delete":
                    offsets = chance.sample(range(1, model.last + 2), min(3, model.last + 1))
                    model.pass_time()
                    gone = [model.held.pop(offset) for offset in offsets if offset in model.held]
                    removed = log.run(trim.delete(stream, offsets))
                    assert removed == trim.Removed(len(gone), sum(each.size for each in gone))
                case "purge":
                    below = chance.randint(1, model.last + 1)
                    log.run(trim.purge(stream, below=below))
                    model.held = {at: each for at, each in model.held.items() if at >= below}
                case "sweep":
                    log.run(trim.expire(stream))
                    log.run(trim.apply_limits(stream))
                    log.run(trim.release(stream))
                    log.run(trim.drop(stream))
                    model.pass_time()
                    model.release()
                case "fetch":
                    got = log.run(groups.fetch(stream, "g", limit=chance.randint(1, 8))).deliveries
                    offsets = [entries.position(each.entry)[0] for each in got]
                    done = chance.sample(offsets, len(offsets) // 2)
                    log.run(groups.ack(stream, "g", "offsets", done))
                    model.acked.update(done)
            model.pass_time()
            state = log.run(stats.inspect(stream))
            found = {each.offset: (len(each.body), each.key) for each in browse(log, stream)}
            assert found == {at: (each.size, each.key) for at, each in model.held.items()}, (number, step)
            assert (state.messages, state.bytes) == (len(model.held), model.size), (number, step)
            assert state.first_offset == min(model.held, default=model.last + 1), (number, step)
            assert state.offset == model.last
