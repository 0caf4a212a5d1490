"""Whose turn it is where one thread reads the history and another rewrites it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAITED_S = 60.0
"""How long a rewrite waits for readers; one that takes longer may be overtaken again."""


class Turns:
    """Readers that a rewrite has overtaken go before the next rewrite of this process; safe to share."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._overtaken = 0

    @contextmanager
    def of_reader(self) -> Iterator[None]:
        """Read again, after a rewrite took files from under it."""
        with self._changed:
            self._overtaken += 1
        try:
            yield
        finally:
            with self._changed:
                self._overtaken -= 1
                self._changed.notify_all()

    def wait(self) -> None:
        """Wait, for a while at most, until nobody reads who was overtaken."""
        with self._changed:
            self._changed.wait_for(lambda: not self._overtaken, WAITED_S)


TURNS = Turns()
"""Those of this process."""
