"""How every group of a stream stands to one message, over HTTP."""

from typing import Any

import pytest

from streams import store
from streams.log import groups, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from streams.selectors import message_groups
from tests.streams.api.conftest import Api

PATH = "streams/orders/messages/2/groups"
NONE = {"consumer": "", "deliveries": 0, "before": None, "reason": None, "due_in": None, "last": False}
NONE |= {"delivered_at": None, "died_at": None}


@pytest.fixture
def stream_id(owner: Api) -> str:
    """Three messages of the key ``eu``."""
    assert owner.post("streams/", {"name": "orders"}).status_code == 201
    made = Stream.objects.get(workspace=owner.workspace, name="orders").stream_id
    store.log().run(append(made, [NewMessage(id=f"m{n}", body=b"1", key="eu") for n in range(3)]))
    return made


def make(owner: Api, name: str, **settings: object) -> None:
    assert owner.post("streams/orders/groups", {"name": name, **settings}).status_code == 201


def told(owner: Api) -> dict[str, dict[str, Any]]:
    answer = owner.get(PATH)
    assert answer.status_code == 200
    rows = answer.json()
    return {row.pop("group"): row for row in rows}


def test_each_group_says_how_it_stands_the_ones_to_act_on_first(owner: Api, stream_id: str) -> None:
    for name in ("ahead", "behind", "dead", "out"):
        make(owner, name)
    make(owner, "late", start_from="latest")
    make(owner, "other", filter_keys=["us"])
    log = store.log()
    log.run(groups.fetch(stream_id, "out", limit=2, consumer="a"))
    log.run(groups.fetch(stream_id, "ahead", limit=3))
    log.run(groups.ack(stream_id, "ahead", "offsets", [1, 2, 3]))
    log.run(groups.fetch(stream_id, "dead", limit=3))
    log.run(groups.term(stream_id, "dead", "offsets", [2], reason="no such customer"))
    found = told(owner)
    assert list(found) == ["dead", "out", "behind", "ahead", "late", "other"]
    assert found["dead"].pop("died_at").endswith("Z")
    assert found["dead"] == {
        **{name: value for name, value in NONE.items() if name != "died_at"},
        "state": "dead_letter",
        "deliveries": 1,
        "reason": "no such customer",
    }
    assert found["out"].pop("delivered_at").endswith("Z")
    assert 25 < found["out"].pop("due_in") <= 30
    assert (found["out"]["state"], found["out"]["consumer"], found["out"]["deliveries"]) == (
        "in_flight",
        "a",
        1,
    )
    assert found["behind"] == {**NONE, "state": "to_come", "before": 1}
    assert found["ahead"] == found["late"] == {**NONE, "state": "passed"}
    assert found["other"] == {**NONE, "state": "filtered"}


def test_looking_changes_nothing(owner: Api, stream_id: str) -> None:
    make(owner, "g")
    told(owner)
    (delivery, *_) = store.log().run(groups.fetch(stream_id, "g", limit=3)).deliveries
    assert (delivery.deliveries, told(owner)["g"]["deliveries"]) == (1, 1)


def test_all_groups_are_told_of_also_where_they_are_asked_in_parts(
    owner: Api, stream_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_groups, "AT_ONCE", 2)
    for n in range(5):
        make(owner, f"g{n}")
    assert list(told(owner)) == [f"g{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("streams/orders/messages/9/groups", 404, "message_not_found"),
        ("streams/orders/messages/0/groups", 404, "message_not_found"),
        ("streams/nothing/messages/1/groups", 404, "stream_not_found"),
        ("streams/orders/messages/x/groups", 400, "validation_error"),
        ("streams/orders/messages/-1/groups", 400, "validation_error"),
        (f"streams/orders/messages/{10**15}/groups", 400, "validation_error"),
    ],
)
def test_what_is_not_there_is_told_by_its_code(
    owner: Api, stream_id: str, path: str, status: int, code: str
) -> None:
    answer = owner.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_deleted_message_is_none(owner: Api, stream_id: str) -> None:
    store.log().run(trim.delete(stream_id, [2]))
    assert owner.get(PATH).status_code == 404
