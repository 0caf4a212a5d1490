"""The options of the source ``okmq``, checked before anything is read."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from streams import addresses, moments, naming

EARLIEST = "earliest"
LATEST = "latest"
KNOWN = (
    "url",
    "memoryUrl",
    "workspace",
    "stream",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "rowsPerPartition",
    "failOnDataLoss",
    "pushFilters",
    "view",
)
KNOWN_OF_WRITER = ("url", "memoryUrl", "workspace", "stream")
SECRET = frozenset({"url", "memoryUrl"})
"""They may have a password inside, also where they cannot be read: not shown."""
_SPARKS = frozenset({"checkpointlocation", "queryname"})
DEFAULT_ROWS_PER_PARTITION = 50_000
# The place of "earliest" and "latest" inside a map of offsets, as in Spark's Kafka source.
MAP_EARLIEST, MAP_LATEST = -2, -1
LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""

T = TypeVar("T")
Offsets = str | Mapping[str, int]
"""``earliest``, ``latest``, or stream name → offset (-2 earliest, -1 latest)."""


class OptionError(Exception):
    """An option of the source cannot be used; the message is one sentence for a person.

    No ``ValueError``: an operation that meets one has met something in the store that cannot be read.
    """


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a reader was asked for.

    Attributes:
        url: ``redis://``, ``rediss://`` or ``unix://`` of the log's store.
        memory_url: the same of the server that holds the streams in memory; None where there is none.
        workspace: a workspace's name; ``*`` is all of them.
        streams: names and patterns (``*`` is any run of characters).
        starting, ending: first offset to read, first one not to read; None is the default of the kind of read.
        starting_ms, ending_ms: unix ms at or after which the first message is the first to read, the first not to
            read; instead of the offsets above.
        latest_where_none: whether a stream without anything so new is begun at its end.
        max_offsets: most offsets in one micro-batch, or None.
        min_partitions: fewest tasks that a read is split into, while there are rows enough.
        rows_per_partition: most offsets in one task.
        fail_on_data_loss: whether offsets asked for but no longer there end the read with an error.
        push_filters: whether the source does a query's comparisons itself.
        archive: the history's own view (see ``OkmqDataSource``).
    """

    url: str
    memory_url: str | None
    workspace: str
    streams: tuple[str, ...]
    starting: Offsets | None
    ending: Offsets | None
    starting_ms: int | None
    ending_ms: int | None
    latest_where_none: bool
    max_offsets: int | None
    min_partitions: int
    rows_per_partition: int
    fail_on_data_loss: bool
    push_filters: bool
    archive: bool


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a writer writes: the stores, as ``Options`` has them, and a stream in a workspace."""

    url: str
    memory_url: str | None
    workspace: str
    stream: str


def parse(given: Mapping[str, str], *, environ: Mapping[str, str] | None = None) -> Options:
    """Check the options that a reader was given; their names are case-insensitive.

    Args:
        environ: where the defaults of ``url`` and ``memoryUrl`` come from (``OKMQ_REDIS_URL``,
            ``OKMQ_MEMORY_REDIS_URL``); the process's own when None.

    Raises:
        OptionError: naming the option, its value and what is allowed.
    """
    read = _reader(given, known=KNOWN)
    url, memory_url = _stores(read, os.environ if environ is None else environ)
    streams = read("stream", _names, None)
    if streams is None:
        raise OptionError("Option stream is missing: a name, names separated by commas, or a pattern with *.")
    archive, starting_ms, ending_ms = (
        read("view", _view, False),
        read("startingTimestamp", _moment, None),
        read("endingTimestamp", _moment, None),
    )
    if archive and (starting_ms, ending_ms) != (None, None):
        raise OptionError("Options startingTimestamp and endingTimestamp do not go with view=archive.")
    return Options(
        url=url,
        memory_url=memory_url,
        workspace=read("workspace", _workspace, "default"),
        streams=streams,
        starting=read("startingOffsets", _offsets, None),
        ending=read("endingOffsets", _offsets, None),
        starting_ms=starting_ms,
        ending_ms=ending_ms,
        latest_where_none=read("startingOffsetsByTimestampStrategy", _strategy, False),
        max_offsets=read("maxOffsetsPerTrigger", _whole, 0) or None,
        min_partitions=read("minPartitions", _whole, 1),
        rows_per_partition=read("rowsPerPartition", _whole, DEFAULT_ROWS_PER_PARTITION),
        fail_on_data_loss=read("failOnDataLoss", _switch, True),
        push_filters=read("pushFilters", _switch, False),
        archive=archive,
    )


def demand_batch(options: Options) -> None:
    """Refuse a start at the end, and an end at the start, as Spark's Kafka source does: such a batch has no rows,
    whatever the streams hold. Beside a time, which goes before the offsets, these say nothing.

    Raises:
        OptionError: naming the option, its value and what is allowed.
    """
    if options.starting_ms is None:
        _demand_other(
            options.starting,
            word=LATEST,
            mark=MAP_LATEST,
            name="startingOffsets",
            expected="earliest or a JSON object of stream names and first offsets (from 1, or -2 for earliest)",
            why="A batch that starts at the latest has no rows; only a streaming query starts there.",
        )
    if options.ending_ms is None:
        _demand_other(
            options.ending,
            word=EARLIEST,
            mark=MAP_EARLIEST,
            name="endingOffsets",
            expected="latest or a JSON object of stream names and first offsets not to read (from 1, or -1 for latest)",
            why="A batch that ends at the earliest has no rows.",
        )


def _demand_other(asked: Offsets | None, *, word: str, mark: int, name: str, expected: str, why: str) -> None:
    """Refuse one place, as a word for all streams or as its number in a map."""
    if asked is None:
        return
    if isinstance(asked, str):
        if asked == word:
            raise OptionError(f"Option {name}={word!r}: expected {expected}. {why}")
        return
    for stream, offset in asked.items():
        if offset == mark:
            raise OptionError(
                f"Option {name}: {mark} ({word}) is given for {stream!r}; expected {expected}. {why}"
            )


def parse_target(given: Mapping[str, str], *, environ: Mapping[str, str] | None = None) -> Target:
    """Check the options that a writer was given; beside its own it may have those that are Spark's.

    Raises:
        OptionError: naming the option, its value and what is allowed.
    """
    read = _reader(
        {name: value for name, value in given.items() if name.lower() not in _SPARKS}, known=KNOWN_OF_WRITER
    )
    url, memory_url = _stores(read, os.environ if environ is None else environ)
    stream = read("stream", _name, "")
    if not stream:
        raise OptionError("Option stream is missing: the name of the stream to write to.")
    return Target(
        url=url, memory_url=memory_url, workspace=read("workspace", _one_workspace, "default"), stream=stream
    )


class _Read(Protocol):
    """Reads one option: its name, how its text is understood, and what it is where it was not given."""

    def __call__(self, name: str, parse_value: Callable[[str], T], default: T) -> T: ...


def _reader(given: Mapping[str, str], *, known: Sequence[str]) -> _Read:
    names = {name.lower(): name for name in known}
    values = {name.lower(): value for name, value in given.items()}
    unknown = sorted(set(values) - set(names))
    if unknown:
        raise OptionError(f"Unknown option {unknown[0]!r} of okmq; known here are {', '.join(known)}.")

    def read(name: str, parse_value: Callable[[str], T], default: T) -> T:
        value = values.get(name.lower())
        if value is None:
            return default
        try:
            return parse_value(value)
        except ValueError as error:
            shown = name if name in SECRET else f"{name}={value!r}"
            raise OptionError(f"Option {shown}: {error}") from None

    return read


def _stores(read: _Read, surroundings: Mapping[str, str]) -> tuple[str, str | None]:
    """The addresses of the durable server and of the one in memory."""
    url = read("url", addresses.of_store, "") or surroundings.get("OKMQ_REDIS_URL")
    if not url:
        raise OptionError("Option url is missing, and OKMQ_REDIS_URL is not set: where is the store?")
    return url, read("memoryUrl", addresses.of_server, "") or surroundings.get(
        "OKMQ_MEMORY_REDIS_URL"
    ) or None


def _name(text: str) -> str:
    if not naming.is_name(text.strip()):
        raise ValueError("expected the name of one stream.")
    return text.strip()


def _one_workspace(text: str) -> str:
    if not naming.is_name(text.strip()):
        raise ValueError("expected a workspace's name.")
    return text.strip()


def _names(text: str) -> tuple[str, ...] | None:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_*][A-Za-z0-9._*-]{0,49}", name):
            raise ValueError("expected a stream's name, names separated by commas, or a pattern with *.")
    return names


def _workspace(text: str) -> str:
    if text.strip() == "":
        raise ValueError("expected a workspace's name, or * for all of them.")
    return text.strip()


def _offsets(text: str) -> Offsets | None:
    word = text.strip()
    if word.lower() in {EARLIEST, LATEST}:
        return word.lower()
    expected = (
        'expected earliest, latest, or a JSON object of stream names and offsets such as {"orders": 42}.'
    )
    try:
        found: Any = json.loads(word)
    except ValueError:
        raise ValueError(expected) from None
    if not isinstance(found, dict) or not found:
        raise ValueError(expected)
    for offset in found.values():
        if type(offset) is not int or (offset < 1 and offset not in {MAP_EARLIEST, MAP_LATEST}):
            raise ValueError("expected offsets from 1, or -2 (earliest), -1 (latest).")
    return found


def _moment(text: str) -> int | None:
    word = text.strip()
    if re.fullmatch(r"[0-9]{1,15}", word) and int(word) <= LATEST_MS:
        return int(word)
    found = moments.parse(word)
    if found is None:
        raise ValueError("expected a time such as 2026-11-21T00:00:00Z, or unix ms.")
    return -((datetime(1970, 1, 1, tzinfo=UTC) - found) // timedelta(milliseconds=1))


def _strategy(text: str) -> bool:
    if text.lower() not in {"error", "latest"}:
        raise ValueError("expected error or latest.")
    return text.lower() == "latest"


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text.strip()) or int(text) < 1:
        raise ValueError("expected a whole number from 1.")
    return int(text)


def _switch(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("expected true or false.")
    return text.lower() == "true"


def _view(text: str) -> bool:
    if text.lower() not in {"visible", "archive"}:
        raise ValueError("expected visible or archive.")
    return text.lower() == "archive"
