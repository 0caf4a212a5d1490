"""A store whose clock is set, hours and days forth and back, under load: nothing comes early, time never runs back."""

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

from okmq.instance import Instance, instance
from okmq.prove.apart import Apart, open_files
from okmq.prove.cuts import running_store
from okmq.prove.faults import NEXT_CALL_S, Struck, Target
from okmq.prove.history import Fetch
from okmq.prove.load import ACK_WAIT_S, STREAMS, Load
from okmq.prove.machine import look
from streams.log.clock import KNOWN_AFTER, LOOK_EVERY_MS

JUMPS_S = (3600, -3600, 86_400, -86_400, 0)
"""Where the clock is set to, against the real one, one after the other."""

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
    load = Load(product.port, token=product.token)
    apart, target = Apart(load=load), Target(instance=product, scene=load.scene)
    async with load.running():
        await target.publishes_again(monotonic())
        known = monotonic() + KNOWN_AFTER_S
        await target.wait(lambda: monotonic() > known and _fetched(target) > 100, what="groups work")
        before = open_files(product)
        for jump_s in jumps_s:
            await load.surge(0.3)
            apart.struck.append(await _jump(target, ahead, jump_s))
            load.calm()
    apart.left_open(before, open_files(product), what="a clock that was set")
    seen = datetime.fromisoformat(load.scene.history.remains[STREAMS[0]].messages[-1].content[0])
    if seen < datetime.now(UTC) + timedelta(seconds=max(jumps_s)) - WHILE_IT_LASTS:
        apart.wrong.append(f"the store did not see its clock: its last message is of {seen:%Y-%m-%d %H:%M}")
    return apart


async def _jump(target: Target, ahead: Path, jump_s: int) -> Struck:
    began, since = monotonic(), look()
    await asyncio.to_thread(_set, ahead, jump_s)
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
        lasted_until=seen,
    )


def _set(ahead: Path, jump_s: int) -> None:
    """At once: a process that looks sees the one or the other, never a file that is being written."""
    fresh = ahead.with_suffix(".fresh")
    fresh.write_text(f"{jump_s:+d}")
    fresh.replace(ahead)


def _fetched(target: Target) -> int:
    return sum(len(each.taken) for each in target.scene.history.operations if isinstance(each, Fetch))
