import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from streams.log import config, keys, lease, notes, stats
from streams.log.client import Log
from streams.models import Event, Query, Replay, Run, Stream, Workspace
from streams.models.history import RunState
from streams.services.history import run_request
from streams.upkeep import processes
from streams.upkeep.processes import ProcessStatus
from streams.upkeep.sampling import Sample
from streams.upkeep.worker import Worker
from tests import waiting
from tests.servers import store
from tests.streams.log.messages import fill
from tests.streams.upkeep.conftest import MakeStream

pytestmark = pytest.mark.django_db(transaction=True)

METRICS_STREAM_ID = "aaaaaaaaaaaa"


class Watched:
    """A worker, and what it told."""

    def __init__(self, url: str, processes_file: Path, *, memory_url: str | None = None) -> None:
        self.samples: list[Sample] = []
        self.groups: list[str] = []
        self.others = 0
        self.processes: list[Sequence[ProcessStatus]] = []
        self.worker = Worker(
            url,
            memory_url=memory_url,
            metrics_stream_id=METRICS_STREAM_ID,
            processes_file=processes_file,
            on_samples=self._samples,
            on_groups=self._groups,
            on_processes=self._processes,
            on_other=self._other,
        )

    def _other(self) -> None:
        self.others += 1

    async def _samples(self, samples: Sequence[Sample]) -> None:
        self.samples += samples

    async def _groups(self, stream_ids: Sequence[str]) -> None:
        self.groups += stream_ids

    async def _processes(self, found: Sequence[ProcessStatus]) -> None:
        self.processes.append(found)

    def saw(self, stream: str) -> bool:
        return any(sample.stream_id == stream for sample in self.samples)


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(waiting.until, condition)


def status(name: str, state: str = "running", *, restarts: int = 0, note: str = "") -> ProcessStatus:
    return ProcessStatus(name=name, pid=1, state=state, restarts=restarts, since=0.0, note=note)  # type: ignore[arg-type]


def rows(*stream_ids: str) -> None:
    """Have the database know streams of the log: others it takes for deleted ones."""
    workspace = Workspace.objects.create(name="upkeep")
    for stream_id in stream_ids:
        Stream.objects.create(workspace=workspace, name=f"s-{stream_id}", stream_id=stream_id, is_told=True)


@pytest.fixture(autouse=True)
def _unsampled(log: Log) -> Iterator[None]:
    """Afterwards nobody has sampled, as before: others would take these workers for one that hangs."""
    yield
    log.client.delete(keys.SAMPLED)


def test_one_worker_at_a_time_and_another_takes_over(
    valkey: str, log: Log, make_stream: MakeStream, tmp_path: Path
) -> None:
    first_stream, second_stream = make_stream(), make_stream()
    rows(first_stream, second_stream)

    async def run() -> None:
        first, second = Watched(valkey, tmp_path / "none"), Watched(valkey, tmp_path / "none")
        one = asyncio.create_task(first.worker.run())
        log.run(stats.touch([first_stream]))
        await until(lambda: first.saw(first_stream))
        two = asyncio.create_task(second.worker.run())
        await until(lambda: second.others > 0)
        first.worker.stop()
        await one
        fill(log, second_stream, 1)
        log.run(stats.touch([second_stream]))
        await until(lambda: second.saw(second_stream))
        assert not second.saw(first_stream)
        assert first.others == 0
        second.worker.stop()
        await two

    began_ms = int(time.time() * 1000)
    asyncio.run(run())
    assert (log.run(lease.sampled_ms()) or 0) >= began_ms


def test_a_restart_becomes_an_event_and_is_told_to_the_pages(valkey: str, tmp_path: Path) -> None:
    path = tmp_path / "processes.json"
    processes.write(path, [status("web")])

    async def run() -> None:
        watched = Watched(valkey, path)
        task = asyncio.create_task(watched.worker.run())
        await until(lambda: len(watched.processes) == 1)
        processes.write(path, [status("web", restarts=1, note="exited with signal 9")])
        await until(lambda: len(watched.processes) == 2)
        watched.worker.stop()
        await task

    asyncio.run(run())
    event = Event.objects.get(kind="process.restarted")
    assert event.summary == "Process web was restarted: exited with signal 9."


def test_a_run_that_nobody_will_take_fails_with_the_reason(valkey: str, tmp_path: Path) -> None:
    path = tmp_path / "processes.json"
    processes.write(path, [status("analytics", "unavailable", note="Install Java.")])
    (run,) = run_request(jobs=["archive"], requested_by="test")

    def refused() -> bool:
        return Run.objects.get(pk=run.pk).state == RunState.FAILED

    async def go() -> None:
        watched = Watched(valkey, path)
        task = asyncio.create_task(watched.worker.run())
        await until(refused)
        watched.worker.stop()
        await task

    asyncio.run(go())
    assert Run.objects.get(pk=run.pk).error == "Install Java."


def test_what_is_kept_for_a_time_goes_without_an_analytics_process(valkey: str, tmp_path: Path) -> None:
    path = tmp_path / "processes.json"
    processes.write(path, [status("analytics", "off", note="OKMQ_HISTORY is off.")])
    workspace = Workspace.objects.create(name="upkeep")
    now = timezone.now()
    answered = Query.objects.create(
        workspace=workspace,
        sql="SELECT 1",
        limit=1,
        asked_by="test",
        state="succeeded",
        rows="[[1]]",
        finished_at=now - timedelta(minutes=61),
    )
    replay = Replay.objects.create(
        workspace=workspace, requested_by="test", state="failed", finished_at=now - timedelta(days=31)
    )

    def gone() -> bool:
        answered.refresh_from_db()
        return answered.rows == "[]" and not Replay.objects.filter(pk=replay.pk).exists()

    async def go() -> None:
        watched = Watched(valkey, path)
        task = asyncio.create_task(watched.worker.run())
        await until(gone)
        watched.worker.stop()
        await task

    asyncio.run(go())


def test_on_a_full_store_limits_remove_messages_and_notes_become_events(tmp_path: Path) -> None:
    with store(tmp_path) as running:
        log = Log(running.url)
        stream = config.Registered(
            stream_id=keys.stream_id(), name="full", workspace="upkeep", workspace_id=77, archive=False
        )
        settings = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}
        metrics = replace(stream, stream_id=METRICS_STREAM_ID, name="metrics", internal=True)
        log.run(config.streams_publish([(stream, settings), (metrics, settings)]))
        rows(stream.stream_id, METRICS_STREAM_ID)
        fill(log, stream.stream_id, 5)
        log.client.execute_command("CONFIG", "SET", "maxmemory", "1mb")
        log.run(config.stream_publish(stream, {**settings, "max_messages": 1}))
        note = notes.Note(
            kind="stream.purged",
            workspace_id=77,
            stream_id=stream.stream_id,
            stream="full",
            token_id=1,
            address="",
            messages=4,
            after={"messages": 4},
        )
        log.run(notes.put(note))

        def is_done() -> bool:
            log.run(stats.touch([stream.stream_id]))  # so that every tick has a sample to record
            is_removed = log.client.execute_command("XLEN", keys.log(stream.stream_id)) == 1
            return is_removed and Event.objects.filter(kind="stream.purged", stream="full").exists()

        async def run() -> None:
            watched = Watched(running.url, tmp_path / "none")
            task = asyncio.create_task(watched.worker.run())
            await until(is_done)
            watched.worker.stop()
            await task

        asyncio.run(run())
        log.close()


def test_a_stream_that_only_the_log_has_is_taken_out(
    valkey: str, log: Log, make_stream: MakeStream, tmp_path: Path
) -> None:
    left, kept = make_stream(), make_stream()
    rows(kept)

    async def run() -> None:
        watched = Watched(valkey, tmp_path / "none")
        task = asyncio.create_task(watched.worker.run())
        await until(lambda: log.run(config.stream_settings(left)) is None)
        watched.worker.stop()
        await task

    asyncio.run(run())
    assert log.run(config.stream_settings(kept)) is not None


def test_a_stream_that_the_log_was_not_told_of_is_told_of(valkey: str, log: Log, tmp_path: Path) -> None:
    workspace = Workspace.objects.create(name="untold")
    stream = Stream.objects.create(workspace=workspace, name="orders", max_messages=2)

    def is_told() -> bool:
        return log.run(config.stream_id_of(workspace.pk, "orders")) == stream.stream_id

    async def run() -> None:
        watched = Watched(valkey, tmp_path / "none")
        task = asyncio.create_task(watched.worker.run())
        await until(is_told)
        watched.worker.stop()
        await task

    asyncio.run(run())
    fill(log, stream.stream_id, 3)
    assert log.run(stats.inspect(stream.stream_id)).messages == 2
