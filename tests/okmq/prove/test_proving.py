"""The whole way of a proof on a real product: kills under load find nothing, and what is taken away is found."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from okmq import env
from okmq.prove.faults import Struck, Target
from okmq.prove.found import found_by
from okmq.prove.kills import under_faults
from okmq.prove.proving import FULL, PARTS, QUICK, Plan, parts
from okmq.supervision import proctable
from streams.log import keys
from tests.waiting import until

ROOT = Path(env.PROJECT)
SMALL = Plan(web=1, valkey=1, worker=1, rewriting=1, stops=1, stop_s=2.0, commands=1, cuts=2)


def test_the_plans_hold_every_fault_as_often_as_they_say() -> None:
    for plan in (QUICK, FULL, SMALL):
        kills = plan.web + plan.valkey + plan.worker + plan.rewriting + plan.stops
        assert len(plan.faults()) == kills + 4 * plan.commands


def test_every_part_has_its_name_and_its_place() -> None:
    assert {part.name for part in parts(FULL, say=print)} == set(PARTS)
    assert {part.name for part in parts(QUICK, say=print)} == set(PARTS) - {"spark", "steady"}
    assert [part.name for part in parts(SMALL, say=print)] == ["kills", "cuts"]


async def taken_away(target: Target) -> Struck:
    """A message that was acknowledged goes, behind the product's back."""
    began = monotonic()
    registered = await target.store("HGETALL", keys.REGISTRY)
    assert isinstance(registered, list)
    ids = {
        told.split(b'"name": "')[1].split(b'"')[0]: id_
        for id_, told in zip(*[iter(registered)] * 2, strict=True)
    }
    log = keys.log(ids[b"one"].decode())
    found = await target.store("XRANGE", log, "-", "+", "COUNT", 1)
    assert isinstance(found, list)
    assert await target.store("XDEL", log, found[0][0]) == 1
    return Struck(name="XDEL", began=began, back=monotonic())


@pytest.mark.running
@pytest.mark.timeout(600)
def test_what_is_taken_away_behind_its_back_is_found(tmp_path: Path) -> None:
    found = found_by([under_faults(tmp_path, faults=[taken_away])], told="", took_s=0.0)
    assert found.counts["lost"] >= 1
    assert found.counts["torn batches"] + found.counts["miscounted"] >= 1
    assert any("is not there" in sentence for sentence in found.sentences)


@pytest.mark.running
@pytest.mark.timeout(400)
def test_ctrl_c_ends_a_proof_and_leaves_what_it_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    options = ["--quick", "--only", "clock", "--only", "crowd", "--report", str(page)]
    running = subprocess.Popen(
        [sys.executable, "manage.py", "okmq_prove", *options],
        cwd=ROOT,
        env={
            **os.environ,
            "OKMQ_DATA_DIR": str(tmp_path / "own"),
            "TMPDIR": str(tmp_path),
            "PYTHONUNBUFFERED": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with running:
        assert running.stdout is not None
        until(lambda: "come at once" in (running.stdout.readline() if running.stdout else ""), within_s=100)
        (folder,) = tmp_path.glob("okmq-prove-*")
        until(lambda: proctable.marked(folder / "crowd-1" / "data"))
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=120)
    assert (running.returncode, err.strip()) == (
        130,
        "CommandError: Stopped; what it found of clock is left.",
    )
    assert "The clock of a store is set" in page.read_text()
    assert not folder.exists()
    assert not proctable.marked(folder / "crowd-1" / "data")
