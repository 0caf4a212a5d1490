"""What the history has, read without Spark: its log of batches, which names each file and its offsets."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from okmq.env import Env


def archived_offsets(env: Env) -> dict[str, int]:
    """Internal id → the last offset that the history has; nothing of a history that is no folder of this machine.

    Raises:
        OSError, ValueError: its log cannot be read.
    """
    return ends_of(batches(env))


def batches(env: Env) -> list[dict[str, Any]]:
    """The entries of the history's log in their order (``spark.batches``); none of one that is no folder here.

    Raises:
        OSError, ValueError: its log cannot be read.
    """
    if "://" in env.history_url:
        return []
    paths = sorted(Path(env.history_url, "_log").glob("[0-9]*.json"))
    return [msgspec.json.decode(path.read_bytes()) for path in paths]


def ends_of(batches: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Internal id → the last offset in these batches."""
    found: dict[str, int] = {}
    for batch in batches:
        for stream_id, offset in batch["end"].items():
            found[stream_id] = max(found.get(stream_id, 0), offset)
    return found
