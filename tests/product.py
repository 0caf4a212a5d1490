"""The whole product, started as ``make run`` starts it, in a folder and on a port of its own."""

import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import httpx

from okmq import env
from okmq.supervision import proctable, rights
from okmq.supervision.children import last_lines
from streams.upkeep import processes
from tests.waiting import until

PASSWORD = "correct-horse-battery"
TOKEN = "okmq_test_token_of_the_default_workspace"


def free_port() -> int:
    """A port of the loopback that nobody has, and that nobody is given who asks for any port.

    Those that the system gives to whoever connects or binds may be gone before it is taken.
    """
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    never_given = [*range(10_000, first), *range(last + 1, 65_536)]
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", random.SystemRandom().choice(never_given)))
            except OSError:
                continue  # somebody has this one
            return int(probe.getsockname()[1])


GROUNDWORK = """
import django
django.setup()
from django.core.management import call_command
from okmq.management.commands.okmq_setup import static_collect
static_collect()
call_command("migrate", interactive=False, verbosity=0)
"""


@cache
def groundwork() -> Path:
    """A data folder with what every first start makes alike, and slowly: empty tables, the static files."""
    folder = Path(tempfile.mkdtemp(prefix="okmq-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environ = {**Product(data_dir=folder).environ, "DJANGO_SETTINGS_MODULE": "okmq.settings"}
    subprocess.run([sys.executable, "-c", GROUNDWORK], cwd=env.PROJECT, env=environ, check=True)
    (folder / "secret_key").unlink()
    return folder


@dataclass(kw_only=True)
class Product:
    """One supervisor and its processes; ``password`` is of the user admin, ``token`` has every scope.

    The first start finds its tables and its static files there; with ``bare`` it makes them, as on a new machine.
    ``project`` is where its code is: another version's is not that of the tests.
    """

    data_dir: Path
    port: int = field(default_factory=free_port)
    more: Mapping[str, str] = field(default_factory=dict)
    password: str = PASSWORD
    token: str = TOKEN
    bare: bool = False
    project: Path = Path(env.PROJECT)
    supervisor: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def store_url(self) -> str:
        """Where the private store is for its keeper, who may do everything."""
        return rights.keeper_url(f"unix://{env.private_socket(self.data_dir)}", self.data_dir / "valkey")

    @property
    def environ(self) -> dict[str, str]:
        """What a process of this product has in its environment; nothing of the machine's own settings."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("OKMQ_")}
        clean.pop("DJANGO_SETTINGS_MODULE", None)
        silent = {name: "" for name in env.read_dotenv(env.PROJECT / ".env") if name.startswith("OKMQ_")}
        return {
            **clean,
            **silent,
            "OKMQ_DATA_DIR": str(self.data_dir),
            "OKMQ_PORT": str(self.port),
            "OKMQ_ADMIN_PASSWORD": self.password,
            "OKMQ_ADMIN_TOKEN": self.token,
            # Spark runs when a test asks for it, not when the clock does.
            "OKMQ_HISTORY_EVERY": "86400",
            **self.more,
        }

    @property
    def terminal(self) -> Path:
        return self.data_dir.with_name(f"{self.data_dir.name}.terminal")

    @property
    def output(self) -> str:
        """What the terminal showed since the last start."""
        return self.terminal.read_text() if self.terminal.exists() else ""

    def start(self, *, wait: bool = True) -> "Product":
        """Start it; with ``wait``, return when it said that it is ready."""
        if not self.bare and not self.data_dir.exists():
            shutil.copytree(groundwork(), self.data_dir)
        with self.terminal.open("wb") as terminal:
            self.supervisor = subprocess.Popen(
                [sys.executable, "-m", "okmq.up"],
                cwd=self.project,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=terminal,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, *, within_s: float = 120) -> None:
        try:
            until(self._ready, within_s=within_s, what="OKMQ is ready")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.output}\n{self._log_ends()}") from None

    def ended(self, *, within_s: float = 60) -> int:
        """Wait for the supervisor's end; its exit code."""
        assert self.supervisor is not None
        until(self._has_ended, within_s=within_s, what="it ends")
        code = self.supervisor.wait()
        self.supervisor = None
        return code

    def stop(self, signum: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end and wait; its exit code."""
        assert self.supervisor is not None
        self.supervisor.send_signal(signum)
        return self.ended()

    def processes(self) -> dict[str, processes.ProcessStatus]:
        """What the supervisor says of its processes, by name."""
        return {status.name: status for status in processes.read(self.data_dir / "run" / "processes.json")}

    def pid(self, name: str) -> int:
        """The process id of a running child."""
        found = self.processes()[name].pid
        assert found, f"{name} does not run: {self.processes()[name]}"
        return found

    def alive(self) -> list[int]:
        """Every living process of this folder, the supervisor left out."""
        return proctable.marked(self.data_dir)

    def answers(self) -> bool:
        """Whether it is ready at this moment; one that is just being restarted is not."""
        try:
            return httpx.get(f"{self.url}/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def client(self, *, token: str | None = None) -> httpx.Client:
        """A client of the API with the token of every scope, or another one."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        # There is no TLS to verify, and to read the certificates of the world takes 60 ms.
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30, verify=False)

    def page(self, path: str) -> str:
        """A page of the console as the user admin sees it at its first paint."""
        with httpx.Client(base_url=self.url, timeout=30, follow_redirects=True, verify=False) as browser:
            browser.get("/login/")
            form = {
                "username": "admin",
                "password": self.password,
                "csrfmiddlewaretoken": browser.cookies["csrftoken"],
            }
            browser.post("/login/", data=form, headers={"Referer": f"{self.url}/login/"}).raise_for_status()
            return browser.get(path).raise_for_status().text

    def end_all(self) -> None:
        """Whatever a test did to it: leave nothing behind."""
        if self.supervisor is not None and self.supervisor.poll() is None:
            self.supervisor.terminate()
            try:
                self.supervisor.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self.supervisor.kill()
                self.supervisor.wait()
        proctable.kill(self.alive(), signum=signal.SIGKILL)
        until(lambda: not self.alive(), what="every process has ended")

    def _log_ends(self) -> str:
        logs = sorted((self.data_dir / "log").glob("*.log"))
        return "\n".join(f"--- {log.name}\n{last_lines(log, lines=15)}" for log in logs)

    def _has_ended(self) -> bool:
        return self.supervisor is None or self.supervisor.poll() is not None

    def _ready(self) -> bool:
        assert self.supervisor is not None
        assert self.supervisor.poll() is None, f"it ended with {self.supervisor.returncode}:\n{self.output}"
        return "OKMQ is ready" in self.output
