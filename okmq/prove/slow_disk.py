"""A store whose disk takes its time for every flush, under load: nothing is lost, every call ends, and it heals."""

import asyncio
import statistics
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from okmq.instance import Instance, instance
from okmq.prove.apart import Apart, open_files
from okmq.prove.cuts import running_store
from okmq.prove.faults import BACK_WITHIN_S, PROCESS_S, Struck, Target
from okmq.prove.flushes import SlowDisk
from okmq.prove.history import Publish
from okmq.prove.load import Load
from okmq.prove.machine import look

FLUSHES_S = (0.02, 0.5, 1.5)


def on_a_slow_disk(folder: Path, *, seconds: float, flushes_s: Sequence[float] = FLUSHES_S) -> Apart:
    """Put the load on a product whose store flushes slowly, each time for so many seconds.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    disk = SlowDisk()
    with (
        disk.open(folder / "flushes") as through,
        running_store(folder / "store", through=through) as (url, _),
        instance(folder, more={"OKMQ_WEB_WORKERS": "2", "OKMQ_REDIS_URL": url}) as product,
    ):
        return asyncio.run(_slow_times(product, disk, seconds, flushes_s))


async def _slow_times(product: Instance, disk: SlowDisk, seconds: float, flushes_s: Sequence[float]) -> Apart:
    load = Load(product.port, token=product.token)
    apart, target = Apart(load=load), Target(instance=product, scene=load.scene)
    async with load.running():
        await target.publishes_again(monotonic())
        before = open_files(product)
        for flush_s in flushes_s:
            apart.struck.append(await _slow(target, disk, flush_s, seconds))
            await load.surge(0.3)
            load.calm()
    apart.left_open(before, open_files(product), what="a slow disk")
    return apart


async def _slow(target: Target, disk: SlowDisk, flush_s: float, seconds: float) -> Struck:
    began, flushed = monotonic(), disk.flushed
    disk.flush_s = flush_s

    def is_over() -> bool:
        # What was on its way at the beginning takes up to three flushes; what is measured is sent after that.
        return (
            monotonic() > began + seconds
            and disk.flushed > flushed + 1
            and target.saw(Publish, "ok", since=began)
        )

    await target.wait(
        is_over, what="a publish is stored by a disk that is slow", within_s=seconds + BACK_WITHIN_S
    )
    disk.flush_s = 0.0
    ended, since = monotonic(), look()
    back = await target.publishes_again(ended)
    took = [
        each.ended - each.began
        for each in target.since(began)
        if isinstance(each, Publish) and each.outcome == "ok" and began <= each.began <= ended
    ]
    note = f"{flush_s * 1000:g} ms: {len(took)} publishes in {ended - began:.0f} s"
    if took:
        note += f", each in {statistics.median(took):.2f} s, the slowest in {max(took):.2f} s"
    refused = [
        each.ended - each.began
        for each in target.since(began)
        if isinstance(each, Publish) and each.outcome == "info" and began <= each.began <= ended
    ]
    if refused:
        note += f"; {len(refused)} not stored, the slowest answer after {max(refused):.2f} s"
    name = f"every flush of the store takes {flush_s * 1000:g} ms longer"
    return Struck(
        name=name,
        began=began,
        back=back,
        recovery_s=back - ended,
        allowed_s=PROCESS_S,
        taken=target.scene.machine.taken(since),
        note=note,
    )
