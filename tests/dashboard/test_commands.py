"""Commands to copy: what is shown as curl says the same in Python, and both run."""

import subprocess
import sys
from html import unescape
from typing import Any

import pytest
from django.test import Client

from dashboard.templatetags.shell import as_python, call, deed_command, people_command, workspace_command
from streams.access import SYSTEM
from streams.models import Query
from streams.services.alerts import rule_create
from streams.services.groups import group_create
from streams.services.messages import message_delete
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import bury, fetched
from tests.e2e.pages import PAGES
from tests.product import Product

HERE = "http://127.0.0.1:8000"


def requested(command: str) -> list[str]:
    lines = as_python(command).splitlines()
    return [line.removeprefix("print(client.request(") for line in lines if line.startswith("print")]


def test_method_path_and_body_are_those_of_the_curl_calls() -> None:
    assert requested(people_command(HERE)) == [
        f"'GET', '{HERE}/api/v1/users/').json())",
        f"""'POST', '{HERE}/api/v1/users/', content='{{"name": "ada", "role": "viewer"}}').json())""",
    ]
    assert requested(workspace_command(HERE, "billing"))[1].startswith(
        f"'PATCH', '{HERE}/api/v1/workspaces/billing'"
    )


def test_quotes_in_a_body_survive_both() -> None:
    body = """{"name": "O'Hara"}"""
    assert requested(call(f"{HERE}/x", body=body)) == [f"'POST', '{HERE}/x', content={body!r}).json())"]


NO_TOKEN_DOES_THIS = {"login", "password"}
WITHOUT_END = "stream_tail"
"""Events that have no end, which no call in Python could print."""


@pytest.mark.parametrize("page", sorted(PAGES.keys() - NO_TOKEN_DOES_THIS))
def test_every_page_can_be_said_as_calls_of_the_api(
    owner: Client, make_stream: MakeStream, page: str
) -> None:
    stream = make_stream("orders", bodies=[b"1"] * 9)
    for offset in (6, 7, 8, 9):
        message_delete(stream, offset=offset, actor=SYSTEM)
    make_stream("empty")
    bury(group_create(stream, name="billing", settings={}, actor=SYSTEM)[0], count=1)
    rule = {"stream": "orders", "watch": "lag", "limit": 5.0}
    rule_create(stream.workspace, name="lags", settings=rule, actor=SYSTEM)
    owner.post("/sql/", {"sql": "SELECT 1", "limit": 100, "ask": ""})
    names = {"stream": "orders", "group": "billing", "empty": "empty", "letter": "1", "rule": "lags"}
    names["query"] = str(Query.objects.latest("id").pk)
    for path in {state.path.format(**names) for state in PAGES[page]}:
        answer = owner.get(path)
        assert answer.status_code in (200, 422)
        shown = answer.content.decode()
        assert "curl " in shown, path
        assert "import httpx" in shown or page == WITHOUT_END, path


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        (
            "pending/settle/",
            {"what": "nack", "scope": "all", "delay": "5 s"},
            "'POST', '{group}/nack', content='{{\"offsets\": [3, 4], \"delay\": 5}}').json())",
        ),
        (
            "pending/settle/",
            {"what": "term", "scope": "chosen", "offset": [3], "reason": "bad"},
            "'POST', '{group}/term', content='{{\"offsets\": [3], \"reason\": \"bad\"}}').json())",
        ),
        (
            "dead-letters/bulk/",
            {"do": "replay", "scope": "all"},
            "'POST', '{group}/dead-letters/replay', content='{{\"offsets\": [1, 2]}}').json())",
        ),
        (
            "dead-letters/bulk/",
            {"do": "delete", "scope": "chosen", "offset": [2]},
            "'DELETE', '{group}/dead-letters/?offset=2').text)",
        ),
    ],
)
def test_a_deed_at_the_desk_is_said_before_it_is_done(
    owner: Client, make_stream: MakeStream, path: str, form: dict[str, Any], said: str
) -> None:
    group = group_create(make_stream("orders", bodies=[b"1"] * 5), name="billing", settings={}, actor=SYSTEM)[
        0
    ]
    bury(group, count=2)
    fetched(group, limit=2)
    at = "/streams/orders/groups/billing"
    shown = unescape(owner.post(f"{at}/{path}", form).content.decode())
    assert f"client.request({said.format(group=f'http://testserver/api/v1{at}')}" in shown


def test_what_a_form_holds_is_what_the_commands_do(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    page = owner.get("/streams/orders/retention/?discard=old&retention=limits&ttl=2+h").content.decode()
    assert page.count("{&quot;ttl&quot;: 7200}") >= 2


def test_what_is_deleted_may_be_answered_with_nothing() -> None:
    assert requested(deed_command(HERE, "delete", ["orders"])) == [
        f"'DELETE', '{HERE}/api/v1/streams/orders').text)"
    ]


@pytest.mark.running
def test_the_python_runs(running: Product, unique: str) -> None:
    program = as_python(call(f"{running.url}/api/v1/streams/", body=f'{{"name": "{unique}"}}'))
    environ = {"OKMQ_TOKEN": running.token, "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    assert unique in ran.stdout
