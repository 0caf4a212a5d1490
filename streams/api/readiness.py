"""How the message store stands, told within a few seconds whatever it does."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock, Thread

from django.conf import settings
from django.db import DatabaseError

from streams import selectors, store
from streams.log import lineage, server, stats
from streams.log.errors import LogError

log = logging.getLogger(__name__)

ANSWER_S = 4.0
"""A store that has not answered by then is told to be away; whoever asks for readiness is answered within 5 s."""

AWAY = "The message store is not responding."
MEMORY_AWAY = "The server of the streams in memory is not responding."


@dataclass(frozen=True, slots=True)
class Found:
    """What is told of a store: why it cannot be used, or how it and the worker stand (``ok``, or a sentence)."""

    reason: str = ""
    log: str = "ok"
    worker: str = "ok"


class Look:
    """Looks in a thread of its own; who asks meanwhile waits for the same look, so that no more than one hangs."""

    def __init__(self, look: Callable[[], Found], *, away: Found) -> None:
        self._look, self._away = look, away
        self._lock = Lock()
        self._going: Future[Found] | None = None

    def begin(self) -> Future[Found]:
        """The look that is under way, or a new one."""
        with self._lock:
            if self._going is None or self._going.done():
                self._going = Future()
                Thread(target=self._run, args=[self._going], daemon=True).start()
            return self._going

    def end(self, going: Future[Found], *, until_s: float) -> Found:
        """What it found, or that the store is away: it refused, or has not answered by then (monotonic)."""
        try:
            return going.result(max(0.0, until_s - time.monotonic()))
        except (LogError, TimeoutError) as error:
            log.warning("The store is away: %s", str(error) or "no answer in time")
            return self._away

    def _run(self, going: Future[Found]) -> None:
        try:
            going.set_result(self._look())
        except Exception as error:
            going.set_exception(error)


def found() -> tuple[Found, Found | None]:
    """How the durable store stands, and that of the streams in memory where there is one."""
    until_s = time.monotonic() + ANSWER_S
    going = _durable.begin()
    if not store.has_memory():
        return _durable.end(going, until_s=until_s), None
    other = _memory.begin()
    return _durable.end(going, until_s=until_s), _memory.end(other, until_s=until_s)


def _look_at_durable() -> Found:
    run = store.log().run
    if run(lineage.look()).is_replica:
        return Found("The message store is a replica of another server and accepts no writes.")
    return Found(log=_log_check(), worker=_worker_check())


def _log_check() -> str:
    run = store.log().run
    if run(server.is_full()):
        return "The message store is full."
    away, nodes = run(server.away())
    if away:
        return f"{away} of the {nodes} nodes of the message store are not responding."
    promised, wanted = run(server.promised()), "fsync" if settings.ENV.fsync == "always" else "window"
    if stats.PROMISES.index(promised) > stats.PROMISES.index(wanted):
        return f"Publishes are promised '{promised}' and not '{wanted}', as is configured (OKMQ_FSYNC)."
    return _damage_check()


def _damage_check() -> str:
    """How many streams and groups are damaged; not which: anybody may ask for readiness."""
    try:
        count = len(selectors.damaged_parts())
    except DatabaseError:
        return "ok"  # told with the database
    if not count:
        return "ok"
    parts = "one stream or group" if count == 1 else f"{count} streams and groups"
    return f"What the store holds of {parts} cannot be read; okmq_doctor names them, okmq_fsck says what is to be done."


def _worker_check() -> str:
    seen = selectors.sampling()
    return f"The worker has not sampled for {seen.silent_s:.0f} s." if seen.is_stale else "ok"


def _look_at_memory() -> Found:
    is_full = store.log().run(server.is_full(memory=True))
    return Found(log="The server of the streams in memory is full." if is_full else "ok")


_durable = Look(_look_at_durable, away=Found(AWAY))
_memory = Look(_look_at_memory, away=Found(log=MEMORY_AWAY))
