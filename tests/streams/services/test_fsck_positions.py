"""A group that was moved back is told, and one that was sought, or got messages back, is not."""

import msgspec
import pytest

from streams import health, store
from streams.access import SYSTEM
from streams.log import group_meta, groups, healths, keys, removals, standing, undo
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Group, Stream
from streams.services.fsck_positions import position_findings
from streams.services.groups import group_create
from streams.upkeep.watching import sample_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def group(stream: Stream) -> Group:
    """It has taken and acknowledged 20 of 30 messages, and the worker has seen it."""
    log, stream_id = store.log(), stream.stream_id
    made, _ = group_create(stream, name="g", settings={}, actor=SYSTEM)
    log.run(append(stream_id, [NewMessage(id=str(n), body=b"1") for n in range(30)]))
    log.run(groups.fetch(stream_id, "g", limit=20))
    log.run(groups.ack(stream_id, "g", "up_to", [20]))
    seen(stream)
    return made


def seen(stream: Stream) -> None:
    """As the worker keeps it."""
    state = store.log().run(standing.inspect(stream.stream_id, "g"))
    kept = health.looked(None, sample_of(state, held=0, polls=0))
    store.log().run(healths.put(stream.stream_id, "g", health.written(kept)))


def told(stream: Stream) -> list[str]:
    return [each.sentence for each in position_findings(stream)]


def test_a_position_that_was_moved_back_is_told(stream: Stream, group: Group) -> None:
    assert told(stream) == []
    ask, key = store.log().client.execute_command, keys.group(stream.stream_id, group.name)
    counters = msgspec.msgpack.decode(ask("HGET", key, group_meta.COUNTERS))
    ask("HSET", key, group_meta.COUNTERS, msgspec.msgpack.encode([5, *counters[1:]]))
    assert told(stream) == [
        "group g: it has delivered up to 5, and it was done with everything up to 20: what lies between comes again, "
        "unless it is sought to 21"
    ]


def test_one_that_was_sought_or_that_got_messages_back_was_not_moved(stream: Stream, group: Group) -> None:
    log, stream_id = store.log(), stream.stream_id
    removed = log.run(removals.purge(stream_id, below=26, keep_ms=60_000, facts={}))
    seen(stream)
    assert removed
    log.run(undo.undo(stream_id, log.run(removals.removals(stream_id))[0].number))
    assert told(stream) == []
    log.run(groups.seek(stream_id, group.name, next_offset=3))
    assert told(stream) == []
