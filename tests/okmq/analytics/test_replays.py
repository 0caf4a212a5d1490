"""Ranges of the past are published again: all of them, in order, once, also over crashes and pauses."""

import itertools
import json
import logging
import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from django.db import DatabaseError
from pyspark.sql import SparkSession

from okmq.analytics import shared_spark
from okmq.analytics.erased import ErasedSince
from okmq.analytics.replay_watch import NotWanted, watched
from okmq.analytics.replays import Replays
from spark import replay as reading
from spark import watching
from streams.access import SYSTEM
from streams.log import append, keys, stats
from streams.log.entries import NewMessage
from streams.models import Event, Replay, ReplayState, Stream, Workspace
from streams.selectors.pushed_out import pushed_out_by
from streams.services import replays as service
from tests.okmq.analytics.replaying import Here
from tests.okmq.analytics.working import in_workspace, inside
from tests.spark.published import Published, moment
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def here(published: Published, tmp_path: Path, settings: Any, spark: SparkSession) -> Iterator[Here]:
    published = in_workspace(published)
    with inside(published, settings, tmp_path) as analytics:
        yield Here(published, Workspace.objects.get(pk=published.workspace_id), analytics)


def test_history_and_live_tail_are_published_again_as_they_were_and_in_order(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROWS", 7)
    source, target = here.stream("a"), here.stream("b")
    odd = [
        NewMessage(id="ü", body=b'{"n": 1.50}', key="k.1", headers='{"ä":"1","z":"\\n"}'.encode()),
        NewMessage(id="none", body=b"null", headers=b"{}"),
        NewMessage(id="long", body=json.dumps("x" * 5000).encode()),
    ]
    here.published.publish(source, odd)
    here.published.numbered(source, 40, key="eu")
    here.archive()
    here.published.numbered(source, 12, prefix="live")
    here.published.log.client.delete(keys.TOUCHED)
    replay = here.worked(here.asked("a", "b"))
    assert (replay.state, replay.total, replay.stored, replay.duplicates) == ("succeeded", 55, 55, 0)
    assert here.messages(target) == here.messages(source)
    assert here.published.log.run(stats.take_touched(10)) == [target], "the worker samples it"
    again = here.worked(here.asked("a", "b"))
    assert (again.stored, again.duplicates, len(here.messages(target))) == (0, 55, 55)
    assert Event.objects.filter(kind="history.replay_succeeded").count() == 2


def test_what_retention_took_is_published_again_into_the_same_stream_under_new_ids(here: Here) -> None:
    source = here.stream("a")
    here.published.numbered(source, 30)
    before = here.messages(source)
    here.archive()
    here.published.stream("a", max_messages=5)
    here.published.publish(source, [NewMessage(id="last", body=b"0")])
    replay = here.worked(here.asked("a", "a", from_offset=11, to_offset=20))
    assert (replay.state, replay.total, replay.stored) == ("succeeded", 10, 10)
    assert [body for _id, _key, _headers, body in here.messages(source)[-5:]] == [
        row[3] for row in before[15:20]
    ]
    assert here.messages(source)[-1][0] == f"replay-{replay.pk}-20"


def test_a_range_is_bounded_by_offset_time_and_key(here: Here) -> None:
    source = here.stream("a")
    for prefix in ("first", "second"):
        here.published.numbered(source, 30, prefix=prefix, key="eu")
        here.archive()
    here.published.numbered(source, 30, prefix="live", key="eu")
    rows = here.published.stored(source)

    def expected(wanted: Any) -> list[str]:
        return [row[3] for row in rows if wanted(row)]

    start, end = moment(rows[30][2]), moment(rows[60][2])
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"key": "eu.1"}, lambda row: row[4] == "eu.1"),
        (
            {"key": "*.2", "from_offset": 25, "to_offset": 65},
            lambda row: row[4] == "eu.2" and 25 <= row[1] <= 65,
        ),
        ({"key": ">"}, lambda row: True),
        ({"key": "eu"}, lambda row: False),
        (
            {"where": "get_json_object(body, '$.n') >= 28 AND key LIKE 'eu.%'", "to_offset": 60},
            lambda row: json.loads(row[6])["n"] >= 28 and row[1] <= 60,
        ),
        ({"since": start, "until": end}, lambda row: rows[30][2] <= row[2] < rows[60][2]),
        (
            {"since": start + timedelta(microseconds=1)},
            lambda row: row[2] > rows[30][2],
        ),
    ]
    for n, (wanted, holds) in enumerate(cases):
        target = here.stream(f"target{n}")
        replay = here.worked(here.asked("a", f"target{n}", **wanted))
        assert [row[0] for row in here.messages(target)] == expected(holds), wanted
        assert (replay.state, replay.total) == ("succeeded", len(expected(holds)))


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_crash_around_a_publication_neither_doubles_nor_loses_though_ids_are_forgotten(
    here: Here, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    monkeypatch.setattr("okmq.analytics.replays.BATCH", 10)
    source, target = here.stream("a"), here.stream("b", dedup_window=1)
    probe = here.stream("probe", dedup_window=1)
    here.published.numbered(source, 35)
    replay = here.asked("a", "b")
    _crash(monkeypatch, at=3, is_stored=is_stored)
    with pytest.raises(DatabaseError):
        here.worked(replay)
    here.published.publish(target, [NewMessage(id="somebody else's", body=b"1")])
    here.forgets(probe)
    replay = here.worked(replay)
    ids = [row[0] for row in here.messages(target) if row[0] != "somebody else's"]
    assert ids == [row[0] for row in here.messages(source)]
    assert (replay.state, replay.stored, replay.duplicates) == ("succeeded", 35, 0)


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_crash_within_a_batch_from_far_apart_neither_doubles_nor_loses(
    here: Here, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    """One that looks further and further for what is wanted begins again with the nearest."""
    monkeypatch.setattr(reading, "CHUNK_ROWS", 7)
    source, target = here.stream("a"), here.stream("b", dedup_window=1)
    probe = here.stream("probe", dedup_window=1)
    here.published.numbered(source, 100)
    replay = here.asked("a", "b", where="offset IN (3, 30, 50, 85, 95)")
    _crash(monkeypatch, at=3, is_stored=is_stored)
    with pytest.raises(DatabaseError):
        here.worked(replay)
    replay.refresh_from_db()
    assert (replay.position, replay.sending_to) == (51, 95), "more than a first look finds"
    here.forgets(probe)
    replay = here.worked(replay)
    wanted = [row[0] for n, row in enumerate(here.messages(source), start=1) if n in {3, 30, 50, 85, 95}]
    assert [row[0] for row in here.messages(target)] == wanted
    assert (replay.state, replay.total, replay.stored, replay.duplicates) == ("succeeded", 5, 5, 0)


def test_it_waits_for_its_start_keeps_to_its_rate_rests_and_goes_on(here: Here) -> None:
    source, target = here.stream("a"), here.stream("b")
    here.published.numbered(source, 60)
    replay = here.worked(here.asked("a", "b", rate=40, starts=False))
    assert (replay.state, replay.total, replay.stored) == (ReplayState.READY, 60, 0)
    service.replay_start(here.caller, replay)
    here.replays.hand_out()
    until(lambda: Replay.objects.get().stored > 0, what="it began")
    service.replay_pause(replay, actor=SYSTEM)
    until(lambda: not any(thread.is_alive() for thread in here.replays._threads.values()), what="it rests")
    replay.refresh_from_db()
    assert 0 < replay.stored < 60
    assert (replay.state, len(here.messages(target))) == (ReplayState.PAUSED, replay.stored)
    service.replay_start(here.caller, replay)
    replay = here.worked(replay)
    assert (replay.state, replay.stored) == (ReplayState.SUCCEEDED, 60)
    assert here.messages(target) == here.messages(source)
    assert replay.started_at is not None
    assert replay.finished_at is not None
    assert (replay.finished_at - replay.started_at).total_seconds() >= 60 / 40 - 0.1


def test_what_is_erased_while_it_waits_for_its_turn_is_published_no_more(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it was read at once, and ten of it are published."""
    monkeypatch.setattr("okmq.analytics.replays.BATCH", 10)
    source, target = here.stream("a"), here.stream("b")
    here.published.numbered(source, 60, key="eu")
    here.archive()
    real, times = service.replay_sent, itertools.count(1)

    def sent(replay: Replay, **noted: int) -> bool:
        is_wanted = real(replay, **noted)
        if next(times) == 1:
            assert here.erased("a", source, key="eu.1", up_to=60).state == "succeeded"
        return is_wanted

    monkeypatch.setattr(service, "replay_sent", sent)
    replay = here.worked(here.asked("a", "b"))
    before, after = here.messages(source)[:10], here.messages(source)[10:]
    left = [*before, *(row for row in after if row[1] != "eu.1")]
    assert here.messages(target) == left
    assert (replay.state, replay.stored) == (ReplayState.SUCCEEDED, len(left))


def test_what_the_target_does_not_take_stops_it_with_a_sentence_and_it_goes_on_later(here: Here) -> None:
    source, target = here.stream("a"), here.stream("b", keys=("eu.*",), max_messages=3, discard="new")
    here.published.numbered(source, 5, key="us")
    replay = here.worked(here.asked("a", "b"))
    assert replay.state == ReplayState.FAILED
    assert "offset 1 has the key 'us.0', which b does not take" in replay.error
    Stream.objects.filter(stream_id=target).update(keys=[], max_messages=3, discard="new")
    told = pushed_out_by(replay)
    assert told is not None
    service.replay_start(here.caller, replay)
    replay = here.worked(replay)
    assert (replay.state, here.messages(target)) == (ReplayState.FAILED, here.messages(source)[:3])
    assert "full" in replay.error
    assert (replay.stored, told.refused, pushed_out_by(replay)) == (3, 2, told), "as it was said before"
    here.published.stream("b", max_messages=10, discard="new")
    service.replay_start(here.caller, replay)
    replay = here.worked(replay)
    assert (replay.state, replay.error, replay.stored) == (ReplayState.SUCCEEDED, "", 5)


def test_a_body_that_is_too_large_for_the_target_is_named_by_its_own_offset(here: Here) -> None:
    source = here.stream("a")
    here.stream("b", max_message_bytes=1024)
    here.published.numbered(source, 2)
    here.published.publish(source, [NewMessage(id="long", body=json.dumps("x" * 5000).encode())])
    replay = here.worked(here.asked("a", "b", from_offset=2))
    assert replay.state == ReplayState.FAILED
    assert replay.error == "The body of the message at offset 3 has 5,002 bytes; b takes 1,024 at most."


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("bytes >", "Syntax error at or near end of input"),
        ("offset", "is not a boolean"),
        ("colour = 'red'", "colour"),
        ("offset IN (SELECT 1)", "holds no query of its own"),
        ("EXISTS (SELECT 1 FROM parquet.`/etc`)", "no table here"),
        ("reflect('java.lang.System', 'exit', 1) IS NULL", "'reflect' cannot be used"),
        ("key <> current_user", "current_user"),
        ("rand() < 0.5", "choose the same messages each time"),
        ("timestamp > now() - INTERVAL 1 HOUR", "choose the same messages each time"),
        ("timestamp < current_date", "choose the same messages each time"),
        ("unix_seconds(timestamp) < unix_timestamp()", "choose the same messages each time"),
        ("1 = 1) OR (1 = 1", "Syntax error"),
        ("cast(id AS INT) < 5", r"^The value '\S+' of the type \"STRING\" cannot be cast .* instead\.$"),
    ],
)
def test_a_condition_that_does_more_than_look_at_a_message_fails_with_a_sentence(
    here: Here, where: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    here.published.numbered(here.stream("a"), 3)
    target = here.stream("b")
    replay = here.worked(here.asked("a", "b", where=where))
    assert replay.state == ReplayState.FAILED
    assert re.search(said, replay.error), replay.error
    assert here.messages(target) == []
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_a_condition_knows_the_columns_of_messages_alone_wherever_these_are(here: Here) -> None:
    source = here.stream("a")
    here.stream("b")
    here.published.numbered(source, 3)
    here.archive()
    for _ in ("all is in the history", "there is a live tail"):
        for column in ("stream_id", "day"):
            replay = here.worked(here.asked("a", "b", where=f"{column} IS NOT NULL"))
            assert replay.state == ReplayState.FAILED
            assert "cannot be resolved" in replay.error
        replay = here.worked(here.asked("a", "b", where="messages.offset = 2 AND stream = 'a'"))
        assert (replay.state, replay.total) == (ReplayState.SUCCEEDED, 1)
        here.published.numbered(source, 3, prefix="live")


# Some milliseconds a message: long in all, and a task hears between two messages that it has to end.
SLOW = r"body RLIKE '^\"(a|aa)+(b)\\2?$'"


@pytest.fixture
def slow(here: Here) -> Replay:
    """A replay whose count takes longer than anybody waits for."""
    source = here.stream("a")
    here.stream("b")
    body = json.dumps("a" * 26 + "c").encode()
    here.published.publish(source, (NewMessage(id=f"{n}", body=body) for n in range(3000)))
    return here.asked("a", "b", where=SLOW)


def test_a_count_of_which_nothing_is_done_for_long_is_ended(here: Here, slow: Replay) -> None:
    here.analytics.replays = Replays(
        here.analytics.env,
        spark=here.analytics.spark,
        erased=ErasedSince(),
        reasons=here.analytics.reasons,
        stop=here.analytics.stop,
        stuck_s=1.0,
    )
    replay = here.worked(slow)
    assert replay.state == ReplayState.FAILED
    assert "Spark did nothing of it for 1 seconds" in replay.error
    assert here.analytics.spark.lives


def test_a_count_that_is_cancelled_ends_at_once(here: Here, slow: Replay, spark: SparkSession) -> None:
    here.replays.hand_out()
    (thread,) = here.replays._threads.values()
    stages = spark.sparkContext.statusTracker().getActiveStageIds
    until(lambda: bool(stages()), within_s=60, what="Spark counts")
    service.replay_cancel(slow, actor=SYSTEM)
    thread.join(30)
    assert not thread.is_alive()
    slow.refresh_from_db()
    assert slow.state == ReplayState.CANCELLED
    assert here.analytics.spark.lives


def test_a_pause_while_spark_plans_takes_nothing_from_others(
    here: Here, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_spark, "ENDING_S", 0.1)
    here.published.numbered(here.stream("a"), 3)
    here.stream("b")
    replay = here.asked("a", "b")
    service.replay_cancel(replay, actor=SYSTEM)
    told = Queue[float]()
    monkeypatch.setattr(watching, "cancel", lambda group: told.put(time.monotonic()))

    def plan() -> None:
        """For ten times as long as a task has that was told to end; then Spark ends what it had begun."""
        first = told.get(timeout=60)
        until(lambda: told.get(timeout=60) > first + 1)
        raise RuntimeError

    watch = watched(here.analytics.spark, spark, replay, stop=threading.Event(), stuck_s=60.0)
    with pytest.raises(NotWanted), watch:
        plan()
    assert here.analytics.spark.lives
    assert spark.range(3).count() == 3


def test_a_stream_that_went_meanwhile_ends_it(here: Here) -> None:
    here.published.numbered(here.stream("a"), 5)
    here.stream("b")
    replay = here.asked("a", "b")
    here.published.remove("b")
    replay = here.worked(replay)
    assert (replay.state, replay.error) == (ReplayState.FAILED, "Stream b was deleted.")


@pytest.mark.parametrize("rate", [None, 40])
def test_a_source_that_went_while_it_published_ends_it(
    here: Here, monkeypatch: pytest.MonkeyPatch, rate: int | None
) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROWS", 7)
    here.published.numbered(here.stream("a"), 50)
    here.stream("b")
    replay, real = here.asked("a", "b", rate=rate), append.append

    def deleting(stream_id: str, messages: Any) -> Any:
        placed = yield from real(stream_id, messages)
        if Stream.objects.filter(name="a").exists():
            here.published.remove("a")
        return placed

    monkeypatch.setattr("okmq.analytics.replays.append.append", deleting)
    replay = here.worked(replay)
    assert (replay.state, replay.error) == (ReplayState.FAILED, "Stream a was deleted.")
    assert 0 < replay.stored < 50


def _crash(monkeypatch: pytest.MonkeyPatch, *, at: int, is_stored: bool) -> None:
    """Have one call to the store fail, after it has stored its messages or before."""
    calls, real = itertools.count(1), append.append

    def crashing(stream_id: str, messages: Any) -> Any:
        crashes = next(calls) == at
        placed = (yield from real(stream_id, messages)) if is_stored or not crashes else []
        if crashes:
            raise DatabaseError("the power went")
        return placed

    monkeypatch.setattr("okmq.analytics.replays.append.append", crashing)
