"""Groups that the log has otherwise than the database: made anew, told again, taken out."""

import pytest

from streams import store
from streams.log import groups, standing
from streams.log.append import append
from streams.log.client import one
from streams.log.config import stream_remove
from streams.log.entries import NewMessage
from streams.log.errors import GroupNotFound
from streams.log.keys import group as key_of_group
from streams.models import Group, Stream
from streams.services.group_repairs import groups_repair
from streams.services.groups import group_publish
from tests.streams.api.conftest import Api


@pytest.fixture
def stream_id(owner: Api) -> str:
    """A stream with five messages."""
    assert owner.post("streams/", {"name": "orders"}).status_code == 201
    found = Stream.objects.get(workspace=owner.workspace, name="orders").stream_id
    publish(found, "a", count=5)
    return found


def publish(stream_id: str, name: str, *, count: int) -> None:
    store.log().run(append(stream_id, [NewMessage(id=f"{name}{n}", body=b"{}") for n in range(count)]))


def is_in_log(stream_id: str, name: str) -> bool:
    return name in store.log().run(standing.names_of([stream_id])).get(stream_id, [])


def forgotten(stream_id: str, name: str) -> None:
    """As after a process that ended between the commit and the telling."""
    store.log().run(groups.group_remove(stream_id, name))
    Group.objects.filter(stream__stream_id=stream_id, name=name).update(is_told=False)


def test_a_group_that_the_log_does_not_have_is_made_by_the_same_call(owner: Api, stream_id: str) -> None:
    wanted = {"name": "g", "start_from": "latest"}
    owner.post("streams/orders/groups", wanted)
    forgotten(stream_id, "g")
    publish(stream_id, "b", count=2)
    answer = owner.post("streams/orders/groups", wanted)
    assert (answer.status_code, answer.json()["delivered_offset"], answer.json()["lag"]) == (200, 5, 2)


def test_a_group_that_the_log_does_not_have_starts_where_it_was_to_start(owner: Api, stream_id: str) -> None:
    owner.post("streams/orders/groups", {"name": "g", "start_from": "offset", "offset": 4})
    forgotten(stream_id, "g")
    assert groups_repair([stream_id]) == ["g"]
    assert owner.get("streams/orders/groups/g").json()["lag"] == 2
    assert groups_repair([stream_id]) == []


def test_settings_that_the_log_was_not_told_reach_it(owner: Api, stream_id: str) -> None:
    owner.post("streams/orders/groups", {"name": "g"})
    Group.objects.filter(stream__stream_id=stream_id).update(max_ack_pending=3, is_told=False)
    assert groups_repair([stream_id]) == ["g"]
    assert len(store.log().run(groups.fetch(stream_id, "g", limit=10)).deliveries) == 3


def test_a_group_that_was_deleted_is_taken_out_of_the_log(owner: Api, stream_id: str) -> None:
    owner.post("streams/orders/groups", {"name": "g"})
    Group.objects.filter(stream__stream_id=stream_id).delete()
    assert groups_repair([stream_id]) == ["g"]
    with pytest.raises(GroupNotFound):
        store.log().run(groups.fetch(stream_id, "g", limit=1))


def test_a_group_made_anew_has_nothing_of_the_one_before(owner: Api, stream_id: str) -> None:
    owner.post("streams/orders/groups", {"name": "g"})
    store.log().run(groups.fetch(stream_id, "g", limit=3))
    Group.objects.filter(stream__stream_id=stream_id).delete()
    made = owner.post("streams/orders/groups", {"name": "g"})
    assert made.status_code == 201
    assert (made.json()["lag"], made.json()["ack_pending"]) == (5, 0)


def test_a_group_deleted_while_the_log_is_told_does_not_stay_in_it(owner: Api, stream_id: str) -> None:
    owner.post("streams/orders/groups", {"name": "g"})
    group = Group.objects.select_related("stream").get(stream__stream_id=stream_id)
    Group.objects.filter(pk=group.pk).delete()
    group_publish(group)
    assert not is_in_log(stream_id, "g")


def test_a_group_of_a_stream_that_the_log_does_not_have_is_left_alone(owner: Api, stream_id: str) -> None:
    owner.post("streams/orders/groups", {"name": "g"})
    store.log().run(stream_remove(stream_id, workspace_id=owner.workspace.pk, name="orders"))
    assert groups_repair([stream_id]) == []
    assert not store.log().run(one(("EXISTS", key_of_group(stream_id, "g"))))
