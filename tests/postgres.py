"""A PostgreSQL of a test's own, on loopback."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.product import free_port
from tests.waiting import until

PROGRAMS = Path("/usr/lib/postgresql")
AS_ITS_OWN_USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


def program(name: str) -> str:
    """Of the newest version that the system has (``scripts/system-packages`` installs one)."""
    found = sorted(PROGRAMS.glob(f"*/bin/{name}"), key=lambda path: int(path.parent.parent.name))
    assert found, "PostgreSQL is missing: run scripts/system-packages"
    return str(found[-1])


class Postgres:
    """A server in a folder of its own; root may not run one, so it runs as the user of Debian's package then."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._as = AS_ITS_OWN_USER if os.getuid() == 0 else []
        made = ["-D", str(folder / "data"), "-U", "okmq", "--auth=trust", "-E", "UTF8"]
        subprocess.run([*self._as, program("initdb"), *made], check=True, stdout=subprocess.DEVNULL, cwd="/")

    @property
    def url(self) -> str:
        return f"postgresql://okmq@127.0.0.1:{self.port}/postgres"

    @contextmanager
    def running(self) -> Iterator[None]:
        where = [
            "-D",
            str(self.folder / "data"),
            "-k",
            str(self.folder),
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        with (self.folder / "output").open("ab") as output:
            server = subprocess.Popen(
                [*self._as, program("postgres"), *where], stdout=output, stderr=output, cwd="/"
            )
        try:
            asked = [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
            until(lambda: subprocess.run(asked, check=False).returncode == 0, what="PostgreSQL answers")
            yield
        finally:
            server.send_signal(signal.SIGINT)  # at once; SIGTERM waits for those who are connected
            server.wait(30)


@contextmanager
def postgres_folder() -> Iterator[Postgres]:
    """A server that is yet to run, in a folder that goes afterwards."""
    # Not in pytest's own folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="okmq-postgres-") as folder:
        Path(folder).chmod(0o777)
        yield Postgres(Path(folder))
