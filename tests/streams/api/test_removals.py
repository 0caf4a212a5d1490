"""What was removed for a while: who sees it, who brings it back, who makes it final."""

from typing import Any

import pytest

from streams import selectors, store
from streams.access import Actor
from streams.log import keys, stats, undo
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Event, Stream
from streams.services import messages
from tests.streams.api.conftest import Api, caller, code

PATH = "streams/orders/removals/"


@pytest.fixture
def stream(owner: Api) -> Stream:
    """Ten messages that a person has purged."""
    assert owner.post("streams/", {"name": "orders", "archive": False}).status_code == 201
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    store.log().run(append(stream.stream_id, [NewMessage(id=f"m{n}", body=b"12") for n in range(10)]))
    messages.stream_purge(stream, actor=Actor("ann"))
    return stream


def test_what_can_come_back_is_listed(owner: Api, stream: Stream) -> None:
    (told,) = owner.get(PATH).json()
    assert told.pop("until").endswith("Z")
    assert told == {
        "removal": 1,
        "kind": "stream.purged",
        "messages": 10,
        "bytes": 20,
        "first_offset": 1,
        "actor": "ann",
    }


def test_it_comes_back_once_and_is_an_event(owner: Api, stream: Stream) -> None:
    assert owner.post(f"{PATH}1/undo").json() == {"messages": 10, "bytes": 20}
    assert owner.get("streams/orders").json()["messages"] == 10
    assert Event.objects.latest("pk").kind == "stream.removal_undone"
    again = owner.post(f"{PATH}1/undo")
    assert (again.status_code, code(again)) == (404, "removal_not_found")


def test_what_a_limit_has_taken_is_said_and_the_rest_can_be_had(owner: Api, stream: Stream) -> None:
    owner.patch("streams/orders", {"max_messages": 4})
    refused = owner.post(f"{PATH}1/undo")
    assert (refused.status_code, code(refused)) == (409, "removal_taken")
    assert owner.post(f"{PATH}1/undo", {"partial": True}).json()["messages"] == 4


def told_last() -> dict[str, Any]:
    """What the last event says of after it."""
    return Event.objects.latest("pk").after or {}


def test_a_removal_that_ends_before_its_time_is_named_by_the_one_that_ended_it(
    owner: Api, stream: Stream
) -> None:
    store.log().run(append(stream.stream_id, [NewMessage(id=f"n{n}", body=b"1") for n in range(101)]))
    for offset in range(11, 110):
        messages.message_delete(stream, offset=offset, actor=Actor("ann"))
    assert "ended" not in told_last()
    messages.message_delete(stream, offset=110, actor=Actor("ann"))
    assert told_last() == {"offsets": [110], "count": 1, "removal": 101, "ended": 1}
    store.log().run(undo.end(stream.stream_id))
    messages.stream_purge(stream, actor=Actor("ann"))
    assert told_last()["ended"] == 2


def test_of_two_the_later_one_is_named(owner: Api, stream: Stream) -> None:
    store.log().run(append(stream.stream_id, [NewMessage(id="x", body=b"1")]))
    messages.stream_purge(stream, actor=Actor("ann"))
    refused = owner.post(f"{PATH}1/undo")
    assert (refused.status_code, refused.json()["error"]["details"]["removal"]) == (409, 2)


def test_only_an_admin_makes_it_final(owner: Api, stream: Stream) -> None:
    manager = caller(owner.workspace, scopes=["read", "manage"])
    assert manager.delete(f"{PATH}1").status_code == 403
    assert owner.delete(f"{PATH}1").status_code == 204
    assert owner.get(PATH).json() == []
    assert store.log().client.xlen(keys.log(stream.stream_id)) == 0


def test_a_reader_sees_it_and_cannot_bring_it_back(owner: Api, stream: Stream) -> None:
    reader = caller(owner.workspace, scopes=["read"])
    assert len(reader.get(PATH).json()) == 1
    assert reader.post(f"{PATH}1/undo").status_code == 403


def test_a_stranger_finds_no_stream(stranger: Api, stream: Stream) -> None:
    assert code(stranger.post(f"{PATH}1/undo")) == "stream_not_found"


@pytest.mark.parametrize("number", ["0", "x", "99", "9" * 30])
def test_a_number_that_is_none_is_not_found(owner: Api, stream: Stream, number: str) -> None:
    assert code(owner.post(f"{PATH}{number}/undo")) == "removal_not_found"


def test_retention_is_not_taken_for_the_cause_of_what_was_undone(owner: Api, stream: Stream) -> None:
    before = store.log().run(stats.inspect(stream.stream_id))
    assert (before.by_hand_messages, before.by_hand_bytes) != (0, 0)
    owner.post(f"{PATH}1/undo")
    after = store.log().run(stats.inspect(stream.stream_id))
    assert (after.by_hand_messages, after.by_hand_bytes) == (0, 0)


def test_a_deleted_message_comes_back(owner: Api, stream: Stream) -> None:
    owner.post(f"{PATH}1/undo")
    messages.message_delete(stream, offset=5, actor=Actor("ann"))
    (found,) = selectors.removals_of(stream)
    assert (found.kind, found.messages, found.first_offset) == ("message.deleted", 1, 5)
    owner.post(f"{PATH}{found.number}/undo")
    assert selectors.message_at(stream, 5).offset == 5
