"""One proof: a product of its own under load, one fault after the other, everything counted at the end."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from okmq.instance import Instance, instance
from okmq.prove import faults
from okmq.prove.checking import Verdict, check
from okmq.prove.cuts import Cut, cuts
from okmq.prove.faults import Fault, Struck, Target
from okmq.prove.full import memory_used_up
from okmq.prove.history import History, in_flight
from okmq.prove.load import Load
from okmq.prove.lossy import Bad, on_a_bad_line

SURGE_S = 0.3
REST_S = 1.0
ENOUGH_IN_FLIGHT = 1000
MAY_GROW, MAY_BE_MADE = 1.05, 8
"""Open files after a bad line against before; a connection or two may just be made again."""

RECOVERY_S_PER_MILLION = 5.0
FOR_FAULTS = 0.55
"""This part of the time at most is for faults; then come the end of the load, the judgement and the cuts."""

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often each fault strikes; ``cuts``: at how many places the append-only file is cut.

    ``bad_line_s``: how long the store's answers get lost on their way.
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
    bad_line_s=12,
    within_s=460,
)
FULL = Plan(
    web=200, valkey=50, worker=50, rewriting=20, stops=20, stop_s=10.0, commands=5, cuts=300, bad_line_s=600
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
        left_open: files and connections that were still open after a bad line, above what may be.
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
    left_open: int = 0
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
        if self.left_open:
            wrong.append(f"{self.left_open} files and connections too many were still open after a bad line")
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
    if plan.bad_line_s:
        say(f"Answers of the store get lost for {plan.bad_line_s:g} s, of another product.")
        (folder / "line").mkdir()
        _add(proof, on_a_bad_line(folder / "line", seconds=plan.bad_line_s), say)
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


def _add(proof: Proof, bad: Bad, say: Say) -> None:
    """Count what came of a bad line with the rest."""
    span = [(bad.struck.began, bad.struck.back)]
    for name, sentences in check(bad.history).found.items():
        proof.verdict.found[name] += sentences
    proof.struck.append(bad.struck)
    proof.operations += Counter(each.outcome for each in bad.history.operations)
    proof.in_flight += in_flight(bad.history.operations, span)
    proof.messages += sum(len(remains.messages) for remains in bad.history.remains.values())
    proof.surprises += bad.load.scene.surprises
    proof.late += bad.load.scene.late
    proof.left_open = max(0, bad.files_after - round(bad.files_before * MAY_GROW) - MAY_BE_MADE)
    say(f"  {_told(bad.struck)}; {bad.files_before} open files before, {bad.files_after} after")


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
