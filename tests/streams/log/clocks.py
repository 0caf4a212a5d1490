"""A server whose wall clock can be set."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streams.log import clock, config, groups, keys
from streams.log.client import Log, Steady, one
from streams.log.groups import Settings
from tests.servers import Store, store
from tests.streams.log.messages import fill
from tests.waiting import until

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
WAIT_MS = 1500


@dataclass(frozen=True)
class Faked:
    """A server whose wall clock can be set, and a stream with the group g on it."""

    store: Store
    offset_file: Path
    stream: str

    def set_clock(self, ahead_s: int) -> None:
        self.offset_file.write_text(f"{ahead_s:+d}")

    def set_clock_noted(self, ahead_s: int, worker: Log) -> None:
        """Set it, and wait until the worker has noted it."""
        self.set_clock(ahead_s)
        noted_ms = ahead_s * 1000
        until(lambda: steady(worker) and abs(skew_ms(worker) - noted_ms) < 1000)

    def connect(self, *, keeps_clock: bool = False) -> Log:
        return Log(self.store.url, keeps_clock=keeps_clock)


def steady(log: Log) -> int:
    found: int = log.run(one(Steady()))
    return found


def used_to(log: Log) -> Log:
    """Looks at the clock until this process trusts its own."""
    looked = [steady(log) for _ in range(clock.KNOWN_AFTER + 1)]
    assert max(looked) - min(looked) < 5_000
    return log


def skew_ms(log: Log) -> int:
    """What is noted of how far the server's clock is ahead."""
    return int(log.client.execute_command("GET", keys.SKEW) or 0)


@contextmanager
def faked_store(tmp_path: Path) -> Iterator[Faked]:
    """One that runs, with twenty messages in its stream."""
    offset_file = tmp_path / "offset"
    offset_file.write_text("+0")
    library = next(Path("/usr/lib").rglob("libfaketimeMT.so.1"), None)
    assert library, "libfaketime is missing: run scripts/system-packages"
    environ = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(offset_file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with store(tmp_path / "store", environ=environ) as running:
        made = Log(running.url)
        stream = config.Registered(
            stream_id=keys.stream_id(), name="s", workspace="default", workspace_id=1, archive=False
        )
        settings = {"dedup_window": 86_400, "max_message_bytes": 1000, "discard": "old"}
        made.run(config.stream_publish(stream, settings))
        made.run(groups.group_publish(stream.stream_id, "g", Settings(ack_wait_ms=WAIT_MS)))
        fill(made, stream.stream_id, 20)
        made.close()
        yield Faked(running, offset_file, stream.stream_id)
