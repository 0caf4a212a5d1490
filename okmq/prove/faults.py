"""What is done to a running product while it is under load, and how long it took to be whole again."""

import asyncio
import json
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from time import monotonic

from okmq.instance import Instance
from okmq.prove import rewrites
from okmq.prove.callers import Scene
from okmq.prove.history import Operation, Outcome, Publish
from okmq.prove.machine import Moment, Taken, look
from streams.log.client import Log
from streams.log.commands import one

BACK_WITHIN_S = 60.0
LABEL_CHANGES_WITHIN_S = READINESS_TELLS_WITHIN_S = 5.0
EVERY_S = 0.02
RECOVERY_S_PER_MILLION = 5.0
"""What a store may take to be there again, for the messages that it holds; and for fewer than a million."""

PROCESS_S, NEXT_CALL_S = 5.0, 1.0
"""What a new web process or worker may take until it works; and where nothing has to start, the next call."""

SEEN_FOR_S = 0.5
"""So long it is looked whether what had healed is refused again."""


def recovery_allowed_s(messages: int) -> float:
    """What a store may take to be there again."""
    return RECOVERY_S_PER_MILLION * max(1.0, messages / 1e6)


class NotBack(Exception):
    """The product did not recover; the message is one sentence."""


@dataclass(frozen=True, kw_only=True)
class Struck:
    """A fault that was met.

    Attributes:
        began, back: when it struck and when everything was as before (monotonic seconds).
        recovery_s: what the product itself needed, the supervisor's pause before a new start left out; None where
            there is nothing to recover.
        allowed_s: what it may need of a machine of its own; None where nothing is demanded.
        messages: how many were stored then.
        taken: what the machine took from all of it meanwhile.
        note: what else is to tell; ``weight``: of several of a kind the note of the one with most is that of the worst.
        wrong: sentences on what should not be.
        lasted_until: where it goes on after everything was as before, until then.
    """

    name: str
    began: float
    back: float
    recovery_s: float | None = None
    allowed_s: float | None = None
    messages: int = 0
    taken: Taken = field(default_factory=Taken)
    note: str = ""
    weight: float | None = None
    lasted_until: float = 0.0
    wrong: tuple[str, ...] = ()

    @property
    def limit_s(self) -> float | None:
        """What it may need on a machine that takes so much."""
        return None if self.allowed_s is None else self.taken.allows_s(self.allowed_s)

    @property
    def over(self) -> float:
        """From then on calls are in flight during nothing."""
        return max(self.back, self.lasted_until)

    def told(self) -> str:
        """All of it, in a line."""
        own = (
            ""
            if self.recovery_s is None
            else f"; {self.recovery_s:.2f} s of it after its new start or its answer"
        )
        note = f"; {self.note}" if self.note else ""
        return f"{self.name}: whole again after {self.back - self.began:.2f} s{own}{note}"


@dataclass(kw_only=True)
class Target:
    """What faults strike at.

    Attributes:
        instance: the product; its processes end with it.
        scene: of the load that is on it.
    """

    instance: Instance
    scene: Scene
    chance: random.Random = field(default_factory=lambda: random.Random(8))

    async def store(self, *command: object) -> object:
        """Say one command to the private Valkey, past the product."""

        def say() -> object:
            log = Log(self.instance.keeper_url)
            try:
                return log.run(one(tuple(command)))
            finally:
                log.close()

        return await asyncio.to_thread(say)

    async def wait(
        self, condition: Callable[[], bool], *, what: str, within_s: float = BACK_WITHIN_S
    ) -> float:
        """The moment at which something became true.

        Raises:
            NotBack: it did not.
        """
        until = monotonic() + within_s
        while monotonic() < until:
            if condition():
                return monotonic()
            await asyncio.sleep(EVERY_S)
        raise NotBack(f"Not within {within_s:g} s: {what}.")

    async def publishes_again(self, since: float) -> float:
        """The end of the first publish that was sent after a moment and stored."""
        await self.wait(lambda: self._first_after(since) is not None, what="a publish is stored again")
        return self._first_after(since) or monotonic()

    def _first_after(self, since: float) -> float | None:
        found = None
        for each in self.since(since):
            if isinstance(each, Publish) and each.outcome == "ok" and each.began >= since:
                found = each.ended
        return found

    def since(self, moment: float) -> Iterator[Operation]:
        """What ended after a moment, the newest first."""
        for each in reversed(self.scene.history.operations):
            if each.ended < moment:
                return
            yield each

    def saw(self, kind: type[Operation], outcome: Outcome, since: float) -> bool:
        """Whether a call of this kind that was sent after a moment ended so."""
        return any(
            isinstance(each, kind) and each.outcome == outcome and each.began >= since
            for each in self.since(since)
        )

    def refused_again(self, since: float) -> int:
        """How many publishers got no more than refusals twice or more, of what they sent after a moment."""
        refused = Counter(
            (each.stream, each.ids[0].partition("-")[0])
            for each in self.since(since)
            if isinstance(each, Publish) and each.outcome == "info" and each.began >= since
        )
        return sum(times > 1 for times in refused.values())

    async def promises(self, promise: str, *, since: float) -> float:
        """The moment at which answers to publishes carried a promise.

        Raises:
            NotBack: they did not within the time that it may take.
        """
        what = f"answers promise {promise!r}"
        within_s = LABEL_CHANGES_WITHIN_S
        return await self.wait(lambda: self._promised(since) == promise, what=what, within_s=within_s)

    def _promised(self, since: float) -> str:
        for each in self.since(since):
            if isinstance(each, Publish) and each.outcome == "ok":
                return each.durability
        return ""

    async def tells(self, is_ok: bool, *, since: Moment, what: str, within_s: float = BACK_WITHIN_S) -> str:
        """Wait until readiness tells how it is; what is wrong with how long that took, empty: nothing."""
        took_s = await self.readiness(is_ok, within_s=within_s) - since.at
        allowed_s = self.scene.machine.taken(since).allows_s(READINESS_TELLS_WITHIN_S)
        if took_s <= allowed_s:
            return ""
        return f"{what}: readiness told it after {took_s:.1f} s, allowed are {allowed_s:.1f} s"

    async def readiness(self, is_ok: bool, *, within_s: float) -> float:
        """The moment at which it was 200 with nothing to tell, or was not; the end of the time if it never was."""
        until, pause = monotonic() + within_s, threading.Event()

        def told() -> None:
            while (left_s := until - monotonic()) > 0 and self._is_ok(left_s) is not is_ok:
                pause.wait(EVERY_S)

        await asyncio.to_thread(told)
        return monotonic()

    def _is_ok(self, within_s: float) -> bool:
        connection = HTTPConnection("127.0.0.1", self.instance.port, timeout=within_s)
        with closing(connection), suppress(OSError, HTTPException):
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return answer.status == 200 and json.loads(answer.read())["status"] == "ok"
        return False

    async def all_run(self) -> None:
        """Return when every process has been seen to work."""
        names = ("valkey", "web-1", "web-2", "worker")
        await self.wait(lambda: all(self._runs(name) for name in names), what="every process runs")

    def _runs(self, name: str) -> bool:
        return self.instance.status(name).state == "running"


Fault = Callable[[Target], Awaitable[Struck]]


def killed(name: str) -> Fault:
    """SIGKILL of a process; it is back when the supervisor sees its successor work."""

    async def strike(target: Target) -> Struck:
        pid, began = target.instance.pid(name), monotonic()
        os.kill(pid, signal.SIGKILL)
        return await _starts_again(target, name=name, killed=pid, began=began, told=f"SIGKILL of {name}")

    return strike


async def _starts_again(target: Target, *, name: str, killed: int, began: float, told: str) -> Struck:
    messages = target.scene.messages
    # The list is written as the state changes: a new process id is the moment of the new start.
    started = await target.wait(
        lambda: _pid(target, name) not in {None, killed}, what=f"{name} is started again"
    )
    if name == "valkey":
        back = await target.publishes_again(began)
        await target.wait(lambda: target.instance.status(name).state == "running", what=f"{name} runs")
    else:
        back = await target.wait(
            lambda: target.instance.status(name).state == "running", what=f"{name} works again"
        )
    recovery_s = max(0.0, back - started)
    allowed_s = recovery_allowed_s(messages) if name == "valkey" else PROCESS_S
    return Struck(name=told, began=began, back=back, recovery_s=recovery_s, allowed_s=allowed_s)


def _pid(target: Target, name: str) -> int | None:
    status = target.instance.status(name)
    return status.pid if status.state in {"starting", "running"} else None


async def killed_while_rewriting(target: Target) -> Struck:
    """SIGKILL of Valkey at some moment of a rewrite of its append-only file; where none is met, it is named without."""
    pid = target.instance.pid("valkey")

    def strike() -> tuple[bool, float]:
        with closing(Log(target.instance.keeper_url)) as keeper:
            is_met = rewrites.midway(keeper, target.chance)
            began = monotonic()
            os.kill(pid, signal.SIGKILL)
        return is_met, began

    is_met, began = await asyncio.to_thread(strike)
    told = f"SIGKILL of valkey{rewrites.WHILE if is_met else ''}"
    return await _starts_again(target, name="valkey", killed=pid, began=began, told=told)


def stopped(name: str, *, seconds: float) -> Fault:
    """SIGSTOP of a process for a while; where it is the store, readiness must tell it meanwhile."""
    told = f"SIGSTOP of {name.partition('-')[0]} for {seconds:g} s"

    async def strike(target: Target) -> Struck:
        pid = target.instance.pid(name)
        began, since, wrong = monotonic(), look(), ""
        os.kill(pid, signal.SIGSTOP)
        try:
            if name == "valkey" and seconds > READINESS_TELLS_WITHIN_S:
                wrong = await target.tells(False, since=since, what=told, within_s=seconds)
            await asyncio.sleep(max(0.0, began + seconds - monotonic()))
        finally:
            os.kill(pid, signal.SIGCONT)
        goes_on = monotonic()
        back = await target.publishes_again(goes_on)
        return Struck(
            name=told,
            wrong=tuple(filter(None, [wrong])),
            began=began,
            back=back,
            recovery_s=back - goes_on,
            allowed_s=NEXT_CALL_S,
        )

    return strike


def told_to_the_store(*commands: tuple[str, ...]) -> Fault:
    """Commands that take something away from the product behind its back; it must heal within one request."""

    async def strike(target: Target) -> Struck:
        began = monotonic()
        for command in commands:
            await target.store(*command)
        done = monotonic()
        back = await target.publishes_again(done)
        seen = await target.wait(lambda: monotonic() > done + SEEN_FOR_S, what="it is seen for a while")
        name = ", ".join(" ".join(map(str, command)) for command in commands)
        twice = target.refused_again(done)
        return Struck(
            name=name,
            began=began,
            back=back,
            recovery_s=back - done,
            allowed_s=NEXT_CALL_S,
            lasted_until=seen,
            wrong=(f"{name}: {twice} publishers were refused more than once",) if twice else (),
        )

    return strike


async def fsync_switched_off(target: Target) -> Struck:
    """``CONFIG SET appendfsync no``: answers must promise less, and the full promise comes back with the setting.

    Raises:
        NotBack: an answer promised what was not so, for longer than it may.
    """
    began = monotonic()
    took, told, wrong = list[float](), list[float](), list[str]()
    for setting, promise, is_ok in (("no", "window", False), ("always", "fsync", True)):
        set_at, since = monotonic(), look()
        await target.store("CONFIG", "SET", "appendfsync", setting)
        took.append(await target.promises(promise, since=set_at) - set_at)
        wrong.append(await target.tells(is_ok, since=since, what=f"CONFIG SET appendfsync {setting}"))
        told.append(monotonic() - set_at)
    note = (
        f"the label followed after {took[0]:.1f} s and {took[1]:.1f} s, "
        f"readiness after {told[0]:.1f} s and {told[1]:.1f} s"
    )
    name = "CONFIG SET appendfsync no"
    return Struck(name=name, began=began, back=monotonic(), note=note, wrong=tuple(filter(None, wrong)))
