"""One proof: a product of its own under load, one fault after the other, everything counted at the end."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

from okmq import java
from okmq.instance import Instance, instance
from okmq.prove import faults
from okmq.prove.apart import Apart
from okmq.prove.checking import Verdict, check
from okmq.prove.crowds import Crowd, under_crowds
from okmq.prove.cuts import Cut, cuts
from okmq.prove.faults import Fault, Struck, Target
from okmq.prove.flushes import can_be_slow
from okmq.prove.full import memory_used_up
from okmq.prove.history import History, in_flight
from okmq.prove.jumps import JUMPS_S, faked_clock, on_a_clock_that_is_set
from okmq.prove.load import Load
from okmq.prove.lossy import on_a_bad_line
from okmq.prove.promoted import on_a_promoted_replica
from okmq.prove.slow_disk import on_a_slow_disk
from okmq.prove.spark_kills import under_kills_of_spark

SURGE_S = 0.3
REST_S = 1.0
ENOUGH_IN_FLIGHT = 1000
RECOVERY_S_PER_MILLION = 5.0
FOR_FAULTS, FOR_SCENES = 0.5, 0.75
"""Until this part of the time faults strike; until that one, scenes begin. The judgement and the cuts come last."""

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often each fault strikes; ``cuts``: at how many places the append-only file is cut.

    ``bad_line_s``: how long the store's answers get lost on their way; ``slow_disk_s``: for how long its flushes are
    slow, each time; ``jumps``: how often the store's clock is set hours and days forth and back.
    ``promotions``: how often a replica that lags is promoted.
    ``crowd``: who comes back at once. ``spark``: how often something is killed while the archive copies.
    ``within_s``: on a machine that is too slow for all of it, what is left out so that the whole takes no longer.
    """

    web: int
    valkey: int
    worker: int
    rewriting: int
    stops: int
    stop_s: float
    commands: int
    cuts: int
    bad_line_s: float = 0.0
    slow_disk_s: float = 0.0
    jumps: int = 0
    crowd: Crowd | None = None
    promotions: int = 0
    spark: int = 0
    within_s: float = float("inf")

    def faults(self) -> list[Fault]:
        """All of them, mixed evenly, so that a process has time to grow old between two of its deaths."""
        kinds: list[Sequence[Fault]] = [
            [faults.killed(f"web-{1 + n % 2}") for n in range(self.web)],
            [faults.killed("valkey")] * self.valkey,
            [faults.killed("worker")] * self.worker,
            [faults.killed_while_rewriting] * self.rewriting,
            [
                faults.stopped(("valkey", "worker", "web-1")[n % 3], seconds=self.stop_s)
                for n in range(self.stops)
            ],
            [
                faults.told_to_the_store(("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH")),
                faults.told_to_the_store(("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")),
                faults.fsync_switched_off,
                memory_used_up,
            ]
            * self.commands,
        ]
        placed = [
            ((n + 0.5) / len(kind), which, fault)
            for which, kind in enumerate(kinds)
            for n, fault in enumerate(kind)
        ]
        return [fault for _, _, fault in sorted(placed, key=lambda each: each[:2])]


QUICK = Plan(
    web=6,
    valkey=6,
    worker=3,
    rewriting=3,
    stops=3,
    stop_s=4.0,
    commands=1,
    cuts=24,
    bad_line_s=10,
    slow_disk_s=5,
    jumps=1,
    promotions=1,
    crowd=Crowd(browsers=300, pollers=150, turns=1, resets=500, hangs_s=10),
    within_s=460,
)
FULL = Plan(
    web=200,
    valkey=50,
    worker=50,
    rewriting=20,
    stops=20,
    stop_s=10.0,
    commands=5,
    cuts=300,
    bad_line_s=600,
    slow_disk_s=120,
    jumps=4,
    promotions=3,
    crowd=Crowd(browsers=1000, pollers=500, turns=20, resets=2000, hangs_s=60),
    spark=50,
)


@dataclass(kw_only=True)
class Proof:
    """What a run found.

    Attributes:
        took_s: the whole of it.
        operations: by outcome; ``in_flight`` of them were under way between a fault and the recovery from it, and
            ``struck_in_flight`` at the very moment when it struck.
        messages: that were there in the end.
        surprises: answers that should not be, by what they were; ``late``: calls beyond their deadline.
        wrong: sentences on what else should not be.
        silence_s: the longest time without a stored publish while only web processes or the worker were killed.
    """

    plan: Plan
    struck: list[Struck] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    verdict: Verdict = field(default_factory=lambda: Verdict(found={}))
    operations: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    struck_in_flight: int = 0
    messages: int = 0
    surprises: Counter[str] = field(default_factory=Counter)
    late: int = 0
    wrong: list[str] = field(default_factory=list)
    silence_s: float = 0.0
    took_s: float = 0.0

    @property
    def recovery_allowed_s(self) -> float:
        """What a restart may take, of as many messages as there were, on a machine that has a core for it."""
        return RECOVERY_S_PER_MILLION * max(1.0, self.messages / 1e6)

    def faults(self) -> list[str]:
        """Every sentence on what is wrong; none: the promises held."""
        wrong = [
            f"{name}: {sentence}" for name, sentences in self.verdict.found.items() for sentence in sentences
        ]
        wrong += [f"unexpected answer: {what} ({count} times)" for what, count in self.surprises.items()]
        wrong += [f"cut at byte {cut.at_bytes}: {sentence}" for cut in self.cuts for sentence in cut.faults]
        if self.late:
            wrong.append(f"{self.late} calls were not answered by their deadline")
        wrong += self.wrong
        wrong += [
            f"{each.name}: back after {each.recovery_s:.1f} s at {each.load:.1f} processes a core, "
            f"allowed are {self.recovery_allowed_s:.1f} s of a core"
            for each in self.struck
            if each.recovery_s is not None and each.recovery_s > self.recovery_allowed_s * each.load
        ]
        if self.in_flight < ENOUGH_IN_FLIGHT:
            wrong.append(
                f"only {self.in_flight} operations were in flight during faults: the run does not count"
            )
        return wrong


def prove(plan: Plan, *, say: Say, folder: Path, todo: Sequence[Fault] | None = None) -> Proof:
    """Carry a plan out in a folder that is empty.

    Args:
        todo: other faults than the plan's.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    began = monotonic()
    proof = Proof(plan=plan)
    with instance(folder, more={"OKMQ_WEB_WORKERS": "2"}) as product:
        say("A product of its own runs, with two web processes; the load begins.")
        load = asyncio.run(_under_load(product, proof, say, plan.faults() if todo is None else todo))
    history = load.scene.history
    say(f"{proof.messages:,} messages are there; the history of {len(history.operations):,} calls is judged.")
    proof.verdict = check(history)
    for name, told, scene in scenes(plan):
        if monotonic() - began > plan.within_s * FOR_SCENES:
            say(f"The time is up; left out: {told}")
            continue
        say(told)
        (folder / name).mkdir()
        _add(proof, scene(folder / name), say)
    if plan.cuts:
        say(f"The append-only file is cut at {plan.cuts} places.")
        for cut in cuts(product.data_dir, history, places=plan.cuts, folder=folder):
            proof.cuts.append(cut)
            _say_cut(cut, say)
            if monotonic() - began > plan.within_s:
                say("The time is up; the other cuts are left out.")
                break
    proof.took_s = monotonic() - began
    return proof


Scene = Callable[[Path], Apart]


def scenes(plan: Plan) -> Iterator[tuple[str, str, Scene]]:
    """The faults that each want a product of their own: a name, a sentence, and what carries it out."""
    if plan.bad_line_s:
        told = f"Answers of the store get lost for {plan.bad_line_s:g} s, of another product."
        yield "line", told, partial(on_a_bad_line, seconds=plan.bad_line_s)
    if plan.slow_disk_s and can_be_slow():
        told = f"The disk of a store takes its time, for {plan.slow_disk_s:g} s each."
        yield "disk", told, partial(on_a_slow_disk, seconds=plan.slow_disk_s)
    if plan.jumps and (library := faked_clock()):
        told = f"The clock of a store is set {len(JUMPS_S) * plan.jumps} times."
        yield "clock", told, partial(on_a_clock_that_is_set, library=library, jumps_s=JUMPS_S * plan.jumps)
    for number in range(1, plan.promotions + 1):
        yield (
            f"replica-{number}",
            "A replica that lags is promoted in the store's place.",
            on_a_promoted_replica,
        )
    if plan.crowd:
        told = f"{plan.crowd.browsers:,} browsers and {plan.crowd.pollers:,} pollers come at once."
        yield "crowd", told, partial(under_crowds, crowd=plan.crowd)
    if plan.spark and java.home(os.environ):
        told = f"The driver, Spark, its readers and the store are killed {plan.spark} times while the archive copies."
        yield "spark", told, partial(under_kills_of_spark, kills=plan.spark)


def _add(proof: Proof, apart: Apart, say: Say) -> None:
    """Count what came of a scene with the rest."""
    spans = [(each.began, each.back) for each in apart.struck]
    for name, sentences in check(apart.history).found.items():
        proof.verdict.found[name] += sentences
    proof.struck += apart.struck
    proof.wrong += apart.wrong
    proof.operations += Counter(each.outcome for each in apart.history.operations)
    proof.in_flight += in_flight(apart.history.operations, spans)
    proof.messages += sum(len(remains.messages) for remains in apart.history.remains.values())
    proof.surprises += apart.load.scene.surprises
    proof.late += apart.load.scene.late
    for each in apart.struck:
        say(f"  {_told(each)}")


def _say_cut(cut: Cut, say: Say) -> None:
    what = "; ".join(cut.faults) or "an exact prefix"
    say(
        f"  cut at byte {cut.at_bytes:,}: {cut.left:,} of {cut.of:,} messages, {what}, started in {cut.start_s:.2f} s"
    )


async def _under_load(product: Instance, proof: Proof, say: Say, todo: Sequence[Fault]) -> Load:
    load = Load(product.port, token=product.token)
    target = Target(instance=product, scene=load.scene)
    began = monotonic()
    async with load.running():
        await target.publishes_again(began)
        for number, fault in enumerate(todo, start=1):
            await target.all_run()
            await load.surge(SURGE_S)
            struck = await fault(target)
            load.calm()
            proof.struck.append(struck)
            say(f"  {number}/{len(todo)} {_told(struck)}")
            await asyncio.sleep(REST_S)
            if monotonic() - began > proof.plan.within_s * FOR_FAULTS:
                say("The time for faults is up; the others are left out.")
                break
        await target.all_run()
        say("No more faults; what is left is worked off.")
    _take_down(proof, load)
    return load


def _told(struck: Struck) -> str:
    own = (
        ""
        if struck.recovery_s is None
        else f"; {struck.recovery_s:.2f} s of it after its new start or its answer"
    )
    note = f"; {struck.note}" if struck.note else ""
    return f"{struck.name}: whole again after {struck.back - struck.began:.2f} s{own}{note}"


def _take_down(proof: Proof, load: Load) -> None:
    history: History = load.scene.history
    spans = [(each.began, each.back) for each in proof.struck]
    proof.operations = Counter(each.outcome for each in history.operations)
    proof.in_flight = in_flight(history.operations, spans)
    proof.struck_in_flight = in_flight(history.operations, [(began, began) for began, _ in spans])
    proof.messages = sum(len(remains.messages) for remains in history.remains.values())
    proof.surprises, proof.late = load.scene.surprises, load.scene.late
    others = [(each.began, each.back) for each in proof.struck if "web" in each.name or "worker" in each.name]
    proof.silence_s = max(
        (
            min(end, back) - max(start, began)
            for start, end in load.scene.silences
            for began, back in others
            if start < back and end > began
        ),
        default=0.0,
    )
