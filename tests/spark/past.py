"""A made past: messages of random sizes, keys, gaps and ids that come twice, over days, as rows of the history."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from spark import schemas
from spark.history import History

Row = tuple[Any, ...]
WORKSPACE, STREAM, OFFSET, TIMESTAMP, ID, KEY, BODY, BYTES = 0, 1, 3, 4, 5, 6, 8, 9


def past(stream_id: str, *, seed: int, days: int = 2, messages: int = 1200, first: int = 1) -> list[Row]:
    """Messages as ``schemas.MESSAGES``, in the order of their offsets and times; some offsets are missing."""
    chance = random.Random(seed)
    at = datetime(2026, 3, 1, tzinfo=UTC)
    moments = sorted(chance.randrange(days * 86_400_000) for _ in range(messages))
    offset, rows = first - 1, []
    for n, milliseconds in enumerate(moments):
        offset += 1 if chance.random() < 0.9 else chance.randrange(2, 50)
        key = None if chance.random() < 0.1 else f"k.{int(chance.paretovariate(0.4)) % 400}"
        body = json.dumps({"n": n, "x": "x" * int(chance.paretovariate(0.5) % 5000)})
        time = at + timedelta(milliseconds=milliseconds)
        id_ = f"m{chance.randrange(messages * 5)}"
        rows.append((1, stream_id, "s", offset, time, id_, key, None, body, len(body)))
    return rows


def remember(history: History, rows: list[Row], *, start: int = 0) -> int:
    """Put messages of one stream into a history as its next batch; the last offset."""
    session: SparkSession = history.session
    frame = session.createDataFrame(rows, schemas.MESSAGES).coalesce(1)
    stream_id, last = rows[0][STREAM], rows[-1][OFFSET]
    batch_id = len(list(history.archived()))
    history.append(frame, query="past", batch_id=batch_id, start={stream_id: start}, end={stream_id: last})
    return int(last)
