"""A store whose memory is used up still takes the small things that keep the rest going."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from streams.log import (
    anchors,
    config,
    groups,
    healths,
    keys,
    lineage,
    memory,
    open_polls,
    removals,
    standing,
    undo,
)
from streams.log.append import append
from streams.log.client import Log, Op, one
from streams.log.errors import StoreFull
from streams.log.memory import Held
from tests import servers
from tests.streams.log.messages import fill, message

STREAM = "aaaaaaaaaaaa"
SETTINGS = {"dedup_window": 60, "max_message_bytes": 9, "discard": "old"}


def allow(log: Log, most: str) -> None:
    """Let the server use so much memory; 0 is any."""
    log.client.execute_command("CONFIG", "SET", "maxmemory", most)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Log]:
    """A store of the test's own, full, with a stream that it takes no message for."""
    with servers.store(tmp_path) as running:
        log = Log(running.url)
        stream = config.Registered(
            stream_id=STREAM, name="orders", workspace="w", workspace_id=1, archive=False
        )
        log.run(config.stream_publish(stream, SETTINGS))
        allow(log, "1mb")
        with pytest.raises(StoreFull):
            log.run(append(STREAM, [message(1)]))
        yield log
        log.close()


def test_a_token_lets_its_bearer_in_and_is_revoked(full: Log) -> None:
    grant = config.TokenGrant(id=7, workspace="w", workspace_id=1, scopes=("read",))
    full.run(config.token_publish("digest", grant))
    assert full.run(config.token_grant("digest")) == grant
    full.run(config.tokens_used({7: 5}))
    assert full.run(config.take_tokens_used()) == {7: 5}
    full.run(config.token_remove("digest"))
    assert full.run(config.token_grant("digest")) is None


def test_events_are_anchored_and_old_anchors_go(full: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "KEPT", 2)
    for number in (1, 2, 3):
        full.run(anchors.put("chain", event_id=number, digest=f"d{number}"))
    assert full.run(anchors.known("chain")) == [(2, "d2"), (3, "d3")]


def test_groups_keep_their_health_and_polls_are_counted(full: Log) -> None:
    full.run(healths.put(STREAM, "g", b"well"))
    assert full.run(healths.many([(STREAM, "g")])) == [b"well"]
    assert 0 < full.run(one(("TTL", keys.health(STREAM, "g")))) <= healths.KEPT_S
    full.run(open_polls.told("web", {(STREAM, "g"): 3}))
    assert full.run(open_polls.counted()) == {(STREAM, "g"): 3}


def test_what_streams_in_memory_hold_is_noted_for_thousands_at_once(full: Log) -> None:
    held = {keys.stream_id(memory=True): Held(n, 1) for n in range(5_000)}
    full.run(memory.held_set(held))
    assert full.run(one(("HLEN", keys.MEMORY_HELD))) == len(held)
    stream_id, noted = held.popitem()
    assert full.run(memory.held_take(stream_id)) == noted


def test_a_full_memory_server_is_there_and_a_full_durable_one_lets_its_streams_begin(
    full: Log, tmp_path: Path
) -> None:
    stream = config.Registered(
        stream_id=keys.stream_id(memory=True), name="m", workspace="w", workspace_id=1, archive=False
    )
    with (
        servers.store(tmp_path / "memory", fsync=None) as volatile,
        closing(Log(volatile.url)) as alone,
        closing(Log(f"unix://{tmp_path / 's'}", memory_url=volatile.url)) as both,
    ):
        assert both.run(memory.begin(stream, SETTINGS, {})) == 0
        allow(alone, "1")
        life, is_filled = both.run(memory.life())
        assert not is_filled
        both.run(memory.filled_set(life))
        assert both.run(memory.life()) == (life, True)
        alone.client.execute_command("FLUSHALL")
        with pytest.raises(StoreFull):
            alone.run(one(("SET", "anything", "1")))
        assert both.run(memory.life())[1] is False


def test_what_was_reserved_is_not_written_again_where_it_is_there(full: Log) -> None:
    known, forgotten = (keys.stream_id(memory=True) for _ in range(2))
    full.run(memory.reservations_restore({known: 7}))
    full.run(memory.reservations_restore({known: 5, forgotten: 9}))
    assert full.run(one(("HMGET", keys.MEMORY_RESERVED, known, forgotten))) == [b"7", b"9"]


def test_an_epoch_begins(full: Log) -> None:
    assert full.run(lineage.raise_above(3)) == 4
    full.run(lineage.note(full.run(lineage.look()), epoch=6))
    assert full.run(lineage.look()).epoch == 6


def test_what_can_no_longer_be_undone_makes_room_before_groups_get_back_what_was_undone(full: Log) -> None:
    allow(full, "0")
    fill(full, STREAM, 6)
    full.run(groups.group_publish(STREAM, "g", groups.Settings()))
    assert len(full.run(groups.fetch(STREAM, "g", limit=3)).deliveries) == 3
    _, number = full.run(removals.purge(STREAM, below=4, keep_ms=3_600_000, facts={}))
    assert number
    interrupted(full, undo.undo(STREAM, number), before="give_back_aside")
    full.run(removals.delete(STREAM, [5], keep_ms=0, facts={}))
    allow(full, "1mb")
    assert full.run(undo.end(STREAM)) == 1
    assert full.client.xlen(keys.log(STREAM)) == 5
    allow(full, "0")
    full.run(undo.end(STREAM))
    assert full.run(standing.inspect(STREAM, "g")).ack_pending == 3


def interrupted(log: Log, op: Op[Any], *, before: str) -> None:
    """Carry an operation out up to a script that it calls, as a process that ended then."""
    command = next(op)
    while getattr(command, "name", None) != before:
        command = op.send(log.run(one(command)))
