"""The preview of other limits: who may ask, what is refused, what it says."""

from typing import Any

import pytest

from streams import store
from streams.log import groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream, Workspace
from tests.streams.api.conftest import Api, caller, code, fields

PATH = "streams/orders/retention/preview"


@pytest.fixture
def stream(owner: Api) -> Stream:
    assert owner.post("streams/", {"name": "orders"}).status_code == 201
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    messages = [NewMessage(id=f"m{n}", body=b"12", key=f"k{n % 2}") for n in range(10)]
    store.log().run(append(stream.stream_id, messages))
    return stream


def test_it_says_what_would_go_and_of_which_group(owner: Api, stream: Stream) -> None:
    owner.post("streams/orders/groups/", {"name": "billing"})
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=3))
    store.log().run(groups.ack(stream.stream_id, "billing", "up_to", [2]))
    told = owner.post(PATH, {"max_messages": 6}).json()
    oldest = told.pop("oldest_timestamp")
    assert oldest.endswith("Z")
    assert told == {
        "messages": 4,
        "bytes": 8,
        "first_offset": 5,
        "groups": [{"group": "billing", "unread": 2}],
        "as_of": 10,
        "complete": True,
    }
    assert owner.get("streams/orders").json()["messages"] == 10


def test_what_is_saved_afterwards_is_what_it_said(owner: Api, stream: Stream) -> None:
    limits = {"max_messages_per_key": 2, "max_bytes": 18}
    told = owner.post(PATH, limits).json()
    saved = owner.patch("streams/orders", limits).json()
    assert told["messages"] == 10 - saved["messages"]
    assert (told["bytes"], told["first_offset"]) == (20 - saved["bytes"], saved["first_offset"])


def test_an_empty_body_asks_about_the_limits_as_they_are(owner: Api, stream: Stream) -> None:
    assert owner.post(PATH).json()["messages"] == 0
    assert owner.post(PATH, {}).json()["first_offset"] == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("ttl", 0), ("ttl", 101 * 365 * 86_400), ("max_bytes", "5"), ("max_mesages", 5), ("archive", True)],
)
def test_a_wrong_field_is_named(owner: Api, stream: Stream, field: str, value: Any) -> None:
    answer = owner.post(PATH, {field: value})
    assert (answer.status_code, fields(answer)) == (400, [field])


def test_reading_is_enough_and_another_workspace_sees_nothing(
    owner: Api, stranger: Api, stream: Stream
) -> None:
    assert caller(owner.workspace, scopes=["read"]).post(PATH, {}).status_code == 200
    assert code(caller(owner.workspace, scopes=["publish"]).post(PATH, {})) == "forbidden"
    assert code(stranger.post(PATH, {})) == "stream_not_found"


def test_more_than_the_plan_keeps_is_refused_as_saving_it_would_be(owner: Api, stream: Stream) -> None:
    Workspace.objects.filter(pk=owner.workspace.pk).update(plan="free")
    answer = owner.post(PATH, {"ttl": 40 * 86_400})
    assert (answer.status_code, code(answer)) == (403, "quota_exceeded")


def test_it_may_be_given_longer_to_look_at_messages(owner: Api, stream: Stream) -> None:
    told = owner.post(f"{PATH}?wait=2", {"max_messages_per_key": 1}).json()
    assert told == owner.post(PATH, {"max_messages_per_key": 1}).json()
    assert told["complete"]
    assert fields(owner.post(f"{PATH}?wait=31", {})) == ["wait"]
    assert fields(owner.post(f"{PATH}?wait=soon", {})) == ["wait"]
