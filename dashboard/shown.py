"""What a person was shown before saving, and how much more may go by then.

Saving removes no more than was shown, or asks again. A stream that moves is never quite as it was shown a second ago,
so there the most that may go within a minute is shown, too, and saving is held to that.
"""

from dataclasses import dataclass
from math import ceil

MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page said that would go.

    Attributes:
        messages: that would have gone at once.
        most: that might have gone within a minute.
        at_ms: unix ms when it was said; 0 where nothing was.
    """

    messages: int = 0
    most: int = 0
    at_ms: int = 0

    @property
    def margin(self) -> int:
        """How many more may go within the minute than at once."""
        return self.most - self.messages

    def again(self, messages: int, *, arriving: float, at_ms: int) -> "Shown":
        """What to say now.

        Args:
            messages: that would go at once.
            arriving: messages that come in a minute; at a limit each may push out another.
        """
        if not messages:
            return Shown(at_ms=at_ms)
        since_s = max(1.0, (at_ms - self.at_ms) / 1000)
        grown = max(0, messages - self.messages) / since_s if self.at_ms else 0.0
        return Shown(messages, messages + ceil(max(arriving, grown * MINUTE_S)), at_ms)
