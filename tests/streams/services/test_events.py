"""Events: a chain that only grows, and what shows that somebody changed it."""

import importlib
import io
import json
import threading
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import F

from streams import store
from streams.access import SYSTEM
from streams.log import anchors
from streams.models import Event, EventHead, Workspace
from streams.selectors import events_prove
from streams.services.events import event_of, event_record, events_append
from streams.services.workspaces import workspace_create, workspace_delete

pytestmark = pytest.mark.django_db(transaction=True)
GUARD = importlib.import_module("streams.migrations.0005_events_append_only")


def record(number: int) -> None:
    event_record(
        None, kind="test", actor=SYSTEM, after={"n": number, "wait": 30.0}, summary=f"Test {number}."
    )


def unguarded() -> None:
    """What somebody can do who owns the database; the guard is set again when the tables are emptied."""
    with connection.cursor() as cursor:
        for statement in GUARD.LIFT[connection.vendor]:
            cursor.execute(statement)


def verified(**options: str) -> str:
    out = io.StringIO()
    call_command("okmq_verify_events", stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


@pytest.fixture
def five() -> None:
    for number in range(1, 6):
        record(number)


def test_an_untouched_chain_holds(five: None) -> None:
    proof = events_prove()
    assert (proof.events, proof.last, proof.anchors, proof.faults) == (5, 5, 5, [])


def altered() -> None:
    Event.objects.filter(id=3).update(actor="nobody")


def altered_and_hashed_again() -> None:
    event = Event.objects.get(id=3)
    event.actor = "nobody"
    Event.objects.filter(id=3).update(actor="nobody", hash=event.digest())


def removed() -> None:
    Event.objects.filter(id=3).delete()


def inserted() -> None:
    Event.objects.filter(id__gt=3).update(id=F("id") + 100)
    Event.objects.filter(id__gt=3).update(id=F("id") - 99)
    event = Event.objects.get(id=3)
    event.id, event.previous = 4, event.hash
    event.hash = event.digest()
    event.save(force_insert=True)


def reordered() -> None:
    for old, new in ((3, 99), (4, 3), (99, 4)):
        Event.objects.filter(id=old).update(id=new)


@pytest.mark.parametrize(
    ("tamper", "first"),
    [(altered, 3), (altered_and_hashed_again, 3), (removed, 4), (inserted, 4), (reordered, 3)],
)
def test_the_first_broken_event_is_named(five: None, tamper: Callable[[], None], first: int) -> None:
    unguarded()
    tamper()
    with pytest.raises(CommandError, match=f"first at event {first}") as refused:
        verified()
    assert refused.value.returncode == 1


def test_a_tail_cut_off_with_its_head_is_known_to_the_store(five: None) -> None:
    unguarded()
    Event.objects.filter(id__gt=3).delete()
    EventHead.objects.update(last=3, hash=Event.objects.get(id=3).hash)
    with pytest.raises(CommandError, match="first at event 4"):
        verified()


def test_a_chain_written_anew_is_known_by_what_was_kept_elsewhere(five: None) -> None:
    kept = verified().split()[-1]
    unguarded()
    Event.objects.all().delete()
    EventHead.objects.all().delete()
    for number in range(1, 6):
        record(-number)
    assert verified(), "it holds in itself, and a new chain has anchors of its own"
    with pytest.raises(CommandError, match="first at event 5"):
        verified(expect=kept)


def test_the_proof_of_today_is_found_again_later(five: None) -> None:
    kept = verified().split()[-1]
    record(6)
    assert verified(expect=kept).split()[-1].startswith("6:")


def test_a_backup_brought_back_is_taken_as_it_stands_when_said_so(five: None) -> None:
    head = EventHead.objects.get()
    store.log().run(anchors.put(head.chain, event_id=9, digest="0" * 64))
    with pytest.raises(CommandError, match="first at event 9"):
        verified()
    assert verified(anchor=True)  # type: ignore[arg-type]
    assert Event.objects.get(id=6).kind == "events.anchored"


@pytest.mark.parametrize(
    "change",
    [
        lambda: Event.objects.filter(id=3).update(actor="nobody"),
        lambda: Event.objects.get(id=3).delete(),
        lambda: Event.objects.all().delete(),
        lambda: Event.objects.create(id=2, time=Event.objects.get(id=3).time, hash="x"),
    ],
)
def test_the_database_refuses_to_change_what_is_written(five: None, change: Callable[[], None]) -> None:
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        change()
    assert events_prove().faults == []


def test_a_deleted_workspace_leaves_its_events(unique: str) -> None:
    workspace = workspace_create(name=unique, actor=SYSTEM)
    workspace_delete(workspace, actor=SYSTEM)
    kinds = Event.objects.filter(workspace=unique).values_list("kind", flat=True)
    assert list(kinds) == ["workspace.created"]
    again = Workspace.objects.create(name=unique)
    assert not Event.objects.filter(workspace_id=again.pk).exists()


def test_writers_at_once_make_one_chain() -> None:
    def write() -> None:
        for number in range(20):
            record(number)
        connection.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proof = events_prove()
    assert (proof.events, proof.faults) == (80, [])


def test_what_is_rolled_back_leaves_no_gap() -> None:
    record(1)
    with transaction.atomic():
        record(2)
        transaction.set_rollback(True)
    record(3)
    assert list(Event.objects.order_by("id").values_list("id", "summary")) == [(1, "Test 1."), (2, "Test 3.")]
    assert events_prove().faults == []


def test_the_export_carries_everything_that_is_hashed(five: None) -> None:
    events_append(
        [event_of(None, kind="test", actor=SYSTEM, summary=f"Number {number}.") for number in range(1500)]
    )
    out = io.StringIO()
    call_command("okmq_export_events", after=3, stdout=out)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row["id"] for row in rows] == list(range(4, 1506))
    assert rows[0]["previous"] == Event.objects.get(id=3).hash
    assert rows[0]["after"] == {"n": 4, "wait": 30.0}
