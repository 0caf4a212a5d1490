"""Streams of a test's own, on the server that the settings name, or on two of its own."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from streams import store
from streams.log import config, keys
from streams.log.client import Log
from tests import servers

MakeStream = Callable[..., str]


@pytest.fixture
def log(valkey: str) -> Iterator[Log]:
    client = Log(valkey)
    yield client
    client.close()


@pytest.fixture
def make_stream(log: Log, unique: str) -> Iterator[MakeStream]:
    made: list[str] = []

    def make(*, name: str = unique, **settings: object) -> str:
        stream = config.Registered(
            stream_id=keys.stream_id(), name=name, workspace="upkeep", workspace_id=77, archive=False
        )
        defaults = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}
        log.run(config.stream_publish(stream, {**defaults, **settings}))
        made.append(stream.stream_id)
        return stream.stream_id

    yield make
    for stream_id in made:
        log.run(config.stream_remove(stream_id, workspace_id=77, name=unique))


@pytest.fixture
def both(
    durable: servers.Store, volatile: servers.Store, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> Iterator[Log]:
    settings.ENV = replace(settings.ENV, memory_redis_url=volatile.url)
    with closing(Log(durable.url, memory_url=volatile.url)) as log:
        monkeypatch.setattr(store, "log", lambda: log)
        yield log
