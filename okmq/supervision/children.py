"""One child process of the supervisor: its start, its log, its deaths and when it may live again.

Children are started from the main thread only: the kernel's "tell me when my parent is gone" follows the thread that
forked, not the process.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streams.upkeep.processes import ProcessStatus, State

FIRST_DELAY_S = 0.2
LONGEST_DELAY_S = 5.0
STEADY_AFTER_S = 30.0

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to run. ``environ`` is complete; ``inherited`` are file descriptors that the child keeps."""

    name: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    log: Path
    inherited: tuple[int, ...] = ()
    orphan_signal: signal.Signals = signal.SIGKILL
    terminal: bool = False


@dataclass(kw_only=True)
class Child:
    """A plan that is carried out again and again; `restart_at` says when, in seconds of the monotonic clock."""

    plan: Plan
    process: subprocess.Popen[bytes] | None = None
    state: State = "stopped"
    restarts: int = 0
    since: float = field(default_factory=time.time)
    note: str = ""
    deaths: int = 0
    young_deaths: int = 0
    restart_at: float | None = None
    _started_at: float = field(default_factory=time.monotonic)

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    @property
    def status(self) -> ProcessStatus:
        return ProcessStatus(
            name=self.name,
            pid=self.pid,
            state=self.state,
            restarts=self.restarts,
            since=self.since,
            note=self.note,
        )

    def start(self) -> None:
        """Fork and run the plan.

        Raises:
            OSError: the log cannot be opened or the command cannot be run.
        """
        self.restarts += self.deaths > 0
        self.restart_at = None
        self._started_at = time.monotonic()
        log = os.open(self.plan.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self.process = subprocess.Popen(
                self.plan.command,
                stdin=subprocess.DEVNULL,
                stdout=None if self.plan.terminal else log,
                stderr=log,
                env=dict(self.plan.environ),
                pass_fds=self.plan.inherited,
                start_new_session=True,  # Ctrl-C is the supervisor's; it ends the others in their order
                preexec_fn=_tied_to_parent(self.plan.orphan_signal),  # noqa: PLW1509 - one thread
            )
        finally:
            os.close(log)
        self._enter("starting", note=self.note)

    def works(self) -> None:
        """It was seen to work; it runs since it was started."""
        self.state = "running"

    def lives(self) -> bool:
        """Whether it runs now."""
        return self.process is not None and self.process.poll() is None

    def due(self) -> bool:
        """Whether it is dead and its time to live again has come."""
        return self.restart_at is not None and time.monotonic() >= self.restart_at

    def ended(self) -> bool:
        """Whether it died since it was last asked; a death plans the next start, later each time it dies young."""
        if self.process is None or self.process.poll() is None:
            return False
        note = how_it_ended(self.process.returncode)
        self.process = None
        self.died(note=note)
        return True

    def died(self, *, note: str) -> None:
        """Plan the next start after a death, or after a start that failed."""
        steady = time.monotonic() - self._started_at >= STEADY_AFTER_S
        self.young_deaths = 0 if steady else self.young_deaths + 1
        self.deaths += 1
        self.restart_at = time.monotonic() + self.delay_s
        self._enter("restarting", note=note)

    @property
    def delay_s(self) -> float:
        """How long it stays dead this time."""
        return float(min(FIRST_DELAY_S * 2 ** min(max(0, self.young_deaths - 1), 10), LONGEST_DELAY_S))

    def terminate(self) -> None:
        """Ask it to end and not to come back; what it started is its own to end first."""
        self.restart_at = None
        if self.process is not None:
            self.process.terminate()

    def kill(self) -> None:
        """End it and its process group without asking."""
        if self.process is None or self.process.poll() is not None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # it ended in between

    def gone(self, *, within_s: float) -> int:
        """Wait for its end; its exit code, or -9 for one that the kernel does not let go of in time."""
        code = -int(signal.SIGKILL)
        if self.process is not None:
            try:
                code = self.process.wait(timeout=within_s)
            except subprocess.TimeoutExpired:
                self.note = "does not end"
            self.process = None
        self._enter("stopped", note=self.note)
        return code

    def _enter(self, state: State, *, note: str) -> None:
        self.state = state
        self.note = note
        self.since = time.time()

    def last_words(self, *, lines: int = 12) -> str:
        """The end of its log, for a person who has to know why it does not start."""
        return last_lines(self.plan.log, lines=lines)


def how_it_ended(code: int) -> str:
    """An exit code of ``subprocess`` in words."""
    return f"exited with signal {-code}" if code < 0 else f"exited with code {code}"


def last_lines(path: Path, *, lines: int) -> str:
    """The last lines of a file, read from its last 32 KiB; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 32_768))
            tail = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(tail.rstrip().splitlines()[-lines:])


def adopt_grandchildren() -> None:
    """Become the parent of what our children leave behind (Spark's JVM), so that it can be ended and reaped."""
    if _libc is not None:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _tied_to_parent(signum: signal.Signals) -> Callable[[], None]:
    """What the child runs before its command: ask the kernel for a signal when the supervisor is gone."""
    parent = os.getpid()

    def tie() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
            if os.getppid() != parent:  # it went before the kernel was asked
                os._exit(1)

    return tie
