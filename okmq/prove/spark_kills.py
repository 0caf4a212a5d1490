"""Kills of Spark, its driver and the store while the archive copies and groups work: everything is there once."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from okmq.instance import Instance, busy, instance
from okmq.prove.apart import Apart, Say
from okmq.prove.archive_steps import STEPS, UnderWay
from okmq.prove.archive_writers import Writers
from okmq.prove.archived import Written, judged
from okmq.prove.callers import AGAIN_AFTER_S
from okmq.prove.faults import NotBack, Struck, Target
from okmq.prove.load import Load
from okmq.supervision import proctable
from streams.log import config
from streams.log.client import Log

LOOK_EVERY_S = 0.001
MOMENT_WITHIN_S = 20.0
"""How long a moment is waited for until it is struck whatever the archive does; of a core."""

LATER_S = 0.15
ANYWHERE_S = 4.0
ASK_EVERY_S = 0.5
BACK_WITHIN_S = 120.0
"""How long the archive may take to its next batch, of a core."""

IN_A_ROW, OF_ONE_IN_A_ROW = 3, 5
"""After so many kills, or so many of what is mostly killed, the archive may bring a batch to its end."""

SPARK = "Spark"
GROUPS_REST_S = 0.5
"""Publishers beside Spark rest so long after a batch: it has the processors to start on as well."""

Victims = Mapping[str, Callable[[], int | None]]
"""What may be killed: a name, and its process id now, None where it does not run."""


@dataclass(kw_only=True)
class OfSpark(Apart):
    """What came of it.

    Attributes:
        found: what is wrong with the history, in sentences, by kind.
        written, streams: how many messages were acknowledged, in how many streams.
        cut: what was under way when something was killed, how often.
    """

    found: dict[str, list[str]] = field(default_factory=dict)
    written: int = 0
    streams: int = 0
    cut: Counter[str] = field(default_factory=Counter)

    @property
    def messages(self) -> int:
        return self.written + super().messages


def under_kills_of_spark(
    folder: Path,
    *,
    kills: int,
    seed: int = 8,
    more: Mapping[str, str] | None = None,
    victims: Victims | None = None,
    mostly: str = "",
    groups: bool = False,
    within_s: float = float("inf"),
    say: Say = lambda sentence: None,
) -> OfSpark:
    """Kill at moments of the archive, in a product whose streams are written to without a pause.

    Args:
        more: settings of the product, such as where Spark runs.
        victims: what is killed beside the driver, its JVM, its readers and the store.
        mostly: what of these is killed so often; of the others one comes on top before each few, in turns. "": they all
            are, in turns.
        groups: whether other streams have publishers, readers and groups meanwhile, of which every call is checked.
        within_s: after this time nothing more is killed, and what there is is judged.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    # One archive run is asked for after the other; the schedule would have most of the time taken by counting.
    settings = {"OKMQ_HISTORY": "on", "OKMQ_HISTORY_EVERY": "86400", "OKMQ_SPARK_MASTER": "local[2]"}
    with instance(folder, more={**settings, **(more or {})}) as product:
        run = _Run(product, seed=seed, victims=victims or {}, say=say)
        rows = run.rows(kills, mostly=mostly)
        return asyncio.run(run.carry_out(list(rows), groups=groups, within_s=within_s))


class _Run:
    """One product, its writers and what is done to it."""

    def __init__(self, product: Instance, *, seed: int, victims: Victims, say: Say) -> None:
        self.product, self.chance, self.say = product, random.Random(seed), say
        self.load = Load(product.port, token=product.token, pause_s=GROUPS_REST_S)
        self.apart = OfSpark(load=self.load)
        self.batch, self.has_groups = UnderWay(product.data_dir), False
        self.writers = Writers(self.load)
        self.victims: Victims = {
            "the driver": lambda: self._pid("analytics"),
            SPARK: lambda: self._of_spark("java"),
            "a reader of Spark": lambda: self._of_spark("python"),
            "valkey": lambda: self._pid("valkey"),
            **victims,
        }

    def rows(self, kills: int, *, mostly: str) -> Iterator[list[str]]:
        """What is killed one after the other before the archive may bring a batch to its end, row by row."""
        others = [name for name in self.victims if name != mostly]
        # Where the JVM goes its start takes most of the time: the others have two turns each.
        turns = [*others, *(name for name in others if name not in {"the driver", SPARK})]
        drawn = (name for _ in range(kills) for name in self.chance.sample(turns, len(turns)))
        longest = OF_ONE_IN_A_ROW if mostly else IN_A_ROW
        for number in range(0, kills, longest):
            row = range(min(longest, kills - number))
            yield [next(drawn), *(mostly for _ in row)] if mostly else [next(drawn) for _ in row]

    async def carry_out(self, rows: Sequence[Sequence[str]], *, groups: bool, within_s: float) -> OfSpark:
        """Everything, from the first message to the judgement."""
        asking = asyncio.create_task(_ask_for_runs(self.product))
        try:
            async with AsyncExitStack() as stack:
                if groups:
                    self.has_groups = True
                    await stack.enter_async_context(self.load.running())
                await self._kill_one_after_the_other(rows, until=monotonic() + within_s)
            await self._all_is_archived()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await self._all_is_counted()
        self.load.close()
        self._judge()
        return self.apart

    async def _kill_one_after_the_other(self, rows: Sequence[Sequence[str]], *, until: float) -> None:
        kills, number = sum(map(len, rows)), 0
        async with self.writers.writing():
            await self._until(lambda: self.batch.number > 0, what="the first batch is archived")
            for row in rows:
                open_since: list[tuple[str, float]] = []
                for name in row:
                    number += 1
                    await self._moment(again=name if name in row[: len(open_since)] else "")
                    under_way = self.batch.under_way
                    open_since.append(await self._kill(name))
                    if name == "valkey" and self.has_groups:  # while Spark is away, the others go on
                        await Target(instance=self.product, scene=self.load.scene).publishes_again(
                            monotonic()
                        )
                    self.apart.cut[under_way] += 1
                    self.say(f"  {number}/{kills} SIGKILL of {name}, {under_way}")
                await self._whole_again(open_since)
                await self.writers.change()
                if monotonic() > until and number < kills:
                    self.apart.left_out.append(f"{kills - number} of {kills} kills: the time was up")
                    break

    async def _moment(self, *, again: str = "") -> None:
        """Wait for one: any, or just when a batch has come so far; of what is killed again, any once it has started."""
        step = self.chance.choice((None, *STEPS))
        if again:
            await _becomes(lambda: self.victims[again]() is not None, within_s=BACK_WITHIN_S)
        if step is None or again:
            await asyncio.sleep(self.chance.uniform(0, ANYWHERE_S))
            return
        old = {self.batch.reached(step), ""}
        await _becomes(lambda: self.batch.reached(step) not in old, within_s=MOMENT_WITHIN_S)
        if self.chance.random() < 0.5:
            await asyncio.sleep(self.chance.uniform(0, LATER_S))

    async def _kill(self, name: str) -> tuple[str, float]:
        pids: list[int] = []

        def runs() -> bool:
            pids[:] = filter(None, [self.victims[name]()])
            return bool(pids)

        if not await _becomes(runs, within_s=BACK_WITHIN_S):
            raise NotBack(f"{name} does not run.")
        began = monotonic()
        proctable.kill(pids, signum=signal.SIGKILL)
        return name, began

    async def _whole_again(self, open_since: Iterable[tuple[str, float]]) -> None:
        """Wait until another batch is archived, and note that all of them are over."""
        number = self.batch.number
        await self._until(lambda: self.batch.number > number, what="a batch is archived")
        self.apart.struck += [
            Struck(name=f"SIGKILL of {name} while it archives", began=began, back=monotonic())
            for name, began in open_since
        ]

    async def _all_is_archived(self) -> None:
        """Wait until the archived offset of every stream is its last."""
        self.apart.streams = len(self.writers.all)
        self.apart.written = sum(each.last for each in self.writers.all)
        await self._until_told({each.stream: each.last for each in self.writers.living})

    async def _all_is_counted(self) -> None:
        """Let the history be counted once more: nothing of it is counted twice either."""
        await self._no_run_is_left()
        await self.load.ask("POST", "/analytics/runs/", {"job": "rollup"})
        await self._no_run_is_left()
        for writer in self.writers.living:
            told = await self.load.ask("GET", f"/streams/{writer.stream}/history?step=hour")
            counted = sum(point["messages"] for point in told["points"])
            if counted != writer.last:
                self.apart.wrong.append(
                    f"{counted} messages of {writer.stream} are counted, there are {writer.last}"
                )

    async def _no_run_is_left(self) -> None:
        until = monotonic() + BACK_WITHIN_S * busy()
        while await self._runs_left():
            if monotonic() > until:
                raise NotBack("The runs of the history do not end.")
            await asyncio.sleep(ASK_EVERY_S)

    async def _runs_left(self) -> bool:
        runs = await self.load.ask("GET", "/analytics/runs/?limit=10")
        return any(run["state"] in {"queued", "running"} for run in runs)

    async def _until_told(self, wanted: Mapping[str, int]) -> None:
        with closing(Log(self.product.redis_url)) as log:
            ids = {each.name: each.stream_id for each in log.run(config.streams()) if each.name in wanted}

            def archived() -> dict[str, int]:
                held = log.run(config.archived_of(ids.values()))
                return {name: held[ids[name]] for name in wanted}

            await self._until(lambda: archived() == wanted, what=f"{wanted} are archived")

    def _judge(self) -> None:
        self.apart.found = judged(
            self.product.data_dir / "history",
            [Written(name=each.prefix, last=each.last, deleted=each.deleted) for each in self.writers.all],
        )
        for kind, sentences in self.apart.found.items():
            self.apart.wrong += [f"history, {kind}: {sentence}" for sentence in sentences]

    async def _until(self, condition: Callable[[], bool], *, what: str) -> None:
        """Wait for what takes the archive a while.

        Raises:
            NotBack: it took longer than it may.
        """
        if not await _becomes(condition, within_s=BACK_WITHIN_S, every_s=AGAIN_AFTER_S):
            raise NotBack(f"Not within {BACK_WITHIN_S:g} s of a core: {what}.")

    def _pid(self, name: str) -> int | None:
        status = self.product.status(name)
        return status.pid if status.state in {"starting", "running"} else None

    def _of_spark(self, command: str) -> int | None:
        """One of the processes of a kind that the driver has started."""
        driver = self._pid("analytics")
        if driver is None:
            return None
        found = [
            pid
            for pid in proctable.marked(self.product.data_dir, session=driver)
            if pid != driver and _command(pid).startswith(command)
        ]
        return self.chance.choice(found) if found else None


async def _ask_for_runs(product: Instance) -> None:
    """Have the archive run again and again, until this is cancelled."""
    load = Load(product.port, token=product.token)  # a connection of its own
    try:
        while True:
            await load.ask("POST", "/analytics/runs/", {"job": "archive"})
            await asyncio.sleep(ASK_EVERY_S)
    finally:
        load.close()


async def _becomes(condition: Callable[[], bool], *, within_s: float, every_s: float = LOOK_EVERY_S) -> bool:
    """Whether it comes true in so many seconds of a core."""
    until = monotonic() + within_s * busy()
    while not condition():
        if monotonic() > until:
            return False
        await asyncio.sleep(every_s)
    return True


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
