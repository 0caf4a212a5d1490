"""One proof: products of its own under load, in each a kind of fault, everything counted at the end."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

from okmq.instance import Broken
from okmq.prove import faults
from okmq.prove.apart import Apart, Say
from okmq.prove.crowds import Crowd, under_crowds
from okmq.prove.cuts import under_cuts
from okmq.prove.faults import Fault, NotBack
from okmq.prove.flushes import can_be_asked
from okmq.prove.found import Found, Proof, found_by
from okmq.prove.full_disk import NO_MOUNT, can_be_mounted, on_a_full_disk
from okmq.prove.full_store import memory_used_up
from okmq.prove.jumps import JUMPS_S, faked_clock, on_a_clock_that_is_set
from okmq.prove.kills import under_faults
from okmq.prove.load import Unfinished
from okmq.prove.lossy import on_a_bad_line
from okmq.prove.power import on_power_cuts, on_power_cuts_in_the_window
from okmq.prove.promoted import on_a_promoted_replica
from okmq.prove.slow_disk import on_a_slow_disk
from okmq.prove.spark_kills import SPARK, under_kills_of_spark
from okmq.prove.steady import at_half_of_the_peak
from okmq.supervision import java

FOR_FAULTS, FOR_CUTS, FOR_PARTS = 0.45, 0.2, 0.9
"""So much of the time the first two parts may take; until the last one, other parts begin."""

OUTLASTS = 3
"""So many times as long as a stop is the time of a group whose leases must outlast it."""

PARTS = ("kills", "cuts", "power", "line", "disk", "full", "clock", "replica", "crowd", "spark", "steady")
"""The names of the parts, in their order."""

NO_FILTER = "it takes Linux on x86-64 or ARM64, whose flushes can be held back"
NO_CLOCK = "libfaketime is not installed"
NO_JAVA = "there is no Java"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often each fault strikes; ``cuts``: at how many places the append-only file is cut.

    ``power``: how often its power goes, of a store that flushes for every answer, and of one that does so every second.
    ``bad_line_s``: how long the line to the store is bad; ``slow_disk_s``: for how long its flushes are slow, each
    time; ``full_disk_s``: how long its disk is full.
    ``jumps``: how often the store's clock is set hours and days forth and back.
    ``promotions``: how often a replica that lags is promoted.
    ``steady_s``: for how long it bears half of what it can take.
    ``crowd``: who comes back at once. ``spark``: how often Spark is killed while the archive copies.
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
    power: int = 0
    bad_line_s: float = 0.0
    slow_disk_s: float = 0.0
    full_disk_s: float = 0.0
    jumps: int = 0
    steady_s: float = 0.0
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
    power=3,
    bad_line_s=10,
    slow_disk_s=5,
    full_disk_s=5,
    jumps=1,
    promotions=1,
    crowd=Crowd(browsers=300, pollers=150, turns=1, resets=500, hangs_s=10),
    within_s=440,
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
    power=30,
    bad_line_s=600,
    slow_disk_s=120,
    full_disk_s=60,
    jumps=4,
    promotions=3,
    crowd=Crowd(browsers=1000, pollers=500, turns=20, resets=2000, hangs_s=60),
    steady_s=3600,
    spark=50,
)


Scene = Callable[[Path], Apart]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One kind of fault.

    Attributes:
        name: one of ``PARTS``.
        told: what it does, in one sentence.
        scenes: what carries it out, each in a folder of its own.
        says: each fault when it is met; those of others are told at the end.
        missing: what it takes and this machine does not have; then it is left out.
    """

    name: str
    told: str
    scenes: Sequence[Scene]
    says: bool = False
    missing: str = ""


def prove(
    plan: Plan,
    *,
    say: Say,
    folder: Path,
    only: Collection[str] = PARTS,
    ended: Callable[[Proof], None] = lambda proof: None,
) -> Proof:
    """Carry a plan out in a folder that is empty.

    What could not be carried out to its end is a finding, and the other parts go on.

    Args:
        only: the names of the parts that are carried out.
        ended: told after each part of what there is so far: all of them take hours.
    """
    began, proof = monotonic(), Proof()
    for part in parts(plan, say=say):
        if part.name not in only:
            continue
        is_over = monotonic() - began > plan.within_s * FOR_PARTS
        if why := part.missing or ("the time was up" if is_over else ""):
            proof.left_out[part.name] = why
            say(f"Left out, {why}: {part.told}")
            continue
        say(part.told)
        found = proof.parts[part.name] = _carry_out(part, folder)
        for struck in () if part.says else found.struck:
            say(f"  {struck.told()}")
        say(f"  {sum(found.calls.values()):,} calls, {found.messages:,} messages, {found.wrong:,} findings")
        ended(proof)
    return proof


def _carry_out(part: Part, folder: Path) -> Found:
    began = monotonic()
    aparts: list[Apart] = []
    broken: list[str] = []
    for number, scene in enumerate(part.scenes, start=1):
        place = folder / f"{part.name}-{number}"
        place.mkdir()
        try:
            aparts.append(scene(place))
        except (Broken, NotBack, Unfinished) as error:
            broken.append(f"{part.told} {error}")
    return found_by(aparts, told=part.told, took_s=monotonic() - began, wrong=broken)


def parts(plan: Plan, *, say: Say) -> Iterator[Part]:
    """What a plan has; a part that this machine cannot do says what is missing."""
    if struck := plan.faults():
        within_s, patient_s = plan.within_s * FOR_FAULTS, OUTLASTS * plan.stop_s
        scene: Scene = partial(under_faults, faults=struck, say=say, within_s=within_s, patient_s=patient_s)
        told = f"{len(struck)} times something is killed, stopped or taken away."
        yield Part(name="kills", told=told, scenes=[scene], says=True)
    if plan.cuts:
        told = f"The append-only file is cut at {plan.cuts} places."
        scene = partial(under_cuts, places=plan.cuts, say=say, within_s=plan.within_s * FOR_CUTS)
        yield Part(name="cuts", told=told, scenes=[scene], says=True)
    if plan.power:
        told = f"The power goes {plan.power} times with a flush for every answer, as often with one a second."
        scenes: list[Scene] = [
            partial(on_power_cuts, cuts=plan.power),
            partial(on_power_cuts_in_the_window, cuts=plan.power),
        ]
        yield Part(name="power", told=told, scenes=scenes, missing="" if can_be_asked() else NO_FILTER)
    if plan.bad_line_s:
        told = f"The line to the store is bad for {plan.bad_line_s:g} s."
        yield Part(name="line", told=told, scenes=[partial(on_a_bad_line, seconds=plan.bad_line_s)])
    if plan.slow_disk_s:
        told = f"The disk of a store takes its time, for {plan.slow_disk_s:g} s each."
        scene = partial(on_a_slow_disk, seconds=plan.slow_disk_s)
        yield Part(name="disk", told=told, scenes=[scene], missing="" if can_be_asked() else NO_FILTER)
    if plan.full_disk_s:
        told = f"The disk is full for {plan.full_disk_s:g} s."
        missing = "" if can_be_mounted() else NO_MOUNT
        scene = partial(on_a_full_disk, seconds=plan.full_disk_s)
        yield Part(name="full", told=told, scenes=[scene], missing=missing)
    if plan.jumps:
        library = faked_clock()
        told = f"The clock of a store is set {len(JUMPS_S) * plan.jumps} times."
        scene = partial(on_a_clock_that_is_set, library=library or Path(), jumps_s=JUMPS_S * plan.jumps)
        yield Part(name="clock", told=told, scenes=[scene], missing="" if library else NO_CLOCK)
    if plan.promotions:
        told = f"A replica that lags is promoted in the store's place, {plan.promotions} times."
        yield Part(name="replica", told=told, scenes=[on_a_promoted_replica] * plan.promotions)
    if plan.crowd:
        told = f"{plan.crowd.browsers:,} browsers and {plan.crowd.pollers:,} pollers come at once."
        scene = partial(under_crowds, crowd=plan.crowd, say=say)
        yield Part(name="crowd", told=told, scenes=[scene], says=True)
    if plan.spark:
        told = (
            f"Spark is killed {plan.spark} times while the archive copies and groups work, and in turns its driver, "
            "its readers and the store."
        )
        scene = partial(under_kills_of_spark, kills=plan.spark, mostly=SPARK, groups=True, say=say)
        missing = "" if java.home(os.environ) else NO_JAVA
        yield Part(name="spark", told=told, scenes=[scene], says=True, missing=missing)
    if plan.steady_s:
        told = f"Half of the peak for {plan.steady_s / 60:g} minutes."
        yield Part(name="steady", told=told, scenes=[partial(at_half_of_the_peak, seconds=plan.steady_s)])
