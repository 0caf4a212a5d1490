"""Small files are put together and messages erased: all at once, wherever it is cut off, whoever reads meanwhile."""

import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark import query, schemas
from spark.batches import Erased, HistoryFile
from spark.history import History, KnownBatches
from spark.jobs import rewrite
from spark.jobs import rollup as rollup_job
from spark.jobs.rollup import rollup
from spark.jobs.settings import JobSettings
from spark.query import ask
from spark.rereading import ATTEMPTS, HistoryMovedOn, HistoryUnread, begun_again
from spark.tables import Seen
from streams.log import config
from tests.spark.crashes import HALF_REMOVED, NOT_REMOVED, WITHIN_A_BATCH, Crash, CrashPoint
from tests.spark.jobs import job_process
from tests.spark.published import Published
from tests.waiting import until

STREAMS = ("aaaaaaaaaaaa", "bbbbbbbbbbbb")
DAYS = [datetime(2026, 1, 1, 23, 59, 59, 999000, UTC), datetime(2026, 1, 2, tzinfo=UTC)]
BATCHES, PER_BATCH = 3, 8

Place = tuple[str, int]


ONE_OF_MORE = CrashPoint(
    "one-rewrite-of-more", History, "_write_aside", lambda *_, number, **__: number == BATCHES + 3
)


def held(stream_id: str, first: int, last: int) -> list[tuple[Any, ...]]:
    """Messages of a stream, the first half of all on one day and the rest on the next; every third key is the same."""
    return [
        (
            1,
            stream_id,
            "s",
            n,
            DAYS[n > 12],
            f"m{n}",
            f"k.{n % 3}" if n % 4 else None,
            None,
            f"{n}",
            len(f"{n}"),
        )
        for n in range(first, last + 1)
    ]


def frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    return spark.createDataFrame(rows, schemas.MESSAGES).coalesce(1)


def add(history: History, number: int, *streams: str) -> None:
    """The batch with this number, counted from 0; one that is there already is not added."""
    first, last = number * PER_BATCH + 1, (number + 1) * PER_BATCH
    rows = [row for stream_id in streams for row in held(stream_id, first, last)]
    history.append(
        frame(history.session, rows),
        query="q",
        batch_id=number,
        start=dict.fromkeys(streams, first - 1),
        end=dict.fromkeys(streams, last),
    )


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written") / "history"
    history = History(spark, str(folder))
    for number in range(BATCHES):
        add(history, number, *STREAMS)
    return folder


@pytest.fixture
def settings(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobSettings:
    """A history of three batches of two streams, of this test's own."""
    monkeypatch.setattr(rewrite, "LEAST_FILES", 2)
    shutil.copytree(written, tmp_path / "history")
    return JobSettings(
        redis_url="unix:///nowhere", history_url=str(tmp_path / "history"), spark_dir=tmp_path / "spark"
    )


def counting(spark: SparkSession, settings: JobSettings) -> list[Place]:
    """What the history's own reader sees."""
    return places(History(spark, settings.history_url).messages())


def on_disk(spark: SparkSession, settings: JobSettings) -> list[Place]:
    """What somebody sees who reads the folder."""
    return places(spark.read.parquet(settings.history_url))


def places(rows: DataFrame) -> list[Place]:
    return sorted((row.stream_id, row.offset) for row in rows.select("stream_id", "offset").collect())


def all_places(batches: int = BATCHES) -> list[Place]:
    return [(stream_id, n) for stream_id in STREAMS for n in range(1, batches * PER_BATCH + 1)]


@pytest.mark.spark
def test_small_files_of_a_stream_and_day_become_one_in_the_order_of_offsets(
    spark: SparkSession, settings: JobSettings
) -> None:
    history = History(spark, settings.history_url)
    before = history.current_files()
    done = rewrite.compact(spark, settings)
    files = history.current_files()
    assert (done.files, done.into, done.messages) == (len(before), 4, 48)
    assert sorted(
        (file.stream_id, file.path.split("/")[2], file.first, file.last, file.messages) for file in files
    ) == [
        (stream_id, f"day=2026-01-0{day}", first, last, 12)
        for stream_id in STREAMS
        for day, first, last in ((1, 1, 12), (2, 13, 24))
    ]
    assert counting(spark, settings) == on_disk(spark, settings) == all_places()
    for file in files:
        found = [row.offset for row in spark.read.parquet(history.files.url(file.path)).collect()]
        assert found == list(range(file.first, file.last + 1))
    assert rewrite.compact(spark, settings) == rewrite.Compacted()


@pytest.mark.spark
def test_what_gives_way_is_done_the_next_time(
    spark: SparkSession, settings: JobSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "ROUND_FILES", 2)
    rounds: list[rewrite.Compacted] = []
    while not rounds or rounds[-1].left:
        rounds.append(rewrite.compact(spark, settings, gives_way=lambda: True))
    assert [(each.files, each.into, each.left) for each in rounds] == [
        (2, 1, 6),
        (2, 1, 4),
        (2, 1, 2),
        (2, 1, 0),
    ]
    assert counting(spark, settings) == on_disk(spark, settings) == all_places()


@pytest.mark.spark
@pytest.mark.parametrize("point", [*WITHIN_A_BATCH, NOT_REMOVED, HALF_REMOVED], ids=str)
def test_wherever_it_is_cut_off_every_message_counts_once(
    spark: SparkSession, settings: JobSettings, point: CrashPoint
) -> None:
    with point.armed(), pytest.raises(Crash):
        rewrite.compact(spark, settings)
    assert counting(spark, settings) == all_places()
    history = History(spark, settings.history_url)
    add(history, BATCHES - 1, *STREAMS)  # Spark did not see the end of its last batch, and repeats it
    add(history, BATCHES, *STREAMS)
    assert counting(spark, settings) == on_disk(spark, settings) == all_places(BATCHES + 1)
    rewrite.compact(spark, settings)
    assert len(history.current_files()) == 4
    assert counting(spark, settings) == on_disk(spark, settings) == all_places(BATCHES + 1)


@pytest.mark.spark
@pytest.mark.parametrize("point", [*WITHIN_A_BATCH, NOT_REMOVED, HALF_REMOVED], ids=str)
def test_what_was_known_before_one_was_cut_off_is_brought_up_to_date(
    spark: SparkSession, settings: JobSettings, point: CrashPoint
) -> None:
    history, known = History(spark, settings.history_url), KnownBatches()
    known.refresh(history)
    with point.armed(), pytest.raises(Crash):
        rewrite.compact(spark, settings, known=known)
    add(history, BATCHES, *STREAMS)
    rewrite.compact(spark, settings, known=known)
    assert known.refresh(history) == history.snapshot()
    assert len(known.snapshot.files) == 4
    erase(spark, settings, STREAMS[0], name="1", known=known, offset=7)
    left = [place for place in all_places(BATCHES + 1) if place != (STREAMS[0], 7)]
    assert counting(spark, settings) == on_disk(spark, settings) == left


@pytest.mark.spark
def test_a_process_that_is_killed_leaves_everything(
    spark: SparkSession, settings: JobSettings, tmp_path: Path
) -> None:
    process = job_process("rewrite", settings, tmp_path / "log", patch="job.LEAST_FILES = 2")
    try:
        until(lambda: any(tmp_path.glob("history/_staging/*")), within_s=200, what="it writes")
    finally:
        process.kill()
        process.wait()
    assert counting(spark, settings) == all_places()
    rewrite.compact(spark, settings)
    assert counting(spark, settings) == on_disk(spark, settings) == all_places()
    assert len(History(spark, settings.history_url).current_files()) == 4


def erase(
    spark: SparkSession,
    settings: JobSettings,
    *streams: str,
    name: str,
    known: KnownBatches | None = None,
    **what: Any,
) -> Erased:
    unwanted = rewrite.Unwanted(name=name, **what)
    return rewrite.erase(spark, settings, stream_ids=set(streams), unwanted=[unwanted], known=known)[name]


@pytest.mark.spark
def test_a_message_and_a_key_are_erased_from_every_file(spark: SparkSession, settings: JobSettings) -> None:
    mine, other = STREAMS
    assert erase(spark, settings, mine, name="1", offset=7) == Erased(messages=1, through=24)
    assert erase(spark, settings, mine, name="2", offset=7).messages == 0
    wanted = {n for n in range(1, 25) if n % 3 == 2 and n % 4}
    assert erase(spark, settings, mine, name="3", key="k.2").messages == len(wanted)
    left = [place for place in all_places() if place[0] == other or place[1] not in wanted | {7}]
    assert counting(spark, settings) == on_disk(spark, settings) == left
    assert erase(spark, settings, mine, name="4", key="k").messages == 0
    for n in range(1, 9):
        erase(spark, settings, other, name=f"of {n}", offset=n)
    assert (
        counting(spark, settings) == on_disk(spark, settings) == [p for p in left if p[0] == mine or p[1] > 8]
    )


@pytest.mark.spark
def test_several_erasures_are_one_rewrite_and_each_message_was_taken_by_one_of_them(
    spark: SparkSession, settings: JobSettings
) -> None:
    mine = STREAMS[0]
    asked = [
        rewrite.Unwanted(name="offset", offset=2),
        rewrite.Unwanted(name="key", key="k.2"),
        rewrite.Unwanted(name="again", key="k.2"),
        rewrite.Unwanted(name="last", offset=24),
        rewrite.Unwanted(name="nothing", key="k"),
    ]
    of_key = {n for n in range(1, 25) if n % 3 == 2 and n % 4}
    took = {"offset": 1, "key": len(of_key) - 1, "again": 0, "last": 1, "nothing": 0}
    done = rewrite.erase(spark, settings, stream_ids={mine}, unwanted=asked)
    assert done == {name: Erased(messages=messages, through=24) for name, messages in took.items()}
    again = rewrite.erase(spark, settings, stream_ids={mine}, unwanted=asked)
    assert {name: each.messages for name, each in again.items()} == took
    left = [place for place in all_places() if place[0] != mine or place[1] not in {*of_key, 24}]
    assert counting(spark, settings) == on_disk(spark, settings) == left
    last = History(spark, settings.history_url).last()
    assert last is not None
    assert last.number == BATCHES + 1


@pytest.mark.spark
def test_of_a_key_nothing_above_an_offset_is_erased(spark: SparkSession, settings: JobSettings) -> None:
    mine = STREAMS[0]
    of_key = [n for n in range(1, 25) if n % 3 == 2 and n % 4]
    last = of_key[len(of_key) // 2]
    took = erase(spark, settings, mine, name="1", key="k.2", up_to=last)
    below = {n for n in of_key if n <= last}
    assert took == Erased(messages=len(below), through=last)
    left = [place for place in all_places() if place[0] != mine or place[1] not in below]
    assert counting(spark, settings) == on_disk(spark, settings) == left
    assert erase(spark, settings, mine, name="2", offset=24, up_to=23) == Erased(through=23)
    assert erase(spark, settings, mine, name="3", key="k.2", up_to=99) == Erased(
        messages=len(of_key) - len(below), through=24
    )


@pytest.mark.spark
def test_everything_is_erased_of_deleted_streams_of_a_name(
    spark: SparkSession, settings: JobSettings
) -> None:
    mine, other = STREAMS

    def deleted(workspace_id: int, name: str | None, *living: str) -> set[str]:
        return rewrite.streams_deleted(
            spark, settings, workspace_ids={workspace_id, 77}, name=name, spared=lambda: living
        )

    assert deleted(1, "s", other) == {mine}
    assert deleted(1, "s") == deleted(1, None) == {mine, other}
    assert deleted(1, "s", *STREAMS) == deleted(2, "s") == deleted(1, "t") == set()
    assert erase(spark, settings, mine, name="1") == Erased(messages=24, through=24)
    assert counting(spark, settings) == on_disk(spark, settings) == [p for p in all_places() if p[0] == other]
    assert deleted(1, "s", other) == set()


@pytest.mark.spark
@pytest.mark.parametrize("point", [*WITHIN_A_BATCH, NOT_REMOVED, HALF_REMOVED, ONE_OF_MORE], ids=str)
def test_an_erasure_that_was_cut_off_is_whole_and_tells_all_of_it_once_it_is_done_again(
    spark: SparkSession, settings: JobSettings, monkeypatch: pytest.MonkeyPatch, point: CrashPoint
) -> None:
    monkeypatch.setattr(rewrite, "ROUND_FILES", 3)
    mine = STREAMS[0]
    erased = {n for n in range(1, 25) if n % 3 == 2 and n % 4}
    erase(spark, settings, mine, name="0", offset=24)
    with point.armed(), pytest.raises(Crash):
        erase(spark, settings, mine, name="1", key="k.2")
    again = [erase(spark, settings, mine, name="1", key="k.2") for _ in range(2)]
    assert again == [Erased(messages=len(erased), through=max(erased))] * 2
    assert erase(spark, settings, mine, name="2", key="k.2").messages == 0
    left = [place for place in all_places() if place[0] != mine or place[1] not in {*erased, 24}]
    assert counting(spark, settings) == on_disk(spark, settings) == left
    assert not Path(settings.history_url, "_staging").exists()


@pytest.mark.spark
def test_what_is_not_counted_yet_is_counted_once_after_it_was_put_together(
    spark: SparkSession, settings: JobSettings
) -> None:
    mine = STREAMS[0]
    whole = rollup(spark, settings, counted={}, archived={mine: 24})
    rewrite.compact(spark, settings)
    again = rollup(spark, settings, counted={}, archived={mine: 24})
    assert (
        (again.messages, again.bytes)
        == (whole.messages, whole.bytes)
        == (24, sum(len(str(n)) for n in range(1, 25)))
    )
    rest = rollup(spark, settings, counted={mine: 10}, archived={mine: 24})
    assert (rest.messages, rest.positions[0].to_offset) == (14, 24)


@pytest.mark.spark
def test_a_query_that_reads_meanwhile_is_begun_again(
    spark: SparkSession, settings: JobSettings, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id = published.stream("s")
    settings = replace(settings, redis_url=published.url)
    history = History(spark, settings.history_url)
    history.append(
        frame(spark, held(stream_id, 1, 8)), query="q", batch_id=0, start={stream_id: 0}, end={stream_id: 8}
    )
    add_more = frame(spark, held(stream_id, 9, 16))
    history.append(add_more, query="q", batch_id=1, start={stream_id: 8}, end={stream_id: 16})
    published.log.run(config.archived_set(stream_id, 16))
    real, calls = query._collected, iter(range(10))

    def rewritten_meanwhile(found: DataFrame, *, limit: int) -> query.Answer:
        if next(calls) == 0:
            rewrite.compact(spark, settings)
        return real(found, limit=limit)

    monkeypatch.setattr(query, "_collected", rewritten_meanwhile)
    registered = [each for each in published.log.run(config.streams()) if each.stream_id == stream_id]
    seen = Seen(
        streams=registered,
        metrics_stream=None,
        rollups=lambda steps: pytest.fail("not asked"),
        groups=lambda steps: pytest.fail("not asked"),
    )
    known = KnownBatches()
    answer = ask(
        spark, settings, "SELECT count(*), sum(offset) FROM messages", seen=seen, known=known, limit=10
    )
    assert (answer.rows, next(calls)) == ([f"[16,{sum(range(1, 17))}]"], 2)


@pytest.mark.spark
def test_a_rollup_that_reads_meanwhile_is_begun_again(
    spark: SparkSession, settings: JobSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = rollup_job._new_files, iter(range(10))

    def rewritten_meanwhile(*asked: Any, **wanted: Any) -> Any:
        found = real(*asked, **wanted)
        if next(calls) == 0:
            rewrite.compact(spark, settings)
        return found

    monkeypatch.setattr(rollup_job, "_new_files", rewritten_meanwhile)
    found = begun_again(lambda: rollup(spark, settings, counted={}, archived={STREAMS[0]: 24}), files=list)
    assert (found.messages, next(calls)) == (24, 2)


@pytest.mark.spark
def test_the_next_rewrite_waits_for_a_reader_that_the_last_one_overtook(
    spark: SparkSession, settings: JobSettings
) -> None:
    history, rewrites = History(spark, settings.history_url), list[Future[Erased]]()

    def read() -> int:
        files, n = history.current_files(), len(rewrites) + 1
        rewrites.append(beside.submit(erase, spark, settings, STREAMS[0], name=f"{n}", offset=n))
        if n == 1:
            assert rewrites[0].result().messages == 1
        staging = Path(settings.history_url, "_staging")
        until(lambda: n == 1 or any(staging.glob("*/0.parquet")), within_s=200, what="its files are written")
        return history.read(files).count()

    with ThreadPoolExecutor(1) as beside:
        assert begun_again(read, files=list) == len(all_places()) - 1
    assert [each.result().messages for each in rewrites] == [1, 1]


def test_a_reader_that_was_overtaken_each_time_says_so() -> None:
    tries = iter(range(10))

    def read() -> None:
        raise HistoryMovedOn(f"/a/folder, {next(tries)}")

    with pytest.raises(
        HistoryUnread, match=r"^The history was rewritten each time this was read; try again\.$"
    ):
        begun_again(read, files=list)
    assert next(tries) == ATTEMPTS


def file_of(stream_id: str, n: int, size: int) -> HistoryFile:
    return HistoryFile(
        path=f"workspace_id=1/stream_id={stream_id}/day=2026-01-01/{n}.parquet",
        workspace_id=1,
        stream_id=stream_id,
        messages=1,
        bytes=size,
        first=n,
        last=n,
        first_ms=0,
        last_ms=0,
    )


def test_only_many_small_files_are_put_together() -> None:
    few = [file_of("few", n, 1) for n in range(rewrite.LEAST_FILES - 1)]
    large = [file_of("large", n, rewrite.SMALL_BYTES) for n in range(40)]
    many = [file_of("many", n, 1) for n in range(rewrite.LEAST_FILES)]
    assert rewrite.small_files([*reversed(many), *large, *few]) == [many]


def test_no_rewrite_is_larger_than_it_may_be_and_each_file_is_in_one() -> None:
    size = rewrite.SMALL_BYTES - 1
    files = [file_of(f"s{n % 3}", n, size) for n in range(90)]
    rounds = list(rewrite._rounds(rewrite.small_files(files)))
    assert sorted(file.first for files in rounds for file in files) == list(range(90))
    for files in rounds:
        assert sum(file.bytes for file in files) <= rewrite.ROUND_BYTES
        assert len({file.stream_id for file in files}) == 1
