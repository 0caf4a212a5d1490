"""What the history's files hold, read without Spark: its log of batches, which names each file and its offsets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from okmq.env import Env


def archived_offsets(env: Env) -> dict[str, int]:
    """Internal id → the last offset that the history has; nothing of a history that is no folder of this machine.

    Raises:
        OSError, ValueError: its log cannot be read.
    """
    found: dict[str, int] = {}
    for batch in batches(env):
        for stream_id, offset in batch["end"].items():
            found[stream_id] = max(found.get(stream_id, 0), offset)
    return found


def batches(env: Env) -> Iterator[dict[str, Any]]:
    """The entries of the history's log in their order (``spark.batches``).

    Raises:
        OSError, ValueError: its log cannot be read.
    """
    if "://" in env.history_url:
        return
    for path in sorted(Path(env.history_url, "_log").glob("[0-9]*.json")):
        yield msgspec.json.decode(path.read_bytes())
