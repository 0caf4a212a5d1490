"""How much of something that has an end is used."""

from dataclasses import dataclass

SHORT_SHARE = 0.9
"""From here on the bar is amber."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """What is used, and the most that can be; 0 where nobody tells.

    Attributes:
        of: what the most is, for who wants to know.
    """

    used: int
    most: int
    of: str = ""

    @property
    def share(self) -> float | None:
        return self.used / self.most if self.most else None

    @property
    def is_short(self) -> bool:
        return self.share is not None and self.share >= SHORT_SHARE

    @property
    def left(self) -> int:
        return max(0, self.most - self.used)
