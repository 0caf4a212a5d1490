"""Streams whose messages live for a short time, beside the load: what they bring is judged by ``ages``."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from okmq.prove.callers import Caller, Publisher, messages_of, outcome_of
from okmq.prove.history import Read
from okmq.prove.load import Load

AGED, TIMED = "aged", "timed"
"""In the one it is the stream whose messages live for so long, in the other each message."""

LIVES_S = 10
"""So long do they live: several jumps of the clock, and less than all take."""

EVERYTHING = 10_000
LOOKS_EVERY_S = 0.25


@asynccontextmanager
async def aging(load: Load) -> AsyncIterator[None]:
    """Streams of messages that live for a short time, beside a load, as long as that works.

    Raises:
        Unfinished: they could not be made.
    """
    for stream, ttl_s in ((AGED, LIVES_S), (TIMED, None)):
        await load.ask("POST", "/streams/", {"name": stream, "archive": False, "ttl": ttl_s})
        load.scene.history.lives_s[stream] = LIVES_S
    callers: list[Caller] = []
    for stream in (AGED, TIMED):
        callers += [Mortal(load.scene, stream, "p"), Watcher(load.scene, stream, "r")]
    working = [asyncio.create_task(each.run()) for each in callers]
    try:
        yield
    finally:
        for each in working:
            each.cancel()
        await asyncio.gather(*working, return_exceptions=True)


class Mortal(Publisher):
    """Publishes what lives for a short time."""

    def _message(self, number: int, at: int) -> dict[str, Any]:
        made = super()._message(number, at)
        return {**made, "ttl": LIVES_S} if self.stream == TIMED else made


class Watcher(Caller):
    """Reads everything that there is, again and again."""

    async def _work(self) -> None:
        while self.scene.reading.is_set():
            began, answer = await self.ask("GET", f"/messages?offset=1&limit={EVERYTHING}")
            outcome = outcome_of(answer)
            found = messages_of(answer.body) if answer and outcome == "ok" else []
            self.scene.history.note(
                Read(
                    began=began,
                    ended=monotonic(),
                    outcome=outcome,
                    stream=self.stream,
                    start=1,
                    limit=EVERYTHING,
                    messages=tuple(self.scene.seen(self.stream, each) for each in found),
                )
            )
            if answer and answer.status not in {200, 503}:
                self.scene.surprised("read", answer)
            await asyncio.sleep(LOOKS_EVERY_S)
