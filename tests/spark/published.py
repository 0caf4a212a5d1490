"""Streams in a store of a test's own, and what a reader should see of them, told without Spark."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from streams.log import append, config, keys, memory, trim
from streams.log.client import Log, one
from streams.log.entries import NewMessage, parse

SETTINGS = {"max_message_bytes": 4_194_304, "dedup_window": 86_400, "discard": "old"}

Row = tuple[Any, ...]


@dataclass
class Published:
    """One store and the workspace of one test in it."""

    log: Log
    url: str
    workspace: str
    workspace_id: int
    memory_url: str | None = None

    def stream(self, name: str, *, archive: bool = True, internal: bool = False, **settings: Any) -> str:
        """Make a stream (or change its settings); its internal id."""
        held = self.log.run(config.stream_id_of(self.workspace_id, name))
        stream_id = held or keys.stream_id()
        registered = config.Registered(
            stream_id=stream_id,
            name=name,
            workspace=self.workspace,
            workspace_id=self.workspace_id,
            archive=archive,
            internal=internal,
        )
        self.log.run(config.stream_publish(registered, {**SETTINGS, "archive": archive, **settings}))
        return stream_id

    def memory_stream(self, name: str) -> str:
        """Make a stream in memory, or begin it again after a loss; its internal id."""
        held = self.log.run(config.stream_id_of(self.workspace_id, name))
        registered = config.Registered(
            stream_id=held or keys.stream_id(memory=True),
            name=name,
            workspace=self.workspace,
            workspace_id=self.workspace_id,
            archive=True,
        )
        settings = {**SETTINGS, "archive": True}
        self.log.run(config.streams_publish([(registered, settings)]))
        self.log.run(memory.begin(registered, settings, {}))
        return registered.stream_id

    def remove(self, name: str) -> None:
        """Delete a stream."""
        stream_id = self.log.run(config.stream_id_of(self.workspace_id, name))
        assert stream_id is not None
        self.log.run(config.stream_remove(stream_id, workspace_id=self.workspace_id, name=name))

    def publish(self, stream_id: str, messages: Iterable[NewMessage]) -> int:
        """Publish in batches of 1000; the last offset."""
        some = list(messages)
        last = 0
        for at in range(0, len(some), 1000):
            last = self.log.run(append.append(stream_id, some[at : at + 1000]))[-1].offset
        return last

    def numbered(self, stream_id: str, count: int, *, prefix: str = "m", key: str | None = None) -> int:
        """Publish so many small messages of different sizes; the last offset."""
        return self.publish(
            stream_id,
            (
                NewMessage(
                    id=f"{prefix}{n}",
                    body=json.dumps({"n": n, "x": "x" * (n % 17)}).encode(),
                    key=None if key is None else f"{key}.{n % 3}",
                )
                for n in range(count)
            ),
        )

    def delete(self, stream_id: str, offsets: Sequence[int]) -> None:
        self.log.run(trim.delete(stream_id, offsets))

    def options(self, stream: str = "*", **more: str) -> dict[str, str]:
        """The source's options for this workspace."""
        memory_url = {} if self.memory_url is None else {"memoryUrl": self.memory_url}
        return {"url": self.url, **memory_url, "workspace": self.workspace, "stream": stream, **more}

    def stored(self, *stream_ids: str) -> list[Row]:
        """What stands in the store, as rows: offset, unix ms, id, key, headers, body, bytes by stream; plain XRANGE."""
        found = []
        for stream_id in stream_ids:
            for entry in self.log.run(one(("XRANGE", keys.log(stream_id), "-", "+"))):
                message = parse(entry)
                headers = None if message.headers is None else json.loads(message.headers)
                found.append(
                    (
                        stream_id,
                        message.offset,
                        message.timestamp_ms,
                        message.id,
                        message.key,
                        headers,
                        message.body.decode(),
                        len(message.body),
                    )
                )
        return sorted(found, key=lambda row: row[:2])


def rows(frame: DataFrame) -> list[Row]:
    """A frame of messages in the shape of ``Published.stored``."""
    return sorted(
        (
            (
                row.stream_id,
                row.offset,
                # Collected in this process's time zone; the moment is the same.
                round(row.timestamp.astimezone(UTC).timestamp() * 1000),
                row.id,
                row.key,
                row.headers,
                row.body,
                row.bytes,
            )
            for row in frame.collect()
        ),
        key=lambda row: row[:2],
    )


def moment(unix_ms: int) -> datetime:
    """Unix milliseconds as a time in UTC."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC)
