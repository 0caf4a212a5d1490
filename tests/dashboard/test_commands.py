"""Commands to copy: what is shown as curl says the same in Python, and both run."""

import ast
import itertools
import json
import re
import subprocess
import sys
from html import unescape
from typing import Any

import pytest
from django.test import Client

from dashboard.people_forms import PersonForm
from dashboard.templatetags.commands import call, people_command, root_command
from dashboard.templatetags.in_python import as_python
from streams.access import SYSTEM
from streams.dataplane.messages import read_publication
from streams.errors import Refusal
from streams.models import Event, Policy, Query, Workspace
from streams.services.alerts import rule_create
from streams.services.groups import group_create
from streams.services.messages import message_delete
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import bury, fetched
from tests.e2e.pages import PAGES
from tests.product import Product
from tests.streams.api.conftest import caller

HERE = "http://127.0.0.1:8000"


def requested(command: str) -> list[str]:
    lines = as_python(command).splitlines()
    return [line.removeprefix("print(client.request(") for line in lines if line.startswith("print")]


def test_method_path_and_body_are_those_of_the_curl_calls() -> None:
    form = PersonForm({"name": "ada", "role": "viewer"})
    assert requested(people_command(HERE, form)) == [
        f"'GET', '{HERE}/api/v1/users/').json())",
        f"""'POST', '{HERE}/api/v1/users/', content='{{"name": "ada", "role": "viewer"}}').json())""",
    ]


def test_quotes_in_a_body_survive_both() -> None:
    body = """{"name": "O'Hara"}"""
    assert requested(call(f"{HERE}/api/v1/x", body=body)) == [
        f"'POST', '{HERE}/api/v1/x', content={body!r}).json())"
    ]


def said(page: Client, path: str) -> list[tuple[str, str, bytes]]:
    """The calls of a page's block in Python: method, path of the API, body."""
    return said_in(page.get(path, headers={"hx-request": "false"}))


def said_in(answer: Any) -> list[tuple[str, str, bytes]]:
    """As ``said``, of an answer."""
    shown = unescape(answer.content.decode())
    found = re.findall(r"client\.request\('(\w+)', '([^']+)'(?:, content=('.*?'|\".*?\"))?\)\.", shown)
    return [
        (method, url.removeprefix("http://testserver/api/v1/"), ast.literal_eval(body or "''").encode())
        for method, url, body in found
    ]


NO_TOKEN_DOES_THIS = {"login", "password"}


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
    names |= {"person": "owner", "query": str(Query.objects.latest("id").pk)}
    for path in {state.path.format(**names) for state in PAGES[page]}:
        answer = owner.get(path)
        assert answer.status_code in (200, 422)
        shown = answer.content.decode()
        assert "curl " in shown, path
        assert "import httpx" in shown, path


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


@pytest.mark.parametrize(
    "path",
    [
        "/streams/orders/settings/",
        "/streams/orders/retention/",
        "/streams/by-policy/retention/",
        "/streams/orders/groups/billing/settings/",
        "/alerts/lags/",
        "/settings/workspaces/default/",
    ],
)
def test_what_is_copied_from_an_untouched_page_changes_nothing(
    owner: Client, make_stream: MakeStream, workspace: Workspace, path: str
) -> None:
    chosen = {"ttl": 3600, "max_bytes": 5_000, "labels": {"team": "O'Hara"}, "description": "two\nlines"}
    stream = make_stream("orders", bodies=[b"1"], **chosen)
    group_create(stream, name="billing", settings={"ack_wait": 7.5, "backoff": [1.5]}, actor=SYSTEM)
    Policy.objects.create(workspace=workspace, name="short", ttl=60)
    make_stream("by-policy", policy="short")
    rule = {"stream": "orders", "group": "b*", "watch": "lag", "limit": 5.0, "for_seconds": 0}
    rule_create(workspace, name="lags", settings=rule, actor=SYSTEM)
    api, events = caller(workspace), Event.objects.count()
    calls = said(owner, path)
    assert any(method == "PATCH" and body for method, _, body in calls)
    for method, to, body in calls:
        answer = api.call(method, to, body)
        assert answer.status_code == 200, answer.content
    assert Event.objects.count() == events


@pytest.mark.parametrize(
    "path",
    ["/settings/people/", "/alerts/", "/streams/_bulk/?do=label&stream=orders", "/streams/_new/"],
)
def test_what_is_copied_from_a_form_that_is_not_filled_in_is_refused_or_changes_nothing(
    owner: Client, make_stream: MakeStream, workspace: Workspace, path: str
) -> None:
    make_stream("orders", bodies=[b"1"], labels={"team": "O'Hara"})
    api, events = caller(workspace), Event.objects.count()
    calls = said(owner, path)
    assert any(body for _, _, body in calls)
    for method, to, body in calls:
        assert api.call(method, to, body).status_code == (400 if method == "POST" else 200)
    assert Event.objects.count() == events


def blocks(page: Client, path: str) -> list[str]:
    """What each copy button of a page copies."""
    shown = page.get(path).content.decode()
    return [unescape(each) for each in re.findall(r"<code data-copy-source>(.*?)</code>", shown, re.DOTALL)]


def test_to_make_a_stream_and_to_publish_are_copied_apart(owner: Client) -> None:
    make, publish, of_list, in_python = blocks(owner, "/streams/")
    assert [make.count("curl "), publish.count("curl "), of_list.count("curl ")] == [1, 1, 1]
    assert "/messages" not in make
    assert "import httpx" in in_python


def test_a_dead_letter_that_is_copied_to_be_looked_at_is_not_delivered_again(
    owner: Client, make_stream: MakeStream
) -> None:
    bury(
        group_create(make_stream("orders", bodies=[b"1"]), name="billing", settings={}, actor=SYSTEM)[0],
        count=1,
    )
    calls = [
        each for each in blocks(owner, "/streams/orders/groups/billing/dead-letters/1/") if "/api/" in each
    ]
    assert ["/replay" in each for each in calls] == [False, False, True, True]
    assert ["limit=1" in each for each in calls] == [True, True, False, False]


def test_a_form_that_was_filled_in_is_said_as_it_is(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"], labels={"env": "test"})
    shown = said_in(owner.post("/settings/people/", {"name": "no name", "role": "operator"}))
    assert shown[-1] == ("POST", "users/", b'{"name": "no name", "role": "operator"}')
    rule = {"name": "lags", "stream": "orders", "watch": "lag", "limit": "5", "lasting": "2 min", "try": "1"}
    (method, to, body) = said_in(owner.post("/alerts/", rule))[-1]
    assert (method, to) == ("POST", "alerts/rules/")
    assert json.loads(body).items() >= {"name": "lags", "limit": 5.0, "for_seconds": 120}.items()
    taken = {"name": "orders", "ttl": "2 h", "discard": "new", "description": "x"}
    ((method, to, body),) = said_in(owner.post("/streams/_new/", taken))
    assert (method, to) == ("POST", "streams/")
    assert json.loads(body).items() >= {"name": "orders", "ttl": 7200, "archive": False}.items()
    label = {"label": "team", "value": "x" * 600}
    ((method, _, body),) = said_in(owner.post("/streams/_bulk/?do=label&stream=orders", label))
    assert (method, json.loads(body)["labels"].keys()) == ("PATCH", {"env", "team"})


def test_the_message_that_a_form_holds_is_said_with_every_digit(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders", bodies=[b'{\n\n  "n": 1.10000000000000000001}'])
    ((method, to, body),) = said(owner, "/streams/orders/publish/?like=1")
    assert (method, to) == ("POST", "streams/orders/messages")
    (message,) = read_publication(body).messages
    assert message.body == b'{ "n": 1.10000000000000000001}'
    ((_, _, many),) = said(owner, "/streams/orders/publish/many/")
    with pytest.raises(Refusal):
        read_publication(many)


def test_all_groups_are_said_stream_by_stream(owner: Client, make_stream: MakeStream) -> None:
    for name in ("b", "a"):
        group_create(make_stream(name, bodies=[b"1"]), name="billing", settings={}, actor=SYSTEM)
    assert said(owner, "/groups/") == [
        ("GET", "streams/a/groups/", b""),
        ("GET", "streams/b/groups/", b""),
    ]


def test_limits_of_a_policy_are_tried_before_it_is_taken(
    owner: Client, make_stream: MakeStream, workspace: Workspace
) -> None:
    make_stream("orders", bodies=[b"1"], ttl=60)
    Policy.objects.create(workspace=workspace, name="long", ttl=600)
    chosen = "?discard=old&retention=limits&policy="
    assert said(owner, f"/streams/orders/retention/{chosen}long") == [
        ("POST", "streams/orders/retention/preview", b'{"ttl": 600}'),
        ("PATCH", "streams/orders", b'{"policy": "long"}'),
    ]
    make_stream("by-policy", policy="long")
    assert said(owner, f"/streams/by-policy/retention/{chosen}&ttl=10+min")[1] == (
        *("PATCH", "streams/by-policy"),
        b'{"policy": null}',
    )


def test_the_calls_follow_a_form_that_is_filled_in(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    path = "/streams/orders/retention/?discard=old&retention=limits&ttl=2+h"
    part = owner.get(path, headers={"hx-request": "true"}).content.decode()
    assert '<div id="as-code" hx-swap-oob="true">' in part
    assert part.count("{&quot;ttl&quot;: 7200}") >= 2
    assert '<div id="as-code">' in owner.get(path).content.decode()


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("/streams/?name=ord", "streams/?name=ord&limit=50"),
        (
            "/streams/?label=env:production&label=a=b+c&size=25",
            "streams/?label=env:production&label=a:b%20c&limit=25",
        ),
        ("/streams/?name=o&sort=-messages", "streams/?name=o&limit=1000"),
        ("/streams/?page=2", "streams/?limit=1000"),
        ("{group}pending/", "{group}pending"),
        (
            "{group}pending/?consumer=w1&age=1+min&deliveries=2&after=7",
            "{group}pending?deliveries=2&age=60&consumer=w1&after=7",
        ),
        (
            "{stream}history/?since=2026-11-01+10:00&until=2026-11-01+12:00&step=minute",
            "{stream}history?step=minute&from=2026-11-01T10:00:00.000Z&to=2026-11-01T12:00:00.000Z",
        ),
        ("{stream}history/?range=all", "{stream}history?step=day"),
        ("/events/", "events?limit=50"),
        (
            "/events/?kind=stream.&stream=orders&actor=A+da&since=2026-11-01+10:00&until=2026-11-01+11:00",
            "events?stream=orders&kind=stream.&actor=A%20da&from=2026-11-01T10:00:00.000Z"
            "&to=2026-11-01T11:00:00.000Z&limit=50",
        ),
        ("{stream}activity/?kind=group.", "events?stream=orders&kind=group.&limit=50"),
        ("{group}activity/?group=x", "events?stream=orders&group=billing&limit=50"),
        ("{stream}", "{stream}messages?before=10&limit=9"),
        ("{stream}?start=oldest&before=4", "{stream}messages?offset=1&limit=3"),
        ("{stream}?start=id&at=m7", "{stream}messages?offset=7&limit=3"),
        (
            "{stream}?start=time&at=2099-01-01+10:00",
            "{stream}messages?from=2099-01-01T10:00:00.000Z&limit=50",
        ),
        (
            "{stream}?start=time&at=2020-01-01+10:00&until=2020-01-01+11:00",
            "{stream}messages?from=2020-01-01T10:00:00.000Z&before=1&limit=50",
        ),
        ("{stream}?key=a.*", "{stream}messages?offset=1&limit=50&key=a.*"),
        ("{stream}?match=5", "{stream}messages?offset=5&before=6&limit=1"),
    ],
)
def test_what_an_address_asks_for_is_in_the_call(
    owner: Client, make_stream: MakeStream, path: str, call: str
) -> None:
    stream = make_stream("orders", bodies=[b"%d" % number for number in range(1, 10)])
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    at = {"stream": "streams/orders/", "group": "streams/orders/groups/billing/"}
    asked = path.format(**at)
    assert said(owner, asked if asked.startswith("/") else f"/{asked}") == [("GET", call.format(**at), b"")]


def test_older_events_are_said_as_those_of_the_page(
    owner: Client, make_stream: MakeStream, workspace: Workspace
) -> None:
    for number in range(6):
        make_stream(f"orders-{number}")
    newest = Event.objects.latest("id").pk
    page = owner.get(f"/events/?kind=stream.&before={newest}")
    ((method, to, _),) = said(owner, f"/events/?kind=stream.&before={newest}")
    told = caller(workspace).call(method, to).json()
    assert [event["id"] for event in told] == [row.event.id for row in page.context["rows"]][::-1]


def test_a_tail_is_said_with_its_key(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    assert "/streams/orders/tail?key=a.*" in unescape(
        owner.get("/streams/orders/tail/?key=a.*").content.decode()
    )


@pytest.mark.parametrize("page", ["", "tail/"])
def test_a_filter_that_the_api_does_not_have_is_named(
    owner: Client, make_stream: MakeStream, page: str
) -> None:
    make_stream("orders", bodies=[b"1"])
    left_out = "the call omits these filters"
    assert left_out in owner.get(f"/streams/orders/{page}?header=trace").content.decode()
    assert left_out in owner.get(f"/streams/orders/{page}?match=1").content.decode()
    assert left_out not in owner.get(f"/streams/orders/{page}?key=a").content.decode()


def test_the_calls_follow_a_list_that_is_searched(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders", bodies=[b"1"])
    part = unescape(owner.get("/streams/?name=ord", headers={"hx-request": "true"}).content.decode())
    assert '<div id="as-code" hx-swap-oob="true">' in part
    assert "streams/?name=ord&limit=50" in part


def test_what_does_not_answer_with_json_is_printed_as_text() -> None:
    assert requested(root_command(HERE, "metrics")) == [f"'GET', '{HERE}/metrics').text)"]


def test_what_is_deleted_may_be_answered_with_nothing() -> None:
    assert requested(call(f"{HERE}/api/v1/streams/orders", method="-X DELETE ")) == [
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


@pytest.mark.running
@pytest.mark.parametrize("several", [False, True])
def test_the_python_of_a_tail_prints_what_arrives_in_each_stream(
    running: Product, unique: str, several: bool
) -> None:
    names = [f"{unique}-{each}" for each in ("a", "b")][: 2 if several else 1]
    calls = [call(f"{running.url}/api/v1/streams/{name}/tail", method="-N ") for name in names]
    environ = {"OKMQ_TOKEN": running.token, "PATH": "/usr/bin:/bin"}
    with running.client() as api:
        for name in names:
            api.post("/streams/", json={"name": name}).raise_for_status()
        program = [sys.executable, "-c", as_python("\n\n".join(calls))]
        with subprocess.Popen(program, env=environ, stdout=subprocess.PIPE, text=True) as tail:
            try:
                assert tail.stdout is not None
                missing, ids = set(names), itertools.count()
                while missing:  # what was published before it listens is not told
                    for name in missing:
                        message = {"id": f"m{next(ids)}", "body": f"from {name}"}
                        api.post(f"/streams/{name}/messages", json=message).raise_for_status()
                    line = tail.stdout.readline()
                    assert line, "it has not ended"
                    missing -= {name for name in missing if f"from {name}" in line}
            finally:
                tail.kill()
