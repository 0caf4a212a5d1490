"""The files of a history, read without Spark, held against what was acknowledged.

Messages are numbered: the n-th of a stream has the offset n, and its id tells the rest of it.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from pyarrow import parquet

COLUMNS = ["offset", "timestamp", "id", "key", "body"]
KINDS = ("lost", "doubled", "changed", "out of order", "never sent", "left behind")


@dataclass(frozen=True, kw_only=True)
class Written:
    """One stream: every message from 1 to the last was acknowledged.

    Attributes:
        name: of its messages; a stream that is made again under its name has another one.
        deleted: the history may end anywhere, as nobody waited for it.
    """

    name: str
    last: int
    deleted: bool = False


def message(name: str, number: int) -> dict[str, Any]:
    """The message of that number, as it is published."""
    return {
        "id": f"{name}-{number}",
        "key": f"k.{number % 7}",
        "body": {"n": number, "of": name, "filler": "x" * (number % 97)},
    }


def judged(history: Path, written: Sequence[Written]) -> dict[str, list[str]]:
    """What is wrong, in sentences, by one of ``KINDS``; nothing may write to the history meanwhile."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    counting = _files(history)
    there = {str(path.relative_to(history)) for path in history.glob("workspace_id=*/**/*.parquet")}
    found["lost"] += [f"{path} counts and is not there" for path in sorted(counting.keys() - there)]
    found["left behind"] += [
        f"{path} is there and does not count" for path in sorted(there - counting.keys())
    ]
    by_stream: dict[str, list[str]] = {}
    for path in sorted(counting.keys() & there, key=lambda path: counting[path]):
        by_stream.setdefault(path.split("/")[1], []).append(path)
    known = {each.name: each for each in written}
    seen = set()
    for stream, paths in by_stream.items():
        name = next(_rows(history / paths[0]))["id"].rpartition("-")[0]
        if name in known and name not in seen:
            _judge(found, known[name], [history / path for path in paths])
        elif name in known:
            found["doubled"].append(f"{name} is there as {stream}, too")
        seen.add(name)
    missing = [each for each in written if each.last and not each.deleted and each.name not in seen]
    found["lost"] += [f"nothing is there of {each.name}" for each in missing]
    return found


def _judge(found: Mapping[str, list[str]], stream: Written, paths: Sequence[Path]) -> None:
    """Hold the rows of one stream against its messages."""
    times: dict[int, Any] = {}
    for path in paths:
        before = 0
        for row in _rows(path):
            offset, where = row["offset"], f"{stream.name} {row['offset']} in {path.name}"
            if offset in times:
                found["doubled"].append(where)
            elif not 1 <= offset <= stream.last:
                found["never sent"].append(where)
            elif not _is_as_sent(row, stream.name):
                found["changed"].append(f"{where}: {row['id']}")
            if offset < before:
                found["out of order"].append(f"{where} stands below {before}")
            before = offset
            times[offset] = row["timestamp"]
    wanted = max(times, default=0) if stream.deleted else stream.last
    found["lost"] += [f"{stream.name} {offset}" for offset in range(1, wanted + 1) if offset not in times]
    in_order = sorted(times.items())
    found["out of order"] += [
        f"{stream.name} {offset} is older than the one before"
        for (_, before_at), (offset, at) in itertools.pairwise(in_order)
        if at < before_at
    ]


def _is_as_sent(row: Mapping[str, Any], name: str) -> bool:
    sent = message(name, row["offset"])
    body = msgspec.json.encode(sent["body"]).decode()
    return (row["id"], row["key"], row["body"]) == (sent["id"], sent["key"], body)


def _files(history: Path) -> dict[str, int]:
    """The files that count, each with its first offset, as the log of batches tells them."""
    batches = [msgspec.json.decode(path.read_bytes()) for path in sorted((history / "_log").glob("0*.json"))]
    removed = {path for batch in batches for path in batch["removed"]}
    return {
        file["path"]: file["first"]
        for batch in batches
        for file in batch["files"]
        if file["path"] not in removed
    }


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Only of this file: its folders' names are no columns of it."""
    for batch in parquet.ParquetFile(path).iter_batches(columns=COLUMNS):
        yield from batch.to_pylist()
