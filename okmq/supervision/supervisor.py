"""Keeps a set of children alive until it is asked to end, then ends them in order. It knows no product.

One thread, one loop: it sleeps until a signal (a child died, somebody wants to stop) or the next thing that is due.
"""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from okmq.supervision import proctable
from okmq.supervision.childlogs import ChildLog
from okmq.supervision.children import Child, Plan
from streams.upkeep import processes

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# From the wish to stop: the first wave may take this long, then the store, and all is over within ten seconds.
FIRST_WAVE_S = 7.0
EVERYTHING_S = 9.0
LOGS_EVERY_S = 1.0
MOST_DEATHS_AT_START = 3


class Stopping(Exception):
    """Somebody asked the supervisor to end."""


class StartError(Exception):
    """It cannot start; the message is for a person."""


@dataclass(kw_only=True)
class Watched:
    """A child, how to see that it works, and its log.

    ``last``: it ends after the others. ``needed``: without it there is no use in going on starting.
    """

    child: Child
    works: Callable[[], bool]
    log: ChildLog
    last: bool = False
    needed: bool = True


def say(sentence: str) -> None:
    """One line on the terminal; a terminal that is gone must not end the supervisor."""
    try:
        print(sentence, flush=True)
    except OSError:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - kept for the rest of the process


@dataclass(kw_only=True)
class Supervisor:
    """The children of one data folder; what ``looks`` holds is called every second or so, and must not take long."""

    data_dir: Path
    status_file: Path
    watched: list[Watched] = field(default_factory=list)
    absent: list[processes.ProcessStatus] = field(default_factory=list)
    looks: list[Callable[[], None]] = field(default_factory=list)
    settled: bool = False
    _wake: tuple[socket.socket, socket.socket] = field(default_factory=socket.socketpair)
    _stop_asked: int = 0
    _once: int | None = None
    _logs_at: float = 0.0
    _written: list[processes.ProcessStatus] = field(default_factory=list)

    def listen_to_signals(self) -> None:
        """From here on the stop signals are noticed by `tick`, and a child's death wakes it."""
        for end in self._wake:
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake[1].fileno(), warn_on_full_buffer=False)
        for signum in STOP_SIGNALS:
            signal.signal(signum, self._note_stop)
        signal.signal(signal.SIGCHLD, lambda signum, frame: None)

    def close(self) -> None:
        """Let go of what wakes the loop; nothing may be asked of it afterwards."""
        signal.set_wakeup_fd(-1)
        for end in self._wake:
            end.close()

    def _note_stop(self, signum: int, frame: FrameType | None) -> None:
        self._stop_asked += 1

    def start(
        self,
        plan: Plan,
        *,
        works: Callable[[], bool] | None = None,
        last: bool = False,
        needed: bool = True,
    ) -> Child:
        """Start a child and keep it alive; ``works`` is asked while it starts (default: it lived for a second)."""
        child = Child(plan=plan)
        item = Watched(
            child=child,
            works=works or (lambda: time.time() - child.since >= 1.0),
            log=ChildLog(path=plan.log),
            last=last,
            needed=needed,
        )
        self.watched.append(item)
        self._begin(item)
        self._publish()
        return child

    def leave_out(self, name: str, *, state: processes.State, note: str) -> None:
        """List a process that is not started, and why."""
        self.absent.append(
            processes.ProcessStatus(
                name=name, pid=None, state=state, restarts=0, since=time.time(), note=note
            )
        )
        self._publish()

    def run_once(self, plan: Plan) -> int:
        """Run a child to its end while the others are looked after; its exit code."""
        child = Child(plan=plan)
        child.start()
        self._once = child.pid
        try:
            self.wait_until(lambda: not child.lives())
        finally:
            child.kill()
            self._once = None
        return child.gone(within_s=1.0)

    def wait_until(self, condition: Callable[[], bool], *, every_s: float = 0.05) -> None:
        """Look after the children until the condition holds.

        Raises:
            Stopping: a stop signal came first.
            StartError: a child keeps dying before `settled` was set.
        """
        while not condition():
            self.tick(timeout_s=every_s)

    def tick(self, *, timeout_s: float) -> None:
        """Sleep until something happens, at most this long, and see to it.

        Raises:
            Stopping: a stop signal came.
            StartError: a child keeps dying before `settled` was set.
        """
        self._sleep(timeout_s)
        if self._stop_asked:
            raise Stopping
        for item in self.watched:
            self._look_after(item)
        self._reap_adopted()
        if time.monotonic() >= self._logs_at:
            self._logs_at = time.monotonic() + LOGS_EVERY_S
            self._look_at_logs()
            for look in self.looks:
                look()
        self._publish()

    def run(self) -> None:
        """Look after the children until a stop signal comes."""
        self.settled = True
        try:
            while True:
                self.tick(timeout_s=self._rest_s())
        except Stopping:
            return

    def stop(self) -> None:
        """End everything: first all but the ``last``, then those, then whatever still bears our mark."""
        began = time.monotonic()
        self._stop_asked = 0
        first = [item.child for item in self.watched if not item.last]
        self._end(first, until=began + FIRST_WAVE_S)
        self._end([item.child for item in self.watched if item.last], until=began + EVERYTHING_S)
        proctable.kill(proctable.marked(self.data_dir), signum=signal.SIGKILL)
        self._reap_adopted()
        self._publish()

    def _end(self, children: list[Child], *, until: float) -> None:
        sessions = [child.pid for child in children if child.pid]
        for child in children:
            child.terminate()
        while any(child.lives() for child in children) and not self._stop_asked and time.monotonic() < until:
            self._sleep(0.1)
        self._stop_asked = 0  # asked a second time: what is left ends at once
        for child in children:
            if child.lives():
                say(f"{child.name} did not end in time and is killed.")
                child.kill()
        for session in sessions:
            proctable.kill(proctable.marked(self.data_dir, session=session), signum=signal.SIGKILL)
        for child in children:
            child.gone(within_s=1.0)

    def _look_after(self, item: Watched) -> None:
        child = item.child
        session = child.pid
        if child.ended():
            # What it had started (Spark's JVM) must not go on beside its successor.
            proctable.kill(proctable.marked(self.data_dir, session=session), signum=signal.SIGKILL)
            self._say_death(item)
        if child.due():
            self._begin(item)
        elif child.state == "starting" and item.works():
            child.works()
            if child.restarts:
                say(f"{child.name} is back (process {child.pid}).")

    def _say_death(self, item: Watched) -> None:
        child = item.child
        if item.needed and not self.settled and child.deaths >= MOST_DEATHS_AT_START:
            raise StartError(
                f"{child.name} does not start ({child.note}). The end of {child.plan.log}:\n{child.last_words()}"
            )
        say(
            f"{child.name} {child.note}; it is started again in {child.delay_s:.1f} s (see {child.plan.log})."
        )

    def _begin(self, item: Watched) -> None:
        try:
            item.child.start()
        except OSError as error:
            item.child.died(note=f"cannot be started: {error}")
            self._say_death(item)

    def _look_at_logs(self) -> None:
        for item in self.watched:
            try:
                for sentence in item.log.errors():
                    say(f"{item.child.name}: {sentence} (see {item.log.path})")
                item.log.rotate()
            except OSError as error:
                say(f"The log {item.log.path} cannot be kept: {error.strerror}.")

    def _reap_adopted(self) -> None:
        """Bury grandchildren that became ours when their parent died; our own children's ends stay to be asked."""
        own = {item.child.pid for item in self.watched} | {self._once}
        while ended := _first_dead():
            if ended in own:
                return  # asked after in the next round, and the rest with it
            os.waitpid(ended, 0)

    def _publish(self) -> None:
        statuses = [item.child.status for item in self.watched] + self.absent
        if statuses == self._written:
            return
        try:
            processes.write(self.status_file, statuses)
        except OSError as error:
            say(f"{self.status_file} cannot be written: {error.strerror}.")
        self._written = statuses

    def _rest_s(self) -> float:
        if any(item.child.state == "starting" for item in self.watched):
            return 0.1
        due = [item.child.restart_at for item in self.watched if item.child.restart_at is not None]
        return max(0.0, min([LOGS_EVERY_S, *(at - time.monotonic() for at in due)]))

    def _sleep(self, timeout_s: float) -> None:
        ready, _, _ = select.select([self._wake[0]], [], [], timeout_s)
        if ready:
            self._wake[0].recv(4096)


def _first_dead() -> int | None:
    """A dead child that nobody waited for yet, left as it is; None when all live or there are none."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None
