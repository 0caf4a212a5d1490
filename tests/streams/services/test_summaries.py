"""Events are told in one voice: whole plain sentences, with names as they are."""

from datetime import UTC, datetime

import pytest

from streams import store
from streams.access import Actor
from streams.log import groups as log_groups
from streams.log.append import append
from streams.log.notes import UNKNOWN, Note
from streams.models import Event, Stream
from streams.services import dead_letters, deliveries, groups, messages, policies, removals, undo
from streams.services.streams import stream_change, stream_delete
from streams.services.summaries import ASKED, counted, listed, not_known, was, went
from tests.streams.log.messages import message

ANN = Actor("ann")

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_is_done_to_a_stream_and_its_group_is_told_in_whole_sentences(stream: Stream) -> None:
    log = store.log()
    log.run(append(stream.stream_id, [message(n) for n in range(5)]))
    group, _ = groups.group_create(stream, name="billing", settings={"start_from": "earliest"}, actor=ANN)
    groups.group_change(group, changes={"max_deliver": 3, "ack_wait": 5.0}, actor=ANN)
    log.run(log_groups.fetch(stream.stream_id, "billing", limit=3))
    log.run(log_groups.term(stream.stream_id, "billing", "offsets", [1, 2], reason="no"))
    deliveries.deliveries_settle(group, "ack", offsets=[3], actor=ANN)
    log.run(log_groups.fetch(stream.stream_id, "billing", limit=2))
    deliveries.deliveries_settle(group, "term", offsets=[4, 5], actor=ANN)
    dead_letters.dead_letters_delete_these(group, offsets=[4, 5], actor=ANN)
    dead_letters.dead_letters_delete(group, offset=1, actor=ANN)
    dead_letters.dead_letters_replay(group, offsets=None, actor=ANN)
    groups.group_seek(group, next_offset=1, actor=ANN)
    groups.group_pause(group, until=datetime(2035, 1, 2, 3, 4, 5, tzinfo=UTC), actor=ANN)
    groups.group_resume(group, actor=ANN)
    groups.group_delete(group, actor=ANN)
    policy, _ = policies.policy_create(stream.workspace, name="week", settings={"ttl": 60}, actor=ANN)
    policies.policy_apply(policy, streams=[stream], actor=ANN)
    stream = stream_change(stream, changes={"labels": {"env": "test"}, "description": "x"}, actor=ANN)
    messages.message_delete(stream, offset=4, actor=ANN)
    messages.stream_purge(stream, actor=ANN)
    undo.removal_undo(stream, 2, actor=ANN)
    undo.removal_end(stream, 1, actor=ANN)
    stream_delete(stream, actor=ANN)
    told = Event.objects.filter(workspace=stream.workspace.name).order_by("id")
    assert [event.summary for event in told] == [
        "Stream orders was created.",
        "Group billing of orders was created.",
        "Group billing of orders was changed: ack_wait and max_deliver.",
        "1 message in flight of group billing of orders was acknowledged by hand.",
        "2 messages in flight of group billing of orders were made dead letters by hand.",
        "2 dead letters of group billing of orders were deleted.",
        "1 dead letter of group billing of orders was deleted.",
        "1 dead letter of group billing of orders was replayed.",
        "Group billing of orders was moved from offset 6 to 1.",
        "Group billing of orders was paused until 2035-01-02 03:04:05 UTC.",
        "Group billing of orders was resumed.",
        "Group billing of orders was deleted.",
        "Policy week was created.",
        "Stream orders was changed by policy week: policy and ttl.",
        "Stream orders was changed: description and labels.",
        "Message 4 of orders was deleted.",
        "4 messages of orders were purged.",
        "4 messages of orders were restored.",
        "Removal 1 of orders and those before it were made final.",
        "Stream orders was deleted with all its messages.",
    ]


@pytest.mark.parametrize(
    ("kind", "after", "taken", "summary"),
    [
        ("stream.purged", {}, 1, "1 message of orders was purged."),
        ("stream.purged", UNKNOWN, 0, not_known("stream.purged", "orders")),
        (
            "stream.purged",
            UNKNOWN,
            3,
            "3 messages of orders were purged, and perhaps more: the outcome is unknown.",
        ),
        ("message.deleted", {"offsets": [1, 2], "count": 2}, 0, "2 messages of orders were deleted."),
        (
            "group.terminated",
            {"offsets": [1], "count": 1},
            0,
            "1 message of group g of orders was made a dead letter.",
        ),
    ],
)
def test_what_the_data_plane_noted_is_told_in_the_same_voice(
    stream: Stream, kind: str, after: dict[str, object], taken: int, summary: str
) -> None:
    note = Note(
        kind=kind,
        workspace_id=stream.workspace_id,
        stream_id=stream.stream_id,
        stream="orders",
        token_id=0,
        actor="ann",
        address="",
        group="g" if kind.startswith("group.") else "",
        messages=taken,
        bytes=taken,
        after={"messages": taken, "bytes": taken} | after,
    )
    removals.notes_record([("9999999999999-1", note)])
    event = Event.objects.get(kind=kind, stream="orders")
    assert event.summary == summary
    assert event.after is not None
    assert event.after["messages"] == (taken or (None if UNKNOWN.items() <= after.items() else 0))


def test_offsets_have_thousands_separators(stream: Stream) -> None:
    store.log().run(append(stream.stream_id, [message(n) for n in range(1200)]))
    group, _ = groups.group_create(stream, name="billing", settings={"start_from": "latest"}, actor=ANN)
    groups.group_seek(group, next_offset=1001, actor=ANN)
    told = Event.objects.get(kind="group.sought", stream="orders", workspace=stream.workspace.name)
    assert told.summary == "Group billing of orders was moved from offset 1,201 to 1,001."


def test_what_was_asked_for_and_has_no_known_end_says_so() -> None:
    assert not_known("group.paused", "orders", "billing") == (
        "Deliveries to group billing of orders were to be paused; whether it happened is unknown."
    )
    for kind in ASKED:
        told = not_known(kind, "orders", "g" if kind.startswith("group.") else "")
        assert "orders were to be " in told or "orders was to be " in told
    # A worker of the version before may find what a newer one has begun.
    assert not_known("group.renamed", "orders", "g") == (
        "group.renamed of group g of orders was requested; whether it happened is unknown."
    )


def test_numbers_and_names_are_words_of_a_sentence() -> None:
    assert [f"{counted(n)} {was(n)}" for n in (0, 1, 1200)] == [
        "0 messages were",
        "1 message was",
        "1,200 messages were",
    ]
    assert [listed(names) for names in (["b"], ["b", "a"], ["c", "b", "a"])] == ["b", "a and b", "a, b and c"]
    assert [went(state) for state in ("requested", "failed")] == ["was requested", "has failed"]
