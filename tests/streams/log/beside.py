"""An operation, and what somebody else does between its calls."""

from collections.abc import Callable, Collection
from typing import cast

from streams.log.client import Op, Script, T
from streams.log.errors import LogError


def beside(operation: Op[T], verbs: Collection[str], act: Callable[[int], object]) -> Op[T]:
    """The operation; before its n-th call of one of these scripts ``act(n)`` is done."""
    calls = 0
    try:
        command = next(operation)
        while True:
            if isinstance(command, Script) and command.name in verbs:
                calls += 1
                act(calls)
            try:
                reply = yield command
            except LogError as error:
                command = operation.throw(error)
            else:
                command = operation.send(reply)
    except StopIteration as stop:
        return cast(T, stop.value)
