"""The process that counts messages by key, for previews: ``python -m okmq.census``. Django-free and small.

It reads what comes into streams with keys, at most half of the time and at a low priority, and answers questions.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from okmq import env as environment
from streams.log.censuses import Censuses
from streams.log.client import Log
from streams.log.errors import StoreUnavailable
from streams.log.following import Following
from streams.log.questions import Answers

LOOKS_EVERY_S = 1.0
IDLE_S, LEAST_REST_S = 0.25, 0.01
STORE_AWAY_S = 0.5
NICE = 5


def main() -> None:
    """Run until SIGTERM or SIGINT."""
    env, ending = environment.load(), list[int]()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: ending.append(number))
    with suppress(OSError):
        os.nice(NICE)
    log = Log(env.redis_url, memory_url=env.memory_redis_url)
    keep(log, env.data_dir / "census", is_over=lambda: bool(ending))
    log.close()


def keep(log: Log, folder: Path, *, is_over: Callable[[], bool]) -> None:
    """Keep the censuses and answer, until it is over; a store that does not answer is waited for."""
    censuses = Censuses(folder)
    following = Following(log, censuses)
    while not is_over():
        try:
            _turns(following, Answers(log, censuses), is_over=is_over)
        except StoreUnavailable:
            time.sleep(STORE_AWAY_S)
    following.save()


def _turns(following: Following, answers: Answers, *, is_over: Callable[[], bool]) -> None:
    looked_at = 0.0
    try:
        while not is_over():
            if time.monotonic() - looked_at > LOOKS_EVERY_S:
                looked_at = time.monotonic()
                following.look_around()
            began = time.monotonic()
            is_behind = following.go_on()
            rest_s = max(LEAST_REST_S, time.monotonic() - began) if is_behind else IDLE_S
            while answers.answer(wait_s=rest_s) and not is_over():
                rest_s = LEAST_REST_S
    finally:
        answers.close()


if __name__ == "__main__":
    main()
