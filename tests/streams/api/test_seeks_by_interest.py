"""A dry run of a seek tells what it lets go of for good, where the stream retains by interest."""

import pytest

from streams import store
from streams.log import groups, stats, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream
from tests.streams.api.conftest import Api

PATH = "streams/orders/groups"
NEWEST = {"position": "latest"}


@pytest.fixture
def stream(owner: Api) -> Stream:
    """It retains by interest, and holds 20 messages of one key and 5 of another, two bytes each."""
    assert owner.post("streams/", {"name": "orders", "retention": "interest"}).status_code == 201
    made = Stream.objects.get(workspace=owner.workspace, name="orders")
    keys = ["eu.1"] * 20 + ["us.1"] * 5
    sent = [NewMessage(id=f"{n}", body=b"11", key=key) for n, key in enumerate(keys)]
    store.log().run(append(made.stream_id, sent))
    return made


def make(owner: Api, name: str, **settings: object) -> None:
    assert owner.post(PATH, {"name": name, **settings}).status_code == 201


def left(stream: Stream) -> int:
    store.log().run(trim.release(stream.stream_id))
    return store.log().run(stats.inspect(stream.stream_id)).messages


@pytest.mark.parametrize(
    ("other", "removes"),
    [(None, 25), ({}, 0), ({"filter_keys": ["us.>"]}, 20), ({"start_from": "offset", "offset": 11}, 10)],
    ids=["alone", "wants all", "wants some", "wants the newer ones"],
)
def test_a_dry_run_tells_what_a_seek_lets_go_of(
    owner: Api, stream: Stream, other: dict[str, object] | None, removes: int
) -> None:
    make(owner, "g")
    if other is not None:
        make(owner, "other", **other)
    told = owner.post(f"{PATH}/g/seek", {**NEWEST, "dry_run": True}).json()
    assert told["removes"] == {"messages": removes, "bytes": 2 * removes, "complete": True, "reason": None}
    assert left(stream) == 25, "a dry run changes nothing"
    assert "removes" not in owner.post(f"{PATH}/g/seek", NEWEST).json(), "of a seek the answer is as ever"
    assert left(stream) == 25 - removes


def test_a_seek_back_lets_go_of_what_is_in_flight_before_it(owner: Api, stream: Stream) -> None:
    make(owner, "g")
    store.log().run(groups.fetch(stream.stream_id, "g", limit=10))
    back = {"position": "offset", "offset": 4}
    told = owner.post(f"{PATH}/g/seek", {**back, "dry_run": True}).json()
    assert (told["messages"], told["removes"]["messages"]) == (7, 3)
    owner.post(f"{PATH}/g/seek", back)
    assert left(stream) == 22


def test_where_limits_alone_retain_nothing_is_told(owner: Api) -> None:
    owner.post("streams/", {"name": "orders"})
    make(owner, "g")
    assert "removes" not in owner.post(f"{PATH}/g/seek", {**NEWEST, "dry_run": True}).json()
