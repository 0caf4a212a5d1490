"""The analytics process as the supervisor starts it, on a data folder and a database of its own."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.spark.jobs import PROJECT, environment


class AnalyticsProcess:
    """``manage.py okmq_analytics`` on a data folder of its own; what it started is known by the folder's name."""

    def __init__(self, data_dir: Path, redis_url: str, **more: str) -> None:
        self.data_dir = data_dir
        self.mark = f"OKMQ_DATA_DIR={data_dir}".encode()
        self.environ = environment(
            OKMQ_DATA_DIR=str(data_dir),
            OKMQ_REDIS_URL=redis_url,
            OKMQ_HISTORY_EVERY="1",
            DJANGO_SETTINGS_MODULE="okmq.settings",
            **{"OKMQ_SPARK_MASTER": "local[2]", "OKMQ_SPARK_IDLE": "3", **more},
        )
        data_dir.mkdir()
        migrate = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
        subprocess.run(migrate, cwd=PROJECT, env=self.environ, check=True)
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.data_dir / "log").open("ab") as out:
            self.child = subprocess.Popen(
                [sys.executable, "manage.py", "okmq_analytics"],
                cwd=PROJECT,
                env=self.environ,
                stdout=out,
                stderr=out,
            )

    def send(self, signum: signal.Signals, *, within_s: float) -> int:
        """Send a signal and wait for the end; the exit code."""
        assert self.child is not None
        self.child.send_signal(signum)
        return self.child.wait(within_s)

    def end(self) -> None:
        """Kill it where it runs; what it has started ends with it."""
        if self.child is not None and self.child.poll() is None:
            self.child.kill()
            self.child.wait()

    def others(self) -> list[int]:
        """The living processes of this folder but the one that was started here."""
        own = self.child.pid if self.child else 0
        return [pid for pid in self._marked() if pid != own]

    def _marked(self) -> Iterator[int]:
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                # A zombie's environment is empty, and so is that of a process that ends while it is read.
                if self.mark in environ.read_bytes().split(b"\0"):
                    yield int(environ.parent.name)
            except OSError:
                continue

    def ask(self, question: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(self.data_dir / "okmq.sqlite3", timeout=10) as database:
            found = database.execute(question).fetchall()
        database.close()
        return found

    def busy(self, thread: str, *, cpu_s: float) -> int:
        """How many threads of the JVM whose names begin so have computed for so long."""
        found = 0
        for pid in self.others():
            # A process may end while it is looked at, and a thread.
            with contextlib.suppress(OSError):
                for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
                    with contextlib.suppress(OSError):
                        name, _, fields = stat.read_text().partition("(")[2].rpartition(")")
                        used = int(fields.split()[11]) / os.sysconf("SC_CLK_TCK")
                        found += name.startswith(thread) and used >= cpu_s
        return found

    def put(self, *queries: str) -> None:
        """Queue queries of a workspace of their own, as a web process does."""
        self.store(
            f"for sql in {queries!r}:\n"
            "    Query.objects.create(workspace=workspace, sql=sql, limit=10, streams=[], asked_by='somebody')\n"
        )

    def store(self, creating: str) -> None:
        """Run lines that create rows of a workspace of their own."""
        script = (
            "from streams.models import Erasure, Query, Replay, Stream, Workspace\n"
            f"workspace, _ = Workspace.objects.get_or_create(name='asking')\n{creating}"
        )
        manage = [sys.executable, "manage.py", "shell", "--verbosity=0", "-c", script]
        subprocess.run(manage, cwd=PROJECT, env=self.environ, check=True)

    def know(self, *stream_ids: str) -> None:
        """Have the database know streams of the store: of others nothing is counted."""
        self.store(
            f"for each in {stream_ids!r}:\n"
            "    Stream.objects.create(workspace=workspace, name=each, stream_id=each)\n"
        )

    def workspace_id(self) -> int:
        """The workspace of these rows, created where it is not there yet."""
        self.store("")
        ((found,),) = self.ask("select id from streams_workspace where name = 'asking'")
        assert isinstance(found, int)
        return found

    def cancel(self, sql: str) -> None:
        """Say that queries are not wanted any more, as a web process does."""
        self.change("update streams_query set cancel = 1 where sql = ?", sql)

    def change(self, statement: str, *values: str) -> None:
        with sqlite3.connect(self.data_dir / "okmq.sqlite3", timeout=10) as database:
            database.execute(statement, values)
        database.close()

    def jvm(self) -> int:
        """Spark's process."""
        (found,) = (pid for pid in self.others() if Path(f"/proc/{pid}/comm").read_text().strip() == "java")
        return found

    def states(self) -> list[str]:
        """Those of the queries, oldest first."""
        return [str(state) for (state,) in self.ask("select state from streams_query order by id")]

    def counted(self, step: str) -> int:
        ((total,),) = self.ask(f"select coalesce(sum(messages), 0) from streams_rollup where step = '{step}'")
        assert isinstance(total, int)
        return total
