"""A replica that lags, promoted in the store's place: it is used at once, and whoever reads is told."""

from pathlib import Path

import pytest

from okmq.prove.found import ENOUGH_IN_FLIGHT, found_by
from okmq.prove.history import Fetch, Publish, Read, Settle
from okmq.prove.load import STREAMS
from okmq.prove.promoted import LAGGING, on_a_promoted_replica

pytestmark = pytest.mark.running


@pytest.mark.timeout(600)
def test_a_promoted_replica_is_used_at_once_and_everybody_is_told(tmp_path: Path) -> None:
    apart = on_a_promoted_replica(tmp_path)
    assert (apart.load.scene.late, apart.load.scene.surprises, apart.wrong) == ([], {}, [])
    assert {each.status for each in apart.sent} <= {201, 503, 0}
    stored = [each for each in apart.sent if each.status == 201]
    before = {each.offset for each in stored if each.epoch == "0"}
    after = {each.offset for each in stored if each.epoch == "1"}
    assert len(before) >= 2 * LAGGING
    assert after
    assert min(after) < max(before)  # it did lack something
    assert {each.durability for each in stored[:LAGGING]} == {"fsync"}
    assert stored[-1].durability == "window"
    found = found_by([apart], told="", took_s=0.0)
    assert found.sentences == []
    assert found.in_flight >= ENOUGH_IN_FLIGHT
    readers = {told.who for told in apart.load.scene.epochs if told.epoch == "1"}
    assert {f"{stream} {name}" for stream in STREAMS for name in ("r0", "c", "m0", "p0")} <= readers
    for history in apart.histories:
        kinds = {type(each) for each in history.operations if each.outcome == "ok"}
        assert {Publish, Read, Fetch, Settle} <= kinds
        assert set(history.remains) == set(STREAMS)
