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
from streams.log.counts import HIGHEST, MEASURES, Counts, Quiet

RECORDS_AT_ONCE = 10_000
"""Records of one run of the counting: some hours of a worker that makes one a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """How a stream's own position (``group`` is empty) or a group stood in the window that begins at ``start`` (UTC).

    Attributes:
        samples: how many there are.
        last_ms: unix ms of the last one.
        counted: the counters as the last sample that says them has them; None without one.
        counted_first: as the first of all that says them has them; None in windows that this does not lie in.
        counted_grown: by how much they grew from sample to sample, without what the first of all brought.
        ack_ms, ack_ms_first, ack_ms_grown: the same of ms from publish to acknowledgement → how many messages.
        highest: each of ``HIGHEST`` → its highest value; what no sample says is not in it.
        seen: measure → value → in how many samples; values as ``spark.transforms.standing.bucket`` counts them.
        statuses: status → in how many samples; None without a sample that says it.
        edge_ms: the lowest, in how many ms a limit removes the oldest message not acknowledged.
        quiet: what ``streams.log.counts.quiet_kept`` keeps; None without a sample that says it.
    """

    stream_id: str
    group: str
    step: str
    start: datetime
    samples: int
    last_ms: int
    counted: Counts | None
    counted_first: Counts | None
    counted_grown: dict[str, int]
    ack_ms: Counts | None
    ack_ms_first: Counts | None
    ack_ms_grown: dict[str, int]
    highest: dict[str, int]
    seen: dict[str, dict[int, int]]
    statuses: dict[str, int] | None
    edge_ms: int | None
    quiet: list[Quiet] | None


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
        .schema("offset bigint, body string")
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
        counted=_counts(known["counted_last"]),
        counted_first=_counts(known["counted_first"]),
        counted_grown=dict(known["counted_grown"] or {}),
        ack_ms=_counts(known["ack_ms_last"]),
        ack_ms_first=_counts(known["ack_ms_first"]),
        ack_ms_grown=dict(known["ack_ms_grown"] or {}),
        highest={name: known[f"{name}_max"] for name in HIGHEST if known[f"{name}_max"] is not None},
        seen={name: _by_value(known[f"{name}_seen"]) for name in MEASURES},
        statuses=dict(known["status_seen"] or {}) or None,
        edge_ms=known["edge_ms_min"],
        quiet=[(each["at"], each["ms"]) for each in known["quiet"]] or None,
    )


def _counts(known: Row | None) -> Counts | None:
    return None if known is None else Counts(known["made_ms"], dict(known["of"]))


def _by_value(seen: dict[str, int] | None) -> dict[int, int]:
    return {int(value): times for value, times in (seen or {}).items()}
