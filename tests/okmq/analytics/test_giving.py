"""A group that is sent to a time older than its stream holds gets what the history holds: once, as it was, alone."""

import itertools
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from pyspark.sql import SparkSession

from okmq.analytics import giving
from okmq.analytics.erased import ErasedSince
from okmq.analytics.replay_watch import CannotReplay
from spark import replay as reading
from streams.access import SYSTEM, Caller
from streams.errors import Refusal
from streams.log import bringing, dead_letters, entries, groups, keys, trim
from streams.log.entries import NewMessage
from streams.log.errors import StoreFull, StoreUnavailable
from streams.models import Event, Group, Replay, ReplayState, Stream, Workspace
from streams.selectors import gone_behind
from streams.services import replays as service
from streams.services.groups import group_create, group_delete, group_seek
from tests.okmq.analytics.replaying import Here
from tests.okmq.analytics.working import in_workspace, inside
from tests.spark.published import Published
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
KEPT = 5
"""Messages that the stream holds still."""


class There(Here):
    """A stream of which more is in the history, or waits for it, than it holds, and two groups that have read it."""

    def begun(self, count: int, *, archived: bool = False, **of_group: Any) -> str:
        source = self.stream("a")
        odd = NewMessage(id="ü", body=b'{"n": 1.50}', key="k.1", headers='{"ä":"1","z":"\\n"}'.encode())
        self.published.publish(source, [odd])
        self.published.numbered(source, count - 1, key="eu")
        if archived:
            self.archive()
        self.before = self.published.stored(source)
        for name in ("g", "other"):
            settings = {"start_from": "latest", **(of_group if name == "g" else {})}
            group_create(self.row, name=name, settings=settings, actor=SYSTEM)
        self.published.stream("a", max_messages=KEPT)
        self.published.log.run(trim.apply_limits(source))
        return source

    @property
    def row(self) -> Stream:
        return Stream.objects.select_related("workspace").get(workspace=self.workspace, name="a")

    @property
    def group(self) -> Group:
        return Group.objects.select_related("stream__workspace").get(stream=self.row, name="g")

    def sought(self, **wanted: Any) -> Replay:
        """The group is sent to a time long ago, with what the history holds."""
        group_seek(self.group, next_offset=0, actor=SYSTEM)
        return self.replay(**wanted)

    def replay(self, **wanted: Any) -> Replay:
        gone = gone_behind(self.group, "timestamp", timestamp=LONG_AGO)
        assert gone is not None
        wanted_ = service.ReplayWanted(since=gone.since, to_offset=gone.to_offset, **wanted)
        return service.replay_for_group(self.caller, stream="a", group="g", wanted=wanted_)

    def taken(self, source: str, *, limit: int = 100, name: str = "g") -> list[tuple[Any, ...]]:
        """What the group gets until it gets no more, acknowledged: rows as ``Published.stored`` has them."""
        rows: list[tuple[Any, ...]] = []
        while found := self.published.log.run(groups.fetch(source, name, limit=limit)).deliveries:
            for each in found:
                message = entries.parse(each.entry)
                headers = None if message.headers is None else json.loads(message.headers)
                body = message.body.decode()
                rows.append(
                    (source, message.offset, message.timestamp_ms, message.id, message.key, headers, body)
                )
                assert each.deliveries == 1
            leases = [each.lease for each in found]
            self.published.log.run(groups.ack(source, name, "leases", leases))
        return rows


@pytest.fixture
def there(published: Published, tmp_path: Path, settings: Any, spark: SparkSession) -> Iterator[There]:
    published = in_workspace(published)
    with inside(published, settings, tmp_path) as analytics:
        yield There(published, Workspace.objects.get(pk=published.workspace_id), analytics)


def offsets(rows: list[tuple[Any, ...]]) -> list[int]:
    return [row[1] for row in rows]


def test_the_group_gets_all_of_it_as_it_was_and_the_other_group_nothing(
    there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_ROWS", 7)
    source = there.begun(40, archived=True)
    replay = there.worked(there.sought(starts=False))
    assert (replay.state, replay.total, replay.stored) == (ReplayState.READY, 40 - KEPT, 0)
    service.replay_start(there.caller, replay)
    replay = there.worked(replay)
    assert (replay.state, replay.stored, replay.duplicates) == (ReplayState.SUCCEEDED, 40 - KEPT, 0)
    assert not there.published.log.client.exists(keys.brought(source, "g")), "nothing of it is left"
    got = there.taken(source)
    assert sorted(got) == [row[:7] for row in there.before]
    assert offsets(got) == list(range(1, 41)), "none was taken before"
    assert there.taken(source, name="other") == []
    assert there.published.log.client.xlen(keys.log(source)) == 40, "nothing is appended"
    told = Event.objects.get(kind="history.replay_succeeded")
    assert (told.stream, told.group) == ("a", "g")
    assert told.summary == f"Replay {replay.pk} of a to group g has succeeded."


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_crash_around_a_batch_neither_doubles_nor_loses(
    there: There, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    monkeypatch.setattr("okmq.analytics.replays.BATCH", 10)
    source = there.begun(40, archived=True)
    replay = there.sought()
    _crash(monkeypatch, at=4, is_stored=is_stored)
    with pytest.raises(DatabaseError):
        there.worked(replay)
    first = there.taken(source)
    replay = there.worked(replay)
    assert (replay.state, replay.stored, replay.duplicates) == (ReplayState.SUCCEEDED, 40 - KEPT, 0)
    got = [*first, *there.taken(source)]
    assert sorted(offsets(got)) == list(range(1, 41))


def test_what_is_paused_in_the_middle_goes_on_where_it_was(there: There) -> None:
    source = there.begun(60)
    replay = there.sought(rate=40)
    there.replays.hand_out()
    until(lambda: Replay.objects.get().stored > 0, within_s=60, what="it began")
    service.replay_pause(replay, actor=SYSTEM)
    until(lambda: not any(thread.is_alive() for thread in there.replays._threads.values()), what="it rests")
    replay.refresh_from_db()
    assert 0 < replay.stored < 60 - KEPT
    service.replay_start(there.caller, replay)
    replay = there.worked(replay)
    assert (replay.state, replay.stored) == (ReplayState.SUCCEEDED, 60 - KEPT)
    assert replay.started_at is not None
    assert replay.finished_at is not None
    assert (replay.finished_at - replay.started_at).total_seconds() >= (60 - KEPT) / 40 - 0.1
    assert sorted(offsets(there.taken(source))) == list(range(1, 61))


@pytest.mark.parametrize("kept_s", [60.0, 0.0])
def test_it_waits_for_a_group_that_does_not_take_them_and_says_so(
    there: There, monkeypatch: pytest.MonkeyPatch, kept_s: float
) -> None:
    monkeypatch.setattr(giving, "SAID_AFTER_S", 0.0)
    monkeypatch.setattr(giving, "KEPT_S", kept_s)
    source = there.begun(40, max_ack_pending=10)
    replay = there.sought()
    there.replays.hand_out()
    until(lambda: Replay.objects.get().waits_for == "group", within_s=60, what="it waits")
    replay.refresh_from_db()
    assert (replay.state, replay.stored) == (ReplayState.RUNNING, 10)
    log = there.published.log
    log.run(groups.pause(source, "g", until_ms=None))
    until(lambda: Replay.objects.get().waits_for == "paused_group", what="it says so")
    log.run(groups.resume(source, "g"))
    got: list[int] = []

    def all_given() -> bool:
        got.extend(offsets(there.taken(source, limit=5)))
        return Replay.objects.get().state == ReplayState.SUCCEEDED

    until(all_given, within_s=60, what="it ends")
    got += offsets(there.taken(source))
    assert sorted(got) == list(range(1, 41))
    replay.refresh_from_db()
    assert (replay.stored, replay.waits_for) == (40 - KEPT, "")


def test_one_whose_group_takes_nothing_lets_others_have_its_thread(
    there: There, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SAID_AFTER_S", "KEPT_S"):
        monkeypatch.setattr(giving, name, 0.0)
    monkeypatch.setattr("okmq.analytics.replays.TURN_S", 0.0)
    source = there.begun(20, max_ack_pending=10)
    replay = there.worked(there.sought())
    assert (replay.state, replay.stored, replay.waits_for) == (ReplayState.RUNNING, 10, "group")
    monkeypatch.setattr(giving, "SAID_AFTER_S", 60.0)
    replay = there.worked(replay)
    assert (replay.stored, replay.waits_for) == (10, "group"), "it has said so"
    assert service.replay_next(under_way=[]) == replay
    got = offsets(there.taken(source))
    replay = there.worked(replay)
    assert (replay.state, replay.waits_for) == (ReplayState.SUCCEEDED, "")
    assert sorted([*got, *offsets(there.taken(source))]) == list(range(1, 21))


def test_what_is_erased_while_it_waits_for_the_group_never_comes(there: There) -> None:
    """The group has ten of them; all others were read, and wait for it."""
    source = there.begun(60, archived=True, max_ack_pending=10)
    replay = there.sought()
    there.replays.hand_out()
    until(lambda: Replay.objects.get().stored == 10, within_s=60, what="the group has as many as it may")
    erasure = there.erased(
        "a", source, key="eu.1", up_to=60
    )  # offsets 3, 6, …, 60; the group has three of them
    assert (erasure.state, erasure.messages, erasure.dead_letters) == ("succeeded", 20, 3)
    got: list[int] = []

    def all_given() -> bool:
        got.extend(offsets(there.taken(source)))
        replay.refresh_from_db()
        return replay.state == ReplayState.SUCCEEDED

    until(all_given, within_s=60, what="it ends")
    left = [offset for offset in range(1, 61) if offset % 3 or offset > 60 - KEPT]
    assert sorted([*got, *offsets(there.taken(source))]) == left
    assert there.published.log.run(dead_letters.page(source, "g")) == []


def test_a_seek_ends_it_and_takes_back_what_it_gave(there: There) -> None:
    source = there.begun(40, max_ack_pending=10)
    replay = there.sought()
    there.replays.hand_out()
    until(lambda: Replay.objects.get().stored == 10, within_s=60, what="the group has as many as it may")
    group_seek(there.group, next_offset=39, actor=SYSTEM)
    replay.refresh_from_db()
    assert (replay.state, replay.error) == (ReplayState.CANCELLED, "Group g was moved to another position.")
    until(lambda: not any(thread.is_alive() for thread in there.replays._threads.values()), what="it ends")
    assert offsets(there.taken(source)) == [39, 40]
    assert there.published.log.run(dead_letters.page(source, "g")) == []
    again = there.sought()
    there.replays.hand_out()
    got: list[int] = []

    def all_given() -> bool:
        got.extend(offsets(there.taken(source)))
        again.refresh_from_db()
        return again.state == ReplayState.SUCCEEDED

    until(all_given, within_s=60, what="it ends")
    assert sorted([*got, *offsets(there.taken(source))]) == list(range(1, 41))


def test_a_group_that_the_service_does_not_know_to_be_moved_ends_it_too(there: There) -> None:
    source = there.begun(10)
    replay = there.sought()
    there.published.log.run(groups.seek(source, "g", next_offset=10))
    replay = there.worked(replay)
    assert (replay.state, replay.error) == (ReplayState.CANCELLED, "Group g was moved to another position.")
    assert offsets(there.taken(source)) == [10]


def test_a_group_that_is_deleted_ends_it_and_one_of_its_name_gets_nothing(there: There) -> None:
    source = there.begun(10)
    replay = there.worked(there.sought(starts=False))
    group_delete(there.group, actor=SYSTEM)
    replay.refresh_from_db()
    assert (replay.state, replay.error) == (ReplayState.CANCELLED, "Group g was deleted.")
    group_create(there.row, name="g", settings={"start_from": "latest"}, actor=SYSTEM)
    replay = there.worked(replay)
    assert there.taken(source) == []


def test_a_filter_of_the_group_is_counted_with(there: There) -> None:
    source = there.begun(40, filter_keys=["eu.1", "k.*"])
    replay = there.worked(there.sought())
    wanted = [row[1] for row in there.before if row[4] in {"eu.1", "k.1"}]
    past = [offset for offset in wanted if offset <= 40 - KEPT]
    assert (replay.state, replay.total, replay.stored) == (ReplayState.SUCCEEDED, len(past), len(past))
    assert offsets(there.taken(source)) == wanted


def test_what_the_group_gets_by_itself_does_not_come_twice(there: There) -> None:
    source = there.begun(20)
    group_seek(there.group, next_offset=0, actor=SYSTEM)
    wanted = service.ReplayWanted(from_offset=14)
    replay = service.replay_for_group(there.caller, stream="a", group="g", wanted=wanted)
    replay = there.worked(replay)
    assert (replay.total, replay.stored, replay.duplicates) == (7, 2, 5)
    assert offsets(there.taken(source)) == [14, 15, 16, 17, 18, 19, 20]


def test_a_full_store_is_waited_for(there: There, monkeypatch: pytest.MonkeyPatch) -> None:
    source = there.begun(10)
    replay = there.sought()
    real = bringing.bring_back

    def full(*args: Any, **named: Any) -> Any:
        if named["letters"]:
            raise StoreFull("used memory > maxmemory")
        return (yield from real(*args, **named))

    with monkeypatch.context() as patched:
        patched.setattr(bringing, "bring_back", full)
        with pytest.raises(StoreUnavailable):
            there.worked(replay)
    replay = there.worked(replay)
    assert (replay.state, replay.stored) == (ReplayState.SUCCEEDED, 10 - KEPT)
    assert sorted(offsets(there.taken(source))) == list(range(1, 11))


def test_a_stream_that_went_meanwhile_ends_it(there: There) -> None:
    there.begun(10)
    replay = there.sought()
    giver = giving.Giving(replay, most=10, erased=ErasedSince(), stop=threading.Event())
    there.published.remove("a")
    with pytest.raises(CannotReplay, match="Stream a was deleted"):
        giver.wait_for_room()


def test_who_may_not_manage_the_group_brings_it_nothing(there: There) -> None:
    there.begun(10)
    reader = Caller(there.workspace, frozenset({"read", "publish"}), SYSTEM)
    with pytest.raises(Refusal, match="manage"):
        service.replay_for_group(reader, stream="a", group="g", wanted=service.ReplayWanted())
    outside = Caller(there.workspace, frozenset({"admin"}), SYSTEM, streams=("b",))
    with pytest.raises(Refusal):
        service.replay_for_group(outside, stream="a", group="g", wanted=service.ReplayWanted())


def _crash(monkeypatch: pytest.MonkeyPatch, *, at: int, is_stored: bool) -> None:
    """Have one call to the store fail, after it has given its messages or before."""
    calls, real = itertools.count(1), bringing.bring_back

    def crashing(*args: Any, **named: Any) -> Any:
        crashes = next(calls) == at
        told = (yield from real(*args, **named)) if is_stored or not crashes else None
        if crashes:
            raise DatabaseError("the power went")
        return told

    monkeypatch.setattr(bringing, "bring_back", crashing)
