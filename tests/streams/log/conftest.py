"""Streams of a test's own, on each kind of server."""

from collections.abc import Callable, Iterator

import pytest

from streams.log import config, keys
from streams.log.client import Log

MakeStream = Callable[..., str]


@pytest.fixture
def log(redis_url: str) -> Iterator[Log]:
    client = Log(redis_url)
    yield client
    client.close()


@pytest.fixture
def make_stream(log: Log, unique: str) -> MakeStream:
    """Makes a stream with the given settings over the defaults; answers its internal id."""

    def make(**settings: object) -> str:
        stream = config.Registered(
            stream_id=keys.stream_id(),
            name=unique,
            workspace="default",
            workspace_id=1,
            archive=bool(settings.get("archive", False)),
        )
        defaults = {
            "dedup_window": 86_400,
            "max_message_bytes": 1_048_576,
            "discard": "old",
            "archive": False,
        }
        log.run(config.stream_publish(stream, {**defaults, **settings}))
        return stream.stream_id

    return make


@pytest.fixture
def stream(make_stream: MakeStream) -> str:
    return make_stream()
