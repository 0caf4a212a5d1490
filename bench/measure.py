"""What one measurement is: how many of something several clients did in a time, and how long each took."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Work = Callable[[int, int], Awaitable[int]]
"""Does one thing (client number, how many it did before) and says how many messages that were."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A line of the table. Times are seconds."""

    name: str
    batch: int
    clients: int
    calls: int
    messages: int
    took_s: float
    latencies_s: tuple[float, ...]

    @property
    def calls_per_s(self) -> float:
        return self.calls / self.took_s

    @property
    def messages_per_s(self) -> float:
        return self.messages / self.took_s

    def percentile_ms(self, percent: int) -> float:
        """The latency that this share of the calls kept within, in milliseconds."""
        if len(self.latencies_s) < 2:
            return 1000 * sum(self.latencies_s)
        return 1000 * statistics.quantiles(self.latencies_s, n=100, method="inclusive")[percent - 1]


async def measure(work: Work, *, name: str, batch: int, clients: int, seconds: float) -> Measured:
    """Let the clients work, each one thing at a time, until the time is over."""
    latencies: list[float] = []
    messages = 0
    began = time.perf_counter()
    until = began + seconds

    async def client(number: int) -> None:
        nonlocal messages
        done = 0
        while (start := time.perf_counter()) < until:
            moved = await work(number, done)  # awaited first: the others add to the sum meanwhile
            messages += moved
            latencies.append(time.perf_counter() - start)
            done += 1

    await asyncio.gather(*(client(number) for number in range(clients)))
    return Measured(
        name=name,
        batch=batch,
        clients=clients,
        calls=len(latencies),
        messages=messages,
        took_s=time.perf_counter() - began,
        latencies_s=tuple(latencies),
    )
