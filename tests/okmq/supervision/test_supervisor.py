"""Children that live, die and come back; small commands stand for the product's."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from okmq.supervision import children, proctable
from okmq.supervision.children import Child, Plan
from okmq.supervision.supervisor import StartError, Supervisor
from streams.upkeep import processes
from tests.waiting import until

LIVES = "import signal; signal.pause()"
DIES = "import sys; sys.exit('it has nothing to live for')"
DEAF = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(data_dir=tmp_path, status_file=tmp_path / "run" / "processes.json")
    yield supervisor
    supervisor.stop()
    supervisor.close()


def plan(tmp_path: Path, *, name: str = "child", code: str = LIVES) -> Plan:
    return Plan(
        name=name,
        command=(sys.executable, "-c", code),
        environ={**os.environ, proctable.MARK: str(tmp_path)},
        log=tmp_path / f"{name}.log",
    )


def running_pid(child: Child) -> int:
    assert child.pid is not None
    return child.pid


def told(child: Child, word: str) -> bool:
    return word in child.last_words()


def test_a_child_that_dies_is_started_again_and_the_file_says_so(
    supervisor: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = supervisor.start(plan(tmp_path), works=lambda: True)
    supervisor.tick(timeout_s=0)
    os.kill(running_pid(child), signal.SIGKILL)
    supervisor.wait_until(lambda: child.restarts == 1 and child.state == "running")
    (said,) = processes.read(supervisor.status_file)
    assert (said.pid, said.restarts, said.note) == (child.pid, 1, "exited with signal 9")
    assert said.sentence(now=said.since + 12) == "exited with signal 9, restarted 12 s ago"
    assert "child exited with signal 9; it is started again in 0.2 s" in capsys.readouterr().out


def test_a_child_that_keeps_dying_waits_longer_each_time_up_to_five_seconds(tmp_path: Path) -> None:
    child = Child(plan=plan(tmp_path))
    delays = []
    for _ in range(8):
        child.died(note="")
        delays.append(child.delay_s)
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


def test_a_child_that_lived_for_thirty_seconds_is_back_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "STEADY_AFTER_S", 0.05)
    child = Child(plan=plan(tmp_path, code=DIES))
    child.young_deaths = 6
    child.start()
    assert child.process is not None
    child.process.wait()
    until(lambda: time.monotonic() - child._started_at > 0.05)
    assert child.ended()
    assert child.delay_s == children.FIRST_DELAY_S


def test_a_child_that_never_starts_ends_the_start_with_its_last_words(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.start(plan(tmp_path, code=DIES))
    with pytest.raises(StartError, match="exited with code 1") as refused:
        supervisor.wait_until(lambda: False)
    assert "it has nothing to live for" in str(refused.value)


def test_a_child_that_is_not_needed_does_not_end_the_start(supervisor: Supervisor, tmp_path: Path) -> None:
    child = supervisor.start(plan(tmp_path, code=DIES), needed=False)
    supervisor.wait_until(lambda: child.deaths == 3)


def test_a_command_that_cannot_be_run_is_a_death_like_any_other(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    missing = Plan(name="gone", command=("/nowhere/at/all",), environ={}, log=tmp_path / "gone.log")
    child = supervisor.start(missing, needed=False)
    assert child.state == "restarting"
    assert "cannot be started" in child.note


def test_a_child_that_ignores_the_wish_is_killed_in_time(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("okmq.supervision.supervisor.FIRST_WAVE_S", 0.3)
    child = supervisor.start(plan(tmp_path, code=DEAF))
    until(partial(told, child, "deaf"))
    supervisor.stop()
    assert not proctable.marked(tmp_path)
    assert processes.read(supervisor.status_file)[0].state == "stopped"


def test_the_last_child_outlives_the_others(supervisor: Supervisor, tmp_path: Path) -> None:
    """The store ends when nobody can want to write to it any more."""
    story = tmp_path / "story"
    tell = (
        "import pathlib, signal, sys\n"
        f"story = pathlib.Path({str(story)!r}).open('a')\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print(sys.argv[1], file=story), sys.exit(0)))\n"
        "print('listening', flush=True)\n"
        "signal.pause()\n"
    )
    for name in ("store", "web"):
        teller = plan(tmp_path, name=name, code=tell)
        spoken = Plan(name=name, command=(*teller.command, name), environ=teller.environ, log=teller.log)
        child = supervisor.start(spoken, last=name == "store")
        until(partial(told, child, "listening"))
    supervisor.stop()
    assert story.read_text().split() == ["web", "store"]


def test_what_a_dead_child_had_started_is_ended_too(supervisor: Supervisor, tmp_path: Path) -> None:
    """As Spark's JVM and Python workers: another process group of the same session."""
    code = (
        "import subprocess, sys, signal\n"
        "subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'], process_group=0)\n"
        "signal.pause()\n"
    )
    child = supervisor.start(plan(tmp_path, code=code), works=lambda: True)
    until(lambda: len(proctable.marked(tmp_path)) == 2)
    first = set(proctable.marked(tmp_path))
    os.kill(running_pid(child), signal.SIGKILL)
    supervisor.wait_until(lambda: child.restarts == 1)
    until(lambda: not first & set(proctable.marked(tmp_path)))


def test_children_end_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from okmq.supervision.children import Child, Plan\n"
        f"log = Path({str(tmp_path)!r}, 'log')\n"
        f"environ = dict(os.environ, {proctable.MARK}={str(tmp_path)!r})\n"
        f"child = Child(plan=Plan(name='c', command=(sys.executable, '-c', {LIVES!r}), environ=environ, log=log))\n"
        "child.start()\n"
        "print(child.pid, flush=True)\n"
        "child.process.wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        until(lambda: pid in proctable.marked(tmp_path))
        parent.kill()
    until(lambda: not proctable.marked(tmp_path), what="the child ended with its parent")


def test_an_error_in_a_log_is_shown_and_the_rest_is_not(
    supervisor: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import json, signal\n"
        "print(json.dumps({'level': 'info', 'message': 'all is well'}))\n"
        "print(json.dumps({'level': 'error', 'message': 'the disk is full'}), flush=True)\n"
        "signal.pause()\n"
    )
    supervisor.start(plan(tmp_path, code=code))
    shown: list[str] = []

    def seen() -> bool:
        shown.append(capsys.readouterr().out)
        return "child: the disk is full" in "".join(shown)

    supervisor.wait_until(seen)
    assert "all is well" not in "".join(shown)
