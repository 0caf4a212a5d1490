"""Starts OKMQ and keeps it running: ``python -m okmq.up``, which is what ``make run`` does. Django-free and small.

In order: the data folder is taken, the port is taken, the private Valkeys are started, the installation is set up
(``manage.py okmq_setup``), then web, worker and analytics are started; one line says where to look. Whatever dies is
started again; Ctrl-C or SIGTERM ends everything.
"""

import http.client
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from okmq import env as environment
from okmq.supervision import java, proctable, resp, restoring, rights, serving
from okmq.supervision.children import Plan, adopt_grandchildren, last_lines
from okmq.supervision.claims import end_leftovers, take_folder, take_port
from okmq.supervision.room import Room
from okmq.supervision.supervisor import StartError, Stopping, Supervisor, say
from okmq.supervision.valkey import ValkeyError, ValkeyServer

MANAGE = str(environment.PROJECT / "manage.py")
GRACE_S = 5
KEEP_ALIVE_S = 75
# A parked long poll is an open file; the usual limit of 1024 would be the limit of clients.
MOST_OPEN_FILES = 65_536
# A store that reads a large log at its start may take long; it is said once that one has to wait.
PATIENCE_S = 5.0
LONG_START_S = 20.0


def main() -> int:
    """Run until asked to end; the exit code: 0, or 1 after one sentence on what is wrong."""
    try:
        env = environment.load()
        folder_lock = take_folder(env.data_dir)
        end_leftovers(env.data_dir)
        listener = take_port(env.host, port=env.port)
    except (environment.EnvError, StartError) as error:
        print(error, file=sys.stderr)
        return 1
    supervisor = Supervisor(data_dir=env.data_dir, status_file=env.processes_file)
    supervisor.listen_to_signals()
    adopt_grandchildren()
    allow_open_files()
    code = 0
    try:
        start(supervisor, env=env, listener=listener)
        supervisor.run()
    except (StartError, ValkeyError, resp.StoreError) as error:
        print(error, file=sys.stderr)
        code = 1
    except OSError as error:  # a full disk, a folder that is not ours
        print(f"OKMQ cannot start: {error}.", file=sys.stderr)
        code = 1
    except Stopping:
        say("Stopped before it was ready.")
    finally:
        listener.close()
        supervisor.stop()
        supervisor.close()
        os.close(folder_lock)
    if code == 0:
        say("OKMQ has ended.")
    return code


def start(supervisor: Supervisor, *, env: environment.Env, listener: socket.socket) -> None:
    """Start everything in its order and say where to look once it answers.

    Raises:
        StartError, ValkeyError, resp.StoreError: with a sentence for a person.
        Stopping: somebody asked to end before it was ready.
    """
    env.log_dir.mkdir(mode=0o700, exist_ok=True)
    if refusal := restoring.refusal(env.data_dir):
        raise StartError(refusal)
    say(f"OKMQ starts; its data is in {env.data_dir}.")
    if env.history and (obstacle := history_obstacle(env.history_url)):
        say(f"{obstacle} The history waits for it; nothing else does.")
    if env.private_store:
        server = ValkeyServer(
            folder=env.valkey_dir, socket=environment.private_socket(env.data_dir), fsync=env.fsync
        )
        plan = _plan("valkey", server.prepare(), env=env, orphan_signal=signal.SIGTERM)
        supervisor.start(plan, works=lambda: _answers_ping(env.redis_url), last=True)
        supervisor.wait_until(Waiting(env.redis_url).is_over)
    else:
        resp.check(env.redis_url)
    start_memory(supervisor, env=env)
    setup = _plan("setup", _manage("okmq_setup"), env=env, terminal=True)
    setup.log.unlink(missing_ok=True)  # what an earlier start said must not explain this one
    if supervisor.run_once(setup) != 0:
        said = last_lines(setup.log, lines=12)
        _, known, sentence = said.rpartition(
            "CommandError: "
        )  # a refusal of the command's own is one sentence
        raise StartError(sentence if known else f"The installation could not be set up:\n{said}")
    if env.private_store:
        keeper = rights.keeper_url(env.redis_url, env.valkey_dir)
        supervisor.looks.append(Room(folder=env.valkey_dir, url=keeper, say=say).look)
    serving.forget_all(env.run_dir)
    for name in web_names(env.web_workers):
        plan = _plan(name, web_command(env, listener=listener), env=env, inherited=(listener.fileno(),))
        supervisor.start(plan, works=partial(_serves, supervisor, name, env=env))
    supervisor.start(_plan("worker", _manage("okmq_worker"), env=env))
    plan = _plan("census", [sys.executable, "-m", "okmq.census"], env=env, more=_importable())
    supervisor.start(plan, needed=False)
    start_analytics(supervisor, env=env)
    supervisor.wait_until(Readiness(env).is_there, every_s=0.1)
    say(f"OKMQ is ready: {url(env)} (user admin). To see real data move: make demo. To end it: Ctrl-C.")


def start_memory(supervisor: Supervisor, *, env: environment.Env) -> None:
    """Start the private server of the streams in memory, or look at the one that is named.

    One that does not answer now is waited for by those who need it: the durable streams need not.

    Raises:
        resp.StoreError: the one that is named would throw messages away.
    """
    url = env.memory_redis_url
    if url is None:
        return
    if not env.private_memory:
        try:
            resp.check(url)
        except resp.Unreachable as error:
            say(f"{error} Streams in memory wait for it.")
        return
    socket = environment.private_socket(env.data_dir, server="valkey-memory")
    server = ValkeyServer(folder=env.valkey_memory_dir, socket=socket, fsync=None)
    plan = _plan("valkey-memory", server.prepare(), env=env, orphan_signal=signal.SIGTERM)
    supervisor.start(plan, works=lambda: _answers_ping(url), last=True)
    supervisor.wait_until(Waiting(url).is_over)


def start_analytics(supervisor: Supervisor, *, env: environment.Env) -> None:
    """Start the Spark process, or note why it is not there."""
    if not env.history:
        supervisor.leave_out("analytics", state="off", note="Switched off by OKMQ_HISTORY=off.")
        return
    home = java.home(os.environ)
    if home is None:
        supervisor.leave_out("analytics", state="unavailable", note=java.ADVICE)
        say(java.ADVICE)
        return
    plan = _plan("analytics", _manage("okmq_analytics"), env=env, more={"JAVA_HOME": str(home)})
    supervisor.start(plan, needed=False)


def history_obstacle(history_url: str) -> str:
    """Make the history's folder, where it is one on this machine; why nothing can be written there, empty where it can.

    As a disk that is not mounted yet: messages come in and go out without it.
    """
    if "://" in history_url:
        return ""
    folder = Path(history_url)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return f"OKMQ_HISTORY_URL={history_url!r}: {error.strerror or error}."
    return (
        ""
        if os.access(folder, os.W_OK)
        else f"OKMQ_HISTORY_URL={history_url!r}: nothing can be written there."
    )


def allow_open_files() -> None:
    """Let this process and its children open as many files as the machine permits, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def web_names(workers: int) -> list[str]:
    """One name for each web process: ``web``, or ``web-1``, ``web-2`` and so on when there are several."""
    return ["web"] if workers == 1 else [f"web-{number}" for number in range(1, workers + 1)]


def web_command(env: environment.Env, *, listener: socket.socket) -> list[str]:
    """Uvicorn on the socket that we hold.

    Several web processes are children of ours, each on its own, and share the socket: uvicorn's own ``--workers``
    would put one more process between, and leave its workers behind when that one is killed.
    """
    forwarded = env.forwarded_allow_ips
    proxy = ["--proxy-headers", "--forwarded-allow-ips", forwarded] if forwarded else ["--no-proxy-headers"]
    return [
        *(sys.executable, "-m", "uvicorn", "okmq.asgi:application"),
        *("--app-dir", str(environment.PROJECT)),
        *("--fd", str(listener.fileno())),
        *("--loop", "uvloop", "--http", "okmq.framing:FramedProtocol", "--ws", "websockets-sansio"),
        *("--ws-max-size", "65536"),
        *("--timeout-graceful-shutdown", str(GRACE_S)),
        # Longer than clients and proxies keep an idle connection, so that it is never closed under a request.
        *("--timeout-keep-alive", str(KEEP_ALIVE_S)),
        *("--log-level", "warning", "--no-access-log", "--no-use-colors"),
        "--no-server-header",
        *proxy,
    ]


def url(env: environment.Env) -> str:
    """Where a person on this machine finds the console."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(env.host, env.host)
    return f"http://[{host}]:{env.port}/" if ":" in host else f"http://{host}:{env.port}/"


class Waiting:
    """Asks the private server whether it answers, and says once that it still reads its log."""

    def __init__(self, redis_url: str) -> None:
        self._url = redis_url
        self._began = time.monotonic()
        self._said = False

    def is_over(self) -> bool:
        if _answers_ping(self._url):
            return True
        if not self._said and time.monotonic() - self._began > PATIENCE_S:
            self._said = True
            say("Valkey reads its log; with many messages this takes a while.")
        return False


class Readiness:
    """Asks the web process whether it can serve, and says once what keeps it."""

    def __init__(self, env: environment.Env) -> None:
        self._env = env
        self._said_at = time.monotonic() + LONG_START_S

    def is_there(self) -> bool:
        status = _status_of(self._env, "/readyz")
        if status == 200:
            return True
        if time.monotonic() > self._said_at:
            self._said_at = float("inf")
            answer = "does not answer yet" if status is None else f"answers {status}"
            say(f"Not ready yet: {url(self._env)}readyz {answer} (see {self._env.log_dir}).")
        return False


def _answers_ping(redis_url: str) -> bool:
    try:
        resp.ping(redis_url, timeout_s=0.5)
    except resp.StoreError:
        return False
    return True


def _status_of(env: environment.Env, path: str) -> int | None:
    """The status of a GET to ourselves; None while nothing answers."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(env.host, env.host)
    connection = http.client.HTTPConnection(host, env.port, timeout=0.5)
    # Behind OKMQ_HOST=0.0.0.0 the loopback's address need not be a name that is let in.
    name = env.allowed_hosts[0].lstrip(".").replace("*", "localhost")
    try:
        connection.request("GET", path, headers={"Host": name})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _serves(supervisor: Supervisor, name: str, *, env: environment.Env) -> bool:
    (pid,) = [item.child.pid for item in supervisor.watched if item.child.name == name]
    return serving.serves(env.run_dir, pid)


def _importable() -> dict[str, str]:
    """What lets a child import the project, wherever it was started."""
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(environment.PROJECT), os.environ.get("PYTHONPATH")]))
    }


def _manage(command: str) -> list[str]:
    return [sys.executable, MANAGE, command]


def _plan(
    name: str,
    command: Sequence[str],
    *,
    env: environment.Env,
    more: Mapping[str, str] | None = None,
    inherited: tuple[int, ...] = (),
    orphan_signal: signal.Signals = signal.SIGKILL,
    terminal: bool = False,
) -> Plan:
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "okmq.settings",
        "OKMQ_DATA_DIR": str(env.data_dir),
        "PYTHONUNBUFFERED": "1",
        # One arena for every thread of a small process would cost tens of megabytes and win nothing.
        "MALLOC_ARENA_MAX": "2",
        **(more or {}),
        proctable.MARK: str(env.data_dir),
    }
    return Plan(
        name=name,
        command=tuple(command),
        environ=environ,
        log=env.log_dir / f"{name}.log",
        inherited=inherited,
        orphan_signal=orphan_signal,
        terminal=terminal,
    )


if __name__ == "__main__":
    sys.exit(main())
