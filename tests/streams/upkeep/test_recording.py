"""The whole way of an event that the data plane caused: from the call to the list."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import pytest

from streams.log import keys, notes
from streams.log.client import Log
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
        until(lambda: bool(events(client, unique, "group.lost")), what="the group's loss is on record")
        (lost,) = events(client, unique, "group.lost")
        assert (lost["group"], lost["after"]["unanswered"]) == ("billing", 0)
        assert lost["after"]["messages"] == lost["after"]["undelivered"] > 0


def test_an_event_names_what_was_terminated_and_not_what_was_asked_for(running: Product, unique: str) -> None:
    with running.client() as client:
        client.post("/streams/", json={"name": unique}).raise_for_status()
        path = f"/streams/{unique}/groups/g"
        client.post(f"/streams/{unique}/groups/", json={"name": "g"}).raise_for_status()
        batch = [{"id": str(n), "body": n} for n in range(4)]
        client.post(f"/streams/{unique}/messages", json=batch).raise_for_status()
        leases = [each["lease"] for each in client.post(f"{path}/fetch", json={"limit": 3}).json()]
        client.post(f"{path}/term", json={"offsets": [2, 99], "reason": "one"}).raise_for_status()
        client.post(f"{path}/term", json={"leases": leases, "reason": "other"}).raise_for_status()
        until(lambda: len(events(client, unique, "group.terminated")) == 2)
        named = [
            (event["after"]["reason"], event["after"]["offsets"], event["after"]["count"])
            for event in events(client, unique, "group.terminated")
        ]
        assert sorted(named) == [("one", [2], 1), ("other", [1, 3], 2)]


SOON_S = 5.0
"""Half the time between two looks of the worker at a group: two in a row that are in time did not wait for one."""


def test_what_a_group_gives_up_and_loses_is_on_record_soon_and_not_when_it_is_looked_at(
    running: Product, unique: str
) -> None:
    with running.client() as client:
        client.post("/streams/", json={"name": unique}).raise_for_status()
        client.post(f"/streams/{unique}/messages", json=[{"id": "a", "body": 1}, {"id": "b", "body": 2}])
        for name in ("first", "second"):
            path = f"/streams/{unique}/groups/{name}"
            made = {"name": name, "max_deliver": 1, "ack_wait": 0.1}
            client.post(f"/streams/{unique}/groups/", json=made).raise_for_status()
            assert len(client.post(f"{path}/fetch", json={"limit": 1}).json()) == 1
            until(lambda path=path: client.get(path).json()["dead_letters"] == 1)  # type: ignore[misc]
            until(lambda name=name: told(client, unique, "group.dead_lettered", name), within_s=SOON_S)  # type: ignore[misc]
        client.delete(f"/streams/{unique}/messages/2").raise_for_status()
        until(lambda: told(client, unique, "group.lost", "second"), within_s=SOON_S)


def test_what_a_web_process_was_killed_over_is_on_record_with_who_began_it(
    product: Product, unique: str
) -> None:
    product.start()
    with product.client() as client, closing(Log(product.store_url)) as log, ThreadPoolExecutor(1) as threads:
        client.post("/streams/", json={"name": unique}).raise_for_status()
        for first in range(0, 40_000, 1000):
            batch = [{"id": str(n), "body": n, "key": "a"} for n in range(first, first + 1000)]
            client.post(f"/streams/{unique}/messages", json=batch).raise_for_status()
        purging = threads.submit(client.delete, f"/streams/{unique}/messages", params={"key": "a"})
        until(lambda: messages_of(product, unique) < 39_000, what="some of it is gone")
        until(lambda: stopped_over_something(product.pid("web"), log), what="it is in the middle of a part")
        os.kill(product.pid("web"), signal.SIGKILL)
        with pytest.raises(httpx.HTTPError):
            purging.result()
        begun, signed_ms = log.client.zrange(keys.BEGUN, 0, -1, withscores=True)
        log.client.zadd(keys.BEGUN, {begun: float(signed_ms) - notes.GIVEN_UP_AFTER_MS})
        until(product.answers, what="the web processes are there again")
        until(lambda: outcomes(client, unique), what="what was not noted is on record")
        left = client.get(f"/streams/{unique}").json()["messages"]
        recorded = events(client, unique, "stream.purged")
    assert {event["actor"] for event in recorded} == {"token admin"}
    # One that nothing is known of tells null.
    assert 0 < sum(event["after"]["messages"] or 0 for event in recorded) <= 40_000 - left < 40_000


def stopped_over_something(pid: int, log: Log) -> bool:
    """Stop a process where it has begun something and not noted the end; where it has not, it goes on."""
    os.kill(pid, signal.SIGSTOP)
    log.client.ping()  # what it had sent is done after this
    if log.client.zcard(keys.BEGUN):
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def outcomes(client: httpx.Client, stream: str) -> list[str]:
    found = [event["after"].get("outcome") for event in events(client, stream, "stream.purged")]
    return [outcome for outcome in found if outcome]


def messages_of(product: Product, stream: str) -> int:
    with product.client() as client:
        return int(client.get(f"/streams/{stream}").json()["messages"])


def told(client: httpx.Client, stream: str, kind: str, group: str) -> list[Any]:
    return [event["after"] for event in events(client, stream, kind) if event["group"] == group]
