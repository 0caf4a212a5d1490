"""This process's connection to the log, for everything that is not a coroutine."""

from functools import cache

from django.conf import settings

from streams.log.client import Log


@cache
def log() -> Log:
    """One client a process; its pool is safe to share between threads."""
    return Log(settings.ENV.redis_url, memory_url=settings.ENV.memory_redis_url)


def has_memory() -> bool:
    """Whether there is a server for streams in memory."""
    return settings.ENV.memory_redis_url is not None
