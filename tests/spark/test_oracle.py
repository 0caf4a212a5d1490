"""The demo's whole year and a stream of random sizes, keys and gaps: what Spark says, plain Python says too."""

import itertools
import json
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from okmq.demo import flights
from spark import query, schemas
from spark.history import History, KnownBatches
from spark.jobs.figures import look
from spark.jobs.profiles import profiles
from spark.jobs.rollup import RolledUp, rollup
from spark.jobs.settings import JobSettings
from spark.tables import Seen
from streams.log import config
from streams.log.config import Registered
from tests.spark.by_hand import looked_at_by_hand, profile_by_hand, start_of, windows_of
from tests.spark.past import BODY, BYTES, ID, KEY, OFFSET, STREAM, TIMESTAMP, Row, past
from tests.spark.published import Published

pytestmark = [pytest.mark.spark, pytest.mark.long]

FLIGHTS, RANDOM = "flights", "random"
BEGINS, MONTH_DAYS = datetime(2026, 1, 1, tzinfo=UTC), 30
BATCHES = 4


@dataclass
class Oracle:
    """Both streams: as rows of plain Python, and in a history."""

    session: SparkSession
    settings: JobSettings
    history: History
    stream_ids: dict[str, str]
    registered: list[Registered]
    rows: list[Row]

    @property
    def archived(self) -> dict[str, int]:
        return {
            stream_id: max(row[OFFSET] for row in self.rows if row[STREAM] == stream_id)
            for stream_id in self.stream_ids.values()
        }

    def asked(self, sql: str) -> list[Any]:
        """The rows of an answer; asked twice, the answers are the same."""
        seen = Seen(
            streams=self.registered,
            metrics_stream=None,
            rollups=lambda steps: pa.table({}),
            groups=lambda steps: pa.table({}),
        )
        first, again = (
            query.ask(self.session, self.settings, sql, seen=seen, known=KnownBatches(), limit=10_000)
            for _ in range(2)
        )
        assert first == again
        assert not first.truncated
        return [json.loads(row) for row in first.rows]


def year(stream_id: str) -> list[Row]:
    """Every departure in the order of the year, which takes a month here: a folder a day is what takes the time."""
    table, rows = flights.load(), []
    pause = timedelta(days=MONTH_DAYS) / len(table)
    for rank in range(len(table)):
        message = table.message(rank)
        body = json.dumps(message["body"])
        at = _whole_ms(BEGINS + rank * pause)
        rows.append(
            (1, stream_id, FLIGHTS, rank + 1, at, message["id"], message["key"], None, body, len(body))
        )
    return rows


def _whole_ms(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def remember(history: History, rows: list[Row], *, batch_id: int, start: int) -> None:
    """Put rows into the history through Arrow: pickled, a year takes a minute."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, ARROW, strict=True)], schema=ARROW
    )
    frame = history.session.createDataFrame(table, schemas.MESSAGES).coalesce(1)
    stream_id = rows[0][STREAM]
    history.append(
        frame, query="oracle", batch_id=batch_id, start={stream_id: start}, end={stream_id: rows[-1][OFFSET]}
    )


ARROW = schemas.arrow(schemas.MESSAGES)


@pytest.fixture
def oracle(spark: SparkSession, published: Published, settings_of_job: JobSettings) -> Oracle:
    stream_ids = {name: published.stream(name) for name in (FLIGHTS, RANDOM)}
    history = History(spark, settings_of_job.history_url)
    streams = [year(stream_ids[FLIGHTS]), past(stream_ids[RANDOM], seed=7, days=5, messages=12_000)]
    batch_id = 0
    for rows in streams:
        start, size = 0, -(-len(rows) // BATCHES)
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            remember(history, some, batch_id=batch_id, start=start)
            start, batch_id = some[-1][OFFSET], batch_id + 1
    registered = published.log.run(config.streams())
    made = Oracle(spark, settings_of_job, history, stream_ids, registered, [*streams[0], *streams[1]])
    for stream_id, last in made.archived.items():
        published.log.run(config.archived_set(stream_id, last))
    return made


def sums_by_hand(rows: list[Row]) -> dict[tuple[str, str, datetime], list[int]]:
    """Stream, step and start → messages, bytes, first and last offset."""
    found: dict[tuple[str, str, datetime], list[int]] = {}
    for row in rows:
        for step in ("minute", "hour", "day"):
            window = (row[STREAM], step, start_of(row[TIMESTAMP], step))
            held = found.setdefault(window, [0, 0, row[OFFSET], 0])
            held[0], held[1] = held[0] + 1, held[1] + row[BYTES]
            held[2], held[3] = min(held[2], row[OFFSET]), max(held[3], row[OFFSET])
    return found


@pytest.mark.timeout(1200)
def test_every_rollup_profile_and_answer_is_as_told_by_hand_and_so_again(oracle: Oracle) -> None:
    assert Counter(row[STREAM] for row in oracle.rows)[oracle.stream_ids[FLIGHTS]] == 336_776
    rollups_are_as_told(oracle)
    looks_are_as_told(oracle)
    profiles_are_as_told(oracle)
    answers_are_as_told(oracle)


def sums_told(done: RolledUp) -> dict[tuple[str, str, datetime], list[int]]:
    """As ``sums_by_hand``."""
    return {
        (each.stream_id, each.step, each.start): [each.messages, each.bytes, each.first, each.last]
        for each in done.points
    }


def rollups_are_as_told(oracle: Oracle) -> None:
    """Every minute, hour and day; and what a run counts of them that begins where another has ended, amid a window."""
    first = rollup(oracle.session, oracle.settings, counted={}, archived=oracle.archived)
    assert sums_told(first) == sums_by_hand(oracle.rows)
    again = rollup(oracle.session, oracle.settings, counted={}, archived=oracle.archived)
    assert sorted(again.points, key=repr) == sorted(first.points, key=repr)
    assert again.positions == first.positions
    some = {stream_id: last * 3 // 7 for stream_id, last in oracle.archived.items()}
    rest = rollup(oracle.session, oracle.settings, counted=some, archived=oracle.archived)
    assert sums_told(rest) == sums_by_hand([row for row in oracle.rows if row[OFFSET] > some[row[STREAM]]])


def looks_are_as_told(oracle: Oracle) -> None:
    """All hours and days, all minutes of the random stream, and of those of the year every fortieth."""
    random = oracle.stream_ids[RANDOM]
    windows = [
        each
        for each in windows_of(oracle.rows)
        if each.step != "minute" or each.stream_id == random or each.number % 40 == 0
    ]
    by_hand = looked_at_by_hand(windows, oracle.rows)
    assert sum(each.ids < each.messages for each in by_hand) > 0, "an id that comes again counts once"
    files = oracle.history.current_files()
    assert look(oracle.session, oracle.history, files, windows=windows) == by_hand
    assert look(oracle.session, oracle.history, files, windows=windows[::10]) == by_hand[::10], "and so again"


def profiles_are_as_told(oracle: Oracle) -> None:
    """All days."""
    days = [each for each in windows_of(oracle.rows) if each.step == "day"]
    bodies = defaultdict(list)
    for row in oracle.rows:
        bodies[row[STREAM], start_of(row[TIMESTAMP], "day")].append(row[BODY])
    by_hand = {each.number: profile_by_hand(each.number, bodies[each.stream_id, each.start]) for each in days}
    files = oracle.history.current_files()
    assert profiles(oracle.session, oracle.history, files, windows=days) == by_hand
    again = profiles(oracle.session, oracle.history, files, windows=days[::6])
    assert again == {each.number: by_hand[each.number] for each in days[::6]}


def answers_are_as_told(oracle: Oracle) -> None:
    """Counts, averages, fields of bodies, and what lies between two messages of a key."""
    per_key: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in oracle.rows:
        per_key[row[2], row[KEY]].append(row)
    assert oracle.asked(
        "SELECT stream, key, count(*), count(DISTINCT id), sum(bytes), avg(bytes), max(offset) FROM messages "
        "GROUP BY stream, key ORDER BY stream, key NULLS FIRST"
    ) == [
        [
            *named,
            len(rows),
            len({row[ID] for row in rows}),
            sum(row[BYTES] for row in rows),
            statistics.fmean(row[BYTES] for row in rows),
            rows[-1][OFFSET],
        ]
        for named, rows in sorted(per_key.items(), key=lambda each: (each[0][0], each[0][1] or ""))
    ]
    flown = [json.loads(row[BODY]) for row in oracle.rows if row[2] == FLIGHTS]
    delays = defaultdict(list)
    for body in flown:
        delays[body["carrier"], body["month"]].append(body["dep_delay"])
    assert oracle.asked(
        "SELECT body:carrier::string AS carrier, body:month::int AS month, count(*), "
        "count_if(body:dep_delay IS NULL OR is_variant_null(body:dep_delay)), sum(body:dep_delay::int) FROM "
        "(SELECT parse_json(body) AS body FROM messages WHERE stream = 'flights') "
        "GROUP BY ALL ORDER BY carrier, month"
    ) == [
        [*named, len(held), held.count(None), sum(each for each in held if each is not None)]
        for named, held in sorted(delays.items())
    ]
    gaps = {
        key: max((b[OFFSET] - a[OFFSET] for a, b in itertools.pairwise(rows)), default=None)
        for (stream, key), rows in per_key.items()
        if stream == RANDOM and key is not None
    }
    assert oracle.asked(
        "SELECT key, max(gap) FROM (SELECT key, offset - lag(offset) OVER (PARTITION BY key ORDER BY offset) AS gap "
        "FROM messages WHERE stream = 'random' AND key IS NOT NULL) GROUP BY key ORDER BY key"
    ) == [list(each) for each in sorted(gaps.items())]
