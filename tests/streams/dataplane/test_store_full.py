"""A message store whose memory is used up: what makes room is done and on record, what needs room is told why not."""

from pathlib import Path

import httpx
import pytest

from streams import bearer
from streams.log import config, keys, notes
from streams.log.client import Log
from tests.servers import store
from tests.streams.dataplane.conftest import WORKSPACE_ID, Server, refusal
from tests.streams.dataplane.test_reading import offsets


@pytest.mark.parametrize("undo", ["false", "true"])
def test_what_is_deleted_is_answered_and_noted_and_a_publish_hears_that_it_is_full(
    tmp_path: Path, undo: str
) -> None:
    with store(tmp_path) as running:
        log = Log(running.url)
        stream = config.Registered(
            stream_id=keys.stream_id(),
            name="orders",
            workspace="w",
            workspace_id=WORKSPACE_ID,
            archive=False,
        )
        settings = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}
        log.run(config.stream_publish(stream, settings))
        secret = bearer.make()
        grant = config.TokenGrant(id=1, workspace="w", workspace_id=WORKSPACE_ID, scopes=("admin",))
        log.run(config.token_publish(bearer.digest(secret), grant))
        server = Server(running.url)
        client = httpx.Client(
            base_url=f"http://127.0.0.1:{server.port}/api/v1/streams/orders",
            headers={"authorization": f"Bearer {secret}"},
        )
        client.post("/messages", json=[{"id": f"{n}", "body": n} for n in range(1, 6)]).raise_for_status()
        log.client.execute_command("CONFIG", "SET", "maxmemory", "1mb")
        purged = client.delete("/messages", params={"keep": 2, "undo": undo})
        deleted = client.delete("/messages/5", params={"undo": undo})
        refused = client.post("/messages", json=[{"id": "6", "body": 6}])
        left = offsets(client.get("/messages", params={"offset": 0}))
        noted = [note for _, note in log.run(notes.take())]
        client.close()
        server.stop()
        log.close()
    numbers: list[dict[str, int]] = [{"removal": n} if undo == "true" else {} for n in (1, 2)]
    assert (purged.status_code, purged.json()) == (200, {"deleted": 3, **numbers[0]})
    assert (deleted.status_code, deleted.json()) == (200, {"deleted": 1, **numbers[1]})
    assert refusal(refused) == (503, "store_unavailable")
    assert "full" in refused.json()["error"]["message"]
    assert refused.json()["error"]["details"] == {"full": True}
    assert left == [4]
    assert [(note.kind, note.messages) for note in noted] == [("stream.purged", 3), ("message.deleted", 1)]
