"""Half of the load that a product can take, for long: memory, open files and slow answers stay as they are."""

import asyncio
import contextlib
import random
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from okmq.instance import Instance, instance
from okmq.prove.apart import Apart, files_of, memory_of
from okmq.prove.callers import Scene
from okmq.prove.faults import Struck, Target
from okmq.prove.http import Answer, Client, NoAnswer, NotSent, TooLate
from okmq.prove.load import Load
from okmq.prove.trend import Trend, trend

STREAMS = ("steady-1", "steady-2", "steady-3")
LIMITS = {"max_messages": 20_000, "dedup_window": 60, "archive": False}
"""What is held stops growing soon."""

PUBLISHERS, MEMBERS, BATCH = 4, 2, 5
"""Of each stream; messages of a publish."""

WATCHED = ("web-1", "web-2", "worker", "valkey")
SAMPLES = 360
"""Looks at all of it; the first part of the time is for what grows at first only."""

AT_PEAK, WARM_UP = 1 / 20, 1 / 4
"""Parts of the time. What it can take is told by the last half of the first one: streams are at their limit by then."""

BORNE = 0.95
"""So much of what was sent must have been answered in its time, or it was no half of what there was."""

ENOUGH = 100
"""Publishes that tell the peak, however long they take."""

LONGEST, PARTS_MORE = 3.0, 6
"""So many times as long it goes on while noise hides what it is about, a sixth at a time."""

MAY_GROW = 0.01
"""In an hour, of what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How it was at one moment: of each process its memory in bytes and how many files it has open; answers since."""

    at_s: float
    memory: Mapping[str, int]
    files: Mapping[str, int]
    took_s: list[float]


def at_half_of_the_peak(folder: Path, *, seconds: float, longest: float = LONGEST) -> Apart:
    """See what a product can take, then give it half of that for so long.

    Where noise does not allow to tell whether something grows, it goes on.

    Args:
        longest: so many times the seconds at most.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    with instance(folder, more={"OKMQ_WEB_WORKERS": "2"}) as product:
        return asyncio.run(_steady(product, seconds, longest))


async def _steady(product: Instance, seconds: float, longest: float) -> Apart:
    load = Load(product.port, token=product.token)
    apart, target = Apart(load=load), Target(instance=product, scene=load.scene)
    for stream in STREAMS:
        await load.ask("POST", "/streams/", {"name": stream, **LIMITS})
        await load.ask("POST", f"/streams/{stream}/groups/", {"name": "g"})
    began = monotonic()
    callers = _Callers(load.scene)
    async with callers.working():
        await asyncio.sleep(seconds * AT_PEAK / 2)
        callers.took_s.clear()
        counted = monotonic()
        await asyncio.sleep(seconds * AT_PEAK / 2)
        await target.wait(lambda: len(callers.took_s) >= ENOUGH, what="the peak is known")
        peak = len(callers.took_s) / (monotonic() - counted)
        callers.every_s = 2 * len(STREAMS) * PUBLISHERS / max(peak, 1.0)
        await asyncio.sleep(seconds * WARM_UP)
        looks: list[Look] = []
        trends: dict[str, Trend] = {}
        while not looks or (_not_told(trends) and len(looks) < longest * SAMPLES):
            # As much again as a part of the time: what grows is looked for once it could be seen.
            more = SAMPLES if not looks else SAMPLES // PARTS_MORE
            looks += [await _look(product, callers, seconds / SAMPLES) for _ in range(more)]
            trends = await asyncio.to_thread(trends_of, looks)
        await target.all_run()
    load.close()
    apart.beside = callers.answered
    borne = sum(len(look.took_s) for look in looks) / (looks[-1].at_s - looks[0].at_s + seconds / SAMPLES)
    if borne < BORNE * peak / 2:
        apart.wrong.append(
            f"{borne:,.0f} of {peak / 2:,.0f} publishes a second were answered: the machine left less later than "
            "when it was looked what it can take, and the run does not count"
        )
    apart.wrong += judged(trends)
    p99_ms = 1000 * statistics.median(_p99(look.took_s) for look in looks if look.took_s)
    took_min = len(looks) * seconds / SAMPLES / 60
    note = f"{peak / 2:,.0f} publishes a second for {took_min:g} minutes, p99 {p99_ms:.0f} ms: "
    note += "; ".join(f"{what} {found}" for what, found in trends.items())
    apart.struck.append(Struck(name="half of the peak for long", began=began, back=monotonic(), note=note))
    return apart


def judged(trends: Mapping[str, Trend]) -> list[str]:
    """What grows, and what is too noisy to tell: then the run does not count."""
    grows = [
        f"{what} grows: {found}"
        for what, found in trends.items()
        if found.judged(may_grow=MAY_GROW) == "grows"
    ]
    noisy = [
        f"{what}: its noise does not tell whether it grows, {found}: the run does not count"
        for what, found in _not_told(trends).items()
    ]
    return grows + noisy


def _not_told(trends: Mapping[str, Trend]) -> dict[str, Trend]:
    return {what: found for what, found in trends.items() if found.judged(may_grow=MAY_GROW) == "not told"}


async def _look(product: Instance, callers: "_Callers", seconds: float) -> Look:
    callers.took_s.clear()
    await asyncio.sleep(seconds)
    pids = {name: product.pid(name) for name in WATCHED}
    return Look(
        at_s=monotonic(),
        memory={name: memory_of(pid) for name, pid in pids.items()},
        files={name: files_of(pid) for name, pid in pids.items()},
        took_s=list(callers.took_s),
    )


def trends_of(looks: list[Look]) -> dict[str, Trend]:
    """How memory and open files of each process went, and the slowest hundredth of the answers."""
    of: dict[str, Callable[[Look], float]] = {"p99 of publishing": lambda look: _p99(look.took_s)}
    for name in WATCHED:
        of[f"memory of {name}"] = lambda look, name=name: float(look.memory[name])  # type: ignore[misc]
        of[f"open files of {name}"] = lambda look, name=name: float(look.files[name])  # type: ignore[misc]
    answered = [look for look in looks if look.took_s]
    times_s = [look.at_s for look in answered]
    return {what: trend(times_s, [value(look) for look in answered]) for what, value in of.items()}


def _p99(took_s: list[float]) -> float:
    return sorted(took_s)[int(0.99 * len(took_s))]


Work = Callable[[Client, str, str], Awaitable[None]]
"""Of a client, on the path of a stream, under a name."""


@dataclass
class _Callers:
    """Publishers and the members of groups, who answer everything at once.

    Attributes:
        every_s: how often each publisher publishes; 0 as often as it can.
        took_s: how long answers took, from when it was to be sent.
    """

    scene: Scene
    every_s: float = 0.0
    took_s: list[float] = field(default_factory=list)
    answered: int = 0
    """Calls of all of them, to the end."""

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """They work inside of the block."""
        tasks = [
            asyncio.create_task(self._call(work, stream, f"{stream}-{n}"))
            for stream in STREAMS
            for work, count in ((self._publish, PUBLISHERS), (self._consume, MEMBERS))
            for n in range(count)
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _call(self, work: Work, stream: str, name: str) -> None:
        client = Client(self.scene.ports[0], token=self.scene.token)
        with contextlib.closing(client):
            await work(client, f"/streams/{stream}", name)

    async def _publish(self, client: Client, path: str, name: str) -> None:
        number, due, chance = 0, monotonic(), random.Random(name)
        while True:
            number += 1
            batch = [
                {"id": f"{name}-{number}-{at}", "key": f"k.{at}", "body": {"n": number, "filler": "x" * 200}}
                for at in range(BATCH)
            ]
            if await self._ask(client, f"{path}/messages", batch):
                self.took_s.append(monotonic() - due)
            due = due + self.every_s * chance.uniform(0.5, 1.5) if self.every_s else monotonic()
            await asyncio.sleep(max(0.0, due - monotonic()))

    async def _consume(self, client: Client, path: str, name: str) -> None:
        while True:
            asked = {"limit": 200, "wait": 1, "consumer": name}
            answer = await self._ask(client, f"{path}/groups/g/fetch", asked, wait_s=1.0)
            found = msgspec.json.decode(answer.body) if answer else []
            if found:
                await self._ask(client, f"{path}/groups/g/ack", {"leases": [each["lease"] for each in found]})

    async def _ask(self, client: Client, path: str, body: Any, *, wait_s: float = 0.0) -> Answer | None:
        """The answer where it is a success; what else came is taken down."""
        began = monotonic()
        try:
            answer = await client.ask("POST", path, msgspec.json.encode(body), wait_s=wait_s)
        except (NotSent, NoAnswer) as error:
            if isinstance(error, TooLate):
                self.scene.late.append((f"POST {path}", began))
            self.scene.surprises[f"{path}: {error}"] += 1
            await asyncio.sleep(0.1)
            return None
        if answer.status >= 300:
            self.scene.surprised(path, answer)
            return None
        self.answered += 1
        return answer
