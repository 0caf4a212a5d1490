"""Every door of the product under every kind of key: a new route or method without a row in ``doors`` fails.

A product of its own is asked over HTTP, so that both planes answer as they do to others; whatever is refused must
have changed nothing.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest
from django import urls

from okmq.urls import urlpatterns
from streams import bearer
from streams.api.service import healthz
from tests.contracts.doors import (
    DOORS,
    GROUP,
    KEY,
    LISTS,
    OPEN,
    PERSON,
    POLICY,
    RULE,
    STREAM,
    Door,
    there_are,
)
from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running

CANARY = "seen-from-outside"
SECRET = "told-to-readers"
HELD = {"key": f"{KEY}.{SECRET}", "headers": {SECRET: SECRET}, "body": [CANARY, SECRET]}
"""What messages hold, and nothing else does."""

TAKES_A_STREAM = {"analytics/replays", "analytics/erasures"}
OF_THE_INSTALLATION = {"analytics/runs/{run_id}"}
"""A run of Spark is for all workspaces, and names no stream of any."""

SHUT = [door for door in DOORS if door.right != OPEN]


@dataclass
class House:
    """A workspace with one of everything, and the keys that people come with.

    Attributes:
        keys: what it says on each kind of key → the secret.
        names: what stands for the parts in braces of an address.
        before: how it stood when it was furnished.
    """

    product: Product
    workspace: str
    keys: dict[str, str]
    names: dict[str, object]
    browser: httpx.Client
    before: list[Any] = field(default_factory=list)

    def knock(self, door: Door, secret: str | None) -> httpx.Response:
        """Ask with a body that the door takes."""
        headers = {} if secret is None else {"authorization": secret and f"Bearer {secret}"}
        content = b"" if door.body is None else json.dumps(door.body).encode()
        if content:
            headers["content-type"] = "application/json"
        path = door.path(**self.names)
        return self.browser.request(
            door.method, f"{self.product.url}{path}", headers=headers, content=content
        )

    def stands(self) -> list[Any]:
        """Everything in it that a call could change."""
        messages = self._see(f"streams/{STREAM}/messages?offset=1")
        group, stream = self._see(f"streams/{STREAM}/groups/{GROUP}"), self._see(f"streams/{STREAM}")
        settled = {name: group[name] for name in ("ack_wait", "paused", "delivered_offset", "ack_pending")}
        moved = {name: stream[name] for name in ("ttl", "offset", "committed_offset", "messages")}
        # Whatever else a caller may change is an event of theirs.
        events = self._see("events?limit=100")
        caused = [(each["id"], each["kind"]) for each in events if each["actor"] != "system"]
        return [messages, settled, moved, caused]

    def _see(self, path: str) -> Any:
        headers = {"authorization": self.keys["owner"]}
        return (
            self.browser.get(f"{self.product.url}/api/v1/{path}", headers=headers).raise_for_status().json()
        )

    def is_as_it_was(self, door: Door) -> None:
        """Fails when something has changed; a look changes nothing, and is not looked after."""
        if door.method != "GET":
            assert self.stands() == self.before


@pytest.fixture(scope="module")
def house(shared: Product) -> Iterator[House]:
    workspace, other = "door-house", "door-elsewhere"
    with shared.client() as ruler:
        for name in (workspace, other):
            ruler.post("/workspaces/", json={"name": name}).raise_for_status()

        def key(name: str, **more: Any) -> dict[str, Any]:
            wanted = {"name": name, "scopes": ["admin"], "workspace": workspace, **more}
            made: dict[str, Any] = ruler.post("/tokens/", json=wanted).raise_for_status().json()
            return made

        soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
        made = {
            "owner": key("owner"),
            "stranger": key("stranger", workspace=other),
            "narrowed": key("narrowed", streams=["shop-*"]),
            "expired": key("expired", expires_at=soon),
            "revoked": key("revoked"),
            "observer": key("observer", scopes=["observe"]),
        }
        for scope in bearer.SCOPES:
            others = [each for each in bearer.SCOPES if not bearer.scopes_cover([each], scope)]
            made[f"all but {scope}"] = key(f"all but {scope}", scopes=others)
        ruler.delete(f"/tokens/{made['revoked']['id']}").raise_for_status()
    keys = {name: each["token"] for name, each in made.items()}
    names: dict[str, object] = {
        "group": GROUP,
        "key": KEY,
        "offset": 1,
        "number": 1,
        "token_id": made["owner"]["id"],
        **dict.fromkeys(("run_id", "replay_id", "erasure_id", "query_id", "filter_id"), 1),
    }
    browser = httpx.Client(timeout=30, verify=False)
    house = House(shared, workspace, keys, names, browser)
    _furnish(house)
    for name in ("expired", "revoked"):
        for path in ("/account", f"/streams/{STREAM}/messages?wait=0"):
            with shared.client(token=keys[name]) as late:
                until(partial(_is_out, late, path), what=f"{name} is out")
    # What the data plane did becomes an event a moment later.
    until(lambda: "message.deleted" in str(house.stands()[3]), what="everything is on record")
    house.before = house.stands()
    try:
        yield house
    finally:
        browser.close()


def _is_out(client: httpx.Client, path: str) -> bool:
    return client.get(path).status_code == 401


def _furnish(house: House) -> None:
    with house.product.client(token=house.keys["owner"]) as owner:
        for path, body in (
            ("streams/", {"name": STREAM, "description": CANARY, "keys": ["door.>"]}),
            (f"streams/{STREAM}/messages", HELD | {"id": f"a-{SECRET}"}),
            (f"streams/{STREAM}/messages", HELD | {"id": f"b-{SECRET}"}),
            (f"streams/{STREAM}/groups/", {"name": GROUP, "ack_wait": 3600}),
            (f"streams/{STREAM}/groups/{GROUP}/fetch", {"limit": 1, "wait": 0}),
            ("policies/", {"name": POLICY, "ttl": 999, "description": CANARY}),
            ("alerts/rules/", {"name": RULE, "stream": STREAM, "group": CANARY, "watch": "lag", "limit": 9}),
            ("filters/", {"page": "streams", "name": "held", "query": f"name={CANARY}"}),
            ("users/", {"name": PERSON, "role": "viewer"}),
            ("tokens/", {"name": CANARY, "scopes": ["read"]}),
            ("analytics/runs", {}),
        ):
            owner.post(f"/{path}", json=body).raise_for_status()
        owner.delete(f"/streams/{STREAM}/messages/2?undo=true").raise_for_status()


def code(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["code"])


def named(door: Door, house: House) -> House:
    """The house with the name that this door's ``{name}`` stands for."""
    by_path = {"users": PERSON, "policies": POLICY, "alerts": RULE, "workspaces": house.workspace}
    name = by_path.get(door.template.partition("/")[0], STREAM)
    return replace(house, names={**house.names, "name": name})


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert sorted(there_are()) == sorted((door.template, door.method) for door in DOORS)


def test_a_route_beside_the_api_and_the_console_needs_a_row_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, inner = urls.path("backdoor/", healthz), urls.path("door/", healthz)
    more = [plain, urls.path("side/", urls.include([inner]))]
    monkeypatch.setattr("tests.contracts.doors.product_urls", [*urlpatterns, *more])
    rows = {(door.template, door.method) for door in DOORS}
    assert {template for template, _ in set(there_are()) - rows} == {"/backdoor/", "/side/door/"}


@pytest.mark.parametrize("door", SHUT, ids=str)
def test_a_door_is_shut_to_who_has_no_key(house: House, door: Door) -> None:
    house = named(door, house)
    unknown = [None, "", "okmq_" + "x" * 43, bearer.digest(house.keys["owner"])]
    for secret in (*unknown, house.keys["expired"], house.keys["revoked"]):
        answer = house.knock(door, secret)
        assert (answer.status_code, code(answer)) == (401, "unauthorized"), secret
        assert answer.headers["www-authenticate"] == "Bearer"
        assert CANARY not in answer.text
    house.is_as_it_was(door)


@pytest.mark.parametrize("door", SHUT, ids=str)
def test_a_door_is_shut_to_who_has_every_right_but_its_own(house: House, door: Door) -> None:
    house = named(door, house)
    answer = house.knock(door, house.keys[f"all but {door.right}"])
    assert (answer.status_code, code(answer)) == (403, "forbidden")
    assert answer.json()["error"]["details"]["scope"] == door.right
    house.is_as_it_was(door)


@pytest.mark.parametrize("door", SHUT, ids=str)
def test_a_door_tells_who_may_only_observe_nothing_that_messages_hold(house: House, door: Door) -> None:
    house = named(door, house)
    answer = house.knock(door, house.keys["observer"])
    assert answer.status_code == (200 if door.right == "observe" else 403), answer.text
    assert SECRET not in answer.text
    house.is_as_it_was(door)


def test_what_messages_hold_is_told_to_who_may_read(house: House) -> None:
    seen = {
        str(door)
        for door in SHUT
        if door.method == "GET"
        and "tail" not in door.template
        and SECRET in named(door, house).knock(door, house.keys["owner"]).text
    }
    wanted = {"messages", "messages/{offset}", "groups/{group}/pending"}
    assert seen >= {f"GET streams/{{name}}/{each}" for each in wanted}


@pytest.mark.parametrize("door", SHUT, ids=str)
def test_a_door_shows_a_stranger_their_own_rooms_only(house: House, door: Door) -> None:
    house = named(door, house)
    answer = house.knock(door, house.keys["stranger"])
    takes_a_stream = door.template in TAKES_A_STREAM and door.method == "POST"
    if takes_a_stream or ("{" in door.template and door.template not in OF_THE_INSTALLATION):
        assert answer.status_code in {403, 404}, answer.text
    assert answer.status_code < 500
    assert answer.status_code != 400, answer.text
    assert CANARY not in answer.text
    assert house.workspace not in answer.text.replace(f"'{house.workspace}'", "")
    house.is_as_it_was(door)


@pytest.mark.parametrize("door", SHUT, ids=str)
def test_a_door_shows_a_narrowed_key_nothing_beside_its_streams(house: House, door: Door) -> None:
    house = named(door, house)
    answer = house.knock(door, house.keys["narrowed"])
    assert answer.status_code == door.narrowed, answer.text
    if answer.status_code == 403:
        assert code(answer) == "forbidden"
    if door.template in LISTS and door.method == "GET":
        assert answer.json() == []
    assert CANARY not in answer.text
    house.is_as_it_was(door)


def test_what_is_stored_of_a_token_opens_nothing(house: House) -> None:
    with closing(sqlite3.connect(house.product.data_dir / "okmq.sqlite3")) as database:
        rows = database.execute("SELECT * FROM streams_token").fetchall()
    stolen = {str(value) for row in rows for value in row if isinstance(value, str | bytes)}
    assert bearer.digest(house.keys["owner"]) in stolen
    for value in stolen:
        with house.product.client(token=value or "x") as thief:
            for path in ("/account", f"/streams/{STREAM}/messages?wait=0"):
                try:
                    status = thief.get(path).status_code
                except (UnicodeEncodeError, httpx.LocalProtocolError):
                    continue  # it cannot even stand in a header
                assert status == 401, value
