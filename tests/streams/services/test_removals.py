"""What went of streams, on record: people's deeds one by one, retention's in summary, never mixed up."""

import itertools
import secrets
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from streams import store
from streams.access import SYSTEM
from streams.errors import Refusal
from streams.log import groups, notes, removals, stats, trim, undo
from streams.log.append import append
from streams.log.client import Op, Script
from streams.log.counts import Counts
from streams.log.errors import LogError
from streams.log.notes import Note
from streams.models import Event, RemovalCount, Stream, Workspace
from streams.models.history import Step
from streams.selectors import events_prove, removed_by_step
from streams.services.groups import group_create
from streams.services.history import Progressed
from streams.services.messages import stream_purge
from streams.services.removals import notes_record, removals_record
from streams.services.standing import StoodPoint, standing_add
from streams.services.streams import stream_change, stream_create, stream_delete
from streams.services.tokens import token_create
from streams.services.undo import removal_undo
from streams.services.workspaces import workspace_delete
from tests.streams.log.messages import message

pytestmark = pytest.mark.django_db(transaction=True)


def publish(stream: Stream, count: int) -> None:
    first = secrets.randbelow(10**9)
    store.log().run(append(stream.stream_id, [message(first + n, body=b"12345") for n in range(count)]))


def state(stream: Stream) -> dict[str, stats.State]:
    return store.log().run(stats.inspect_many([stream.stream_id]))


def keep(stream: Stream, messages: int) -> Stream:
    changed = stream_change(stream, changes={"max_messages": messages}, actor=SYSTEM)
    store.log().run(trim.apply_limits(stream.stream_id))
    return changed


def note(stream: Stream, kind: str = "stream.purged", *, token_id: int = 7, **values: object) -> Note:
    fields: dict[str, object] = {
        "workspace_id": stream.workspace_id,
        "stream_id": stream.stream_id,
        "stream": stream.name,
        "token_id": token_id,
        "address": "10.0.0.1",
        "after": {},
    }
    return Note(kind=kind, **(fields | values))  # type: ignore[arg-type]


def after(kind: str) -> list[dict[str, Any]]:
    found = Event.objects.filter(kind=kind).order_by("id").values_list("after", flat=True)
    return [each for each in found if each is not None]


def expired() -> list[dict[str, Any]]:
    return [
        {name: told[name] for name in ("messages", "bytes", "first_offset")}
        for told in after("stream.expired")
    ]


def hour_passes(stream: Stream) -> None:
    for count in RemovalCount.objects.filter(stream=stream, told_at__isnull=False):
        assert count.told_at is not None
        count.told_at -= timedelta(hours=1)
        count.save()


def test_what_retention_removed_is_one_event_an_hour(stream: Stream) -> None:
    def in_the_history() -> int:
        return sum(removed_by_step(stream, step="day", until=timezone.now()).values())

    assert removed_by_step(stream, step="hour") == {}
    publish(stream, 10)
    keep(stream, 4)
    assert in_the_history() == 6, "at once, without an event"
    assert removals_record(state(stream)) == {stream.stream_id}
    assert expired() == [{"messages": 6, "bytes": 30, "first_offset": 7}]
    assert in_the_history() == 6
    publish(stream, 5)
    assert removals_record(state(stream)) == set(), "it is told when the hour is over"
    assert in_the_history() == 11
    assert removed_by_step(stream, step="day", until=stream.created_at - timedelta(days=1)) == {}
    publish(stream, 1)
    hour_passes(stream)
    assert removals_record(state(stream)) == {stream.stream_id}
    assert expired()[1:] == [{"messages": 6, "bytes": 30, "first_offset": 13}]
    event = Event.objects.filter(kind="stream.expired").latest("id")
    assert after("stream.expired")[1]["limits"] == {"max_messages": 4}
    assert event.before == {"first_offset": 7}


def test_it_is_told_of_the_minute_once_samples_say_it_and_before_of_its_event(stream: Stream) -> None:
    publish(stream, 10)
    keep(stream, 4)
    removals_record(state(stream))
    told = Event.objects.get(kind="stream.expired").time
    first, second = (Step.MINUTE.floor(told) + timedelta(minutes=n) for n in (61, 63))
    for n, (moment, removed) in enumerate(((first, 8), (second, 11))):
        standing_add(sampled(stream, moment, removed), position=moved(n, n + 1))
    publish(stream, 5)
    by_minute = {Step.MINUTE.floor(told): 6, first: 2, second: 3}
    assert removed_by_step(stream, step="minute") == by_minute, "what is in a sample is not told twice"
    assert removed_by_step(stream, step="minute", since=first, until=second) == {first: 2}
    assert sum(removed_by_step(stream, step="hour").values()) == 11
    publish(stream, 7)
    assert sum(removed_by_step(stream, step="day").values()) == 18, "and what no sample says yet"


def sampled(stream: Stream, moment: datetime, removed: int) -> list[StoodPoint]:
    """A sample of a moment, as Spark tells it of a minute, an hour and a day."""
    counted = Counts(0, {"duplicates": 0, "removed": removed})
    return [
        StoodPoint(
            stream_id=stream.stream_id,
            group="",
            step=step,
            start=step.floor(moment),
            samples=1,
            last_ms=1,
            counted=counted,
            counted_first=counted,
            counted_grown={},
            ack_ms=None,
            ack_ms_first=None,
            ack_ms_grown={},
            highest={},
            seen={},
        )
        for step in Step
    ]


def moved(start: int, end: int) -> Progressed:
    return Progressed(stream_id="metrics", from_offset=start, to_offset=end, fresh_to=None)


def test_what_the_history_did_not_get_is_one_event_an_hour_whoever_freed_it(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[int]:
        removals_record(state(stream))
        gaps = Event.objects.filter(kind="history.gap", stream=stream.name).order_by("id")
        return [event.after["messages"] for event in gaps if event.after]

    keep(stream, 2)
    publish(stream, 5)
    store.log().run(trim.drop(stream.stream_id))
    assert told() == []
    monkeypatch.setattr(trim, "HOLD_FOR_HISTORY_MS", 0)
    store.log().run(trim.purge(stream.stream_id, below=1))
    assert told() == [3]
    publish(stream, 4)
    store.log().run(trim.drop(stream.stream_id))
    assert told() == [3]
    RemovalCount.objects.filter(stream=stream).update(missed_at=timezone.now() - timedelta(hours=1))
    assert told() == [3, 4]
    assert told() == [3, 4]


def test_interest_is_named_among_what_removed(stream: Stream) -> None:
    changed = stream_change(stream, changes={"retention": "interest"}, actor=SYSTEM)
    group_create(changed, name="billing", settings={"ack": "none"}, actor=SYSTEM)
    publish(changed, 3)
    store.log().run(groups.fetch(changed.stream_id, "billing", limit=2))
    store.log().run(trim.release(changed.stream_id))
    removals_record(state(changed))
    assert expired() == [{"messages": 2, "bytes": 10, "first_offset": 3}]
    assert after("stream.expired")[0]["limits"] == {"retention": "interest"}


def test_what_a_person_took_away_is_not_told_as_retentions(stream: Stream) -> None:
    publish(stream, 10)
    purged = store.log().run(trim.purge(stream.stream_id, below=4))
    notes_record([("1-1", note(stream, messages=purged.messages, bytes=purged.bytes))])
    keep(stream, 5)
    removals_record(state(stream))
    assert expired() == [{"messages": 2, "bytes": 10, "first_offset": 6}]


def test_nor_is_what_a_person_is_taking_away_and_no_note_tells_of_yet(stream: Stream) -> None:
    publish(stream, 10)
    store.log().run(trim.delete(stream.stream_id, [2, 5, 9]))
    keep(stream, 5)
    removals_record(state(stream))
    assert expired() == [{"messages": 2, "bytes": 10, "first_offset": 4}]


def test_a_purge_that_is_noted_in_parts_is_one_event(stream: Stream) -> None:
    parts = [
        note(
            stream,
            messages=count,
            bytes=5 * count,
            deed="a",
            after={"messages": count, "bytes": 5 * count, "asked": {"key": "k"}, **ended},
        )
        for count, ended in ((1000, {}), (1000, {"ended": 3}), (17, {}))
    ]
    other = note(stream, messages=1, bytes=5, deed="b", after={"messages": 1, "bytes": 5, "asked": {}})
    assert notes_record([(f"7-{n}", each) for n, each in enumerate([*parts, other])]) == 2
    assert after("stream.purged") == [
        {"messages": 2017, "bytes": 10085, "asked": {"key": "k"}, "ended": 3},
        {"messages": 1, "bytes": 5, "asked": {}},
    ]


def test_nothing_gone_nothing_told(stream: Stream) -> None:
    publish(stream, 3)
    assert removals_record(state(stream)) == {stream.stream_id}
    assert expired() == []


def test_the_past_of_a_stream_that_was_there_before_is_not_told(stream: Stream) -> None:
    RemovalCount.objects.all().delete()
    publish(stream, 5)
    keep(stream, 2)
    removals_record(state(stream))
    publish(stream, 1)
    removals_record(state(stream))
    assert expired() == [{"messages": 1, "bytes": 5, "first_offset": 5}]


def test_a_stream_that_began_anew_is_counted_from_there(stream: Stream) -> None:
    RemovalCount.objects.filter(stream=stream).update(appended_bytes=10_000, messages=500)
    publish(stream, 3)
    keep(stream, 1)
    removals_record(state(stream))
    assert expired() == []
    assert RemovalCount.objects.get(stream=stream).messages == 2


def test_what_no_event_told_of_is_told_before_the_stream_goes_also_within_the_hour(stream: Stream) -> None:
    publish(stream, 10)
    keep(stream, 5)
    removals_record(state(stream))
    publish(stream, 30)
    removals_record(state(stream))
    stream_delete(stream, actor=SYSTEM)
    assert expired() == [
        {"messages": 5, "bytes": 25, "first_offset": 6},
        {"messages": 30, "bytes": 150, "first_offset": 36},
    ]
    last = Event.objects.latest("id")
    assert (last.kind, last.after) == ("stream.deleted", {"messages": 5, "bytes": 25})
    assert events_prove().faults == []


def test_what_a_person_took_away_just_before_is_not_told_as_retentions(stream: Stream) -> None:
    publish(stream, 10)
    keep(stream, 7)
    purged = store.log().run(trim.purge(stream.stream_id, below=6))
    store.log().run(notes.put(note(stream, messages=purged.messages, bytes=purged.bytes)))
    stream_delete(stream, actor=SYSTEM)
    assert expired() == [{"messages": 3, "bytes": 15, "first_offset": 6}]
    left = [(note_id, each) for note_id, each in store.log().run(notes.take()) if each.stream == "orders"]
    assert notes_record([each for each in left if each[1].stream_id == stream.stream_id]) == 1, "still there"


def test_a_note_that_an_event_told_of_counts_once(stream: Stream) -> None:
    publish(stream, 10)
    purged = store.log().run(trim.purge(stream.stream_id, below=3))
    store.log().run(notes.put(note(stream, messages=purged.messages, bytes=purged.bytes)))
    notes_record(store.log().run(notes.take()))
    keep(stream, 4)
    stream_delete(stream, actor=SYSTEM)
    assert expired() == [{"messages": 4, "bytes": 20, "first_offset": 7}]


@pytest.mark.parametrize("storage", ["durable", "memory"])
def test_it_is_told_of_many_that_go_together_with_their_workspace(unique: str, storage: str) -> None:
    workspace = Workspace.objects.create(name=unique)
    for name in ("a", "b"):
        made, _ = stream_create(
            workspace, name=name, settings={"storage": storage, "max_messages": 2}, actor=SYSTEM
        )
        publish(made, 3)
        removals_record(state(made))
        publish(made, 4)
    workspace_delete(workspace, actor=SYSTEM)
    assert [each["messages"] for each in expired()] == [1, 1, 4, 4]


def test_nothing_is_told_at_last_where_nothing_was_left_to_tell(stream: Stream) -> None:
    publish(stream, 5)
    keep(stream, 2)
    removals_record(state(stream))
    stream_delete(stream, actor=SYSTEM)
    assert [each["messages"] for each in expired()] == [3]


def test_a_note_becomes_an_event_of_its_caller_once(stream: Stream) -> None:
    token, _ = token_create(stream.workspace, name="ops", scopes=["manage"], actor=SYSTEM)
    purged = note(
        stream, token_id=token.pk, messages=3, bytes=15, after={"messages": 3, "asked": {"keep": "0"}}
    )
    assert notes_record([("5-1", purged)]) == 1
    assert notes_record([("5-1", purged)]) == 0
    event = Event.objects.get(kind="stream.purged")
    assert (event.actor, event.address, event.stream) == ("token ops", "10.0.0.1", "orders")
    assert event.after == {"messages": 3, "asked": {"keep": "0"}}
    assert events_prove().faults == []


def test_the_same_deed_many_times_is_one_event(stream: Stream) -> None:
    deleted = [
        (
            f"6-{n}",
            note(stream, "message.deleted", messages=1, bytes=5, after={"offsets": [n], "count": 1}),
        )
        for n in range(1, 301)
    ]
    assert notes_record(deleted) == 1
    (told,) = after("message.deleted")
    assert (told["count"], len(told["offsets"])) == (300, 100)


def test_what_is_deleted_for_good_is_told_apart_from_what_can_be_undone(stream: Stream) -> None:
    by = [
        {"removal": 1},
        {},
        {"removal": 2},
        {},
        {"removal": 3, "ended": 1},
    ]
    deleted = [
        (
            f"7-{n}",
            note(stream, "message.deleted", messages=1, bytes=5, after={"offsets": [n], "count": 1} | each),
        )
        for n, each in enumerate(by)
    ]
    assert notes_record(deleted) == 3
    assert sorted(after("message.deleted"), key=lambda each: each["offsets"]) == [
        {"offsets": [0, 2], "count": 2, "removals": [1, 2]},
        {"offsets": [1, 3], "count": 2},
        {"offsets": [4], "count": 1, "removal": 3, "ended": 1},
    ]


def test_the_store_keeps_notes_until_they_are_forgotten(stream: Stream) -> None:
    def mine() -> list[str]:
        found = store.log().run(notes.take())
        return [note_id for note_id, each in found if each.stream_id == stream.stream_id]

    for _ in range(3):
        store.log().run(notes.put(note(stream)))
    first, second, third = mine()
    assert notes.is_later(third, second)
    store.log().run(notes.forget(second))
    assert mine() == [third]
    assert first != second


def test_an_undo_that_is_refused_in_the_middle_tells_what_was_back_by_then_and_the_next_one_the_rest(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(stream, 300)
    taking = removals.delete(stream.stream_id, range(1, 301), keep_ms=3_600_000, facts={})
    log = store.log()
    _, number = log.run(taking)
    assert number
    slices = itertools.count()

    def beside(undoing: Op[Any]) -> Generator[Any, Any, Any]:
        """Somebody purges the stream when two slices are back."""
        reply = None
        while True:
            try:
                command = undoing.send(reply)
            except StopIteration as end:
                return end.value
            if isinstance(command, Script) and command.name == "undo_delete" and next(slices) == 2:
                log.run(removals.purge(stream.stream_id, keep_ms=3_600_000, facts={}))
            try:
                reply = yield command
            except LogError as error:
                undoing.throw(error)

    whole = undo.undo
    monkeypatch.setattr(undo, "undo", lambda *asked, **more: beside(whole(*asked, **more)))
    with pytest.raises(Refusal, match=f"Undo removal 2 first.*{2 * undo.SLICE} messages"):
        removal_undo(stream, number, actor=SYSTEM)
    monkeypatch.setattr(undo, "undo", whole)
    assert removal_undo(stream, 2, actor=SYSTEM).messages == 2 * undo.SLICE
    assert removal_undo(stream, number, actor=SYSTEM).messages == 300 - 2 * undo.SLICE
    told = [each["messages"] for each in after("stream.removal_undone")]
    assert told == [2 * undo.SLICE] * 2 + [300 - 2 * undo.SLICE]
    assert state(stream)[stream.stream_id].messages == 300


def test_a_purge_by_key_that_is_ended_in_the_middle_tells_what_went_by_then_and_the_next_one_takes_the_rest(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = store.log()
    log.run(append(stream.stream_id, [message(n, key="ab"[n % 2]) for n in range(200)]))
    slices = itertools.count()

    def beside(purging: Op[Any]) -> Generator[Any, Any, Any]:
        """Somebody makes it final when two slices are gone."""
        reply = None
        while True:
            try:
                command = purging.send(reply)
            except StopIteration as end:
                return end.value
            if isinstance(command, Script) and command.name == "delete_aside" and next(slices) == 2:
                log.run(undo.end(stream.stream_id, 1))
            try:
                reply = yield command
            except LogError as error:
                purging.throw(error)

    purge = removals.purge_found
    monkeypatch.setattr(removals, "purge_found", lambda *asked, **more: beside(purge(*asked, **more)))
    with pytest.raises(Refusal, match=f"{2 * removals.DELETE_SLICE:,} messages of it had already been done"):
        stream_purge(stream, actor=SYSTEM, key="a")
    monkeypatch.setattr(removals, "purge_found", purge)
    assert stream_purge(stream, actor=SYSTEM, key="a") == 100 - 2 * removals.DELETE_SLICE
    told = [(each["messages"], each["asked"], each["removal"]) for each in after("stream.purged")]
    assert told == [
        (2 * removals.DELETE_SLICE, {"key": "a"}, 1),
        (100 - 2 * removals.DELETE_SLICE, {"key": "a"}, 2),
    ]
    assert state(stream)[stream.stream_id].messages == 100


@pytest.mark.parametrize(
    ("finals", "said"),
    [([], ""), ([1], " What it reached of removal 1"), ([1, 2], " What it reached of removals 1, 2")],
)
def test_an_event_of_a_purge_says_what_it_made_final(stream: Stream, finals: list[int], said: str) -> None:
    notes_record([("1-1", note(stream, messages=3, bytes=15, after={"finals": finals} if finals else {}))])
    summary = Event.objects.get(kind="stream.purged").summary
    assert summary == f"3 messages of {stream.name} were purged." + (
        said and f"{said} can no longer be undone."
    )
