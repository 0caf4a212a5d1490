"""How groups stood, from made samples, against plain Python."""

import json
import math
import random
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.jobs import standing as job
from spark.jobs.settings import JobSettings
from spark.transforms.standing import COUNTERS
from streams.log import config, trim
from streams.log.entries import NewMessage
from tests.spark.published import Published

pytestmark = pytest.mark.spark

BEGIN_MS = 1_767_225_600_000 + 57 * 60_000  # 2026-01-01T00:57Z: the samples cross an hour
LENGTHS_S = {"minute": 60, "hour": 3600, "day": 86_400}

Stood = dict[tuple[str, str, str, int], dict[str, Any]]


def made(count: int) -> list[dict[str, Any]]:
    """Records as the worker writes them: of streams each second, of groups every ten; one of an earlier version."""
    chance = random.Random(7)
    ever: dict[str, int] = defaultdict(int)
    ack_ms: dict[str, dict[str, int]] = {"g": {}, "h": {"7": 1}}
    records: list[dict[str, Any]] = []
    for n in range(count):
        ever["duplicates"] += chance.randrange(3)
        lag = int(chance.paretovariate(0.4)) % 10**9
        records.append(
            {
                "at": BEGIN_MS + n * 1000,
                "streams": {"s": {"name": "a", "lag": lag, "duplicates": ever["duplicates"], "in": 1.5}},
            }
        )
        if n % 10 == 0:
            groups = {}
            for group in ("g", "h"):
                for name in COUNTERS[:5]:
                    ever[group + name] += chance.randrange(5)
                groups[group] = {
                    "lag": chance.randrange(300),
                    "lag_seconds": round(chance.paretovariate(0.5) % 10_000, 3),
                    "status": "ok",
                    **{name: ever[group + name] for name in COUNTERS[:5]},
                    **({"ack_ms": ack_ms[group]} if n % 70 else {}),
                }
                ack_ms[group] = {**ack_ms[group], str(chance.randrange(200)): chance.randrange(1, 10**6)}
            records.append({"at": BEGIN_MS + n * 1000 + 3, "streams": {}, "groups": {"s": groups}})
    records.append({"at": BEGIN_MS, "streams": {"s": {"name": "a", "lag": 1}}})
    return records


def bucket_by_hand(value: int) -> int:
    shift = max(0, value.bit_length() - 7)
    return value >> shift << shift


def stood_by_hand(records: list[dict[str, Any]]) -> Stood:
    found: Stood = {}
    samples = []
    for record in records:
        for stream_id, figures in record["streams"].items():
            samples.append((stream_id, "", record["at"], figures))
        for stream_id, groups in record.get("groups", {}).items():
            samples += [(stream_id, group, record["at"], figures) for group, figures in groups.items()]
    for stream_id, group, at_ms, figures in sorted(samples, key=lambda each: each[2]):
        for step, length_s in LENGTHS_S.items():
            start_s = at_ms // 1000 // length_s * length_s
            empty = {
                "samples": 0,
                "counters": {},
                "ack_ms": None,
                "highest": {},
                "seen": {"lag": {}, "lag_ms": {}},
            }
            held = found.setdefault((stream_id, group, step, start_s), empty)
            held["samples"] += 1
            held["counters"] |= {name: figures[name] for name in COUNTERS if name in figures}
            if "ack_ms" in figures:
                held["ack_ms"] = {int(place): count for place, count in figures["ack_ms"].items()}
            values = {"lag": figures["lag"]}
            if group:
                values["lag_ms"] = round(figures["lag_seconds"] * 1000)
            for name, value in values.items():
                held["highest"][name] = max(value, held["highest"].get(name, 0))
                place = bucket_by_hand(value)
                held["seen"][name][place] = held["seen"][name].get(place, 0) + 1
    return found


def stood_by_spark(stood: list[job.Stood]) -> Stood:
    return {
        (each.stream_id, each.group, each.step, int(each.start.timestamp())): {
            "samples": each.samples,
            "counters": each.counters,
            "ack_ms": each.ack_ms,
            "highest": each.highest,
            "seen": each.seen,
        }
        for each in stood
    }


def test_every_window_of_every_group_is_as_counted_by_hand_also_in_parts(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id = published.stream("_metrics", internal=True, archive=False)
    records = made(400)
    bodies = [NewMessage(id=f"{n}", body=json.dumps(each).encode()) for n, each in enumerate(records)]
    last = published.publish(stream_id, bodies)
    (metrics,) = [each for each in published.log.run(config.streams()) if each.stream_id == stream_id]
    whole = job.standing(spark, settings_of_job, metrics=metrics, counted=0)
    assert whole is not None
    assert stood_by_spark(whole.stood) == stood_by_hand(records)
    assert (whole.from_offset, whole.to_offset) == (0, last)
    assert whole.fresh_to == datetime.fromtimestamp(max(each["at"] for each in records) / 1000, UTC)
    assert job.standing(spark, settings_of_job, metrics=metrics, counted=last) is None
    published.log.run(trim.purge(stream_id, below=101))
    monkeypatch.setattr(job, "RECORDS_AT_ONCE", 150)
    part = job.standing(spark, settings_of_job, metrics=metrics, counted=50)
    assert part is not None
    assert (part.from_offset, part.to_offset) == (50, 250)
    assert stood_by_spark(part.stood) == stood_by_hand(records[100:250])


def test_numbers_are_counted_at_most_a_64th_too_low() -> None:
    chance = random.Random(3)
    for value in (*range(300), *(chance.randrange(2**40) for _ in range(1000))):
        assert value * (1 - 1 / 64) <= bucket_by_hand(value) <= value
        assert value >= 128 or bucket_by_hand(value) == value
    assert len({bucket_by_hand(value) for value in range(100_000)}) < 64 * math.log2(100_000)
