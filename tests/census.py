"""The process that counts, in a thread of the test's."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from okmq.census import keep
from streams.log import keys
from streams.log.client import Log
from tests.waiting import until


@contextmanager
def counting(url: str, folder: Path) -> Iterator[None]:
    """Counts on this server until the end; it listens when this begins."""
    log, over = Log(url), Event()
    thread = Thread(target=keep, args=(log, folder), kwargs={"is_over": over.is_set})
    thread.start()
    try:
        until(lambda: log.client.execute_command("PUBSUB", "NUMSUB", keys.CENSUS_ASKED)[1])
        yield
    finally:
        over.set()
        thread.join()
        log.close()
