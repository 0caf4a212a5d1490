"""The first step of a coroutine, taken at once: what is there already costs no timer, no task, no turn of the loop."""

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Stepped(Generic[T]):
    """A coroutine that has begun; ``await`` goes on with it, and ``drop`` ends it where it waits.

    Attributes:
        is_done: whether it has ended without waiting for anything; then ``await`` gives its result at once.
    """

    __slots__ = ("_awaited", "_coroutine", "_result", "is_done")

    _result: T

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        try:
            self._awaited = coroutine.send(None)
        except StopIteration as stop:
            self._result, self.is_done = stop.value, True
        else:
            self.is_done = False

    def __await__(self) -> Generator[Any, Any, T]:
        if self.is_done:
            return self._result
        coroutine, awaited = self._coroutine, self._awaited
        try:
            while True:
                try:
                    sent = yield awaited
                except BaseException as error:  # a cancellation is for the coroutine to hear
                    awaited = coroutine.throw(error)
                else:
                    awaited = coroutine.send(sent)
        except StopIteration as stop:
            self._result = stop.value
            return self._result

    def drop(self) -> None:
        """End the coroutine unless it has ended."""
        self._coroutine.close()
