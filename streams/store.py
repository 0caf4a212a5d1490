"""This process's connection to the log, for everything that is not a coroutine."""

from collections.abc import Iterable
from functools import cache

from django.conf import settings

from streams.log import keys
from streams.log.client import Log, Pipeline, one


@cache
def log() -> Log:
    """One client a process; its pool is safe to share between threads."""
    return Log(settings.ENV.redis_url, memory_url=settings.ENV.memory_redis_url)


def has_memory() -> bool:
    """Whether there is a server for streams in memory."""
    return settings.ENV.memory_redis_url is not None


def demand(stream_ids: Iterable[str] = ()) -> None:
    """Raise StoreUnavailable unless the servers of these streams answer; without any, the durable one.

    For what cannot be done without the log: asked before the transaction, in which everybody else who wants to write to
    the database would wait until a server that hangs is given up.
    """
    server_of = log().server_of
    a_key_at = {server_of(): keys.REGISTRY, **{server_of(each): keys.meta(each) for each in stream_ids}}
    log().run(one(Pipeline([("EXISTS", key) for key in a_key_at.values()])))
