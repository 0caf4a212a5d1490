"""A store whose memory is used up still takes the small things that keep the rest going."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streams.log import anchors, config, healths, keys, open_polls
from streams.log.append import append
from streams.log.client import Log, one
from streams.log.errors import StoreFull
from tests import servers
from tests.streams.log.messages import message

STREAM = "aaaaaaaaaaaa"


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Log]:
    """A store of the test's own, full, with a stream that it takes no message for."""
    with servers.store(tmp_path) as running:
        log = Log(running.url)
        stream = config.Registered(
            stream_id=STREAM, name="orders", workspace="w", workspace_id=1, archive=False
        )
        log.run(config.stream_publish(stream, {"dedup_window": 60, "max_message_bytes": 9, "discard": "old"}))
        log.client.execute_command("CONFIG", "SET", "maxmemory", "1mb")
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
