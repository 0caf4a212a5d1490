"""What is open when a web process is asked to end, as at every upgrade."""

import http.client
import json
import os
import signal

import pytest

from okmq.up import GRACE_S
from tests.product import Product
from tests.waiting import Stopwatch, until

pytestmark = pytest.mark.running


def test_open_polls_are_answered_and_tails_end_when_a_process_is_asked_to_end(
    mortal: Product, unique: str
) -> None:
    with mortal.client() as client:
        assert client.post("/streams/", json={"name": unique}).status_code == 201
        assert client.post(f"/streams/{unique}/groups/", json={"name": "g"}).status_code == 201
    asked = [
        ("GET", f"/messages?offset=1&wait={6 * GRACE_S}", None),
        ("GET", f"/messages?wait={6 * GRACE_S}", None),
        ("POST", "/groups/g/fetch", json.dumps({"wait": 6 * GRACE_S})),
        ("GET", "/tail", None),
    ]
    headers = {"Authorization": f"Bearer {mortal.token}", "Content-Type": "application/json"}
    opened = []
    for method, path, body in asked:
        connection = http.client.HTTPConnection("127.0.0.1", mortal.port, timeout=30)
        connection.request(method, f"/api/v1/streams/{unique}{path}", body, headers)
        opened.append(connection)
    tail = opened[-1].getresponse()  # it is open: the others, which were sent before, have been heard, too
    pids = [
        status.pid for name, status in mortal.processes().items() if name.startswith("web") and status.pid
    ]
    watch = Stopwatch()
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    answers = [connection.getresponse() for connection in opened[:-1]]
    assert [(each.status, each.read()) for each in answers] == [(200, b"[]")] * len(answers)
    assert tail.read() == b""
    assert watch.elapsed_s < GRACE_S
    for response in [*answers, tail]:
        response.close()
    for connection in opened:
        connection.close()
    until(mortal.answers, within_s=40, what="the next ones serve")
