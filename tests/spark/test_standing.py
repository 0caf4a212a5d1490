"""How groups stood, from made samples, against plain Python."""

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.jobs import standing as job
from spark.jobs.settings import JobSettings
from streams.log import config, trim
from streams.log.config import Registered
from streams.log.counts import COUNTERS, OF_GROUPS
from streams.log.entries import NewMessage
from streams.models import StandingRollup, Stream, Workspace
from streams.services.history import Progressed
from streams.services.standing import StoodPoint, standing_add
from tests.spark.published import Published

pytestmark = pytest.mark.spark

BEGIN_MS = 1_767_225_600_000 + 57 * 60_000  # 2026-01-01T00:57Z: the samples cross an hour
STATUSES = ("ok", "slow", "catching up", "unknown")
LENGTHS_S = {"minute": 60, "hour": 3600, "day": 86_400}

Stood = dict[tuple[str, str, str, int], dict[str, Any]]


def made(count: int) -> list[dict[str, Any]]:
    """Records as the worker writes them: of streams each second, of groups every ten; some of an earlier version.

    These say no status and what goes with it. Group ``h`` is deleted and made again inside a minute, one of its lives
    outgrows the one before at once, and once the store lost its last moments. Stream ``m-s`` was in memory and lost.
    """
    chance = random.Random(7)
    ever: dict[str, int] = defaultdict(int)
    ack_ms: dict[str, dict[str, int]] = {"g": {}, "h": {"7": 1}}
    lives: dict[str, Any] = {"g": None, "h": 1000}
    records: list[dict[str, Any]] = []
    for n in range(count):
        ever["duplicates"] += chance.randrange(3)
        ever["removed"] += chance.randrange(50) if n % 7 == 0 else 0
        lag = int(chance.paretovariate(0.4)) % 10**9
        records.append(
            {
                "at": BEGIN_MS + n * 1000,
                "streams": {
                    "s": {
                        "name": "a",
                        "lag": lag,
                        "duplicates": ever["duplicates"],
                        "removed": ever["removed"],
                    },
                    "m-s": {"name": "b", "lag": lag, "duplicates": n % 130},
                },
            }
        )
        if n in (95, 127, 255):
            lives["h"] += n
            ever |= {"h" + name: 10_000 if n == 127 else 0 for name in OF_GROUPS}
            ack_ms["h"] = {"7": 10**7} if n == 127 else {}
        if n == 305:
            ever["hdeliveries"] //= 2
        if n % 10 == 0:
            groups = {}
            for group in ("g", "h"):
                for name in OF_GROUPS:
                    ever[group + name] += chance.randrange(5)
                groups[group] = {
                    "lag": chance.randrange(300),
                    "lag_seconds": round(chance.paretovariate(0.5) % 10_000, 3),
                    "made": lives[group],
                    **(watched(chance) if n < 60 or n % 40 else {}),
                    **{name: ever[group + name] for name in OF_GROUPS},
                    **({"ack_ms": ack_ms[group]} if n % 70 else {}),
                }
                place, more = str(chance.randrange(200)), chance.randrange(1, 10**6)
                ack_ms[group] = {**ack_ms[group], place: ack_ms[group].get(place, 0) + more}
            records.append({"at": BEGIN_MS + n * 1000 + 3, "streams": {}, "groups": {"s": groups}})
    records.append({"at": BEGIN_MS, "streams": {"s": {"name": "a", "lag": 1}}})
    return records


def watched(chance: random.Random) -> dict[str, Any]:
    """What rules watch besides; often nobody is about to lose anything, and the same silence is seen twice."""
    return {
        "status": chance.choice(STATUSES),
        "dead": chance.randrange(10),
        "edge": chance.choice([None, round(chance.uniform(-5, 10_000), 3)]),
        "quiet": chance.choice([0.0, 12.5, round(chance.uniform(0, 100), 3)]),
    }


def bucket_by_hand(value: int) -> int:
    shift = max(0, value.bit_length() - 7)
    return value >> shift << shift


def sampled_by_hand(records: list[dict[str, Any]]) -> Iterator[tuple[str, str, int, dict[str, Any]]]:
    for record in records:
        for stream_id, figures in record["streams"].items():
            yield stream_id, "", record["at"], figures
        for stream_id, groups in record.get("groups", {}).items():
            for group, figures in groups.items():
                yield stream_id, group, record["at"], figures


def stood_by_hand(records: list[dict[str, Any]]) -> Stood:
    found: Stood = {}
    for stream_id, group, at_ms, figures in sampled_by_hand(records):
        for step, length_s in LENGTHS_S.items():
            start_s = at_ms // 1000 // length_s * length_s
            empty = {
                "samples": 0,
                "last_ms": 0,
                "counted": {},
                "ack_ms": None,
                "highest": {},
                "seen": {"lag": {}, "lag_ms": {}},
                "statuses": Counter(),
                "edges": [],
                "quiet": [],
            }
            held = found.setdefault((stream_id, group, step, start_s), empty)
            held["samples"] += 1
            held["last_ms"] = max(at_ms, held["last_ms"])
            held["counted"] |= {name: figures[name] for name in COUNTERS if name in figures}
            held["ack_ms"] = figures.get("ack_ms", held["ack_ms"])
            values = {"lag": figures["lag"]}
            if group:
                values["lag_ms"] = round(figures["lag_seconds"] * 1000)
            held["statuses"] += Counter([figures["status"]] if "status" in figures else [])
            held["edges"] += in_ms(figures.get("edge"))
            held["quiet"] += [(at_ms, ms) for ms in in_ms(figures.get("quiet"))]
            if "dead" in figures:
                held["highest"]["dead"] = max(figures["dead"], held["highest"].get("dead", 0))
            for name, value in values.items():
                held["highest"][name] = max(value, held["highest"].get(name, 0))
                place = bucket_by_hand(value)
                held["seen"][name][place] = held["seen"][name].get(place, 0) + 1
    for held in found.values():
        held["edges"] = min(held["edges"], default=None)
        held["quiet"] = kept_by_hand(held["quiet"])
    return found


def in_ms(seconds: float | None) -> list[int]:
    return [] if seconds is None else [round(seconds * 1000)]


def kept_by_hand(quiet: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first after the longest silence, the first after the shortest, and the last."""
    silences = [ms for _, ms in quiet]
    first_of = (
        [next(each for each in quiet if each[1] == ms) for ms in (max(silences), min(silences))]
        if quiet
        else []
    )
    return sorted({*first_of, *quiet[-1:]})


def stood_by_spark(stood: list[job.Stood]) -> Stood:
    return {
        (each.stream_id, each.group, each.step, int(each.start.timestamp())): {
            "samples": each.samples,
            "last_ms": each.last_ms,
            "counted": {} if each.counted is None else each.counted.of,
            "ack_ms": None if each.ack_ms is None else each.ack_ms.of,
            "highest": each.highest,
            "seen": each.seen,
            "statuses": each.statuses or {},
            "edges": each.edge_ms,
            "quiet": each.quiet or [],
        }
        for each in stood
    }


def stood_by_rows() -> dict[tuple[str, str, str, int], Any]:
    """What the rows of groups say of what rules watch."""
    return {
        (row.stream_id, row.group, row.step, int(row.start.timestamp())): (
            row.samples,
            row.dead_max,
            row.status_seen or {},
            row.edge_ms_min,
            [tuple(each) for each in row.quiet or ()],
        )
        for row in StandingRollup.objects.all()
    }


def grown_by_hand(records: list[dict[str, Any]]) -> dict[tuple[str, str, str, int], list[Counter[str]]]:
    """What was counted, and acknowledged after so long, in each window that anything was in, told from life to life."""
    found: dict[tuple[str, str, str, int], list[Counter[str]]] = {}
    lives: dict[tuple[str, str, bool], tuple[Any, dict[str, int]]] = {}
    for stream_id, group, at_ms, figures in sampled_by_hand(records):
        for kind, now in (
            (0, {name: figures[name] for name in COUNTERS if name in figures}),
            (1, figures.get("ack_ms")),
        ):
            if not now:
                continue
            life, before = lives.get((stream_id, group, bool(kind)), (None, {}))
            if stream_id == "m-s" and now["duplicates"] == 0:
                before = {}
            if group == "h" and life != figures["made"]:
                before = {}
            lives[stream_id, group, bool(kind)] = figures.get("made"), now
            for step, length_s in LENGTHS_S.items():
                start_s = at_ms // 1000 // length_s * length_s
                held = found.setdefault((stream_id, group, step, start_s), [Counter(), Counter()])
                held[kind] += Counter({name: max(0, now[name] - before.get(name, 0)) for name in now})
    return found


@pytest.fixture
def metrics(published: Published) -> Registered:
    stream_id = published.stream("_metrics", internal=True, archive=False)
    (found,) = [each for each in published.log.run(config.streams()) if each.stream_id == stream_id]
    return found


def publish(published: Published, metrics: Registered, records: list[dict[str, Any]]) -> int:
    bodies = [NewMessage(id=f"{n}", body=json.dumps(each).encode()) for n, each in enumerate(records)]
    return published.publish(metrics.stream_id, bodies)


def test_every_window_of_every_group_is_as_counted_by_hand_also_in_parts(
    spark: SparkSession,
    published: Published,
    metrics: Registered,
    settings_of_job: JobSettings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = made(400)
    last = publish(published, metrics, records)
    whole = job.standing(spark, settings_of_job, metrics=metrics, counted=0)
    assert whole is not None
    assert stood_by_spark(whole.stood) == stood_by_hand(records)
    assert (whole.from_offset, whole.to_offset) == (0, last)
    assert whole.fresh_to == datetime.fromtimestamp(max(each["at"] for each in records) / 1000, UTC)
    assert job.standing(spark, settings_of_job, metrics=metrics, counted=last) is None
    published.log.run(trim.purge(metrics.stream_id, below=101))
    monkeypatch.setattr(job, "RECORDS_AT_ONCE", 150)
    part = job.standing(spark, settings_of_job, metrics=metrics, counted=50)
    assert part is not None
    assert (part.from_offset, part.to_offset) == (50, 250)
    assert stood_by_spark(part.stood) == stood_by_hand(records[100:250])


@pytest.mark.django_db
@pytest.mark.parametrize("at_once", [1000, 173])
def test_how_a_group_stood_is_counted_whole_also_in_parts_and_where_it_was_made_again(
    spark: SparkSession,
    published: Published,
    metrics: Registered,
    settings_of_job: JobSettings,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
) -> None:
    workspace, _ = Workspace.objects.get_or_create(name="standing")
    for stream_id, storage in (("s", "durable"), ("m-s", "memory")):
        Stream.objects.create(workspace=workspace, name=stream_id, stream_id=stream_id, storage=storage)
    monkeypatch.setattr(job, "RECORDS_AT_ONCE", at_once)
    records = made(400)
    publish(published, metrics, records)
    counted = 0
    while found := job.standing(spark, settings_of_job, metrics=metrics, counted=counted):
        standing_add(
            [StoodPoint(**asdict(each)) for each in found.stood],
            position=Progressed(
                stream_id=metrics.stream_id,
                from_offset=found.from_offset,
                to_offset=found.to_offset,
                fresh_to=found.fresh_to,
            ),
        )
        counted = found.to_offset
    by_spark = {
        (row.stream_id, row.group, row.step, int(row.start.timestamp())): [
            Counter(row.grown),
            Counter(row.ack_ms_seen),
        ]
        for row in StandingRollup.objects.all()
    }
    assert by_spark == grown_by_hand(records)
    assert stood_by_rows() == {
        window: (each["samples"], each["highest"].get("dead"), each["statuses"], each["edges"], each["quiet"])
        for window, each in stood_by_hand(records).items()
    }


def test_numbers_are_counted_at_most_a_64th_too_low() -> None:
    chance = random.Random(3)
    for value in (*range(300), *(chance.randrange(2**40) for _ in range(1000))):
        assert value * (1 - 1 / 64) <= bucket_by_hand(value) <= value
        assert value >= 128 or bucket_by_hand(value) == value
    assert len({bucket_by_hand(value) for value in range(100_000)}) < 64 * math.log2(100_000)
