"""What a publish promises, and what the passing of time takes, as the running product keeps it."""

import time

import httpx
import pytest

from streams.dataplane.durability import ANSWER_AGE_S
from streams.log import keys
from streams.log.client import Log
from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running


def store_of(product: Product) -> Log:
    return Log(product.store_url)


def durability(client: httpx.Client, path: str, message_id: str) -> str:
    answer = client.post(path, json={"id": message_id, "body": 1})
    assert answer.status_code == 201, answer.text
    return answer.headers["Okmq-Durability"]


def test_a_publish_tells_what_the_server_does_at_that_moment(product: Product) -> None:
    product.more = {"OKMQ_FSYNC": "everysec", "OKMQ_HISTORY": "off"}
    product.start()
    log = store_of(product)
    with product.client() as client:
        client.post("/streams/", json=[{"name": "kept", "keys": ["a.*"]}, {"name": "m", "storage": "memory"}])
        assert durability(client, "/publish/a.1", "1") == "window"
        assert client.post("/streams/kept/messages", json=[]).headers["Okmq-Durability"] == "window"
        assert durability(client, "/streams/m/messages", "1") == "memory"
        for number, (setting, told) in enumerate([("always", "fsync"), ("no", "window")], start=2):
            log.client.execute_command("CONFIG", "SET", "appendfsync", setting)
            until(
                lambda n=number, told=told: durability(client, "/publish/a.1", str(n)) == told,  # type: ignore[misc]
                within_s=5,
            )
            assert durability(client, "/streams/m/messages", str(number)) == "memory"
        log.client.execute_command("CONFIG", "SET", "appendfsync", "always")
        until(lambda: durability(client, "/publish/a.1", "7") == "fsync", within_s=5)
        log.client.execute_command("CONFIG", "SET", "no-appendfsync-on-rewrite", "yes")
        until(lambda: durability(client, "/publish/a.1", "8") == "window", within_s=5)
        log.client.execute_command("CONFIG", "SET", "appendonly", "no")
        until(lambda: durability(client, "/publish/a.1", "9") == "memory", within_s=5)
    log.close()


def test_no_publish_is_promised_what_ceased_to_hold_a_second_before(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    log = store_of(product)
    with product.client() as client:
        client.post("/streams/", json={"name": "kept", "keys": ["a.*"]})
        number = 0
        for setting, told in (("no", "window"), ("always", "fsync")) * 2:
            log.client.execute_command("CONFIG", "SET", "appendfsync", setting)
            changed = time.monotonic()
            is_late = False
            while not is_late:
                number, is_late = number + 1, time.monotonic() - changed > ANSWER_AGE_S
                label = durability(client, "/publish/a.1", str(number))
            assert label == told
    log.close()


def test_a_stream_in_memory_goes_on_above_all_it_had_when_everything_was_started_again(
    product: Product,
) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    message = {"id": "1", "body": 1}
    with product.client() as client:
        client.post("/streams/", json={"name": "m", "storage": "memory"})
        (first,) = client.post("/streams/m/messages", json=message).json()
    product.stop()
    product.start()
    with product.client() as client:
        until(lambda: client.get("/streams/m").status_code == 200, within_s=20)
        again = until(
            lambda: (
                answer.json()
                if (answer := client.post("/streams/m/messages", json=message)).status_code == 201
                else []
            ),
            within_s=20,
        )
        shown = client.get("/streams/m").json()
        (read,) = client.get("/streams/m/messages?offset=0").json()
    assert again[0]["offset"] > first["offset"]
    assert (shown["storage"], shown["messages"], shown["first_offset"]) == ("memory", 1, again[0]["offset"])
    assert read["offset"] == again[0]["offset"]


def test_an_expired_message_is_hidden_at_once_and_gone_within_a_minute(running: Product, unique: str) -> None:
    log = store_of(running)
    with running.client() as client:
        client.post("/streams/", json={"name": unique, "archive": False})
        client.post(
            f"/streams/{unique}/messages", json=[{"id": "a", "body": 1, "ttl": 1}, {"id": "b", "body": 2}]
        )
        until(
            lambda: (
                [
                    held["id"]
                    for held in client.get(f"/streams/{unique}/messages", params={"offset": 0}).json()
                ]
                == ["b"]
            ),
            within_s=3,
        )
        assert client.get(f"/streams/{unique}/messages/1").status_code == 404
        assert client.get(f"/streams/{unique}").json()["messages"] == 1
    registered = log.client.execute_command("HGETALL", keys.REGISTRY)
    stream_id = next(
        held.decode()
        for held, told in zip(registered[::2], registered[1::2], strict=True)
        if unique.encode() in told
    )
    until(lambda: log.client.execute_command("XLEN", keys.log(stream_id)) == 1, within_s=60)
    log.close()
