"""The whole way of an event that the data plane caused: from the call to the list."""

from typing import Any

import httpx
import pytest

from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running


def events(client: httpx.Client, stream: str, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/events", params={"stream": stream, "kind": kind}).json()
    return found


def test_what_is_taken_away_is_on_record_with_who_did_it(running: Product, unique: str) -> None:
    with running.client() as client:
        client.post("/streams/", json={"name": unique, "max_messages": 4}).raise_for_status()
        client.post(f"/streams/{unique}/groups/", json={"name": "billing"}).raise_for_status()
        batch = [{"id": str(n), "body": n} for n in range(6)]
        client.post(f"/streams/{unique}/messages", json=batch).raise_for_status()
        client.delete(f"/streams/{unique}/messages/6").raise_for_status()
        client.delete(f"/streams/{unique}/messages", params={"offset": 5}).raise_for_status()
        until(lambda: bool(events(client, unique, "stream.purged")), what="the purge is on record")
        until(lambda: bool(events(client, unique, "stream.expired")), what="retention is on record")
        (purged,) = events(client, unique, "stream.purged")
        assert purged["actor"] == "token admin"
        assert purged["address"] == "127.0.0.1"
        assert purged["after"] == {"messages": 2, "bytes": 2, "asked": {"offset": "5"}}
        (deleted,) = events(client, unique, "message.deleted")
        assert deleted["after"] == {"offsets": [6], "count": 1}
        (expired,) = events(client, unique, "stream.expired")
        assert expired["after"]["messages"] == 2
        assert expired["after"]["limits"] == {"max_messages": 4}
        until(
            lambda: bool(events(client, unique, "group.lost")),
            within_s=30,
            what="the group's loss is on record",
        )
        (lost,) = events(client, unique, "group.lost")
        assert (lost["group"], lost["after"]["unanswered"]) == ("billing", 0)
        assert lost["after"]["messages"] == lost["after"]["undelivered"] > 0
