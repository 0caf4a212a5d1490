"""Moments at which a store rewrites its append-only file, which of few messages takes some milliseconds."""

import random
from contextlib import suppress
from threading import Event

from streams.log.client import Log
from streams.log.commands import one
from streams.log.errors import LogError

LATEST_S, TRIES = 0.15, 12
"""How late in a rewrite a moment is at first; each time that it had ended by then, half as late."""

WHILE = " while its AOF is rewritten"
"""Ends the name of a fault that struck then, and of no other."""


def is_under_way(keeper: Log) -> bool:
    """Whether the store says that it rewrites its file."""
    told: bytes = keeper.run(one(("INFO", "persistence")))
    return b"aof_rewrite_in_progress:1" in told


def midway(keeper: Log, chance: random.Random) -> bool:
    """Return at some moment of a rewrite, right after the store has said that it goes on; False: there was none."""
    for turn in range(TRIES):
        with suppress(LogError):  # one is under way already
            keeper.run(one(("BGREWRITEAOF",)))
        Event().wait(chance.uniform(0, LATEST_S / 2**turn))
        if is_under_way(keeper):
            return True
    return False
