"""The clients of a proof: each is a coroutine that notes every request it makes and what it was answered.

They behave as good clients do: what got no answer is sent again with the same ids, and a lease that was lost is let go.
"""

import asyncio
import random
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import msgspec

from okmq.prove.history import Commit, History, Outcome, Publish, Read, Seen, checksum
from okmq.prove.http import Answer, Client, NoAnswer, NotSent, TooLate
from okmq.prove.machine import Machine

POLL_S = 1.0
AGAIN_AFTER_S = 0.05
PATIENCE, LONGER = 20, 3
"""So many refusals in a row and it rests twice as long before the next, so many times at most."""

UNAVAILABLE = 503
LARGEST_BATCH = 8
KEYS = 101
PAGE = 500
FULL = "full"
"""A refusal of a store that has no room, in place of its code, which others have too."""


class Message(msgspec.Struct):
    """What a read or a fetch brings of a message."""

    id: str
    offset: int
    timestamp: str
    body: msgspec.Raw
    key: str | None = None
    headers: msgspec.Raw = msgspec.Raw()


class _Receipt(msgspec.Struct):
    id: str
    offset: int
    duplicate: bool


messages_of = msgspec.json.Decoder(list[Message]).decode
receipts_of = msgspec.json.Decoder(list[_Receipt]).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Who was told which epoch first, and when the answer was there."""

    who: str
    epoch: str
    at: float


@dataclass(kw_only=True)
class Scene:
    """What all callers of one run share.

    Attributes:
        ports: where the product answers; each caller keeps to one of them.
        pause_s: what a publisher rests after a batch; 0 while a fault is about to strike.
        publishing, reading: they go on while these are set.
        surprises: answers that nobody asked for: a 500, or a refusal of what had to be taken.
        late: calls that were not answered by their deadline: what was asked, and when.
        messages: how many were acknowledged as stored until now.
        spread: how often everybody was asked to connect anew, so that no process has all of them.
        machine: what it leaves to all of this.
        epochs: who was told another epoch than before.
    """

    ports: Sequence[int]
    token: str
    history: History
    pause_s: float
    publishing: asyncio.Event = field(default_factory=asyncio.Event)
    reading: asyncio.Event = field(default_factory=asyncio.Event)
    surprises: Counter[str] = field(default_factory=Counter)
    late: list[tuple[str, float]] = field(default_factory=list)
    messages: int = 0
    spread: int = 0
    machine: Machine = field(default_factory=Machine)
    epochs: list["Told"] = field(default_factory=list)
    last_stored_at: float = 0.0
    silences: list[tuple[float, float]] = field(default_factory=list)
    """From one publish that was stored to the next, where that was longer than a tenth of a second."""
    _known: dict[tuple[str, int], Seen] = field(default_factory=dict)

    def seen(self, stream: str, message: Message) -> Seen:
        """What a message was, the same object for what looks the same."""
        fresh = Seen(
            offset=message.offset,
            id=message.id,
            content=(message.timestamp, checksum(bytes(message.body))),
            key=sys.intern(message.key or ""),
            headers=checksum(bytes(message.headers)),
        )
        known = self._known.setdefault((stream, message.offset), fresh)
        return known if known == fresh else fresh

    def stored(self, messages: int) -> None:
        """A publish was answered, and so many messages are new: the product is there."""
        now = monotonic()
        self.messages += messages
        if self.last_stored_at and now - self.last_stored_at > 0.1:
            self.silences.append((self.last_stored_at, now))
        self.last_stored_at = now

    def surprised(self, what: str, answer: Answer) -> None:
        """Take down an answer that should not be."""
        self.surprises[f"{what}: {answer.status} {code_of(answer)}"] += 1


class Caller(ABC):
    """One client with a connection of its own, on one stream."""

    def __init__(self, scene: Scene, stream: str, name: str) -> None:
        self.scene, self.stream, self.name = scene, stream, name
        self.path = f"/streams/{stream}"
        self._random = random.Random(f"{stream} {name}")
        self._client = Client(self._random.choice(scene.ports), token=scene.token)
        self._spread = scene.spread
        self.epoch = ""
        self._refusals = 0

    async def ask(
        self, method: str, path: str, body: Any = None, *, wait_s: float = 0.0
    ) -> tuple[float, Answer | None]:
        """When it was sent, and the answer; None when nobody knows. Waits for somebody who listens."""
        data = None if body is None else body if isinstance(body, bytes) else _encode(body)
        if self._spread != self.scene.spread:
            self._spread = self.scene.spread
            self._client.close()
        while True:
            began = monotonic()
            try:
                answer = await self._client.ask(method, self.path + path, data, wait_s=wait_s)
            except NotSent:
                await asyncio.sleep(AGAIN_AFTER_S)
                continue
            except NoAnswer as error:
                if isinstance(error, TooLate):
                    self.scene.late.append((f"{method} {path.partition('?')[0]}", began))
                return began, None
            if answer.status != UNAVAILABLE:
                self._refusals = 0
            if (epoch := answer.headers.get("okmq-epoch", self.epoch)) != self.epoch:
                self.epoch = epoch
                self.scene.epochs.append(Told(who=f"{self.stream} {self.name}", epoch=epoch, at=monotonic()))
            return began, answer

    async def rest(self) -> None:
        """Before it is asked again: at once at first, and longer where it stays away, so that it has the processors."""
        self._refusals += 1
        longer = 2 ** min(LONGER, max(0, self._refusals - PATIENCE))
        await asyncio.sleep(AGAIN_AFTER_S * longer * self._random.uniform(1, 3))

    async def run(self) -> None:
        """Do one's work until it is told to end, and let the connection go."""
        try:
            await self._work()
        finally:
            self._client.close()

    @abstractmethod
    async def _work(self) -> None:
        """What this kind of client does, until the scene ends it."""


def outcome_of(answer: Answer | None) -> Outcome:
    """What is known of a request by its answer."""
    if answer is None or answer.status >= 500:
        return "info"
    return "ok" if answer.status < 300 else "fail"


def code_of(answer: Answer) -> str:
    try:
        error = msgspec.json.decode(answer.body)["error"]
        return FULL if error["details"].get("full") else str(error["code"])
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return "without a code"


class Publisher(Caller):
    """Batches of one to eight; some that must be refused, some that were sent before."""

    async def _work(self) -> None:
        number = 0
        before: list[dict[str, Any]] = []
        while self.scene.publishing.is_set():
            number += 1
            batch = self._batch(number)
            if number % 20 == 0:
                await self._publish(batch, refused=True)
            elif number % 25 == 0 and before:
                await self._until_taken(before)
            else:
                await self._until_taken(batch)
                before = batch
            await asyncio.sleep(self.scene.pause_s)

    def _batch(self, number: int) -> list[dict[str, Any]]:
        return [self._message(number, at) for at in range(self._random.randint(1, LARGEST_BATCH))]

    def _message(self, number: int, at: int) -> dict[str, Any]:
        """Most have a key, many have headers."""
        made: dict[str, Any] = {
            "id": f"{self.name}-{number}-{at}",
            "body": {"by": self.name, "n": number, "filler": "x" * self._random.randrange(300)},
        }
        if self._random.random() < 0.9:
            made["key"] = f"k.{self._random.randrange(KEYS)}"
        if self._random.random() < 0.3:
            made["headers"] = {"by": self.name, "at": f"{number}-{at}"}
        return made

    async def _until_taken(self, batch: list[dict[str, Any]]) -> None:
        settled = await self._publish(batch)
        while not settled:
            await self.rest()
            settled = await self._publish(batch)

    async def _publish(self, batch: list[dict[str, Any]], *, refused: bool = False) -> bool:
        """Send a batch once; whether that settled it."""
        body: Any = {"messages": batch, "expect": {"last_offset": 2**52}} if refused else batch
        began, answer = await self.ask("POST", "/messages", body)
        outcome = outcome_of(answer)
        receipts = receipts_of(answer.body) if answer and outcome == "ok" else []
        self.scene.history.note(
            Publish(
                began=began,
                ended=monotonic(),
                outcome=outcome,
                stream=self.stream,
                ids=tuple(each["id"] for each in batch),
                bodies=tuple(checksum(_encode(each["body"])) for each in batch),
                keys=tuple(sys.intern(each.get("key", "")) for each in batch),
                headers=tuple(
                    checksum(_encode(each["headers"])) if "headers" in each else 0 for each in batch
                ),
                offsets=tuple(each.offset for each in receipts),
                known=tuple(each.duplicate for each in receipts),
                durability=answer.headers.get("okmq-durability", "") if answer else "",
                code=code_of(answer) if answer and outcome != "ok" else "",
            )
        )
        if outcome == "ok":
            self.scene.stored(sum(not each.duplicate for each in receipts))
        if answer and answer.status != 503 and outcome != ("fail" if refused else "ok"):
            self.scene.surprised("publish", answer)
        return outcome != "info"


class Reader(Caller):
    """Follows a stream by offset, and now and then looks again at what is old."""

    async def _work(self) -> None:
        expected, turn, epoch = 1, 0, self.epoch
        while self.scene.reading.is_set():
            turn += 1
            if epoch != self.epoch:  # offsets may name other messages
                epoch, expected = self.epoch, 1
            again = turn % 10 == 0 and expected > 1
            start = self._random.randrange(1, expected) if again else expected
            began, answer = await self.ask(
                "GET", f"/messages?offset={start}&limit={PAGE}&wait={POLL_S:g}", wait_s=POLL_S
            )
            outcome = outcome_of(answer)
            found = messages_of(answer.body) if answer and outcome == "ok" else []
            messages = tuple(self.scene.seen(self.stream, each) for each in found)
            self.scene.history.note(
                Read(
                    began=began,
                    ended=monotonic(),
                    outcome=outcome,
                    stream=self.stream,
                    start=start,
                    limit=PAGE,
                    messages=messages,
                )
            )
            if messages:
                expected = max(expected, messages[-1].offset + 1)
            elif outcome != "ok":
                await self.rest()
            if answer and answer.status not in {200, 503}:
                self.scene.surprised("read", answer)


class Committer(Caller):
    """Reads what is above the committed offset and commits it; the only one of its stream."""

    async def _work(self) -> None:
        while self.scene.reading.is_set():
            began, answer = await self.ask("GET", f"/messages?limit={PAGE}&wait={POLL_S:g}", wait_s=POLL_S)
            found = messages_of(answer.body) if answer and answer.status == 200 else []
            if found:
                self._note(began, found)
                await self._commit(found[-1].offset)
            elif answer is None or answer.status != 200:
                await self.rest()

    def _note(self, began: float, found: Sequence[Message]) -> None:
        """From where it read the store knows; what is judged is what came."""
        messages = tuple(self.scene.seen(self.stream, each) for each in found)
        self.scene.history.note(
            Read(
                began=began,
                ended=monotonic(),
                outcome="ok",
                stream=self.stream,
                start=messages[0].offset,
                limit=PAGE,
                messages=messages,
            )
        )

    async def _commit(self, offset: int) -> None:
        outcome: Outcome = "info"
        while outcome == "info" and self.scene.reading.is_set():
            began, answer = await self.ask("POST", "/commit", {"offset": offset})
            outcome = outcome_of(answer)
            previous = msgspec.json.decode(answer.body)["previous"] if answer and outcome == "ok" else 0
            self.scene.history.note(
                Commit(
                    began=began,
                    ended=monotonic(),
                    outcome=outcome,
                    stream=self.stream,
                    offset=offset,
                    previous=previous,
                )
            )
            if answer and outcome == "fail":
                self.scene.surprised("commit", answer)
            await asyncio.sleep(AGAIN_AFTER_S)
