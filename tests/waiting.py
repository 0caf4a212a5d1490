"""Waiting for a condition, never for a time."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LONG_ENOUGH_S = 30.0
"""For what must come but is promised in no time: reached only by what will not come."""


def until(condition: Callable[[], T], *, within_s: float = LONG_ENOUGH_S, what: str = "") -> T:
    """Ask again and again until the answer is true, and return it.

    Raises:
        AssertionError: it stayed false; the message says what was awaited and what the last answer was.
    """
    deadline = time.monotonic() + within_s
    pause = threading.Event()
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s: {what or condition}; last answer: {answer!r}")
        pause.wait(0.02)
