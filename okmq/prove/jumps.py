"""A store whose clock is set, hours and days forth and back, under load: nothing comes or is forgotten early.

Each time a batch that was stored before is sent again after: shorter than any jump is the time for which ids are
remembered, and longer than all of it takes. Beside it are messages that live for a short time, and are there for that.
"""

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

from okmq.instance import Instance, instance
from okmq.prove.aging import LIVES_S, TIMED, aging
from okmq.prove.apart import Apart, open_files
from okmq.prove.callers import Publisher, Scene
from okmq.prove.cuts import running_store
from okmq.prove.faults import NEXT_CALL_S, Struck, Target
from okmq.prove.history import Fetch, Operation, Read
from okmq.prove.load import ACK_WAIT_S, STREAMS, Load
from okmq.prove.machine import look
from streams.log.clock import KNOWN_AFTER, LOOK_EVERY_MS

JUMPS_S = (3600, -3600, 86_400, -86_400, 0)
"""Where the clock is set to, against the real one, one after the other."""

REMEMBERED_S = 1800
"""For so long the streams remember ids: less than any jump, and more than a run takes."""

KNOWN_AFTER_S = (KNOWN_AFTER + 2) * LOOK_EVERY_MS / 1000
"""What is judged is a clock that was right until then: after this time every process trusts it."""

WHILE_IT_LASTS = timedelta(hours=4)
"""Time never runs backwards in a stream: its last message is of the clock that was furthest ahead."""

LIBRARY = "libfaketimeMT.so.1"
FOLDERS = ("/usr/lib", "/usr/local/lib", "/usr/lib64")


def faked_clock() -> Path | None:
    """libfaketime, which lets processes see another time than it is; None where it is not installed."""
    found = (path for folder in FOLDERS for path in sorted(Path(folder).glob(f"**/faketime/{LIBRARY}")))
    return next(found, None)


def on_a_clock_that_is_set(folder: Path, *, library: Path, jumps_s: Sequence[int] = JUMPS_S) -> Apart:
    """Put the load on a product whose store sees a clock that is set while it works.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    ahead = folder / "ahead"
    ahead.write_text("+0")
    environ = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(ahead),
        "FAKETIME_NO_CACHE": "1",
        # Nobody sets these, on a real machine either.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with (
        running_store(folder / "store", environ=environ) as (url, _),
        instance(folder, more={"OKMQ_WEB_WORKERS": "2", "OKMQ_REDIS_URL": url}) as product,
    ):
        return asyncio.run(_jumps(product, ahead, jumps_s))


async def _jumps(product: Instance, ahead: Path, jumps_s: Sequence[int]) -> Apart:
    load = Load(product.port, token=product.token, dedup_window_s=REMEMBERED_S)
    apart, target = Apart(load=load), Target(instance=product, scene=load.scene)
    async with load.running(), aging(load):
        await target.publishes_again(monotonic())
        known = monotonic() + KNOWN_AFTER_S
        await target.wait(lambda: monotonic() > known and _fetched(target) > 100, what="groups work")
        before, again = open_files(product), [Again(load.scene, stream) for stream in STREAMS]
        for jump_s in jumps_s:
            await asyncio.gather(*(each.send() for each in again))
            await load.surge(0.3)
            apart.struck.append(await _jump(target, ahead, jump_s, again))
            load.calm()
        for each in again:
            each.close()
    apart.left_open(before, open_files(product), what="a clock that was set")
    seen = datetime.fromisoformat(load.scene.history.remains[STREAMS[0]].messages[-1].content[0])
    if seen < datetime.now(UTC) + timedelta(seconds=max(jumps_s)) - WHILE_IT_LASTS:
        apart.wrong.append(f"the store did not see its clock: its last message is of {seen:%Y-%m-%d %H:%M}")
    if not _went(load.scene.history.of(TIMED)):
        apart.wrong.append(
            f"{TIMED}: nothing was over after {LIVES_S} s: nothing can be said of what was before"
        )
    return apart


def _went(operations: Sequence[Operation]) -> bool:
    """Whether something that a read brought is there no more in a later one."""
    reads = [each for each in operations if isinstance(each, Read) and each.messages]
    return bool(reads) and reads[-1].messages[0].offset > reads[0].messages[0].offset


class Again(Publisher):
    """Sends what was stored once more; the receipts of both have to name the same offsets, which the history tells."""

    def __init__(self, scene: Scene, stream: str) -> None:
        super().__init__(scene, stream, "again")
        self._sent: list[list[dict[str, Any]]] = []

    @property
    def batches(self) -> int:
        """How many there are of them."""
        return len(self._sent)

    async def send(self) -> None:
        """A batch that is new."""
        self._sent.append(self._batch(len(self._sent) + 1))
        await self._until_taken(self._sent[-1])

    async def send_again(self) -> None:
        """All of them."""
        for batch in self._sent:
            await self._until_taken(batch)

    def close(self) -> None:
        self._client.close()


async def _jump(target: Target, ahead: Path, jump_s: int, again: Sequence[Again]) -> Struck:
    began, since = monotonic(), look()
    await asyncio.to_thread(_set, ahead, jump_s)
    await asyncio.gather(*(each.send_again() for each in again))
    back = await target.publishes_again(monotonic())
    taken = target.scene.machine.taken(since)
    # What was out comes back when its time is over, not before: long enough to see both.
    seen = await target.wait(
        lambda: monotonic() > began + 1.5 * ACK_WAIT_S, what="the time of a lease passes"
    )
    name = (
        f"the clock of the store is set {jump_s / 3600:+g} h"
        if jump_s
        else "the clock of the store is set right"
    )
    return Struck(
        name=name,
        began=began,
        back=back,
        recovery_s=back - began,
        allowed_s=NEXT_CALL_S,
        taken=taken,
        note=f"{sum(each.batches for each in again)} batches of before were sent again",
        lasted_until=seen,
    )


def _set(ahead: Path, jump_s: int) -> None:
    """At once: a process that looks sees the one or the other, never a file that is being written."""
    fresh = ahead.with_suffix(".fresh")
    fresh.write_text(f"{jump_s:+d}")
    fresh.replace(ahead)


def _fetched(target: Target) -> int:
    return sum(len(each.taken) for each in target.scene.history.operations if isinstance(each, Fetch))
