"""Counts what the worker sampled of streams and groups: how far they lagged, what came again, what was given up."""

import json
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Row, SparkSession

from spark.jobs.settings import JobSettings
from spark.positions import positions
from spark.transforms import standing as transforms
from streams.log.config import Registered

RECORDS_AT_ONCE = 10_000
"""Records of one run of the counting: some hours of a worker that makes one a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """How a stream's own position (``group`` is empty) or a group stood in the window that begins at ``start`` (UTC).

    Attributes:
        samples: how many there are.
        last_ms: unix ms of the last one.
        counters: ever, as the last sample has them; what it does not have is left out.
        ack_ms: ms from publish to acknowledgement → how many messages, ever, as the last sample that says it has them;
            None without one.
        highest: measure → its highest value.
        seen: measure → value → in how many samples; values as ``spark.transforms.standing.bucket`` counts them.
    """

    stream_id: str
    group: str
    step: str
    start: datetime
    samples: int
    last_ms: int
    counters: dict[str, int]
    ack_ms: dict[int, int] | None
    highest: dict[str, int]
    seen: dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What one run counted: the samples above ``from_offset`` up to ``to_offset``, the last of them at ``fresh_to``."""

    stood: list[Stood]
    from_offset: int
    to_offset: int
    fresh_to: datetime | None


def standing(
    session: SparkSession, settings: JobSettings, *, metrics: Registered, counted: int
) -> Standing | None:
    """Count the samples that are not counted yet, at most ``RECORDS_AT_ONCE`` records of them; None without any.

    Args:
        metrics: the internal stream of samples.
        counted: the offset up to which they are counted. What went since is passed over.
    """
    with closing(settings.log()) as log:
        at = log.run(positions([metrics.stream_id])).get(metrics.stream_id)
    if at is None or at.last <= counted:
        return None
    first = max(counted + 1, at.floor)
    end = min(at.last, first + RECORDS_AT_ONCE - 1)
    records = (
        session.read.format("okmq")
        .options(
            url=settings.redis_url,
            workspace=metrics.workspace,
            stream=metrics.name,
            startingOffsets=json.dumps({metrics.name: first}),
            endingOffsets=json.dumps({metrics.name: end + 1}),
            failOnDataLoss="false",
        )
        .schema("body string")
        .load()
    )
    rows = transforms.standing(transforms.samples(records)).collect()
    newest_ms = max((row.last_ms for row in rows), default=None)
    return Standing(
        stood=[_stood(row) for row in rows],
        from_offset=counted,
        to_offset=end,
        fresh_to=None if newest_ms is None else datetime.fromtimestamp(newest_ms / 1000, UTC),
    )


def _stood(row: Row) -> Stood:
    known = row.asDict()
    return Stood(
        stream_id=known["stream_id"],
        group=known["group"],
        step=known["step"],
        start=datetime.fromtimestamp(known["start_s"], UTC),
        samples=known["samples"],
        last_ms=known["last_ms"],
        counters={name: known[name] for name in transforms.COUNTERS if known[name] is not None},
        ack_ms=None
        if known["ack_ms"] is None
        else {int(place): count for place, count in known["ack_ms"].items()},
        highest={
            name: known[f"{name}_max"] for name in transforms.MEASURES if known[f"{name}_max"] is not None
        },
        seen={name: dict(known[f"{name}_seen"] or {}) for name in transforms.MEASURES},
    )
