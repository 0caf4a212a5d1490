"""Pages that are told by their number."""

from abc import ABC, abstractmethod


class Numbered(ABC):
    """A page among others: where it begins and ends, and which are around it.

    Attributes:
        number: from 1 on.
        size: how many a page has at most.
        total: how many there are on all pages.
    """

    __slots__ = ()

    number: int
    size: int
    total: int

    @property
    @abstractmethod
    def shown(self) -> int:
        """How many are on this page."""

    @property
    def first(self) -> int:
        return (self.number - 1) * self.size + 1 if self.shown else 0

    @property
    def last(self) -> int:
        return self.first + self.shown - 1 if self.shown else 0

    @property
    def newer(self) -> int | None:
        """The page before, if there is one."""
        return self.number - 1 if self.number > 1 else None

    @property
    def older(self) -> int | None:
        """The page after, if there is one."""
        return self.number + 1 if self.last < self.total else None
