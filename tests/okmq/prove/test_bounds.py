"""What a recovery may take, and how long the others may be silent: each of its kind, on what the machine left."""

import os
import subprocess
import sys

import pytest

from okmq.prove.apart import Apart
from okmq.prove.faults import Struck, recovery_allowed_s
from okmq.prove.found import OTHERS_WITHIN_S, found_by
from okmq.prove.load import Load
from okmq.prove.machine import Machine, Moment, Taken, look, ours_s, slowed
from tests.waiting import until


def found(struck: Struck, *silences: tuple[float, float]) -> list[str]:
    apart = Apart(load=Load(1, token=""), struck=[struck])
    apart.load.scene.silences = list(silences)
    return found_by([apart], told="", took_s=0.0).sentences


def test_a_store_has_five_seconds_for_each_million_messages_that_it_held_then() -> None:
    assert [recovery_allowed_s(messages) for messages in (0, 1_000_000, 3_000_000)] == [5.0, 5.0, 15.0]
    killed = Struck(name="SIGKILL of valkey", began=0, back=9, recovery_s=7.0, allowed_s=5.0, messages=10)
    assert found(killed) == [
        "SIGKILL of valkey: back after 7.0 s, allowed are 5.0 s (10 messages, 1.0 times as slow for others)"
    ]


def test_what_others_took_of_the_machine_is_added_and_nothing_else() -> None:
    killed = Struck(name="SIGKILL of valkey", began=0, back=9, recovery_s=7.0, allowed_s=5.0)
    for taken in (Taken(slowed=1.5), Taken(stalled_s=2.1)):
        slow = Struck(name="SIGKILL of valkey", began=0, back=9, recovery_s=7.0, allowed_s=5.0, taken=taken)
        assert (found(slow), len(found(killed))) == ([], 1)


def test_a_fault_that_starts_nothing_has_the_next_call() -> None:
    flush = Struck(name="SCRIPT FLUSH", began=0, back=9, recovery_s=1.2, allowed_s=1.0, messages=3_000_000)
    assert len(found(flush)) == 1


@pytest.mark.parametrize("name", ["SIGKILL of web-1", "SIGKILL of worker", "SIGSTOP of web for 10 s"])
def test_the_others_go_on_while_one_is_down(name: str) -> None:
    struck = Struck(name=name, began=10.0, back=70.0)
    assert found(struck, (11.0, 11.0 + OTHERS_WITHIN_S)) == []
    assert found(struck, (12.0, 69.0), (5.0, 14.0), (69.5, 90.0)) == [
        f"{name}: the others stored nothing for 57.0 s, allowed are 5.0 s"
    ]


def test_nothing_is_stored_while_the_store_itself_is_away() -> None:
    assert found(Struck(name="SIGKILL of valkey", began=10.0, back=70.0), (11.0, 69.0)) == []


def test_what_others_work_slows_us_and_what_we_work_does_not() -> None:
    cores = os.cpu_count() or 1
    before, after = Moment(at=10.0, others_s=3.0), Moment(at=20.0, others_s=3.0 + 5.0 * cores)
    assert (slowed(before, after), slowed(before, before)) == (2.0, 1.0)
    began, burn = ours_s(), "import time\nwhile time.process_time() < 1: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert ours_s() - began > 0.9
    assert look().others_s > 0


def test_a_beat_that_is_missed_is_a_stall() -> None:
    machine = Machine(missed=[(1.0, 2.0), (5.0, 8.0)])
    assert machine.stalled_s(1.5, 6.0) == 1.5
    with machine.watched():
        began = look()
        until(lambda: look().at > began.at + 0.3)
        assert machine.taken(began).slowed >= 1.0
