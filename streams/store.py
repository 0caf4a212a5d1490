"""This process's connection to the log, for everything that is not a coroutine."""

from functools import cache

from django.conf import settings

from streams.log.client import Log


@cache
def log() -> Log:
    """One client a process; its pool is safe to share between threads."""
    return Log(settings.ENV.redis_url)
