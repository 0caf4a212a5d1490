"""The worker's walk over the chain of events: to the end, on with what comes, and again."""

import importlib
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from streams.access import SYSTEM
from streams.models import ChainCheck, Event
from streams.services import chain_checks
from streams.services.chain_checks import chain_check_step
from streams.services.events import event_record

pytestmark = pytest.mark.django_db(transaction=True)
GUARD = importlib.import_module("streams.migrations.0005_events_append_only")


def record(count: int) -> None:
    for _ in range(count):
        event_record(None, kind="test", actor=SYSTEM, summary="Test.")


def alter(event_id: int, *, actor: str) -> None:
    with connection.cursor() as cursor:
        for statement in GUARD.LIFT[connection.vendor]:
            cursor.execute(statement)
    Event.objects.filter(id=event_id).update(actor=actor)


def begin_anew() -> None:
    """As if an hour had gone by; the step after it starts at the beginning."""
    ChainCheck.objects.update(began_at=timezone.now() - timedelta(hours=2))
    chain_check_step()


def test_an_empty_chain_is_no_fault() -> None:
    assert (chain_check_step().whole_to, ChainCheck.objects.get().fault) == (0, "")


def test_a_walk_goes_slice_by_slice_and_on_with_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_checks, "SLICE", 2)
    record(3)
    assert (chain_check_step().at, ChainCheck.objects.get().whole_to) == (2, 0)
    assert chain_check_step().whole_to == 3
    record(1)
    assert chain_check_step().whole_to == 4


def test_what_was_changed_behind_it_is_found_within_the_hour_and_stays_told() -> None:
    record(3)
    chain_check_step()
    alter(2, actor="nobody")
    assert chain_check_step().fault == ""
    begin_anew()
    for _ in range(2):
        assert chain_check_step().fault.startswith("Event 2: Its content is not what was hashed")
    alter(2, actor="system")
    assert chain_check_step().fault == ""


def test_a_tail_that_was_cut_off_is_missed() -> None:
    record(3)
    alter(3, actor="system")
    Event.objects.filter(id=3).delete()
    assert "should end at event 3, and ends at 2" in chain_check_step().fault
