"""Another server in the store's place is noticed, and a restart is none."""

from contextlib import closing
from pathlib import Path

import pytest

from streams.log import lineage
from streams.log.client import Log
from streams.log.commands import one
from tests.product import free_port
from tests.servers import FLAVOURS, store
from tests.waiting import until


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_promotion_is_counted_once_and_a_restart_never(tmp_path: Path, flavour: str) -> None:
    with store(tmp_path, flavour=flavour) as running, closing(Log(running.url)) as log:
        for count in (0, 1):
            found = log.run(lineage.look())
            assert (found.epoch, found.fresh, found.is_replica) == (count, "", False)
            running.kill()
            running.start()
            assert log.run(lineage.look()) == found
            log.run(one(("REPLICAOF", "127.0.0.1", free_port())))
            until(lambda: log.run(lineage.look()).is_replica)
            assert log.run(lineage.look()).epoch == count
            log.run(one(("REPLICAOF", "NO", "ONE")))
            promoted = log.run(lineage.look())
            assert (promoted.epoch, promoted.noted, promoted.is_replica) == (count + 1, count, False)
            log.run(lineage.note(promoted, epoch=promoted.epoch))
