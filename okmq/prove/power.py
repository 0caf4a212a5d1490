"""The power goes while a store works: what was not flushed is gone, and answers have promised no more than that."""

import asyncio
import os
import random
import signal
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

from okmq.instance import Instance, instance
from okmq.prove import rewrites
from okmq.prove.apart import Apart
from okmq.prove.callers import Publisher
from okmq.prove.cuts import running_store
from okmq.prove.faults import Struck, Target, recovery_allowed_s
from okmq.prove.flushes import PowerSwitch
from okmq.prove.history import Publish, Remains
from okmq.prove.load import Load
from okmq.prove.machine import look
from okmq.supervision import rights
from streams.log.client import Log
from streams.log.commands import one

REWRITTEN_EVERY = 3
"""Each so-manieth time the append-only file is to be rewritten when the power goes."""

ALWAYS, EVERY_SECOND = "a flush for every answer", "a flush every second"
WINDOW = "window"
FILES = "appendonlydir"
PUBLISHERS = 12
GOES_AFTER_S = (1.0, 2.5)
AFTER_S = 0.02
"""So long it writes what does not get to the disk any more."""

LOST_S = 2.0
"""Of a core: nothing acknowledged earlier may be gone. The store flushes once a second, and puts a flush off for
one that is under way."""


def on_power_cuts(folder: Path, *, cuts: int) -> Apart:
    """Cut the power of a store that flushes for every answer, under the load of groups.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    with _Store(folder, fsync="always") as store, _product(folder, store) as product:
        return asyncio.run(_all_is_kept(product, store, cuts))


def on_power_cuts_in_the_window(folder: Path, *, cuts: int) -> Apart:
    """Cut the power of a store that flushes once a second, while it is published to.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    with _Store(folder, fsync="everysec") as store, _product(folder, store) as product:
        return asyncio.run(_the_last_is_lost(product, store, cuts))


def _product(folder: Path, store: "_Store") -> AbstractContextManager[Instance]:
    return instance(folder, more={"OKMQ_WEB_WORKERS": "2", "OKMQ_REDIS_URL": store.url})


class _Store:
    """A store on a disk whose power can be cut; it runs inside of the block."""

    def __init__(self, folder: Path, *, fsync: str) -> None:
        self._folder, self._fsync = folder, fsync
        self._place = folder / "store"
        self._stack = ExitStack()
        self._starts = 0
        self.url = ""

    def __enter__(self) -> "_Store":
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def start(self) -> None:
        """Start it on what the disk has."""
        self._starts += 1
        self._switch = PowerSwitch(self._place / FILES)
        through = self._stack.enter_context(self._switch.open(self._folder / f"flushes-{self._starts}"))
        running = running_store(self._place, fsync=self._fsync, through=through)
        self.url, _ = self._stack.enter_context(running)
        self._keeper = self._stack.enter_context(closing(Log(rights.keeper_url(self.url, self._place))))

    def lose_power(self, *, chance: random.Random | None = None) -> tuple[int, bool]:
        """How many bytes it had written and not flushed, which are gone; whether it rewrote its file then.

        Args:
            chance: where it is to have begun a rewrite just before.
        """
        pid = pid_of(self._keeper)
        is_rewriting = chance is not None and rewrites.midway(self._keeper, chance)
        self._switch.off()
        Event().wait(AFTER_S)
        os.kill(pid, signal.SIGKILL)
        self._stack.close()
        return self._switch.forget(), is_rewriting


def pid_of(keeper: Log) -> int:
    """The process id of the store that answers there; it has to be asked while the power is on."""
    told: bytes = keeper.run(one(("INFO", "server")))
    return int(told.split(b"process_id:")[1].split()[0])


async def _all_is_kept(product: Instance, store: _Store, cuts: int) -> Apart:
    load = Load(product.port, token=product.token)
    apart, target = Apart(load=load), Target(instance=product, scene=load.scene)
    async with load.running():
        await target.publishes_again(monotonic())
        for number in range(cuts):
            await load.surge(0.3)
            chance = target.chance if number % REWRITTEN_EVERY == 0 else None
            await asyncio.sleep(target.chance.uniform(0, 0.2))
            began, since = monotonic(), look()
            gone, is_rewriting = await asyncio.to_thread(partial(store.lose_power, chance=chance))
            await asyncio.to_thread(store.start)
            started = monotonic()
            back = await target.publishes_again(started)
            load.calm()
            apart.struck.append(
                Struck(
                    name=f"the power of the store goes, {ALWAYS}{rewrites.WHILE if is_rewriting else ''}",
                    began=began,
                    back=back,
                    recovery_s=back - started,
                    allowed_s=recovery_allowed_s(load.scene.messages),
                    messages=load.scene.messages,
                    taken=load.scene.machine.taken(since),
                    note=f"{gone:,} bytes were not flushed",
                )
            )
    return apart


class _Once(Publisher):
    """Sends nothing a second time: what was lost stays lost."""

    async def _until_taken(self, batch: list[dict[str, Any]]) -> None:
        await self._publish(batch)


async def _the_last_is_lost(product: Instance, store: _Store, cuts: int) -> Apart:
    load, chance = Load(product.port, token=product.token), random.Random(8)
    apart, scene = Apart(load=load), load.scene
    scene.pause_s = 0.0
    for number in range(cuts):
        stream = f"window-{number}"
        await load.ask("POST", "/streams/", {"name": stream, "archive": False})
        scene.publishing.set()
        before = look()
        publishers = [asyncio.create_task(_Once(scene, stream, f"p{n}").run()) for n in range(PUBLISHERS)]
        await asyncio.sleep(chance.uniform(*GOES_AFTER_S))
        began = monotonic()
        await asyncio.to_thread(store.lose_power)
        scene.publishing.clear()
        await asyncio.gather(
            *publishers
        )  # before it is there again: what is lost is not told by whom comes after it
        await asyncio.to_thread(store.start)
        await load.ask("GET", f"/streams/{stream}")
        back = monotonic()
        scene.history.remains[stream] = await load.remains(stream)
        taken = scene.machine.taken(before)
        note, oldest_s = _judge(apart, stream, went_at=began, allowed_s=taken.allows_s(LOST_S))
        name = f"the power of the store goes, {EVERY_SECOND}"
        apart.struck.append(
            Struck(name=name, began=began, back=back, taken=taken, note=note, weight=oldest_s)
        )
    for stream, was in list(scene.history.remains.items())[:-1]:
        scene.history.remains[stream] = now = await load.remains(stream)
        apart.wrong += not_kept(stream, was, now)
    load.close()
    return apart


def not_kept(stream: str, was: Remains, now: Remains) -> list[str]:
    """What of a stream was there after the cut that it had, and is not after the others: it was on the disk."""
    gone = set(was.messages).difference(now.messages)
    came = set(now.messages).difference(was.messages)
    told = (
        [f"{len(gone)} messages that were there after its cut are not there after the others"] if gone else []
    )
    told += [f"{len(came)} messages are there that were not after its cut"] if came else []
    if (was.offset, was.committed) != (now.offset, now.committed):
        told.append(f"its offsets were {was.offset}, {was.committed} and are {now.offset}, {now.committed}")
    return [f"{stream}: {sentence}" for sentence in told]


def _judge(apart: Apart, stream: str, *, went_at: float, allowed_s: float) -> tuple[str, float]:
    """Note what was promised and not kept; what was lost of what was promised less, and how old that was at most."""
    there = {each.id for each in apart.history.remains[stream].messages}
    acknowledged = [
        each for each in apart.history.of(stream) if isinstance(each, Publish) and each.outcome == "ok"
    ]
    lost = [each for each in acknowledged if not there.issuperset(each.ids)]
    too_much = sum(each.durability != WINDOW for each in acknowledged)
    oldest_s = max((went_at - each.ended for each in lost), default=0.0)
    if too_much:
        apart.wrong.append(f"{stream}: {too_much} answers promised more than a flush every second keeps")
    if oldest_s > allowed_s:
        apart.wrong.append(f"{stream}: what was acknowledged {oldest_s:.1f} s before the power went is gone")
    messages, of = (sum(len(each.ids) for each in some) for some in (lost, acknowledged))
    told = f"{messages:,} of {of:,} messages lost, acknowledged as `{WINDOW}` in the last {oldest_s:.1f} s"
    return told, oldest_s
