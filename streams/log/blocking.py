"""Connections to one server for callers that wait."""

from collections.abc import Sequence
from typing import Any

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry


def connected(url: str, *, connect_timeout_s: float, answer_timeout_s: float) -> Any:
    """A client of redis-py that sends nothing a second time and leaves replies as they come."""
    client: Any = redis.Redis.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        socket_connect_timeout=connect_timeout_s,
        socket_timeout=answer_timeout_s,
        protocol=2,
    )
    client.response_callbacks.clear()  # replies are parsed by the operations, from raw bytes
    return client


def exchanged(client: Any, commands: Sequence[Sequence[Any]]) -> list[Any]:
    """The replies to commands that go out together, refusals in their places.

    As redis-py's pipeline does it, but packed in C: most of the time of ten thousand short commands was its packing.

    Raises:
        RedisError: the connection broke and it is not known which were executed.
    """
    if not commands:
        return []
    pool = client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_packed_command([b"".join([hiredis.pack_command(tuple(each)) for each in commands])])
        return [_reply(connection) for _ in commands]
    except BaseException:
        connection.disconnect()  # what is left on it belongs to nobody
        raise
    finally:
        pool.release(connection)


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response()
    except ResponseError as refused:
        return refused
