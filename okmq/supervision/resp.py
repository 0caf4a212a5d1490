"""The few words of Redis' protocol that the supervisor speaks: is a server there, and what kind is it?

The supervisor stays small, so it brings no client library; everything else goes through ``streams.log``.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from streams import addresses

TIMEOUT_S = 5.0


class StoreError(Exception):
    """The server cannot be used; the message is one sentence for a person."""


class Unreachable(StoreError):
    """Nothing answers there, at least for now."""


class Loading(StoreError):
    """The server is there and still reads its files."""


def ping(url: str, *, timeout_s: float = TIMEOUT_S) -> None:
    """Return once the server answered, or one of the named nodes of a cluster.

    Raises:
        Loading: it reads its files and will answer later.
        StoreError: it is not reachable or refuses us.
    """
    away: Unreachable | None = None
    for node in addresses.nodes(url):
        try:
            ask(node, "PING", timeout_s=timeout_s)
        except Unreachable as error:
            away = error
        else:
            return
    if away is not None:
        raise away


def check(url: str, *, timeout_s: float = TIMEOUT_S) -> None:
    """Check that a server given by ``OKMQ_REDIS_URL`` keeps what it is given: 7.0 or later, and no eviction.

    Of a cluster each node that is named and answers is checked.

    Raises:
        Unreachable: it does not answer; of a cluster none that is named does.
        StoreError: naming the server and what is wrong with it.
    """
    away: list[Unreachable] = []
    named = addresses.nodes(url)
    for node in named:
        try:
            _check_one(node, is_node=addresses.is_cluster(url), timeout_s=timeout_s)
        except Unreachable as error:
            away.append(error)
    if len(away) == len(named):
        raise away[0]


def _check_one(url: str, *, is_node: bool, timeout_s: float) -> None:
    shown = without_password(url)
    with _connected(url, timeout_s=timeout_s) as talk:
        told = facts(talk.call("INFO", "server")) | facts(talk.call("INFO", "memory"))
        version = told.get("redis_version", "0")
        if tuple(int(part) for part in version.split(".")[:2]) < (7, 0):
            raise StoreError(
                f"The server at {shown} is version {version}; OKMQ needs Redis or Valkey 7.0 or later."
            )
        policy = told.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise StoreError(
                f"The server at {shown} would throw messages away when its memory is full "
                f"(maxmemory-policy {policy}); set maxmemory-policy noeviction."
            )
        is_in_cluster = facts(talk.call("INFO", "cluster")).get("cluster_enabled") == "1"
    if is_node and not is_in_cluster:
        raise StoreError(f"The server at {shown} is no node of a cluster; name it as redis://.")
    if is_in_cluster and not is_node:
        raise StoreError(f"The server at {shown} is a node of a cluster; name it as redis+cluster://.")


def ask(url: str, *words: str, timeout_s: float = TIMEOUT_S) -> str:
    """The answer to a command that is answered with a line or one string.

    Raises:
        Loading: it reads its files and will answer later.
        StoreError: it is not reachable or refuses us.
    """
    with _connected(url, timeout_s=timeout_s) as talk:
        return talk.call(*words)


def without_password(url: str) -> str:
    """The address as it may be shown."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    return url.replace(f":{parts.password}@", ":***@", 1)


def facts(answer: str) -> dict[str, str]:
    """What an answer to INFO says, by name."""
    return dict(line.split(":", 1) for line in answer.splitlines() if ":" in line)


class _Talk:
    def __init__(self, connection: socket.socket, *, reader: BinaryIO, shown: str) -> None:
        self._connection = connection
        self._reader = reader
        self._shown = shown

    def call(self, *words: str) -> str:
        parts = [word.encode() for word in words]
        request = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
        self._connection.sendall(b"*%d\r\n%b" % (len(parts), request))
        line = self._reader.readline().rstrip(b"\r\n")
        if line.startswith(b"$"):
            body = self._reader.read(int(line[1:]) + 2)
            return body[:-2].decode("utf-8", "replace")
        if line.startswith(b"-LOADING"):
            raise Loading(f"The server at {self._shown} is still reading its files.")
        if line.startswith(b"-"):
            reason = line[1:].decode("utf-8", "replace")
            raise StoreError(f"The server at {self._shown} refused {words[0]}: {reason}")
        if not line.startswith(b"+"):
            raise StoreError(f"What answers at {self._shown} is not a Redis or Valkey server.")
        return line[1:].decode("utf-8", "replace")


@contextmanager
def _connected(url: str, *, timeout_s: float) -> Iterator[_Talk]:
    parts = urlsplit(url)
    shown = without_password(url)
    try:
        with _dial(url, timeout_s=timeout_s) as connection, connection.makefile("rb") as reader:
            talk = _Talk(connection, reader=reader, shown=shown)
            if parts.password is not None:
                user = [unquote(parts.username)] if parts.username else []
                talk.call("AUTH", *user, unquote(parts.password))
            yield talk
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Unreachable(f"No server can be reached at {shown}: {reason}.") from error


def _dial(url: str, *, timeout_s: float) -> socket.socket:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(timeout_s)
            connection.connect(unquote(parts.path))
        except OSError:
            connection.close()
            raise
        return connection
    host = parts.hostname or "localhost"
    connection = socket.create_connection((host, parts.port or 6379), timeout=timeout_s)
    if parts.scheme != "rediss":
        return connection
    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
    except OSError:
        connection.close()
        raise
