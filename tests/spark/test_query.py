"""What a query sees: everything ever published, each message once, beside plain Python over what was published."""

import json
import random
import re
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from okmq.demo import flights
from spark import query, sentences
from spark.batches import HistoryFile, Snapshot
from spark.history import History, HistoryUnreadable, KnownBatches
from spark.jobs.settings import JobSettings
from spark.query import QueryFailed
from spark.tables import COLUMNS
from streams.log import config, trim
from streams.log.client import Log
from streams.log.entries import NewMessage, timestamp
from tests.servers import store
from tests.spark.asking import Asker
from tests.spark.published import Published

pytestmark = pytest.mark.spark


def said_of(ask: Asker, sql: str) -> str:
    with pytest.raises(QueryFailed) as failed:
        ask(sql)
    return str(failed.value)


def removed_by_limit(published: Published, name: str, *, keep: int) -> None:
    """Have a limit take all but the newest messages, physically as far as the history has them."""
    stream_id = published.stream(name, max_messages=keep)
    published.log.run(trim.apply_limits(stream_id))
    published.log.run(trim.drop(stream_id))


def expected(published: Published, **stream_ids: str) -> list[list[Any]]:
    """What stands in the store, as the rows of ``SELECT * FROM messages ORDER BY stream, offset``."""
    return [
        [name, row[1], timestamp(row[2]), *row[3:]]
        for name, stream_id in sorted(stream_ids.items())
        for row in published.stored(stream_id)
    ]


def odd_messages(*, seed: int, count: int) -> Iterator[NewMessage]:
    """Messages with unusual bodies, keys and headers, always the same ones of a seed."""
    chance = random.Random(seed)
    bodies: list[Any] = [None, True, 'ü€😀\u0000\\"', 10**29 + 7, -1.5e-300, [], {}, {"a": {"b": [1, None]}}]
    for n in range(count):
        body = json.dumps(chance.choice(bodies)) if n % 3 else json.dumps({"n": n, "big": 2**63 - 1 - n})
        headers = {"h": "wert ñ", "n": str(n)} if n % 4 == 0 else None
        key = None if n % 5 == 0 else f"k.{chance.randrange(4)}"
        yield NewMessage(
            id=f"{seed}-{n}",
            body=body.encode(),
            key=key,
            headers=None if headers is None else json.dumps(headers).encode(),
        )


def test_answers_are_those_of_plain_python_over_all_that_was_published(
    ask: Asker, published: Published
) -> None:
    chance = random.Random(7)
    departures = flights.load()
    flown = [departures.message(chance.randrange(len(departures))) for _ in range(900)]
    flown = list({each["id"]: each for each in flown}.values())
    odd, fly = published.stream("odd"), published.stream("flights")
    published.publish(odd, odd_messages(seed=1, count=120))
    published.delete(odd, [3, 4, 50])
    new = [
        NewMessage(id=each["id"], key=each["key"], body=json.dumps(each["body"]).encode()) for each in flown
    ]
    published.publish(fly, new[:500])
    ask.archive()
    published.publish(fly, new[500:])
    published.publish(odd, odd_messages(seed=2, count=60))
    published.publish(odd, [NewMessage(id="wide", body=json.dumps("w" * 1_000_000).encode())])
    published.delete(odd, [130])
    rows = expected(published, odd=odd, flights=fly)
    # Taken away by a limit only after the history has some of it: it is still all there.
    removed_by_limit(published, "flights", keep=100)

    assert ask("SELECT * FROM messages ORDER BY stream, offset") == rows

    delays = defaultdict(list)
    for each in flown:
        delays[each["key"]].append(each["body"]["dep_delay"])
    late = [
        [
            key,
            len(found),
            sum(1 for delay in found if delay is None),
            max((d for d in found if d is not None), default=None),
        ]
        for key, found in sorted(delays.items())
    ]
    assert late == ask(
        """
        WITH f AS (SELECT key, cast(get_json_object(body, '$.dep_delay') AS int) AS delay
                   FROM messages WHERE stream = 'flights')
        SELECT key, count(*), count_if(delay IS NULL), max(delay) FROM f GROUP BY key ORDER BY key
        """
    )
    big = [[row[0], row[1], json.loads(row[6])["big"]] for row in rows if '"big"' in row[6]]
    assert big == ask(
        "SELECT stream, offset, cast(body:big AS bigint) FROM "
        "(SELECT stream, offset, parse_json(body) AS body FROM messages WHERE body LIKE '%\"big\"%') "
        "ORDER BY stream, offset"
    )


def test_what_the_history_and_retention_take_while_a_query_begins_is_neither_missing_nor_twice(
    ask: Asker, published: Published
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 300)
    ask.archive()
    published.numbered(stream, 200, prefix="live")

    class Overtaken(KnownBatches):
        """After the first look at the history it goes on, and a limit takes what it then has."""

        looks = 0

        def refresh(self, history: History) -> Snapshot:
            found = super().refresh(history)
            self.looks += 1
            if self.looks == 1:
                ask.archive()
                removed_by_limit(published, "a", keep=10)
            return found

    ask.known = Overtaken()
    assert ask("SELECT count(*), count(DISTINCT offset), max(offset) FROM messages") == [[500, 500, 500]]
    assert ask.known.looks == 2


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_query_under_which_a_file_goes_while_it_is_looked_up_or_read_is_begun_again(
    ask: Asker, published: Published, is_listed: bool
) -> None:
    published.numbered(published.stream("a"), 300)
    ask.archive()

    class Rewritten(KnownBatches):
        """What is looked up first is there, and Spark does not list it, or cannot read on in it: as if it went then."""

        looks = 0

        def refresh(self, history: History) -> Snapshot:
            found = super().refresh(history)
            self.looks += 1
            return found if self.looks > 1 else replace(found, files=gone(found.files))

    def gone(files: Mapping[str, HistoryFile]) -> dict[str, HistoryFile]:
        folder, moved = Path(ask.settings.history_url), list[HistoryFile]()
        for file in files.values():
            path = Path(file.path)
            stale = path.with_name(f"{'x' if is_listed else '_'}{path.name}")
            held = (folder / path).read_bytes()
            (folder / stale).write_bytes(held[:4] + bytes(len(held) // 2) + held[4 + len(held) // 2 :])
            moved.append(replace(file, path=str(stale)))
        return {file.path: file for file in moved}

    ask.known = Rewritten()
    assert ask("SELECT count(DISTINCT id) FROM messages") == [[300]]
    assert ask.known.looks == 2


@pytest.mark.parametrize(
    "value",
    [
        "PATH_NOT_FOUND",
        "[FAILED_READ_FILE.NO_HINT]",
        "a\nspark.rereading.HistoryMovedOn: b",
        "Job aborted [X]",
    ],
)
def test_a_value_that_says_what_spark_says_of_lost_files_is_told_as_a_value(ask: Asker, value: str) -> None:
    assert "The value '" in said_of(ask, f"SELECT CAST('{value}' AS INT)")


def test_beside_a_history_that_begins_anew_a_query_sees_what_the_streams_hold(
    ask: Asker, published: Published, tmp_path: Path
) -> None:
    stream = published.stream("a")
    published.numbered(stream, 300)
    ask.archive()
    published.numbered(stream, 20, prefix="live")
    published.delete(stream, [100, 310])
    what = "SELECT count(*), count(DISTINCT offset), min(offset), max(offset) FROM messages"
    assert ask(what) == [[319, 319, 1, 320]]  # what was deleted only after it was copied is still there
    shutil.rmtree(ask.settings.history_url)
    assert ask(what) == [[318, 318, 1, 320]]
    published.log.run(config.archived_only(stream, 0))
    ask.archive()
    assert ask(what) == [[318, 318, 1, 320]]
    ask.settings = replace(ask.settings, history_url=str(tmp_path / "another"))
    assert ask(what) == [[318, 318, 1, 320]]


def test_a_file_that_the_history_lacks_is_named(ask: Asker, published: Published) -> None:
    stream = published.stream("a")
    published.numbered(stream, 30)
    ask.archive()
    (file,) = Path(ask.settings.history_url).rglob("*.parquet")
    said = (
        f"The history lacks offsets 1 to 30 of a stream: its file {file.relative_to(ask.settings.history_url)} "
        "is not there, or is damaged."
    )
    whole = file.read_bytes()
    file.with_name(f".{file.name}.crc").unlink()
    file.write_bytes(b"PAR1")
    assert said_of(ask, "SELECT max(body) FROM messages") == said
    file.unlink()
    assert said_of(ask, "SELECT max(body) FROM messages") == said
    file.write_bytes(whole)
    assert ask("SELECT count(*) FROM messages") == [[30]]


def test_a_history_whose_log_is_not_whole_is_said_to_be_so_and_nothing_is_added_to_it(
    ask: Asker, published: Published
) -> None:
    stream = published.stream("a")
    for prefix in ("first", "second"):
        published.numbered(stream, 30, prefix=prefix)
        ask.archive()
    first, second, head = (
        Path(ask.settings.history_url, "_log", name)
        for name in ("000000000001.json", "000000000002.json", "HEAD")
    )

    def said() -> str:
        ask.known = KnownBatches()
        told = said_of(ask, "SELECT count(*) FROM messages")
        with pytest.raises(HistoryUnreadable, match=re.escape(told)):
            ask.archive()
        found = re.fullmatch(r"The history cannot be read: (.*)\. Put back what is missing there .*", told)
        assert found is not None
        return found[1]

    for file in (second, head):
        whole = file.read_bytes()
        file.write_bytes(b"x" * len(whole))
        checksum = file.with_name(f".{file.name}.crc")
        assert checksum.exists() == (file == second)
        if file == second:
            assert "Checksum error" in said()
            checksum.unlink()
        assert said() == f"_log/{file.name} is damaged"
        file.write_bytes(whole)
    for file in (second, first):
        aside = file.rename(file.with_name("aside"))
        assert said() == f"_log/{file.name} is missing"
        file.mkdir()
        assert said().startswith(str(file))
        file.rmdir()
        aside.rename(file)
    assert ask("SELECT count(*) FROM messages") == [[60]]


def test_a_query_sees_every_publish_that_was_acknowledged_before_it(ask: Asker, published: Published) -> None:
    stream = published.stream("a")
    published.numbered(stream, 50)
    acknowledged, stop = [50], threading.Event()

    def publish() -> None:
        with closing(Log(published.url)) as log:
            mine = replace(published, log=log)
            n = 0
            while not stop.wait(0.02):
                n += 1
                acknowledged[0] = mine.numbered(stream, 20, prefix=f"p{n}-")

    publishing = threading.Thread(target=publish)
    publishing.start()
    try:
        for round_ in range(3):
            if round_ == 1:
                ask.archive()
            before = acknowledged[0]
            ((count, distinct, last),) = ask("SELECT count(*), count(DISTINCT id), max(offset) FROM messages")
            assert count == distinct == last >= before
    finally:
        stop.set()
        publishing.join()


def test_streams_that_are_not_archived_internal_or_not_for_the_caller(
    ask: Asker, published: Published
) -> None:
    shown, unarchived, secret = (
        published.stream("shown"),
        published.stream("unarchived", archive=False),
        published.stream("secret"),
    )
    published.numbered(shown, 5)
    published.numbered(unarchived, 7)
    published.numbered(secret, 9)
    ask.archive()
    published.numbered(secret, 2, prefix="live")
    by_stream = "SELECT stream, count(*) FROM messages GROUP BY stream ORDER BY stream"
    assert ask(by_stream) == [["secret", 11], ["shown", 5], ["unarchived", 7]]
    assert ask(by_stream, only="shown") == [["shown", 5]]
    published.remove("secret")
    assert ask(by_stream) == [["shown", 5], ["unarchived", 7]]


def test_streams_in_memory_are_seen_too(
    spark: SparkSession, published: Published, settings_of_job: JobSettings, tmp_path: Path
) -> None:
    folder = tmp_path / "volatile"
    folder.mkdir()
    with store(folder, fsync=None) as volatile, closing(Log(published.url, memory_url=volatile.url)) as log:
        both = replace(published, log=log, memory_url=volatile.url)
        ask = Asker(spark, both, replace(settings_of_job, memory_url=volatile.url))
        fleeting = both.memory_stream("fleeting")
        both.numbered(fleeting, 30)
        ask.archive()
        both.numbered(fleeting, 12, prefix="live")
        assert ask("SELECT count(*), max(offset) FROM messages") == [[42, 42]]


def test_samples_and_rollups(ask: Asker, published: Published) -> None:
    stream, other = published.stream("a"), published.stream("b")
    samples = published.stream("_metrics", internal=True, archive=False)
    figures = {
        "offset": 5,
        "messages": 4,
        "bytes": 40,
        "committed": 1,
        "lag": 3,
        "in": 2.5,
        "bytes_in": 9,
        "out": 0,
    }
    bodies = [
        {"at": 1_700_000_000_123, "streams": {stream: figures, "gone": figures}},
        {"at": 1_700_000_001_000, "streams": {}, "groups": {stream: {}}},
    ]
    published.publish(
        samples, [NewMessage(id=f"{n}", body=json.dumps(b).encode()) for n, b in enumerate(bodies)]
    )
    assert ask("SELECT * FROM metrics") == [["a", "2023-11-14T22:13:20.123Z", 5, 4, 40, 1, 3, 2.5, 9.0, 0.0]]
    ask.rollups = pa.table(
        {
            "stream_id": [stream, other, "gone"],
            "step": ["day", "day", "day"],
            "start": pa.array([0, 86_400_000, 0], pa.timestamp("ms", tz="UTC")),
            "messages": [1, 2, 3],
            "bytes": [10, 20, 30],
            **{
                name: pa.array([n, None, 0], pa.int64()) for n, (name, _) in enumerate(COLUMNS["rollups"][5:])
            },
        }
    )
    assert ask("SELECT * FROM rollups ORDER BY stream") == [
        ["a", "day", "1970-01-01T00:00:00.000Z", 1, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        ["b", "day", "1970-01-02T00:00:00.000Z", 2, 20, *[None] * 9],
    ]


def test_an_answer_stops_at_its_rows_and_at_its_bytes(
    ask: Asker, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    published.numbered(published.stream("a"), 50)
    by_offset = "SELECT offset FROM messages ORDER BY offset DESC"
    answer = ask.answer(by_offset, limit=10)
    assert (answer.rows, answer.truncated) == ([f"[{n}]" for n in range(50, 40, -1)], True)
    assert not ask.answer(by_offset, limit=50).truncated
    monkeypatch.setattr(query, "ANSWER_BYTES", 100)
    answer = ask.answer("SELECT id, body FROM messages ORDER BY offset", limit=50)
    assert answer.truncated
    assert 0 < sum(map(len, answer.rows)) <= 100


TEXT = f"concat('{'x' * 9_000}', id, '{'x' * 7_000}')"


@pytest.mark.parametrize(
    "rows",
    [
        "range(0, 2000, 1, 2)",
        "range(0, 2000, 1, 2) LIMIT 1900",
        "range(0, 2000, 1, 5) ORDER BY id",
        "(SELECT id FROM range(0, 2000, 1, 5) GROUP BY id) ORDER BY id",
        "(SELECT explode(sequenced) AS id FROM (SELECT array({}) AS sequenced))".format(
            ", ".join(map(str, range(2000)))
        ),
    ],
)
def test_an_answer_that_is_too_large_is_its_first_rows_and_says_so(ask: Asker, rows: str) -> None:
    answer = ask.answer(f"SELECT id, if(id < 1500, {TEXT}, 'small') AS t FROM {rows}", limit=10_000)
    assert answer.truncated
    assert [json.loads(row)[0] for row in answer.rows] == list(range(len(answer.rows)))
    assert query.ANSWER_BYTES - 20_000 < sum(map(len, answer.rows)) <= query.ANSWER_BYTES


def test_an_answer_of_constant_rows_that_is_too_large_is_cut_off(ask: Asker) -> None:
    answer = ask.answer(f"SELECT '{'x' * 10_000}' AS t FROM range(4000)", limit=10_000)
    assert (answer.truncated, len(answer.rows)) == (True, query.ANSWER_BYTES // 10_008)


def test_an_answer_of_values_that_are_written_down_is_cut_off(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "ANSWER_BYTES", 35)
    written = "SELECT * FROM VALUES (0), (1), (2), (3), (4), (5), (6), (7)"
    answer = ask.answer(written, limit=10)
    assert (answer.rows, answer.truncated) == (["[0]", "[1]", "[2]", "[3]", "[4]"], True)
    assert not ask.answer(written.partition(", (5)")[0], limit=5).truncated


def test_what_a_python_process_of_spark_says_is_told(spark: SparkSession) -> None:
    def wrong(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise ValueError("Something is wrong: here.")

    with pytest.raises(PySparkException) as failed:
        spark.range(3).mapInArrow(wrong, "id bigint").collect()
    said = "A Python process of Spark failed: ValueError: Something is wrong: here."
    assert sentences.sentence(failed.value) == said


def test_values_keep_their_digits_and_columns_their_names(ask: Asker) -> None:
    answer = ask.answer(
        "SELECT 9007199254740993 AS n, 9007199254740993 AS n, 1.50 AS d, double('NaN') AS nan, NULL AS nothing, "
        "map('k', array(1)) AS m, x'00ff' AS b, timestamp'2026-01-02 03:04:05.678' AS t, date'2026-01-02' AS day, "
        "interval 1 day AS i, 'ü\"<b>' AS s"
    )
    assert [name for name, _ in answer.columns][:3] == ["n", "n", "d"]
    assert answer.columns[5] == ("m", "map<string,array<int>>")
    assert answer.rows == [
        '[9007199254740993,9007199254740993,1.50,"NaN",null,{"k":[1]},"AP8=","2026-01-02T03:04:05.678Z",'
        '"2026-01-02","INTERVAL \'1\' DAY","ü\\"<b>"]'
    ]


def test_what_cannot_be_carried_out_is_a_sentence(ask: Asker, published: Published) -> None:
    bodies = ['{"a":1,"a":2}', r'{"x":"\ud800"}', json.dumps(["w" * 500, [[]]])[:-1] + r',"\udc00"]', "{}"]
    bodies.append(json.dumps("v" * 5_000))
    odd = [NewMessage(id=f"{n}", body=body.encode()) for n, body in enumerate(bodies)]
    published.publish(published.stream("a"), odd)
    parsed = "SELECT parse_json(body) FROM messages WHERE offset = {}"
    tolerant = "For such a one try_parse_json gives null, as from_json does without the mode FAILFAST."
    assert said_of(ask, parsed.format(1)) == (
        "A text cannot be parsed: Failed to build variant because of a duplicate object key `a` "
        f'({{"a":1,"a":2}}). {tolerant}'
    )
    assert said_of(ask, parsed.format(2)) == (
        "A text cannot be parsed: Invalid Unicode in JSON string: lone high surrogate U+D800 "
        f'({{"x":"\\ud800"}}). {tolerant}'
    )
    assert f"{'w' * 98}…). {tolerant}" in said_of(ask, parsed.format(3))
    assert said_of(ask, "SELECT parse_json('[[')") == (
        f"A text cannot be parsed: Unexpected end-of-input: expected close marker for Array ([[). {tolerant}"
    )
    assert ask("SELECT count(try_parse_json(body)) FROM messages") == [[2]]
    assert said_of(ask, "SELECT from_json('{x', 'a INT', map('mode', 'FAILFAST'))") == (
        "A text cannot be parsed: Unexpected character ('x' (code 120)): "
        f"was expecting double-quote to start field name. {tolerant}"
    )
    assert said_of(ask, "SELECT id RLIKE '(' FROM messages") == (
        "A regular expression cannot be read: Unclosed group near index 1."
    )
    assert said_of(ask, f"SELECT regexp_like(concat(id, '{'a' * 15_000}'), '1?(a|b)*c') FROM range(2)") == (
        "It ran out of stack, as a regular expression does on a long text."
    )
    assert said_of(ask, "SELECT (SELECT offset FROM messages)") == (
        "More than one row returned by a subquery used as an expression."
    )
    assert said_of(ask, "SELECT 1 / (SELECT 0)") == (
        "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead."
    )
    assert said_of(ask, "SELECT to_timestamp('2020', 'yyyyyyyyyyyyyyyyyyyy')") == (
        "Fail to recognize 'yyyyyyyyyyyyyyyyyyyy' pattern in the DateTimeFormatter."
    )
    assert said_of(ask, "SELECT make_date(99999999, 1, 1)") == "A value is beyond what its type holds."
    said = said_of(ask, "SELECT cast(body AS int) FROM messages WHERE offset = 5")
    assert (len(said), said.startswith("The value '\"vv"), "`try_cast`" in said) == (1000, True, True)
    assert (
        said_of(ask, "SELECT cast(12345 AS decimal(3, 1))") == "12345 cannot be represented as Decimal(3, 1)."
    )


def test_columns_under_many_names_in_one_condition_are_planned_in_time(ask: Asker) -> None:
    columns = ("stream", "id", "key", "body", "offset", "bytes", "timestamp")
    named = ", ".join(f"{column} AS {column}_{n}" for column in columns for n in range(4))
    sql = (
        f"SELECT * FROM (SELECT {named} FROM messages WHERE concat({', '.join(columns)}) <> 'x') t "
        "JOIN range(10) r ON t.offset_0 = r.id"
    )
    began = time.monotonic()
    assert ask(sql) == []
    assert time.monotonic() - began < 120  # where Spark infers constraints, it never ends
