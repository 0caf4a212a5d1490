"""What was out when it went for a while, and answers that cover it until it comes back."""

from typing import Literal

import pytest

from streams.log import entries, groups, removals, standing
from streams.log.client import Log
from streams.log.groups import Settings
from tests.streams.log.messages import fill


@pytest.mark.parametrize("ack", ["explicit", "all"])
@pytest.mark.parametrize("is_looked_at", [False, True])
def test_an_answer_up_to_an_offset_counts_for_what_went_for_a_while(
    log: Log, stream: str, ack: Literal["explicit", "all"], is_looked_at: bool
) -> None:
    fill(log, stream, 1500)
    log.run(groups.group_publish(stream, "g", Settings(ack=ack, max_ack_pending=2000)))
    log.run(groups.fetch(stream, "g", limit=1500))
    _, number = log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
    if is_looked_at:
        assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    assert log.run(groups.ack(stream, "g", "up_to", [1400])) == 0
    log.run(removals.undo(stream, number or 0))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 100


@pytest.mark.parametrize("by", ["offsets", "leases"])
def test_an_answer_that_covers_what_is_before_it_counts_for_what_went_for_a_while(
    log: Log, stream: str, by: Literal["offsets", "leases"]
) -> None:
    fill(log, stream, 6)
    log.run(groups.group_publish(stream, "g", Settings(ack="all")))
    taken = log.run(groups.fetch(stream, "g", limit=5)).deliveries
    _, number = log.run(removals.purge(stream, keep_ms=3_600_000, facts={}))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 0
    fourth = taken[3].lease if by == "leases" else entries.position(taken[3].entry)[0]
    assert log.run(groups.ack(stream, "g", by, [fourth])) == 0
    log.run(removals.undo(stream, number or 0))
    assert log.run(standing.inspect(stream, "g")).ack_pending == 1
