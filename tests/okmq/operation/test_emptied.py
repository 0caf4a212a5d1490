"""A store that lost what it held is noticed, and told again above every offset that it gave."""

import subprocess
import sys
from contextlib import closing

import httpx
import pytest

from okmq import env
from streams.log import config, keys
from streams.log.client import Log
from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running


def manage(product: Product, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=env.PROJECT,
        env=product.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def filled(product: Product, stream: str, count: int) -> None:
    with product.client() as client:
        client.post("/streams/", json={"name": stream}).raise_for_status()
        client.post(f"/streams/{stream}/groups/", json={"name": "g"}).raise_for_status()
        batch = [{"id": str(n), "key": "k", "body": n} for n in range(1, count + 1)]
        client.post(f"/streams/{stream}/messages", json=batch).raise_for_status()


def published(client: httpx.Client, what: str) -> int:
    (stored,) = client.post("/streams/s/messages", json={"id": what, "body": what}).raise_for_status().json()
    return int(stored["offset"])


def kinds(product: Product) -> list[str]:
    with product.client() as client:
        return [each["kind"] for each in client.get("/events").json()]


def test_an_emptied_store_is_red_and_goes_on_above_what_it_gave(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    filled(product, "s", 5)
    with closing(Log(product.store_url)) as log, product.client() as client:
        # In the first second after its start a web process has not looked yet, and tells none.
        epoch = int(until(lambda: client.get("/streams/s/messages?offset=1").headers.get("Okmq-Epoch")))
        log.client.execute_command("FLUSHALL")
        ready = client.get(f"{product.url}/readyz")
        assert ready.status_code == 503
        assert "was emptied" in ready.text
        code, out = manage(product, "okmq_doctor")
        assert code == 2
        assert "has nothing of 1 stream that it was told of" in out
        assert "okmq_republish" in out

        code, out = manage(product, "okmq_republish")
        assert code == 0, out
        assert client.get(f"{product.url}/readyz").status_code == 200
        until(lambda: client.get("/streams/s").status_code == 200)
        first = published(client, "new")
        assert first > 5
        assert client.get("/streams/s/messages?offset=1").json()[0]["offset"] == first
        until(
            lambda: int(client.get("/streams/s/messages?offset=1").headers["Okmq-Epoch"]) == epoch + 1,
            what="consumers are told",
        )
        assert [
            each["body"]
            for each in client.post("/streams/s/groups/g/fetch", json={"limit": 9, "wait": 0}).json()
        ] == ["new"]
        assert "store.told_again" in kinds(product)
        code, out = manage(product, "okmq_fsck")
        assert code == 0, out

        # Again: never an epoch or an offset twice, though the store has forgotten both.
        log.client.execute_command("FLUSHALL")
        assert manage(product, "okmq_republish")[0] == 0
        until(
            lambda: int(client.get("/streams/s/messages?offset=1").headers.get("Okmq-Epoch", 0)) == epoch + 2
        )
        assert published(client, "newer") > first


def test_the_worker_puts_it_on_record_and_a_start_heals_it(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    filled(product, "s", 5)
    with closing(Log(product.store_url)) as log:
        log.client.execute_command("FLUSHALL")
    until(lambda: "was emptied" in manage(product, "okmq_export_events")[1], within_s=60, what="it is noted")
    product.stop()
    product.start()
    with product.client() as client:
        assert published(client, "new") > 5
    assert {"store.emptied", "store.told_again"} <= set(kinds(product))


def test_lost_counters_are_derived_from_the_messages(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    filled(product, "s", 50)
    with closing(Log(product.store_url)) as log, product.client() as client:
        (stream_id,) = [each.stream_id for each in log.run(config.streams()) if each.name == "s"]
        client.delete("/streams/s/messages/7").raise_for_status()
        client.delete("/streams/s/messages/50").raise_for_status()
        before = client.get("/streams/s").json()
        log.client.execute_command("DEL", keys.meta(stream_id))
        code, out = manage(product, "okmq_fsck", "--repair")
        assert code == 0, out
        assert manage(product, "okmq_fsck")[0] == 0
        after = client.get("/streams/s").json()
        for name in ("messages", "bytes", "offset", "first_offset"):
            assert after[name] == before[name], name
        assert len(client.get("/streams/s/messages?offset=1&limit=100").json()) == 48
        known, fresh = client.post(
            "/streams/s/messages", json=[{"id": "3", "body": 1}, {"id": "fresh", "body": 1}]
        ).json()
        assert (known["offset"], fresh["offset"]) == (3, 51)
        assert client.get("/streams/s/messages?offset=1").headers["Okmq-Epoch"] == "0"
