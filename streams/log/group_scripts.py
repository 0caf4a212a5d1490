"""Calls of scripts on one group: the keys are those that the script's header names, in its order."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from streams.log import keys, scripts
from streams.log.commands import Script


def group_script(verb: str, stream_id: str, name: str, args: Sequence[Any] = ()) -> Script:
    """A call of a script whose keys are all of one stream and of one of its groups."""
    return Script(verb, _keys(verb, stream_id, name), args)


@lru_cache(maxsize=8192)
def _keys(verb: str, stream_id: str, name: str) -> tuple[str, ...]:
    return tuple(
        keys.OF_GROUP[key](stream_id, name) if key in keys.OF_GROUP else keys.OF_STREAM[key](stream_id)
        for key in _named(verb)
    )


@cache
def _named(verb: str) -> tuple[str, ...]:
    return tuple(scripts.keys_named(verb))
