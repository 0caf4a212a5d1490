"""Streams of a test's own, on each kind of server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streams.log import clock, config, keys
from streams.log.client import Log
from tests.streams.log.clocks import Faked, faked_store

MakeStream = Callable[..., str]
Publish = Callable[..., None]
DEFAULTS = {
    "dedup_window": 86_400,
    "max_message_bytes": 1_048_576,
    "discard": "old",
    "archive": False,
}


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
        log.run(config.stream_publish(stream, {**DEFAULTS, **settings}))
        return stream.stream_id

    return make


@pytest.fixture
def stream(make_stream: MakeStream) -> str:
    return make_stream()


@pytest.fixture
def publish_settings(log: Log, unique: str) -> Publish:
    """Gives a stream these settings over the defaults."""

    def publish(stream_id: str, **settings: object) -> None:
        stream = config.Registered(
            stream_id=stream_id, name=unique, workspace="default", workspace_id=1, archive=False
        )
        log.run(config.stream_publish(stream, {**DEFAULTS, **settings}))

    return publish


@pytest.fixture
def faked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faked]:
    """A server whose clock can be set, and processes that look at it each time."""
    monkeypatch.setattr(clock, "LOOK_EVERY_MS", 0)
    with faked_store(tmp_path) as made:
        yield made
