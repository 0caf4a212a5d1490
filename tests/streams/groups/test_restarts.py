"""What a group promised holds when the processes that keep it are killed."""

import json
import os
import signal
import time
from typing import Any

import pytest

from tests.product import Product
from tests.streams.groups.restarts import connection_to, kill_and_wait
from tests.waiting import Stopwatch, until

pytestmark = pytest.mark.running

ACK_WAIT_S = 3.0
LATEST_S = 0.5


class Group:
    """The group g of a stream of a test's own."""

    def __init__(self, product: Product, stream: str, *, messages: int, **settings: Any) -> None:
        self.product, self.stream = product, stream
        self.call("POST", "/streams/", name=stream)
        self.call("POST", f"/streams/{stream}/groups/", name="g", **settings)
        sent = [{"id": str(n), "body": {"n": n}} for n in range(1, messages + 1)]
        self.call("POST", f"/streams/{stream}/messages", messages=sent)

    def call(self, method: str, path: str, **fields: Any) -> Any:
        with self.product.client() as client:
            answer = client.request(method, path, json=fields or None)
            assert answer.is_success, answer.text
            return answer.json()

    def post(self, verb: str, **fields: Any) -> Any:
        return self.call("POST", f"/streams/{self.stream}/groups/g/{verb}", **fields)

    @property
    def letters(self) -> list[tuple[int, Any, str, int]]:
        found = self.call("GET", f"/streams/{self.stream}/groups/g/dead-letters/")
        return [(each["offset"], each["body"], each["reason"], each["deliveries"]) for each in found]


@pytest.mark.parametrize("process", ["valkey", "web", "worker"])
def test_a_delivery_comes_again_in_time_also_after_a_restart(
    mortal: Product, unique: str, process: str
) -> None:
    group = Group(mortal, unique, messages=1, ack_wait=ACK_WAIT_S)
    asked = time.monotonic()
    (first,) = group.post("fetch", wait=0)
    got = time.monotonic()
    kill_and_wait(mortal, process)
    with mortal.client() as member:  # what it takes to make one is not the group's
        back, watch = time.monotonic(), Stopwatch()
        answer = member.post(f"/streams/{unique}/groups/g/fetch", json={"wait": 10})
        again, took_s = time.monotonic(), watch.elapsed_s
    (second,) = answer.json()
    assert (first["offset"], first["deliveries"], second["offset"], second["deliveries"]) == (1, 1, 1, 2)
    assert asked + ACK_WAIT_S <= again
    assert took_s <= max(got + ACK_WAIT_S - back, 0) + LATEST_S


@pytest.mark.timeout(400)
def test_a_delivery_comes_again_in_time_while_one_of_two_web_processes_is_down(
    product: Product, unique: str
) -> None:
    product.more = {"OKMQ_HISTORY": "off", "OKMQ_WEB_WORKERS": "2"}
    product.start(wait=False).wait_ready(within_s=100)
    group = Group(product, unique, messages=1, ack_wait=ACK_WAIT_S)
    there = until(lambda: connection_to(product, "web-2"), within_s=30, what="web-2 serves")
    assert there is not None
    asked = time.monotonic()
    assert len(group.post("fetch", wait=0)) == 1
    watch = Stopwatch()
    os.kill(product.pid("web-1"), signal.SIGKILL)
    path, headers = f"/api/v1/streams/{unique}/groups/g/fetch", {"Authorization": product.token}
    there.request("POST", path, json.dumps({"wait": 10}), headers)
    (second,) = json.load(there.getresponse())
    again, took_s = time.monotonic(), watch.elapsed_s
    there.close()
    assert (second["offset"], second["deliveries"]) == (1, 2)
    assert asked + ACK_WAIT_S <= again
    assert took_s <= ACK_WAIT_S + LATEST_S


def test_dead_letters_outlast_a_crash_a_new_start_and_their_messages(mortal: Product, unique: str) -> None:
    group = Group(mortal, unique, messages=3, max_deliver=1)
    group.post("fetch", wait=0)
    group.post("term", offsets=[2], reason="broken")
    group.post("nack", offsets=[1])
    assert group.post("fetch", wait=0) == []
    letters = [(1, {"n": 1}, "max_deliver", 1), (2, {"n": 2}, "broken", 1)]
    assert group.letters == letters
    group.call("DELETE", f"/streams/{unique}/messages")
    kill_and_wait(mortal, "valkey")
    assert group.letters == letters
    mortal.stop()
    mortal.start()
    assert group.letters == letters
    assert group.post("dead-letters/replay", all=True) == {"count": 2}
    replayed = group.post("fetch", wait=0)
    assert [(each["offset"], each["body"], each["deliveries"]) for each in replayed] == [
        (1, {"n": 1}, 1),
        (2, {"n": 2}, 1),
    ]


def test_what_is_out_stays_with_its_member_over_a_crash(mortal: Product, unique: str) -> None:
    group = Group(mortal, unique, messages=4)
    held = group.post("fetch", wait=0, limit=3, consumer="a")
    assert group.post("ack", leases=[held[0]["lease"]]) == {"acked": 1}
    kill_and_wait(mortal, "valkey")
    assert [each["offset"] for each in group.post("fetch", wait=0, consumer="b")] == [4]
    assert group.post("ack", leases=[each["lease"] for each in held]) == {"acked": 2}
