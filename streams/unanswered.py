"""What a group was handed since anything of it was acknowledged: pure functions over looks at it.

Kept beyond the window of ``streams.verdicts``: of one that fetches every few minutes no window tells whether it went
on.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

OFTEN = 3


class Look(Protocol):
    """What a sample knows of what is in flight (see ``streams.verdicts.Sample``)."""

    @property
    def at_ms(self) -> int: ...
    @property
    def lag(self) -> int: ...
    @property
    def pending(self) -> int: ...
    @property
    def floor(self) -> int: ...
    @property
    def deliveries(self) -> int: ...
    @property
    def acked(self) -> int: ...
    @property
    def redelivered(self) -> int: ...
    @property
    def dead(self) -> int: ...

    @property
    def generation(self) -> int | None: ...


class Unanswered(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Deliveries without an answer, since the newest acknowledgement.

    Attributes:
        first_ms, last_ms: the first and the newest look that saw more handed out.
        looks: how many did.
        longest_ms: the longest time between two of them.
        again: whether one of them saw a redelivery.
    """

    first_ms: int
    last_ms: int
    looks: int = 1
    longest_ms: int = 0
    again: bool = False

    def goes_on(self, last: Look, *, over_ms: int) -> bool:
        """Whether consumers take more and more and answer none of it: three times or more, over ``over_ms`` or more
        unless some went out again. What was taken long ago alone may be long jobs, where nothing more waits.
        """
        if self.looks < OFTEN or not (self.again or self.last_ms - self.first_ms >= over_ms):
            return False
        return last.lag > 0 or last.at_ms - self.last_ms <= max(over_ms, 3 * self.longest_ms)


def unanswered(known: Unanswered | None, looks: Sequence[Look]) -> Unanswered | None:
    """What is known after the newest of these looks; None where nothing was handed out since an acknowledgement."""
    last = looks[-1]
    if not last.pending:
        return None
    if len(looks) < 2:
        return Unanswered(first_ms=last.at_ms, last_ms=last.at_ms)
    before = looks[-2]
    is_answered = (last.acked, last.floor, last.dead, last.generation) != (
        before.acked,
        before.floor,
        before.dead,
        before.generation,
    )
    if is_answered and before.pending:
        return None
    again = last.redelivered > before.redelivered
    if not again and last.deliveries <= before.deliveries:
        return known
    if known is None or is_answered:
        return Unanswered(first_ms=last.at_ms, last_ms=last.at_ms, again=again)
    return Unanswered(
        first_ms=known.first_ms,
        last_ms=last.at_ms,
        looks=known.looks + 1,
        longest_ms=max(known.longest_ms, last.at_ms - known.last_ms),
        again=known.again or again,
    )


def unanswered_over(looks: Sequence[Look]) -> Unanswered | None:
    """What a row of looks tells of it."""
    known = None
    for n in range(1, len(looks) + 1):
        known = unanswered(known, looks[max(0, n - 2) : n])
    return known
