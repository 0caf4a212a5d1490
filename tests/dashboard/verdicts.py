"""Verdicts on groups, as the worker keeps them."""

from collections.abc import Sequence

from streams import health, store, verdicts
from streams.health import Health
from streams.log import healths
from streams.log.client import Op
from streams.log.commands import Steady
from streams.models import Stream
from streams.verdicts import Sample, Status, Verdict


def judged(
    stream: Stream,
    group: str,
    status: Status,
    *,
    lag_ms: int = 0,
    lag: int = 5,
    pending: int = 0,
    dead: int = 0,
    ago_ms: int = 0,
    acked: Sequence[int] = (0,),
    generation: int | None = None,
) -> None:
    """As if the worker had found this of a group a moment ago, or ``ago_ms`` before; ``acked`` is of each look."""

    def op() -> Op[None]:
        now_ms: int = yield Steady()
        samples = [
            Sample(
                at_ms=now_ms - ago_ms - verdicts.EVERY_MS * back,
                lag=lag,
                pending=pending,
                held=0,
                floor=0,
                deliveries=done,
                acked=done,
                redelivered=0,
                dead=dead,
                removed=0,
                polls=0,
                fetched_ms=now_ms,
                acked_ms=0,
                lag_ms=lag_ms,
                generation=generation,
            )
            for back, done in zip(reversed(range(len(acked))), acked, strict=True)
        ]
        held = Health(samples=samples, verdict=Verdict(status, f"It is {status}."), since_ms=now_ms)
        yield from healths.put(stream.stream_id, group, health.written(held))

    store.log().run(op())
