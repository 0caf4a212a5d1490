"""The load of a proof: streams, groups and the callers on them, until everything that was sent is worked off."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import msgspec

from okmq.prove.callers import Caller, Committer, Publisher, Reader, Scene, messages_of
from okmq.prove.history import GroupAtRest, History, Remains
from okmq.prove.http import Client, NoAnswer, NotSent
from okmq.prove.members import Holder, Member

ACK_WAIT_S = 3.0
STREAMS = ("one", "two", "three")
PATIENT = "patient"
GROUPS: dict[str, dict[str, Any]] = {"shared": {}, "by-key": {"ordered_by_key": True}}
PUBLISHERS, READERS, MEMBERS, HOLDERS = 12, 3, 4, 3
"""Of each stream, of each stream, of each group, of the patient group of each stream."""

PAUSE_S = 0.15
WORKED_OFF_WITHIN_S = 120.0


class Unfinished(Exception):
    """The product does not answer, or groups do not come to their end; the message is one sentence."""


class Load:
    """Callers on a running product.

    Args:
        ports: of the product; where it has several, callers of every kind are on each.
        token: with every scope.
        patient_s: the time of another group, which is longer than any stop, and of which much is out at any moment:
            no stop may bring that back; 0: there is none.
        pause_s: what a publisher rests after a batch, but for a surge.
        dedup_window_s: for how long its streams remember ids; None: as they do by themselves.
    """

    def __init__(
        self,
        *ports: int,
        token: str,
        patient_s: float = 0.0,
        pause_s: float = PAUSE_S,
        dedup_window_s: int | None = None,
    ) -> None:
        by_key = frozenset(name for name, settings in GROUPS.items() if settings.get("ordered_by_key"))
        waits_s = {PATIENT: patient_s} if patient_s else {}
        history = History(ack_wait_s=ACK_WAIT_S, ack_waits_s=waits_s, by_key=by_key)
        self.scene = Scene(ports=ports, token=token, history=history, pause_s=pause_s)
        self._pause_s = pause_s
        self._settings = {} if dedup_window_s is None else {"dedup_window": dedup_window_s}
        self._client = Client(ports[0], token=token)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The callers work inside of the block; at its regular end everything is worked off and looked at."""
        with self.scene.machine.watched():
            async with self._running():
                yield

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        await self._make()
        self.scene.publishing.set()
        self.scene.reading.set()
        callers = [asyncio.create_task(each.run()) for each in _callers(self.scene)]
        publishers = callers[: len(STREAMS) * PUBLISHERS]
        try:
            yield
            self.scene.publishing.clear()
            await asyncio.wait_for(asyncio.gather(*publishers), WORKED_OFF_WITHIN_S)
            groups = await self._worked_off()
            self.scene.reading.clear()
            await asyncio.wait_for(asyncio.gather(*callers), WORKED_OFF_WITHIN_S)
            for stream in STREAMS:
                self.scene.history.remains[stream] = await self.remains(stream, groups[stream])
        except TimeoutError:
            raise Unfinished(f"The callers did not end within {WORKED_OFF_WITHIN_S:g} s.") from None
        finally:
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
            self.close()

    async def surge(self, seconds: float) -> None:
        """Let the publishers ask without a rest for a moment, so that as many calls as can be are under way.

        Everybody connects anew before: after a kill all connections are to the process that was left.
        """
        self.scene.spread += 1
        self.scene.pause_s = 0.0
        await asyncio.sleep(seconds)

    def calm(self) -> None:
        """Let them rest again."""
        self.scene.pause_s = self._pause_s

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer, None where it has no body; asked again until there is one.

        Raises:
            Unfinished: it is refused, or nobody answers for long.
        """
        data = None if body is None else msgspec.json.encode(body)
        until = monotonic() + WORKED_OFF_WITHIN_S
        while monotonic() < until:
            try:
                answer = await self._client.ask(method, path, data)
            except (NotSent, NoAnswer):
                await asyncio.sleep(0.1)
                continue
            if answer.status < 300:
                return msgspec.json.decode(answer.body) if answer.body else None
            if answer.status != 503:
                raise Unfinished(f"{method} {path}: {answer.status} {answer.body[:300].decode()}")
            await asyncio.sleep(0.1)
        raise Unfinished(f"{method} {path} had no answer for {WORKED_OFF_WITHIN_S:g} s.")

    def close(self) -> None:
        """Let its own connection go."""
        self._client.close()

    async def _make(self) -> None:
        for stream in STREAMS:
            await self.ask("POST", "/streams/", {"name": stream, "archive": False, **self._settings})
            for group, settings in GROUPS.items():
                wanted = {"name": group, "ack_wait": ACK_WAIT_S, "max_deliver": -1, **settings}
                await self.ask("POST", f"/streams/{stream}/groups/", wanted)
            for group, wait_s in self.scene.history.ack_waits_s.items():
                wanted = {"name": group, "ack_wait": wait_s, "max_deliver": -1}
                await self.ask("POST", f"/streams/{stream}/groups/", wanted)

    async def _worked_off(self) -> dict[str, tuple[GroupAtRest, ...]]:
        """How the groups stand when nothing is left to do, or when they have come no further for long."""
        least, until = float("inf"), 0.0
        while True:
            found = {stream: await self._groups(stream) for stream in STREAMS}
            left = sum(each.lag + each.pending for groups in found.values() for each in groups)
            if left < least:
                least, until = left, monotonic() + WORKED_OFF_WITHIN_S
            if not left or monotonic() > until:
                return found
            await asyncio.sleep(0.2)

    async def _groups(self, stream: str) -> tuple[GroupAtRest, ...]:
        groups = await self.ask("GET", f"/streams/{stream}/groups/")
        return tuple(
            GroupAtRest(name=each["name"], lag=each["lag"], pending=each["ack_pending"]) for each in groups
        )

    async def remains(self, stream: str, groups: Sequence[GroupAtRest] = ()) -> Remains:
        """What a stream holds now.

        Raises:
            Unfinished: it cannot be read.
        """
        held, size, start = [], 0, 1
        while found := await self._page(stream, start):
            held += [self.scene.seen(stream, each) for each in found]
            size += sum(len(bytes(each.body)) for each in found)
            start = held[-1].offset + 1
        told = await self.ask("GET", f"/streams/{stream}")
        return Remains(
            messages=tuple(held),
            offset=told["offset"],
            count=told["messages"],
            size_bytes=told["bytes"],
            bodies_bytes=size,
            committed=told["committed_offset"],
            groups=tuple(groups),
        )

    async def _page(self, stream: str, start: int) -> list[Any]:
        answer = await self._client.ask("GET", f"/streams/{stream}/messages?offset={start}&limit=10000")
        if answer.status != 200:
            raise Unfinished(f"{stream} cannot be read from {start}: {answer.status}")
        return messages_of(answer.body)


def _callers(scene: Scene) -> list[Caller]:
    """Publishers first."""
    return [
        *(Publisher(scene, stream, f"p{n}") for stream in STREAMS for n in range(PUBLISHERS)),
        *(Reader(scene, stream, f"r{n}") for stream in STREAMS for n in range(READERS)),
        *(Committer(scene, stream, "c") for stream in STREAMS),
        *(
            Member(scene, stream, group, f"m{n}")
            for stream in STREAMS
            for group in GROUPS
            for n in range(MEMBERS)
        ),
        *(
            Holder(scene, stream, group, f"h{n}")
            for stream in STREAMS
            for group in scene.history.ack_waits_s
            for n in range(HOLDERS)
        ),
    ]
