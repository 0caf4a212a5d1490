"""Who is narrowed to some streams sees of the workspace these alone, on every page and under every address.

The cast of ``test_roles`` stands inside. A new route needs a row there, and is tried here with it.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from streams import selectors
from streams.access import SYSTEM, Caller
from streams.models import (
    AlertRule,
    Membership,
    Query,
    Replay,
    Role,
    Stream,
    Token,
    Workspace,
)
from streams.services.streams import stream_change
from tests.dashboard.conftest import MakeStream
from tests.dashboard.outside import ADMIN, ALL, MANY, OUTSIDE, PATTERNS, WORD, House, furnished
from tests.dashboard.test_roles import ROWS

PART = WORD[:-1]
"""What is looked for stands in the form again."""

COUNTS = re.compile(rf"(?<!workspace:)\b({MANY:,}|{MANY}|{ALL:,}|{ALL})\b")
"""Not where a workspace has such a number, as after many other tests."""


@pytest.fixture
def house(workspace: Workspace, make_stream: MakeStream) -> House:
    return furnished(workspace, make_stream)


def narrowed(workspace: Workspace, role: str) -> Client:
    user = get_user_model().objects.create_user(f"narrow-{role}", password="correct-horse-battery")
    Membership.objects.create(user=user, workspace=workspace, role=role, streams=PATTERNS)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


def address(name: str, house: House | None = None) -> str:
    """Where a route leads inside, or with the house to what lies outside."""
    row = ROWS[name]
    held = dict(row.at)
    query = row.query
    if house is not None:
        path = reverse(f"dashboard:{name}", kwargs=held)
        held |= {key: house.ids[key] for key in held.keys() & house.ids.keys()}
        if "group" in held:
            held["group"] = f"{WORD}-group"
        if "name" in held:
            kinds = {"/alerts/": f"{WORD}-rule", "/settings/people/": f"{WORD}-person"}
            found = [other for start, other in kinds.items() if path.startswith(start)]
            is_room = path.startswith("/settings/workspaces/")
            held["name"] = found[0] if found else held["name"] if is_room else OUTSIDE
        query = query.replace("orders", OUTSIDE)
    return reverse(f"dashboard:{name}", kwargs=held) + query


QUERIES: dict[str, list[str]] = {
    "overview": ["", "?usual=1", "?range=custom&since=1 h ago&until=now", "?range=15m"],
    "live_now": ["?topic=overview&topic=stream:orders&topic=processes"],
    "palette": [
        f"?q={q}"
        for q in ("", "can", f"{PART}-1", "dead letters", "can dead", "can retention", "conf", "peo")
    ],
    "alerts": ["", "?firing=2", "?try=1&name=x&stream=ord*&watch=lag&limit=2&lasting="],
    "alert_rule": ["", "?try=1&limit=3"],
    "sql": ["", f"?saved={PART}"],
    "events": ["", f"?stream={PART}", "?kind=history.", "?kind=alert.", "?after=0", "?before=99999999"],
    "events_export": ["", "?format=csv"],
    "groups": [
        "",
        f"?group={PART}",
        f"?group=^{PART}&regex=1",
        *(f"?sort=-{by}" for by in ("lag", "status", "dead")),
    ],
    "groups_export": ["", f"?group={PART}"],
    "streams": [
        "",
        f"?name={PART}",
        f"?name={PART}.*&regex=1",
        "?internal=1",
        "?label=env:test",
        *(f"?sort=-{by}" for by in ("messages", "rate", "groups", "status", "dead", "keeps", "created")),
    ],
    "streams_export": ["", f"?name={PART}"],
    "tails": ["?streams=*", f"?streams={PART}*"],
    "tails_more": ["?streams=*&since=1&more=0", "?streams=*&known=orders&more=9"],
    "streams_bulk": ["?do=purge&stream=orders"],
    "stream_messages": ["", "?open=1"],
    "group": ["", "?position=earliest"],
    "stream_history": ["", "?step=hour"],
    "stream_export": ["?format=csv", "?format=ndjson"],
}
SHUT = {"configuration", "configuration_download", "people"}
"""Without an object of their own, and of all streams: not for who is narrowed to some."""


def leaks(page: str, *asked: str) -> str:
    """What a page says of the outside, beside what was asked for by its name."""
    for each in sorted(asked, key=len, reverse=True):
        page = page.replace(each, "")
    found = re.search(rf".{{0,60}}{WORD}.{{0,60}}", page, re.DOTALL) or COUNTS.search(page)
    return found.group() if found else ""


def said(answer: Any) -> str:
    parts: Any = answer.streaming_content if answer.streaming else [answer.content]

    async def collected() -> list[bytes]:
        return [part async for part in parts]

    return b"".join(asyncio.run(collected()) if hasattr(parts, "__aiter__") else parts).decode()


def shown(client: Client, path: str, *, in_all_ways: bool) -> Iterator[tuple[int, str]]:
    """What a page says whole, and in its other ways: its part, saved as a file, to a script."""
    more = "&" if "?" in path else "?"
    ways: list[tuple[str, dict[str, str]]] = [
        (path, {}),
        (path, {"HX-Request": "true"}),
        (f"{path}{more}snapshot=1", {}),
        (path, {"Accept": "application/json"}),
    ]
    for to, headers in ways if in_all_ways else ways[:1]:
        answer = client.get(to, headers=headers)
        yield answer.status_code, said(answer)


READ = [name for name, row in ROWS.items() if row.get]


@pytest.mark.parametrize("name", READ)
def test_no_page_shows_what_lies_outside(workspace: Workspace, house: House, name: str) -> None:
    bare, _, query = address(name).partition("?")
    for role in Role.values:
        client = narrowed(workspace, role)
        for each in QUERIES.get(name, [f"?{query}" if query else ""]):
            for status, page in shown(client, bare + each, in_all_ways=role == Role.OPERATOR):
                assert status < 500, page
                assert not leaks(page), (role, each, status)


def everybody(workspace: Workspace) -> Client:
    """An administrator who is not narrowed."""
    user = get_user_model().objects.create_user("wide")
    Membership.objects.create(user=user, workspace=workspace, role=Role.ADMIN)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


TELLING = {
    "alerts",
    "configuration_download",
    "events",
    "events_export",
    "group",
    "groups",
    "groups_export",
    "live_now",
    "overview",
    "palette",
    "people",
    "sql",
    "stream_activity",
    "stream_history",
    "stream_messages",
    "stream_rates",
    "stream_retention",
    "streams",
    "streams_export",
    "tails",
    "tails_more",
    "tokens",
    "workspaces",
}
"""The pages that tell of it whoever is not narrowed: this is what the test above would find."""


def test_these_pages_tell_of_it_who_is_not_narrowed(workspace: Workspace, house: House) -> None:
    client, telling = everybody(workspace), set()
    for name in READ:
        if ROWS[name].at.keys() & house.ids.keys():  # an id of the outside or of nothing, as it happens
            continue
        bare, _, query = address(name).partition("?")
        for each in QUERIES.get(name, [f"?{query}" if query else ""]):
            if leaks(said(client.get(bare + each))):
                telling.add(name)
    assert telling == TELLING


@pytest.mark.parametrize("name", [name for name in READ if not ROWS[name].at])
def test_what_is_of_all_streams_is_shut(workspace: Workspace, house: House, name: str) -> None:
    assert everybody(workspace).get(address(name)).status_code != 403
    assert (narrowed(workspace, Role.ADMIN).get(address(name)).status_code == 403) is (name in SHUT)


WITH_AN_OBJECT = [
    pytest.param(name, method, id=f"{method} {name}")
    for name, row in ROWS.items()
    for method in ("get", "post")
    if row.at and getattr(row, method)
]


@pytest.mark.parametrize(("name", "method"), WITH_AN_OBJECT)
def test_the_address_of_what_lies_outside_is_refused(
    workspace: Workspace, house: House, name: str, method: str
) -> None:
    before = stands(house)
    for role in Role.values:
        answer = getattr(narrowed(workspace, role), method)(address(name, house))
        page = said(answer)
        assert answer.status_code in {403, 404}, (role, page)
        assert not leaks(page, OUTSIDE, f"{WORD}-group", f"{WORD}-rule", f"{WORD}-person")
        assert stands(house) == before


def stands(house: House) -> list[Any]:
    """Everything outside that a call could change."""
    caller = Caller(house.outside.workspace, frozenset({"read"}), SYSTEM)
    view = selectors.stream_view(Stream.objects.get(pk=house.outside.pk))
    newest = [event.pk for event in selectors.events_found(caller, selectors.EventsWanted(), limit=200)]
    kept = [Query.objects.count(), Token.objects.count(), AlertRule.objects.count(), Replay.objects.count()]
    people = list(Membership.objects.filter(user__username=f"{WORD}-person").values_list("role", "streams"))
    return [view.state.messages, view.state.committed_offset, newest, kept, people]


@pytest.mark.parametrize("name", ["stream_messages", "group", "stream_settings", "dead_letters"])
def test_whether_something_is_there_outside_is_not_told(
    workspace: Workspace, house: House, name: str
) -> None:
    client, there = narrowed(workspace, Role.OPERATOR), address(name, house)
    found = [
        client.get(path, headers={"Accept": "application/json"})
        for path in (there, there.replace(OUTSIDE, "canary-2"))
    ]
    assert [answer.status_code for answer in found] == [403, 403]
    assert found[0].content.replace(b"canary-1", b"canary-2") == found[1].content


def figures(page: str) -> list[str]:
    """The figures of a panel of totals, in order."""
    return re.findall(r'<dd class="figure[^"]*"[^>]*>.*?<span[^>]*>([^<]*)<', page)


def test_totals_and_charts_are_of_the_streams_inside(workspace: Workspace, house: House) -> None:
    client = narrowed(workspace, Role.VIEWER)
    (event,) = [
        each["event"]
        for each in client.get("/live/now/?topic=overview").json()["events"]
        if each["event"]["kind"] == "overview_sampled"
    ]
    told = {name: event[name] for name in ("streams", "messages", "bytes", "rate_in", "bytes_in", "alerts")}
    assert told == {"streams": 1, "messages": 3, "bytes": 6, "rate_in": 3, "bytes_in": 6, "alerts": 1}
    page = client.get("/").content.decode()
    (seed,) = re.findall(r'<script id="series" type="application/json">(.*?)</script>', page)
    drawn = json.loads(seed)
    assert set(drawn["rate_in"][-20:-12]) == {3}
    assert len(drawn["times"]) > 20


def test_a_mark_of_the_newest_event_moves_with_events_inside_only(workspace: Workspace, house: House) -> None:
    client = narrowed(workspace, Role.VIEWER)

    def mark() -> int:
        (first, *_) = client.get("/live/now/?topic=overview").json()["events"]
        return int(first["event"]["events_mark"])

    before = mark()
    stream_change(house.outside, changes={"description": "another"}, actor=ADMIN)
    assert mark() == before
    stream_change(house.inside, changes={"description": "another"}, actor=ADMIN)
    assert mark() > before


def test_rows_for_the_tail_are_of_the_streams_inside(workspace: Workspace, house: House) -> None:
    client = narrowed(workspace, Role.VIEWER)
    path = f"/tail/?streams=*&after:orders=0&after:{OUTSIDE}=0"
    assert not leaks(said(client.get(path, headers={"HX-Request": "true"})))
    assert "333" in said(client.get(path, headers={"HX-Request": "true"}))


def test_queries_are_of_those_who_are_narrowed_alike(workspace: Workspace, house: House) -> None:
    client = narrowed(workspace, Role.VIEWER)
    for streams, status in ((PATTERNS[::-1], 200), (PATTERNS[:1], 404), ([OUTSIDE], 404), ([], 404)):
        query = Query.objects.create(
            workspace=workspace, sql="SELECT 1", limit=1, streams=streams, state="succeeded", asked_by="ann"
        )
        assert client.get(f"/sql/{query.pk}/").status_code == status, streams


def test_bulk_deeds_reach_the_streams_inside_only(workspace: Workspace, house: House) -> None:
    client, before = narrowed(workspace, Role.OPERATOR), stands(house)
    for deed in ("purge", "delete", "label"):
        answer = client.post(f"/streams/_bulk/?do={deed}&stream={OUTSIDE}", {"label": "a", "value": "b"})
        assert answer["Location"] == "/streams/"
    assert stands(house) == before


def test_a_stream_is_made_inside_only(workspace: Workspace, house: House) -> None:
    client = narrowed(workspace, Role.OPERATOR)
    for name in ("elsewhere-1", OUTSIDE):
        answer = client.post("/streams/_new/", {"name": name, "discard": "old"})
        assert answer.status_code == 422
        assert "Your access is not for stream" in answer.content.decode()
    assert client.post("/streams/_new/", {"name": "shop-1", "discard": "old"}).status_code == 302
    assert set(Stream.objects.filter(internal=False).values_list("name", flat=True)) == {
        OUTSIDE,
        "orders",
        "shop-1",
    }


def test_no_more_is_handed_out_than_somebody_has(workspace: Workspace, house: House) -> None:
    client, before = narrowed(workspace, Role.ADMIN), Token.objects.count()
    form = {"name": "x", "scopes": ["read"]}
    for streams in ("", "*", "ord*, canary-1", "or*"):
        assert client.post("/settings/tokens/", {**form, "streams": streams}).status_code == 422
    assert Token.objects.count() == before
    assert client.post("/settings/tokens/", {**form, "streams": "orders-*"}).status_code == 200
    assert Token.objects.count() == before + 1
    for path, body in (
        ("/settings/people/", {"name": "new", "role": "viewer"}),
        ("/settings/people/narrow-admin/", {"streams": ""}),
        ("/alerts/", {"name": "new", "stream": "orders", "watch": "lag", "limit": "2", "lasting": ""}),
        (
            "/alerts/",
            {"name": "new", "stream": "*", "watch": "lag", "limit": "2", "lasting": "", "try": "1"},
        ),
        ("/settings/configuration/", {"text": "okmq: 1"}),
        ("/demo/start/", {}),
        ("/demo/stop/", {}),
    ):
        assert client.post(path, body).status_code == 403, path
    assert client.post("/sql/", {"sql": "SELECT 1", "limit": 1, "name": "x", "save": "1"}).status_code == 403
    said_of = client.post("/filters/save/", {"page": "streams", "name": "x", "query": "name=o"}, follow=True)
    assert "restricted to streams" in said_of.content.decode()
