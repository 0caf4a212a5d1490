"""Rows as new messages: ``df.write.format("okmq").mode("append")`` and ``writeStream.format("okmq")``.

Each row brings its message's id, and a stream knows ids for its ``dedup_window``: so a task that Spark runs again,
and a batch that it repeats after a restart, publish nothing twice.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from spark.options import OptionError, Target, parse_target
from spark.versions import DataSourceStreamArrowWriter
from streams import naming
from streams.decoding import DEEPEST
from streams.errors import refusal_of
from streams.log import append, config
from streams.log.client import Log, Op, T
from streams.log.entries import LARGEST_HEADERS_BYTES, LONGEST_ID, LONGEST_TTL_S, NewMessage
from streams.log.errors import LogError, MessageTooLarge, StoreUnavailable
from streams.nesting import is_deeper

COLUMNS: Mapping[str, frozenset[str]] = {
    "id": frozenset({"string"}),
    "body": frozenset({"string"}),
    "key": frozenset({"string"}),
    "headers": frozenset({"map<string,string>"}),
    "ttl": frozenset({"int", "bigint"}),
}
"""What a row may have: column → its types; ``ttl`` in seconds."""

REQUIRED = ("id", "body")

_is_json = msgspec.json.Decoder(msgspec.Raw).decode


class RowError(ValueError):
    """A row is no message that the stream takes; the message is one sentence for a person."""


@dataclass
class Published(WriterCommitMessage):
    """What one task did: messages that are new, and those whose ids the stream knew."""

    stored: int = 0
    duplicates: int = 0


class _Writing:
    """What both writers share; holds no connection: it is pickled."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrites: bool) -> None:
        self.target = parse_target(options)
        _check_columns(schema)
        if overwrites:
            raise OptionError(
                "A stream is only added to: write with mode('append'), a streaming query with outputMode append or "
                "update."
            )
        with closing(self._connect()) as log:
            self.stream_id = _stream(log, self.target)

    def publish(self, rows: Iterable[Mapping[str, Any]]) -> Published:
        """Publish the rows of one task.

        Raises:
            RowError: a row cannot be a message; nothing of the call that it was in is published.
            RuntimeError: the stream refuses what is valid (it is full, sealed, gone), or its store does not answer.
        """
        done = Published()
        with closing(self._connect()) as log:
            patterns = self._asked(log, _key_patterns(self.stream_id))
            for messages in append.batches(_message(row, patterns) for row in rows):
                placed = self._append(log, messages)
                fresh = sum(not each.duplicate for each in placed)
                done = Published(done.stored + fresh, done.duplicates + len(placed) - fresh)
        return done

    def _append(self, log: Log, messages: Sequence[NewMessage]) -> list[append.Appended]:
        try:
            return self._asked(log, append.append_told(self.stream_id, messages))
        except MessageTooLarge as error:
            raise RowError(
                f"The row with id {messages[error.index].id!r}: body: {error.size_bytes:,} bytes; the stream takes "
                f"{error.limit_bytes:,}."
            ) from None

    def _asked(self, log: Log, operation: Op[T]) -> T:
        try:
            return log.run(operation)
        except StoreUnavailable as error:
            raise RuntimeError(
                f"The store of the streams does not answer: {error} Writing the same rows again is safe."
            ) from None
        except MessageTooLarge:
            raise
        except LogError as error:
            raise RuntimeError(refusal_of(error, stream=self.target.stream).message) from None

    def _connect(self) -> Log:
        return Log(self.target.url, memory_url=self.target.memory_url)


class OkmqWriter(_Writing, DataSourceArrowWriter):
    """A batch write. What a failed job has published stays; the same job again publishes the rest."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        return self.publish(_rows(iterator))


class OkmqStreamWriter(_Writing, DataSourceStreamArrowWriter):
    """A streaming write."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        return self.publish(_rows(iterator))


class OkmqStreamRowWriter(_Writing, DataSourceStreamWriter):
    """A streaming write of PySpark 4.0, which gives rows, no Arrow batches."""

    def write(self, iterator: Iterator[Row]) -> Published:
        return self.publish(row.asDict() for row in iterator)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _check_columns(schema: StructType) -> None:
    allowed = ", ".join(f"{name} {'|'.join(sorted(types))}" for name, types in COLUMNS.items())
    held = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name, kind in held.items():
        if name not in COLUMNS:
            raise OptionError(f"A message has no column {name!r}; select those of {allowed}.")
        if kind not in COLUMNS[name]:
            raise OptionError(
                f"Column {name!r} of a message is {'|'.join(sorted(COLUMNS[name]))}, not {kind}."
            )
    for name in REQUIRED:
        if name not in held:
            raise OptionError(f"Column {name!r} is missing: a message is {allowed}.")


def _key_patterns(stream_id: str) -> Op[tuple[str, ...]]:
    """The patterns of the keys that the stream takes now; none where it takes all."""
    settings = yield from config.stream_settings(stream_id)
    return tuple((settings or {}).get("keys", ()))


def _stream(log: Log, target: Target) -> str:
    """The stream's internal id."""
    try:
        registered = log.run(config.streams())
        for each in registered:
            if (each.workspace, each.name, each.internal) == (target.workspace, target.stream, False):
                return each.stream_id
    except StoreUnavailable as error:
        raise RuntimeError(f"The store of the streams does not answer: {error}") from None
    raise OptionError(f"There is no stream {target.stream!r} in workspace {target.workspace!r}.")


def _message(row: Mapping[str, Any], patterns: Sequence[str]) -> NewMessage:
    """A row as a message.

    Raises:
        RowError: it is none that the stream takes.
    """
    message_id, text, key, ttl = row["id"], row["body"], row.get("key"), row.get("ttl")

    def refuse(sentence: str) -> NoReturn:
        raise RowError(f"The row with id {message_id!r}: {sentence}")

    if not message_id or len(message_id) > LONGEST_ID:
        refuse(f"id: expected 1 to {LONGEST_ID} characters.")
    if text is None:
        refuse("body: expected JSON text; the JSON null is the text 'null'.")
    body = text.strip(" \t\n\r").encode()
    if not _holds_json(body):
        refuse("body: this is not JSON text, or nested too deep.")
    if key is not None and (fault := naming.key_fault(key)):
        refuse(f"key: {fault}")
    if patterns and (key is None or not naming.matches_any(key, patterns)):
        refuse(f"key: the stream accepts {', '.join(patterns)}, not {key!r}.")
    if ttl is not None and not 1 <= ttl <= LONGEST_TTL_S:
        refuse(f"ttl: expected seconds from 1 to {LONGEST_TTL_S}.")
    headers = _headers(row.get("headers"), refuse)
    return NewMessage(id=message_id, body=body, key=key, headers=headers, ttl_s=ttl)


def _headers(
    given: Mapping[str, str | None] | Sequence[tuple[str, str | None]] | None, refuse: Any
) -> bytes | None:
    if given is None:
        return None
    headers = dict(given)
    if None in headers.values():
        refuse("headers: expected texts; one is null.")
    packed = msgspec.json.encode(headers)
    if len(packed) > LARGEST_HEADERS_BYTES:
        refuse(f"headers: expected at most {LARGEST_HEADERS_BYTES} bytes.")
    return packed


def _holds_json(body: bytes) -> bool:
    if is_deeper(body, DEEPEST - 2):
        return False
    try:
        _is_json(body)
    except msgspec.MsgspecError:
        return _is_json_with_surrogates(body)
    return True


def _is_json_with_surrogates(body: bytes) -> bool:
    """Whether it is JSON after all: msgspec does not pass an escaped lone surrogate, which a stream takes."""
    if b"\\ud" not in body.lower():
        return False
    try:
        json.loads(body, parse_constant=_no_constant)
    except ValueError:
        return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
