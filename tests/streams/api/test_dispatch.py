"""Targets of alerts do not hold each other up, and workspaces share those who send."""

import http.server
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from streams import webhooks
from streams.models import AlertRule, Notification
from streams.services import dispatch
from streams.services.alerts import alert_begin
from tests.findings import over
from tests.streams.api.conftest import Api
from tests.streams.test_webhooks import Receiver
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("alone")

A_MOMENT_S = 0.05


class Hanging:
    """A server that takes what is sent to it, and answers only once it is let go."""

    def __init__(self) -> None:
        self.arrived, self.let_go = list[str](), threading.Event()
        self.times, self.in_flight = list[float](), Counter[str]()
        hanging = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                hanging.arrived.append(self.path)
                hanging.times.append(time.monotonic())
                hanging.in_flight[self.path] += 1
                hanging.let_go.wait()
                hanging.in_flight[self.path] -= 1

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.let_go.set()
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def dispatcher(owner: Api, hanging: Hanging) -> Iterator[dispatch.Dispatcher]:
    """As the worker has one."""
    made = dispatch.Dispatcher()
    yield made
    hanging.let_go.set()
    made.round()
    made.close()


def fires(by: Api, url: str, *numbers: int, name: str = "lags") -> None:
    """A rule with so many alerts that are due."""
    wanted = {"name": name, "stream": "orders*", "watch": "lag", "limit": 2, "webhook_url": url}
    assert by.post("alerts/rules/", wanted).status_code == 201
    rule = AlertRule.objects.get(workspace=by.workspace, name=name)
    for n in numbers:
        alert_begin(rule, value=3.0, finding=over("lag", 3.0, limit=2.0, stream=f"orders-{n}"))


def later(**by: float) -> None:
    """So much time goes by."""
    Notification.objects.filter(due_at__isnull=False).update(due_at=F("due_at") - timedelta(**by))


def streams(hook: Receiver) -> list[str]:
    return [json.loads(body)["stream"] for _, _, body in hook.taken]


def test_a_receiver_that_hangs_holds_up_nobody_else(
    owner: Api, stranger: Api, hook: Receiver, hanging: Hanging, dispatcher: dispatch.Dispatcher
) -> None:
    fires(stranger, f"{hanging.url}/a", *range(30))
    fires(owner, hook.url, 1, 2, 3)
    until(lambda: dispatcher.round(for_s=A_MOMENT_S) >= 0 and len(hook.taken) == 3)
    assert streams(hook) == ["orders-1", "orders-2", "orders-3"]
    assert (hanging.arrived, hanging.in_flight["/a"]) == (["/a"], 1)


def test_many_that_hang_take_no_more_than_the_share_of_their_workspace(
    owner: Api, stranger: Api, hook: Receiver, hanging: Hanging, dispatcher: dispatch.Dispatcher
) -> None:
    for number in range(dispatch.MOST_OF_WORKSPACE + 3):
        fires(stranger, f"{hanging.url}/{number}", 1, name=f"rule-{number}")
    fires(owner, hook.url, 1)
    until(lambda: dispatcher.round(for_s=A_MOMENT_S) >= 0 and len(hook.taken) == 1)
    until(lambda: len(hanging.arrived) == dispatch.MOST_OF_WORKSPACE)
    dispatcher.round(for_s=A_MOMENT_S)
    assert hanging.in_flight.total() == dispatch.MOST_OF_WORKSPACE


def test_the_workspace_with_the_fewest_in_flight_goes_first(
    owner: Api,
    stranger: Api,
    hanging: Hanging,
    dispatcher: dispatch.Dispatcher,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatch, "MOST_AT_ONCE", 2)
    for number in range(3):
        fires(stranger, f"{hanging.url}/strange-{number}", 1, name=f"rule-{number}")
    fires(owner, f"{hanging.url}/own", 1)
    until(lambda: dispatcher.round(for_s=A_MOMENT_S) >= 0 and len(hanging.arrived) == 2)
    assert sorted(hanging.arrived) == ["/own", "/strange-0"]


def test_one_that_does_not_answer_backs_off_ever_longer_with_all_that_waits_for_it(
    owner: Api, hanging: Hanging, dispatcher: dispatch.Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(dispatch, "FIRST_PAUSE_S", 0.5)
    fires(owner, f"{hanging.url}/a", *range(5))
    until(lambda: dispatcher.round(for_s=A_MOMENT_S) >= 0 and len(hanging.arrived) == 3)
    first, second, third = hanging.times
    assert second - first >= 0.5
    assert third - second >= 1.0
    assert sorted(Notification.objects.values_list("attempts", flat=True)) == [0, 0, 1, 1, 1]


def test_one_that_refuses_is_asked_for_what_else_there_is(
    owner: Api, hook: Receiver, dispatcher: dispatch.Dispatcher
) -> None:
    hook.status = 400
    fires(owner, hook.url, 1, 2, 3)
    assert dispatcher.round() == 3
    hook.status = 200
    later(seconds=11)
    assert dispatcher.round() == 3
    assert streams(hook) == ["orders-1", "orders-2", "orders-3"] * 2
