"""``okmq_prove --quick`` to its end, as anybody runs it: nothing is found, and nothing is left out."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from okmq import env
from okmq.prove import found, rewrites
from okmq.prove.checking import COUNTS
from okmq.prove.found import ENOUGH_IN_FLIGHT, Proof
from okmq.prove.jumps import JUMPS_S
from okmq.prove.proving import PARTS, QUICK

WITHIN_MIN = 17
"""By itself it takes under 8; beside the rest of the suite it has to share two cores."""

pytestmark = [pytest.mark.running, pytest.mark.timeout(60 * WITHIN_MIN + 300)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    """The exit code, what it said, and the page."""
    place = tmp_path_factory.mktemp("quick")
    page = place / "page.md"
    command = ["manage.py", "okmq_prove", "--quick", "--within", str(WITHIN_MIN), "--report", str(page)]
    environ = {**os.environ, "OKMQ_DATA_DIR": str(place / "own"), "TMPDIR": str(place)}
    running = subprocess.run(
        [sys.executable, *command],
        cwd=env.PROJECT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return running.returncode, running.stdout, page


@pytest.fixture(scope="module")
def proof(ran: tuple[int, str, Path]) -> Proof:
    return found.read(ran[2].with_suffix(".json"))


def test_the_quick_proof_finds_nothing(ran: tuple[int, str, Path], proof: Proof) -> None:
    code, said, page = ran
    assert (code, proof.sentences(), proof.missing()) == (0, [], []), said
    assert said.rstrip().endswith("Every promise held in what this run has; it has no spark, steady.")
    assert set(proof.parts) == set(PARTS) - {"spark", "steady"}
    assert all(f" 0 {name}" in page.read_text() for name in COUNTS)
    kills, cuts = proof.parts["kills"], proof.parts["cuts"]
    assert len(kills.struck) == len(QUICK.faults())
    assert sum(each.name.endswith(rewrites.WHILE) for each in kills.struck) == QUICK.rewriting
    assert [cut.faults for cut in cuts.cuts] == [()] * QUICK.cuts
    assert cuts.cuts[0].of > 0
    for part in proof.parts.values():
        assert (part.surprises, part.late) == (0, 0)
        assert part.in_flight >= ENOUGH_IN_FLIGHT


def test_what_was_flushed_is_there_after_the_power_went(proof: Proof) -> None:
    power = proof.parts["power"]
    assert (power.sentences, len(power.struck)) == ([], 2 * QUICK.power)
    assert any(each.name.endswith(rewrites.WHILE) for each in power.struck)
    window = [each.note for each in power.struck if "every second" in each.name]
    assert all(" messages lost, acknowledged as `window`" in note for note in window)
    assert power.lost_in_window > 0


def test_lost_answers_double_nothing_and_every_call_ends(proof: Proof) -> None:
    line = proof.parts["line"]
    (struck,) = line.struck
    assert line.sentences == []
    told = re.findall(r"([\d,]+) (answers were lost|connections reset|answers late|bytes)", struck.note)
    lost, reset, late, alone = (int(number.replace(",", "")) for number, _ in told)
    assert lost > 20, struck.note
    assert reset > 10, struck.note
    assert late > 0 < alone, struck.note


def test_a_slow_disk_loses_nothing_and_every_call_ends(proof: Proof) -> None:
    disk = proof.parts["disk"]
    assert disk.sentences == []
    assert [each.name.split()[-3] for each in disk.struck] == ["20", "500", "1500"]
    assert all(" 0 publishes" not in each.note for each in disk.struck), disk.struck


def test_a_full_disk_refuses_quickly_with_the_reason_and_heals(proof: Proof) -> None:
    (full,) = proof.parts["full"].struck
    assert proof.parts["full"].sentences == []
    assert not full.note.startswith("0 publishes"), full.note


def test_a_full_store_refuses_quickly_and_lets_go_of_what_it_has(proof: Proof) -> None:
    full = [each for each in proof.parts["kills"].struck if "maxmemory" in each.name]
    assert len(full) == QUICK.commands
    assert all(each.note.startswith("refused within ") and each.wrong == () for each in full)


def test_a_clock_that_is_set_brings_nothing_early_and_doubles_nothing(proof: Proof) -> None:
    assert proof.parts["clock"].sentences == []
    assert len(proof.parts["clock"].struck) == len(JUMPS_S) * QUICK.jumps


def test_a_promoted_replica_is_used_at_once_and_everybody_is_told(proof: Proof) -> None:
    assert proof.parts["replica"].sentences == []
    assert len(proof.parts["replica"].struck) == QUICK.promotions


def test_a_crowd_is_served_and_leaves_nothing_open(proof: Proof) -> None:
    assert proof.parts["crowd"].sentences == []
    names = Counter(each.name.split()[0] for each in proof.parts["crowd"].struck)
    assert names == {"300": 1, "500": 1, "a": 1}
