"""Commands to copy: what is shown as curl says the same in Python, and both run."""

import subprocess
import sys

import pytest
from django.test import Client

from dashboard.templatetags.shell import as_python, call, deed_command, people_command, workspace_command
from streams.access import SYSTEM
from streams.services.alerts import rule_create
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream
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


PAGES = (
    *("/", "/streams/", "/groups/", "/streams/_new/", "/events/", "/alerts/", "/alerts/lags/", "/sql/"),
    *("/settings/tokens/", "/settings/people/", "/settings/workspaces/", "/settings/workspaces/default/"),
    *(
        "/settings/system/",
        "/streams/_bulk/?do=purge&stream=orders",
        "/streams/_bulk/?do=label&stream=orders",
    ),
    "/streams/_bulk/?do=delete&stream=orders",
    *(f"/streams/orders/{tab}" for tab in ("", "messages/1/", "messages/1/delete/", "tail/", "publish/")),
    *(f"/streams/orders/{tab}/" for tab in ("groups", "retention", "history", "activity", "settings")),
    *(f"/streams/orders/groups/billing/{tab}" for tab in ("", "pending/", "settings/", "activity/")),
)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_can_be_said_as_calls_of_the_api(
    owner: Client, make_stream: MakeStream, path: str
) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    rule = {"stream": "orders", "watch": "lag", "limit": 5.0}
    rule_create(stream.workspace, name="lags", settings=rule, actor=SYSTEM)
    shown = owner.get(path)
    assert shown.status_code == 200
    assert "curl " in shown.content.decode()
    if path != "/streams/orders/tail/":  # events have no end that a call could answer with
        assert "import httpx" in shown.content.decode()


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
