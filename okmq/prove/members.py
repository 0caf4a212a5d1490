"""Members of consumer groups in a proof: what they fetch, and what becomes of it."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any

import msgspec

from okmq.prove.callers import PAGE, POLL_S, Caller, Message, Scene, code_of, outcome_of
from okmq.prove.history import Fetch, Settle, Taken

FETCHED = 20
HELD_S = 1.0


class Delivery(Message, kw_only=True):
    """A message with the lease that it came under."""

    deliveries: int
    lease: str


_deliveries_of = msgspec.json.Decoder(list[Delivery]).decode


class Member(Caller):
    """A member of a group: acknowledges by lease, gives some back, and forgets some until their time is over."""

    fetched = FETCHED

    def __init__(self, scene: Scene, stream: str, group: str, name: str) -> None:
        super().__init__(scene, stream, name)
        self._group = group

    async def _work(self) -> None:
        verb = f"/groups/{self._group}/fetch"
        asked = {"limit": self.fetched, "wait": POLL_S, "consumer": self.name}
        while self.scene.reading.is_set():
            began, answer = await self.ask("POST", verb, asked, wait_s=POLL_S)
            outcome = outcome_of(answer)
            found = _deliveries_of(answer.body) if answer and outcome == "ok" else []
            self.scene.history.note(
                Fetch(
                    began=began,
                    ended=monotonic(),
                    outcome=outcome,
                    stream=self.stream,
                    group=self._group,
                    member=self.name,
                    limit=self.fetched,
                    taken=tuple(map(self._taken, found)),
                )
            )
            if answer and answer.status not in {200, 503}:
                self.scene.surprised("fetch", answer)
            if outcome == "ok":
                await self._settle(found)
            else:
                await self.rest()

    def _taken(self, delivery: Delivery) -> Taken:
        seen = self.scene.seen(self.stream, delivery)
        return Taken(
            offset=seen.offset,
            id=seen.id,
            content=seen.content,
            key=seen.key,
            headers=seen.headers,
            number=delivery.deliveries,
        )

    async def _settle(self, found: Sequence[Delivery]) -> None:
        back = [each for each in found if each.deliveries == 1 and each.offset % 13 == 0]
        forgotten = [each for each in found if each.deliveries == 1 and each.offset % 211 == 0]
        if back:
            await self._answer("nack", back)
        await self._answer("ack", [each for each in found if each not in back and each not in forgotten])

    async def _answer(self, kind: Any, deliveries: Sequence[Delivery]) -> None:
        """Once: an answer that is lost leaves the message to its next delivery. One lost lease: each by itself."""
        if not deliveries:
            return
        leases = [each.lease for each in deliveries]
        began, answer = await self.ask("POST", f"/groups/{self._group}/{kind}", {"leases": leases})
        outcome = outcome_of(answer)
        if answer and outcome == "ok":
            done = msgspec.json.decode(answer.body)["acked" if kind == "ack" else "count"]
            outcome = "ok" if done == len(deliveries) else "info"
        self.scene.history.note(
            Settle(
                began=began,
                ended=monotonic(),
                outcome=outcome,
                stream=self.stream,
                group=self._group,
                kind=kind,
                about=tuple((each.offset, each.deliveries) for each in deliveries),
            )
        )
        if answer and outcome == "fail" and code_of(answer) != "lease_lost":
            self.scene.surprised(kind, answer)
        if outcome == "fail" and len(deliveries) > 1:
            for each in deliveries:
                await self._answer(kind, [each])


class Holder(Member):
    """Works on what it fetched for a while, so that much is out when a fault strikes."""

    fetched = PAGE

    async def _settle(self, found: Sequence[Delivery]) -> None:
        await asyncio.sleep(self._random.uniform(0, HELD_S))
        await super()._settle(found)
