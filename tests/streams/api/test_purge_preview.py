"""The preview of a purge: what it says is what the purge then takes, and it is refused as the purge would be."""

import random
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.utils import timezone

from streams import moments, store
from streams.log import groups, removals
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from tests.product import Product
from tests.streams.api.conftest import Api, caller, code, fields

PATH = "streams/orders/purge/preview"


@pytest.fixture
def stream(owner: Api) -> Stream:
    """Ten messages that have two keys in turn."""
    assert owner.post("streams/", {"name": "orders"}).status_code == 201
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    messages = [NewMessage(id=f"m{n}", body=b"12", key=f"k.{n % 2}") for n in range(1, 11)]
    store.log().run(append(stream.stream_id, messages))
    return stream


def test_it_says_what_would_go_and_of_which_group(owner: Api, stream: Stream) -> None:
    owner.post("streams/orders/groups/", {"name": "billing"})
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=3))
    store.log().run(groups.ack(stream.stream_id, "billing", "up_to", [2]))
    told = owner.post(f"{PATH}?offset=5").json()
    assert told.pop("oldest_timestamp").endswith("Z")
    assert told == {
        "messages": 4,
        "bytes": 8,
        "first_offset": 5,
        "groups": [{"group": "billing", "unread": 2}],
        "as_of": 10,
        "complete": True,
        "counted": 1.0,
        "reason": None,
        "goes_from": 1,
        "goes_to": 4,
        "finals": [],
        "until": None,
    }
    assert owner.get("streams/orders").json()["messages"] == 10


@pytest.mark.parametrize(
    ("query", "goes"),
    [
        ("", (10, 1, 10)),
        ("?keep=3", (7, 1, 7)),
        ("?keep=0", (10, 1, 10)),
        ("?offset=0", (0, None, None)),
        ("?offset=99", (10, 1, 10)),
        ("?key=k.1", (5, 1, 9)),
        ("?key=k.*&offset=4", (3, 1, 3)),
        ("?key=k.0&keep=2", (3, 2, 6)),
        ("?key=k.0&keep=5", (0, None, None)),
        ("?key=other", (0, None, None)),
    ],
)
def test_it_takes_what_a_purge_takes(
    owner: Api, stream: Stream, query: str, goes: tuple[int, int | None, int | None]
) -> None:
    told = owner.post(f"{PATH}{query}").json()
    assert (told["messages"], told["goes_from"], told["goes_to"]) == goes


def test_it_says_what_could_be_undone_no_more(owner: Api, stream: Stream) -> None:
    for below in (4, 8):
        store.log().run(
            removals.purge(stream.stream_id, below=below, keep_ms=3_600_000, facts={"kind": "stream.purged"})
        )
    for query, finals in (
        ("?offset=6", [1, 2]),
        ("?offset=4", [1]),
        ("?keep=3", []),
        ("?offset=6&undo=true", []),
    ):
        assert owner.post(f"{PATH}{query}").json()["finals"] == finals, query
    assert len(owner.get("streams/orders/removals/").json()) == 2


@pytest.mark.running
def test_what_it_says_is_what_the_purge_takes(tmp_path: Path) -> None:
    """Of streams drawn at random, over HTTP: both planes answer, and the process that counts."""
    product, chance = Product(data_dir=tmp_path / "data", more={"OKMQ_HISTORY": "off"}), random.Random(11)
    try:
        product.start()
        with product.client() as client:
            taken = [purged_as_told(client, chance, f"drawn-{number}") for number in range(40)]
    finally:
        product.end_all()
    assert all(sum(kind == each and went > 0 for each, went in taken) > 1 for kind in KINDS), taken


KINDS = ["", "offset", "keep", "key", "offset key", "keep key"]


def purged_as_told(client: httpx.Client, chance: random.Random, name: str) -> tuple[str, int]:
    """Fill a stream, ask what a purge would take, and make it; which kind it was, and how many went."""
    path = f"/streams/{name}"
    client.post("/streams/", json={"name": name}).raise_for_status()
    messages = [
        {"id": f"{n}", "body": "x" * chance.randint(0, 9), "key": f"k.{n % 3}"}
        for n in range(chance.randint(0, 40))
    ]
    client.post(f"{path}/messages", json=messages).raise_for_status()
    for offset in chance.sample(range(1, 41), 8):
        client.delete(f"{path}/messages/{offset}")
    for group, filters in (("all", []), ("some", ["k.1"])):
        client.post(f"{path}/groups/", json={"name": group, "filter_keys": filters}).raise_for_status()
        fetch = {"limit": chance.randint(1, 30), "wait": 0}
        got = client.post(f"{path}/groups/{group}/fetch", json=fetch).raise_for_status().json()
        done = [each["offset"] for each in got if chance.random() < 0.4]
        client.post(f"{path}/groups/{group}/ack", json={"offsets": done}).raise_for_status()
    if chance.random() < 0.5:
        client.patch(f"{path}/groups/all", json={"filter_keys": ["k.2"]}).raise_for_status()
    asked: dict[str, Any] = chance.choice(
        [{}, {"offset": chance.randint(0, 45)}, {"keep": chance.randint(0, 12)}]
    )
    asked |= chance.choice([{}, {"key": "k.1"}, {"key": "k.>"}])

    before = standing(client, path)
    told = client.post(f"{path}/purge/preview", params={**asked, "wait": 30}).raise_for_status().json()
    assert standing(client, path) == before, "it changes nothing"
    deleted = client.delete(f"{path}/messages", params=asked).raise_for_status().json()["deleted"]
    after = standing(client, path)

    went = sorted(before.offsets - after.offsets)
    assert (told["messages"], told["complete"], len(went)) == (deleted, True, deleted), asked
    assert told["bytes"] == before.bytes - after.bytes
    assert (told["goes_from"], told["goes_to"]) == ((went[0], went[-1]) if went else (None, None))
    assert (told["first_offset"], told["oldest_timestamp"]) == after.first
    lost = {group: before.unread[group] - after.unread[group] for group in ("all", "some")}
    assert {each["group"]: each["unread"] for each in told["groups"]} == lost, asked
    return " ".join(asked), deleted


@dataclass(frozen=True)
class Standing:
    """What a stream holds; ``first``: offset and time; ``unread``: of each group what it is to be given or has out."""

    bytes: int
    first: tuple[int, str | None]
    offsets: frozenset[int]
    unread: dict[str, int]


def standing(client: httpx.Client, path: str) -> Standing:
    told = client.get(path).raise_for_status().json()
    messages = client.get(f"{path}/messages", params={"offset": 0, "limit": 100}).json()
    groups = client.get(f"{path}/groups/").json()
    return Standing(
        bytes=told["bytes"],
        first=(told["first_offset"], told["first_timestamp"]),
        offsets=frozenset(each["offset"] for each in messages),
        unread={each["name"]: each["lag"] + each["ack_pending"] for each in groups},
    )


def test_until_when_it_could_be_undone_is_as_the_token_would_purge(
    owner: Api, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may remove for good does so unless it asks otherwise; anybody else removes for a while."""
    manager = caller(owner.workspace, scopes=["manage"])
    assert manager.post(PATH).json()["until"] is None
    asked = timezone.now()
    until = moments.parse(manager.post(f"{PATH}?undo=true").json()["until"])
    assert until is not None
    assert abs(until - asked - timedelta(seconds=settings.ENV.undo_s)) < timedelta(minutes=1)
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, purge_for_good="admin"))
    assert manager.post(PATH).json()["until"] is not None
    assert code(manager.post(f"{PATH}?undo=false")) == "forbidden"
    assert owner.post(f"{PATH}?undo=false").json()["until"] is None
    monkeypatch.setattr(settings, "ENV", replace(settings.ENV, undo_s=0))
    assert fields(owner.post(f"{PATH}?undo=true")) == ["undo"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("ofset=4", ["ofset"]),
        ("offset=", ["offset"]),
        ("offset=-1", ["offset"]),
        ("keep=many", ["keep"]),
        ("key=", ["key"]),
        ("key=a..b", ["key"]),
        ("undo=yes", ["undo"]),
        ("wait=31", ["wait"]),
        ("offset=1&keep=1", ["keep", "offset"]),
    ],
)
def test_what_a_purge_would_not_take_is_named(
    owner: Api, stream: Stream, query: str, named: list[str]
) -> None:
    answer = owner.post(f"{PATH}?{query}")
    assert (answer.status_code, fields(answer)) == (400, named)


def test_a_body_is_refused_as_the_purge_would_refuse_it(owner: Api, stream: Stream) -> None:
    answer = owner.post(PATH, {"offset": 5})
    assert (answer.status_code, fields(answer)) == (400, ["offset"])


@pytest.mark.parametrize(("switch", "number"), [("deny_purge", 10110), ("sealed", 10109)])
def test_where_a_purge_is_denied_so_is_its_preview(
    owner: Api, stream: Stream, switch: str, number: int
) -> None:
    owner.patch("streams/orders", {switch: True})
    answer = owner.post(PATH)
    assert (answer.status_code, code(answer)) == (403, "operation_denied")
    assert answer.json()["error"]["details"]["err_code"] == number


def test_it_needs_the_right_to_purge(owner: Api, stranger: Api, stream: Stream) -> None:
    """A key that may not purge would learn from it which keys there are."""
    assert caller(owner.workspace, scopes=["manage"]).post(PATH).status_code == 200
    for scope in ("observe", "read", "publish", "consume"):
        assert code(caller(owner.workspace, scopes=[scope]).post(f"{PATH}?key=k.1")) == "forbidden"
    assert code(stranger.post(PATH)) == "stream_not_found"
