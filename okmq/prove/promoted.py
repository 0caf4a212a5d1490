"""A replica that lags is promoted in the store's place: it heals at once, says less, and those who read are told."""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from okmq.instance import Instance, busy, free_port, instance
from okmq.prove.apart import Apart
from okmq.prove.callers import AGAIN_AFTER_S, POLL_S, Caller, receipts_of
from okmq.prove.cuts import everything, running_store
from okmq.prove.faults import NEXT_CALL_S, NotBack, Struck
from okmq.prove.history import Commit, History, Operation, Publish, Remains, Settle
from okmq.prove.load import ACK_WAIT_S, STREAMS, Load
from okmq.prove.lossy import Line
from okmq.prove.machine import look
from okmq.supervision import rights
from streams.log import config
from streams.log.client import Log
from streams.log.commands import one

STREAM = "followed"
EPOCH = "1"
BEYOND = "commit: 400 offset_out_of_range"
"""What was read before the store was another one, and is committed after it, may be beyond what the replica has."""

Kind = TypeVar("Kind", bound=Operation)
TOLD_WITHIN_S = 5.0
"""Readiness, the label and the epoch may take so long."""

BACK_WITHIN_S = 60.0
ENOUGH = 1000
"""Calls of the load on the store that was promoted, from which it is judged."""

LAGGING = 30
"""Publishes that are acknowledged and that the replica does not get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One publish: when it was sent, its answer's status, and of a 201 offset, label and epoch."""

    began: float
    status: int
    offset: int = 0
    durability: str = ""
    epoch: str = ""


@dataclass(kw_only=True)
class OfPromotion(Apart):
    """What came of it.

    Attributes:
        before, after: what happened on the store that was, with what it had in the end, and on the replica.
        sent: every publish, in order.
        red_s, label_s, told_s: how long readiness, the label and the epoch took.
        requests: how many were answered before one was stored, once there was a store.
    """

    sent: list[Sent]
    before: History = field(default_factory=lambda: History(ack_wait_s=ACK_WAIT_S))
    after: History = field(default_factory=lambda: History(ack_wait_s=ACK_WAIT_S))
    red_s: float = 0.0
    label_s: float = 0.0
    told_s: float = 0.0
    requests: int = 0

    @property
    def histories(self) -> list[History]:
        return [self.before, self.after]


def on_a_promoted_replica(folder: Path) -> OfPromotion:
    """Let a replica fall behind a store that is written to, take its place, and be promoted.

    Raises:
        Broken, NotBack, Unfinished: it could not be carried out to its end.
    """
    with (
        running_store(folder / "first") as (first, _),
        running_store(folder / "second") as (second, _),
        _keeper(first, folder / "first") as primary,
        _keeper(second, folder / "second") as replica,
    ):
        _follow(primary, replica, password=rights.password_make(folder / "first"))
        line = Line(real=Path(first.removeprefix("unix://")), shown=folder / "line")
        with (
            line.open(),
            instance(folder, more={"OKMQ_REDIS_URL": f"unix://{line.shown}"}) as product,
        ):
            promotion = _Promotion(product, primary, replica)
            return asyncio.run(
                promotion.carry_out(lambda: line.lead_to(Path(second.removeprefix("unix://"))))
            )


@contextmanager
def _keeper(url: str, folder: Path) -> Iterator[Log]:
    with closing(Log(rights.keeper_url(url, folder))) as log:
        yield log


def _follow(primary: Log, replica: Log, *, password: str) -> None:
    """Have one follow the other, over loopback."""
    port = free_port()
    primary.run(one(("CONFIG", "SET", "bind", "127.0.0.1", "port", port)))
    replica.run(one(("CONFIG", "SET", "masteruser", rights.KEEPER, "masterauth", password)))
    replica.run(one(("CONFIG", "SET", "appendfsync", "everysec")))
    replica.run(one(("REPLICAOF", "127.0.0.1", port)))


class _Promotion:
    """A product that is published to, its store and the replica."""

    def __init__(self, product: Instance, primary: Log, replica: Log) -> None:
        self.port, self.primary, self.replica = product.port, primary, replica
        self.load = Load(product.port, token=product.token)
        self.apart = OfPromotion(load=self.load, sent=[])
        self._switched_at = self._promoted_at = 0.0

    async def carry_out(self, switch: Callable[[], None]) -> OfPromotion:
        await self.load.ask("POST", "/streams/", {"name": STREAM, "archive": False})
        async with self.load.running():
            await self._promoted(switch)
        self._judge()
        return self.apart

    async def _promoted(self, switch: Callable[[], None]) -> None:
        publisher = _Publisher(self.load, self.apart.sent)
        publishing = asyncio.create_task(publisher.run())
        try:
            await self._until(lambda: len(self._stored(0.0)) >= LAGGING, "it is published")
            await self._until(self._is_level, "the replica follows")
            await self._say(self.replica, "REPLICAOF", "127.0.0.1", free_port())  # nobody is there: it stalls
            stalled = monotonic()
            await self._until(lambda: len(self._stored(stalled)) >= LAGGING, "the replica falls behind")
            await self._switched(switch)
            publisher.ends.set()
            await publishing
        finally:
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)
        await self._all_are_told()
        await self._until(self._is_enough, "enough is asked of the replica")
        known = monotonic()
        self.apart.struck[-1] = replace(self.apart.struck[-1], lasted_until=known)

    def _is_enough(self) -> bool:
        operations = self.apart.history.operations
        return len(operations) > ENOUGH and operations[-ENOUGH].began > self._promoted_at

    async def _all_are_told(self) -> None:
        """Wait until everybody on the streams had an answer of the new epoch, or should have had one."""
        everybody = {each.who for each in self.load.scene.epochs if each.epoch != EPOCH}
        allowed_s = self.apart.struck[-1].taken.allows_s(TOLD_WITHIN_S + POLL_S)

        def not_yet() -> set[str]:
            return everybody - {each.who for each in self.load.scene.epochs if each.epoch == EPOCH}

        while not_yet():
            if monotonic() > self._promoted_at + allowed_s:
                self.apart.wrong += [f"{who} was not told of the epoch" for who in sorted(not_yet())]
                break
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _switched(self, switch: Callable[[], None]) -> None:
        """First the replica is there as it is, then it is promoted."""
        began = self._switched_at = monotonic()
        switch()
        while await asyncio.to_thread(self._readiness) == 200:
            if monotonic() - began > BACK_WITHIN_S * busy():
                raise NotBack("Readiness does not tell that the store is a replica.")
        self.apart.red_s = monotonic() - began
        since = look()
        await self._say(self.replica, "REPLICAOF", "NO", "ONE")
        promoted = self._promoted_at = monotonic()
        await self._until(lambda: bool(self._stored(promoted)), "a publish is stored again")
        back = monotonic()
        await self._until(lambda: self._label(promoted) == "window", "the label follows")
        self.apart.label_s = monotonic() - promoted
        await self._until(lambda: self._stored(promoted)[-1].epoch == "1", "the epoch is told")
        self.apart.told_s = (
            next(each.began for each in self._stored(promoted) if each.epoch == "1") - promoted
        )
        while await asyncio.to_thread(self._readiness) != 200:
            if monotonic() - promoted > BACK_WITHIN_S * busy():
                raise NotBack("It does not get ready again.")
        while not await self._event():
            if monotonic() - promoted > BACK_WITHIN_S * busy():
                raise NotBack("No event tells of the promotion.")
        self.apart.requests = sum(each.status != 201 for each in self.apart.sent if each.began > promoted)
        self.apart.struck.append(
            Struck(
                name="a replica that lags is promoted in the store's place",
                began=began,
                back=back,
                recovery_s=back - promoted,
                allowed_s=NEXT_CALL_S,
                taken=self.load.scene.machine.taken(since),
                note=f"not ready after {self.apart.red_s:.1f} s, the label followed after {self.apart.label_s:.1f} s, "
                f"the epoch after {self.apart.told_s:.1f} s",
            )
        )

    def _part(self) -> None:
        """Hold what was before against the store that was, and what came after against the replica.

        What was on its way meanwhile may have happened on either: nobody knows.
        """
        held = {each.name: each.stream_id for each in self.primary.run(config.streams())}
        before, after = self.apart.before, self.apart.after
        before.by_key = after.by_key = self.apart.history.by_key
        for each in self.apart.history.operations:
            if each.ended < self._switched_at:
                before.operations.append(each)
            elif isinstance(each, Publish):
                before.operations.append(_unsure(each))
            if each.began >= self._promoted_at:
                after.operations.append(each)
            elif isinstance(each, Publish | Settle | Commit) and each.outcome != "fail":
                after.operations.append(_unsure(each))
        after.remains = self.apart.history.remains
        for stream in STREAMS:
            messages = tuple(self.primary.run(everything(held[stream])))
            committed = max(
                (
                    each.offset
                    for each in before.of(stream)
                    if isinstance(each, Commit) and each.outcome != "fail"
                ),
                default=0,
            )
            last = messages[-1].offset if messages else 0
            before.remains[stream] = Remains(
                messages=messages, offset=last, count=len(messages), committed=committed
            )

    def _judge(self) -> None:
        self._part()
        apart = self.apart
        for what in [each for each in self.load.scene.surprises if each.endswith(BEYOND)]:
            del self.load.scene.surprises[what]
        for what, took_s in (("readiness", apart.red_s), ("label", apart.label_s), ("epoch", apart.told_s)):
            allowed_s = apart.struck[-1].taken.allows_s(TOLD_WITHIN_S)
            if took_s > allowed_s:
                apart.wrong.append(f"the {what} took {took_s:.1f} s, allowed are {allowed_s:.1f} s")
        stored = self._stored(0.0)
        after = [each.offset for each in stored if each.epoch == EPOCH]
        if min(after) > max(each.offset for each in stored if each.epoch != EPOCH):
            apart.wrong.append("the replica that was promoted lacked nothing: it does not count")
        if {each.durability for each in stored[:LAGGING]} != {"fsync"}:
            apart.wrong.append("the first store did not promise a flush")
        if apart.requests > 1:
            apart.wrong.append(f"{apart.requests} publishes were refused by a store that was promoted")

    def _stored(self, since: float) -> list[Sent]:
        return [each for each in self.apart.sent if each.status == 201 and each.began >= since]

    def _label(self, since: float) -> str:
        return self._stored(since)[-1].durability

    def _is_level(self) -> bool:
        found = [
            dict(
                line.partition(":")[::2]
                for line in log.run(one(("INFO", "replication"))).decode().splitlines()
            )
            for log in (self.primary, self.replica)
        ]
        return found[1].get("master_link_status") == "up" and "state=online" in found[0].get("slave0", "")

    async def _say(self, log: Log, *command: Any) -> None:
        await asyncio.to_thread(lambda: log.run(one(command)))

    def _readiness(self) -> int:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=BACK_WITHIN_S)) as connection:
            connection.request("GET", "/readyz")
            return connection.getresponse().status

    async def _event(self) -> bool:
        events = await self.load.ask("GET", "/events?kind=store.promoted")
        return bool(events)

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        until = monotonic() + BACK_WITHIN_S * busy()
        while not condition():
            if monotonic() > until:
                raise NotBack(f"Not within {BACK_WITHIN_S:g} s of a core: {what}.")
            await asyncio.sleep(AGAIN_AFTER_S)


def _unsure(operation: Kind) -> Kind:
    if isinstance(operation, Publish):
        return replace(operation, outcome="info", offsets=(), known=())
    return replace(operation, outcome="info")


class _Publisher(Caller):
    """One message after the other, each with an id of its own; what is refused is not sent again."""

    def __init__(self, load: Load, sent: list[Sent]) -> None:
        super().__init__(load.scene, STREAM, "p")
        self.sent = sent
        self.ends = asyncio.Event()

    async def _work(self) -> None:
        while not self.ends.is_set():
            began, answer = await self.ask("POST", "/messages", {"id": secrets.token_hex(8), "body": 1})
            if answer is not None and answer.status == 201:
                (receipt,) = receipts_of(answer.body)
                told = Sent(
                    began=began,
                    status=201,
                    offset=receipt.offset,
                    durability=answer.headers.get("okmq-durability", ""),
                    epoch=answer.headers.get("okmq-epoch", ""),
                )
            else:
                told = Sent(began=began, status=0 if answer is None else answer.status)
                if answer is not None and answer.status != 503:
                    self.scene.surprised("publish", answer)
            self.sent.append(told)
            await asyncio.sleep(AGAIN_AFTER_S)
