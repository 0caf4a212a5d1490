"""What groups lost and gave up, on record: in summary, at most once an hour, nothing twice."""

from datetime import timedelta
from typing import Any

import pytest

from streams import store
from streams.access import SYSTEM
from streams.log import groups, standing, trim
from streams.log.append import append
from streams.log.standing import GroupState
from streams.models import Event, Group, GroupLoss, Stream
from streams.services.group_losses import group_losses_record
from streams.services.groups import group_create, group_delete
from streams.services.messages import stream_purge
from streams.services.streams import stream_delete
from streams.services.undo import removal_undo
from tests.streams.log.messages import message
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

Named = tuple[str, str]


@pytest.fixture
def stream(stream: Stream) -> Stream:
    group_create(stream, name="billing", settings={"ack_wait": 0.1, "max_deliver": 1}, actor=SYSTEM)
    return stream


def publish(stream: Stream, first: int, last: int) -> None:
    store.log().run(append(stream.stream_id, [message(n) for n in range(first, last + 1)]))


def state(stream: Stream) -> dict[Named, GroupState]:
    return {
        (stream.stream_id, "billing"): store.log().run(standing.inspect(stream.stream_id, "billing")),
    }


def told(stream: Stream, kind: str) -> list[dict[str, Any]]:
    found = Event.objects.filter(kind=kind, workspace=stream.workspace.name).order_by("id")
    return [
        {name: value for name, value in (event.after or {}).items() if name != "since"} for event in found
    ]


def hour_passes() -> None:
    for loss in GroupLoss.objects.filter(lost_told_at__isnull=False):
        assert loss.lost_told_at is not None
        loss.lost_told_at -= timedelta(hours=1)
        loss.save()


def test_what_went_before_a_group_had_it_is_one_event_an_hour(stream: Stream) -> None:
    publish(stream, 1, 10)
    store.log().run(trim.purge(stream.stream_id, keep=4))
    assert group_losses_record(state(stream)) == {(stream.stream_id, "billing")}
    first = {"messages": 6, "undelivered": 6, "unanswered": 0}
    assert told(stream, "group.lost") == [first]
    assert group_losses_record(state(stream)) == {(stream.stream_id, "billing")}
    assert told(stream, "group.lost") == [first], "nothing is told twice"
    store.log().run(trim.purge(stream.stream_id, keep=1))
    assert group_losses_record(state(stream)) == set(), "it is told when the hour is over"
    hour_passes()
    assert group_losses_record(state(stream)) == {(stream.stream_id, "billing")}
    assert told(stream, "group.lost")[1:] == [{"messages": 3, "undelivered": 3, "unanswered": 0}]
    event = Event.objects.filter(kind="group.lost", workspace=stream.workspace.name).latest("id")
    assert (event.stream, event.group, event.actor) == ("orders", "billing", SYSTEM.name)


def test_what_is_lost_after_an_undo_is_told_though_it_is_no_more_than_before(stream: Stream) -> None:
    publish(stream, 1, 6)
    stream_purge(stream, actor=SYSTEM)
    group_losses_record(state(stream))
    lost = {"messages": 6, "undelivered": 6, "unanswered": 0}
    assert told(stream, "group.lost") == [lost]
    removal_undo(stream, 1, actor=SYSTEM)
    assert state(stream)[stream.stream_id, "billing"].lost == 0
    assert group_losses_record(state(stream)) == {(stream.stream_id, "billing")}
    assert told(stream, "group.lost") == [lost], "what was told stays"
    undone = Event.objects.get(kind="stream.removal_undone", workspace=stream.workspace.name)
    assert undone.summary == (
        "6 messages of orders were restored. Groups that lost unread messages by it have these back, "
        "unless they were moved by a seek since."
    )
    hour_passes()
    store.log().run(trim.purge(stream.stream_id, keep=1))
    group_losses_record(state(stream))
    assert told(stream, "group.lost")[1:] == [{"messages": 5, "undelivered": 5, "unanswered": 0}]


def test_what_a_group_gives_up_is_told_with_how_many_are_there(stream: Stream) -> None:
    publish(stream, 1, 3)
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=3))

    def are_dead() -> bool:
        store.log().run(groups.fetch(stream.stream_id, "billing", limit=1))
        return state(stream)[stream.stream_id, "billing"].dead_letters == 3

    until(are_dead, what="all three were delivered too often")
    group_losses_record(state(stream))
    group_losses_record(state(stream))
    assert told(stream, "group.dead_lettered") == [{"messages": 3, "dead_letters": 3}]
    assert told(stream, "group.lost") == []


def test_a_group_without_losses_is_settled_and_makes_no_event(stream: Stream) -> None:
    publish(stream, 1, 2)
    assert group_losses_record(state(stream)) == {(stream.stream_id, "billing")}
    assert not Event.objects.filter(workspace=stream.workspace.name, kind__in=["group.lost"]).exists()
    gone = (stream.stream_id, "never")
    assert group_losses_record({gone: state(stream)[stream.stream_id, "billing"]}) == {gone}


@pytest.mark.parametrize("what", ["stream", "group"])
def test_what_no_event_told_of_is_told_before_the_group_goes_also_within_the_hour(
    stream: Stream, what: str
) -> None:
    publish(stream, 1, 10)
    store.log().run(trim.purge(stream.stream_id, keep=4))
    group_losses_record(state(stream))
    store.log().run(trim.purge(stream.stream_id, keep=1))
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=1))
    until(lambda: state(stream)[stream.stream_id, "billing"].dead_letters == 1)
    if what == "stream":
        stream_delete(stream, actor=SYSTEM)
    else:
        group_delete(Group.objects.get(stream=stream, name="billing"), actor=SYSTEM)
    assert [each["messages"] for each in told(stream, "group.lost")] == [6, 3]
    assert told(stream, "group.dead_lettered") == [{"messages": 1, "dead_letters": 1}]
    last = Event.objects.filter(workspace=stream.workspace.name).latest("id")
    assert last.kind == f"{what}.deleted"
