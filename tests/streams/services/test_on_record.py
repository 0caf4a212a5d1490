"""What a service does to messages has a sign in the log before it is done, and until its event is written."""

import threading
from collections.abc import Callable

import pytest

from streams import store
from streams.access import Actor
from streams.errors import Refusal
from streams.log import groups as log_groups
from streams.log import keys, notes
from streams.log.append import append
from streams.models import Event, Group, Stream
from streams.services import dead_letters, deliveries, groups, messages, removals, undo
from streams.services.on_record import on_record
from tests.streams.log.messages import message

ANN = Actor("ann", "10.0.0.7")

READING = ("CLIENT ", "FCALL_RO ", "GET ", "HGET", "HMGET ", "TIME", "XRANGE ", "ZRANGE")


pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def group(stream: Stream) -> Group:
    """Of a stream of five messages, of which the second is a dead letter."""
    made, _ = groups.group_create(stream, name="billing", settings={"start_from": "earliest"}, actor=ANN)
    log = store.log()
    log.run(append(stream.stream_id, [message(n) for n in range(5)]))
    log.run(log_groups.fetch(stream.stream_id, "billing", limit=2))
    log.run(log_groups.term(stream.stream_id, "billing", "offsets", [2], reason="no"))
    return made


DEEDS: dict[str, Callable[[Group], object]] = {
    "message.deleted": lambda group: messages.message_delete(group.stream, offset=3, actor=ANN),
    "stream.purged": lambda group: messages.stream_purge(group.stream, actor=ANN),
    "stream.removal_undone": lambda group: undo.removal_undo(group.stream, 1, actor=ANN),
    "stream.removal_ended": lambda group: undo.removal_end(group.stream, 1, actor=ANN),
    "group.acknowledged": lambda group: deliveries.deliveries_settle(group, "ack", offsets=[1], actor=ANN),
    "group.sought": lambda group: groups.group_seek(group, next_offset=4, actor=ANN),
    "group.paused": lambda group: groups.group_pause(group, until=None, actor=ANN),
    "group.resumed": lambda group: groups.group_resume(group, actor=ANN),
    "group.dead_letters_replayed": lambda group: dead_letters.dead_letters_replay(
        group, offsets=None, actor=ANN
    ),
    "group.dead_letters_deleted": lambda group: dead_letters.dead_letters_delete(
        group, offset=None, actor=ANN
    ),
}


@pytest.mark.parametrize("kind", DEEDS)
def test_a_sign_of_it_is_there_from_before_it_is_done_until_its_event_is(group: Group, kind: str) -> None:
    if "removal" in kind:
        messages.message_delete(group.stream, offset=5, actor=ANN)
    said: list[str] = []
    with store.log().client.monitor() as monitor:
        heard = threading.Thread(target=lambda: said.extend(_until_over(monitor)))
        heard.start()
        DEEDS[kind](group)
        store.log().client.echo("over")
        heard.join(10)
    changes = [each for each in said if not each.upper().startswith(READING)]
    (begun,) = (
        at for at, each in enumerate(changes) if each.startswith("FCALL") and f" {keys.BEGUN} " in each
    )
    (ended,) = (at for at, each in enumerate(changes) if each.startswith(f"ZREM {keys.BEGUN}"))
    (recorded,) = (at for at, each in enumerate(changes) if "okmq:anchors" in each)
    done = max(at for at, each in enumerate(changes[:recorded]) if f"{{{group.stream.stream_id}}}" in each)
    assert begun < done < recorded < ended
    assert kind in changes[begun]
    assert Event.objects.filter(kind=kind, stream=group.stream.name).count() == 1
    assert signs(group.stream) == []


def signs(stream: Stream) -> list[bytes]:
    """Of what was begun with a stream; others use this store, too."""
    found = store.log().client.zrange(keys.BEGUN, 0, -1)
    return [each for each in found if stream.stream_id.encode() in each]


def silent_for_long(stream: Stream) -> None:
    """As if so much time had passed since the last sign of life of whoever does something with a stream."""
    log = store.log()
    (begun,) = signs(stream)
    signed_ms = float(log.client.zscore(keys.BEGUN, begun))
    log.client.zadd(keys.BEGUN, {begun: signed_ms - notes.GIVEN_UP_AFTER_MS - 1})


def notes_of(stream: Stream) -> list[tuple[str, notes.Note]]:
    log = store.log()
    log.run(notes.give_up())
    return [(note_id, note) for note_id, note in log.run(notes.take()) if note.stream_id == stream.stream_id]


def _until_over(monitor: object) -> list[str]:
    said: list[str] = []
    for command in monitor.listen():  # type: ignore[attr-defined]
        if command["command"].upper().startswith("ECHO"):
            return said
        if command["client_type"] != "lua":
            said.append(command["command"])
    return said


def test_what_was_refused_leaves_nothing(stream: Stream) -> None:
    with pytest.raises(Refusal, match="no such removal"):
        undo.removal_undo(stream, 9, actor=ANN)
    assert signs(stream) == []
    assert not Event.objects.filter(kind="stream.removal_undone").exists()


@pytest.mark.parametrize("kind", ["stream.removal_undone", "group.sought"])
def test_where_the_process_ends_before_its_event_the_worker_writes_one(stream: Stream, kind: str) -> None:
    def ends() -> None:
        with on_record(stream, kind=kind, actor=ANN, asked={"removal": 4}, group="billing"):
            raise SystemExit

    with pytest.raises(SystemExit):
        ends()
    assert notes_of(stream) == [], "it may go on"
    silent_for_long(stream)
    removals.notes_record(notes_of(stream))
    event = Event.objects.get(kind=kind, stream=stream.name)
    assert (event.actor, event.address, event.group) == ("ann", "10.0.0.7", "billing")
    assert event.after is not None
    assert (event.after["removal"], event.after["outcome"]) == (4, "unknown")
    assert event.summary.endswith("whether it happened is unknown.")


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("stream.purged", {"messages", "bytes"}),
        ("message.deleted", {"count"}),
        ("stream.removal_undone", {"messages", "bytes"}),
        ("group.acknowledged", {"count"}),
        ("group.dead_letters_replayed", {"count"}),
    ],
)
def test_how_much_was_done_is_not_said_where_it_is_not_known(
    group: Group, kind: str, counts: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends between what it does and the event of it: the store has done it all the same."""
    if kind == "stream.removal_undone":
        messages.message_delete(group.stream, offset=5, actor=ANN)

    def ends(*args: object, **named: object) -> None:
        raise SystemExit

    for module in (messages, undo, deliveries, dead_letters):
        monkeypatch.setattr(module, "event_record", ends)
    with pytest.raises(SystemExit):
        DEEDS[kind](group)
    silent_for_long(group.stream)
    removals.notes_record(notes_of(group.stream))
    event = Event.objects.get(kind=kind, after__outcome="unknown", stream=group.stream.name)
    assert event.after is not None
    assert {name: event.after[name] for name in notes.COUNTS if name in event.after} == dict.fromkeys(counts)
    assert event.summary.endswith("whether it happened is unknown.")


def test_who_goes_on_for_long_shows_it(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "SIGN_EVERY_S", 0.0)
    with on_record(stream, kind="stream.purged", actor=ANN, asked={}) as deed:
        silent_for_long(stream)
        deed.run(append(stream.stream_id, [message(1)]))
        assert notes_of(stream) == []
        assert len(signs(stream)) == 1
    assert signs(stream) == []
