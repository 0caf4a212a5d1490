"""What /metrics shows: streams, groups, requests, processes and the store as families of OpenMetrics.

Names are those of redis_exporter where the meaning is the same, and begin with ``okmq_`` for what nobody else has.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from okmq.web.openmetrics import Family, labels_of
from streams.log.server import ServerState
from streams.log.traffic import BOUNDS_S, SECOND_US, Durations, Kind
from streams.models.history import Job
from streams.selectors.failures import FailingRuns
from streams.selectors.groups import GroupView
from streams.selectors.monitoring import MonitoredStream
from streams.selectors.silences import Sampling
from streams.upkeep.processes import ProcessStatus

PROC = Path("/proc")


def stream_families(streams: Iterable[MonitoredStream], *, now_ms: int) -> list[Family]:
    """Families with the labels ``workspace`` and ``stream``."""
    length = Family("redis_stream_length", "gauge", "Messages that can be read.")
    groups = Family("redis_stream_groups", "gauge", "Consumer groups.")
    size = Family("okmq_stream_bytes", "gauge", "Bytes of the bodies of messages that can be read.")
    ratio = Family(
        "okmq_stream_retention_ratio", "gauge", "How full each limit is that is set; at 1 the oldest go."
    )
    published = Family("okmq_stream_published", "counter", "Messages ever published.")
    published_bytes = Family("okmq_stream_published_bytes", "counter", "Bytes of bodies ever published.")
    duplicates = Family("okmq_stream_duplicates", "counter", "Publishes refused as already known.")
    last = Family("okmq_stream_last_offset", "gauge", "Last offset assigned.")
    first = Family("okmq_stream_first_offset", "gauge", "Lowest offset that can be read.")
    committed = Family("okmq_stream_committed_offset", "gauge", "Committed offset.")
    lag = Family("okmq_stream_lag", "gauge", "Messages above the committed offset.")
    archived = Family("okmq_stream_archived_offset", "gauge", "The history holds everything up to it.")
    failing = Family(
        "okmq_stream_replays_failing", "gauge", "Replays that failed, and were not started again or ended."
    )
    for stream in streams:
        labels, state = labels_of(workspace=stream.workspace, stream=stream.name), stream.state
        length.add(labels, state.messages)
        groups.add(labels, stream.groups)
        size.add(labels, state.bytes)
        for limit, value in stream.retention_ratios(now_ms=now_ms):
            ratio.add(f'{labels},limit="{limit}"', round(value, 6))
        published.add(labels, state.offset)
        published_bytes.add(labels, state.appended_bytes)
        duplicates.add(labels, state.duplicates)
        last.add(labels, state.offset)
        first.add(labels, state.first_offset)
        committed.add(labels, state.committed_offset)
        lag.add(labels, state.lag)
        failing.add(labels, stream.replays_failing)
        if stream.archive:
            archived.add(labels, state.archived_offset)
    return [
        *(length, groups, size, ratio, published, published_bytes, duplicates),
        *(last, first, committed, lag, archived, failing),
    ]


def group_families(views: Iterable[GroupView]) -> list[Family]:
    """Families with the labels ``workspace``, ``stream`` and ``group``."""
    lag = Family("redis_stream_group_lag", "gauge", "Stored messages not yet delivered.")
    pending = Family("redis_stream_group_messages_pending", "gauge", "Messages delivered and not settled.")
    consumers = Family(
        "redis_stream_group_consumers",
        "gauge",
        "Consumers with messages in flight, or active within the last minute.",
    )
    lag_seconds = Family(
        "okmq_group_lag_seconds", "gauge", "Age of the oldest message that is not acknowledged."
    )
    oldest = Family("okmq_group_oldest_pending_seconds", "gauge", "Age of the oldest message in flight.")
    polls = Family("okmq_group_open_polls", "gauge", "Fetches that wait for messages.")
    status = Family("okmq_group_status", "gauge", "1 for the status that the group has now.")
    healths = Family("okmq_group_health", "gauge", "1 for the verdict on the group's last minutes.")
    eta = Family("okmq_group_eta_seconds", "gauge", "While it catches up: until nothing waits.")
    acked = Family("okmq_group_acked", "counter", "Messages acknowledged.")
    redelivered = Family("okmq_group_redelivered", "counter", "Messages delivered again.")
    lost = Family("okmq_group_lost", "counter", "Messages that retention removed before they were delivered.")
    dead = Family("okmq_group_dead_letters", "gauge", "Dead letters that are kept.")
    for view in views:
        stream, state = view.group.stream, view.state
        labels = labels_of(workspace=stream.workspace.name, stream=stream.name, group=view.group.name)
        lag.add(labels, state.lag)
        pending.add(labels, state.ack_pending)
        consumers.add(labels, len(view.members))
        lag_seconds.add(labels, view.lag_seconds)
        oldest.add(labels, view.lag_seconds if state.ack_pending else 0)
        polls.add(labels, view.waiting)
        status.add(f"{labels},{labels_of(status=view.status)}", 1)
        healths.add(f"{labels},{labels_of(health=view.health.status)}", 1)
        if view.health.eta_seconds is not None:
            eta.add(labels, round(view.health.eta_seconds, 3))
        acked.add(labels, state.acked)
        redelivered.add(labels, state.redelivered)
        lost.add(labels, state.lost)
        dead.add(labels, state.dead_letters)
    return [
        *(lag, pending, consumers, lag_seconds, oldest, polls, status, healths, eta),
        *(acked, redelivered, lost, dead),
    ]


def traffic_families(counted: Mapping[Kind, Durations]) -> list[Family]:
    """Requests of all web processes, by ``method``, ``route`` and ``status``."""
    seconds = Family(
        "okmq_http_request_seconds", "histogram", "From a request to the end of its answer, waiting included."
    )
    for kind in sorted(counted):
        durations = counted[kind]
        seconds.add_histogram(
            labels_of(method=kind.method, route=kind.route, status=str(kind.status)),
            zip(BOUNDS_S, durations.buckets, strict=False),
            rest=durations.buckets[-1],
            total=durations.sum_us / SECOND_US,
        )
    return [seconds]


def process_families(processes: Iterable[ProcessStatus]) -> list[Family]:
    """The processes that the supervisor of this machine looks after, by ``process``."""
    up = Family("okmq_process_up", "gauge", "1 while the process runs.")
    restarts = Family("okmq_process_restarts", "counter", "Restarts since the supervisor's start.")
    memory = Family("okmq_process_resident_memory_bytes", "gauge", "Resident memory.")
    cpu = Family("okmq_process_cpu_seconds", "counter", "Processor time, user and system.")
    for process in processes:
        labels = labels_of(process=process.name)
        up.add(labels, int(process.state == "running"))
        restarts.add(labels, process.restarts)
        used = _used_by(process.pid)
        if used is not None:
            cpu.add(labels, used[0])
            memory.add(labels, used[1])
    return [up, restarts, memory, cpu]


def worker_families(seen: Sampling) -> list[Family]:
    """Whether anybody samples, enforces limits and looks at groups; nothing where nobody ever did."""
    silent = Family("okmq_worker_silent_seconds", "gauge", "Since the worker took samples last.")
    if seen.silent_s is not None:
        silent.add("", seen.silent_s)
    return [silent]


def history_families(failing: Iterable[FailingRuns]) -> list[Family]:
    """What the analytics process could not do, by ``run``: ``archive``, ``rollup``, ``compact``."""
    failed = Family(
        "okmq_history_runs_failing", "gauge", "Runs that failed since the last of their kind that succeeded."
    )
    counts = {each.job: each.count for each in failing}
    for job in Job.values:
        failed.add(labels_of(run=job), counts.get(job, 0))
    return [failed]


def store_families(stores: Mapping[str, ServerState | None]) -> list[Family]:
    """The servers that hold the streams, by ``store``; None is one that does not answer."""
    up = Family("okmq_store_up", "gauge", "1 while the store answers.")
    memory = Family("okmq_store_memory_bytes", "gauge", "Memory that the store uses.")
    clients = Family("okmq_store_clients", "gauge", "Connections to the store.")
    commands = Family("okmq_store_commands", "counter", "Commands since the store's start.")
    aof = Family("okmq_store_aof_bytes", "gauge", "Size of the append-only file.")
    fail = Family("okmq_store_writes_fail", "gauge", "1 while writing to the disk fails.")
    kept = Family("okmq_store_durability", "gauge", "1 for what a publish is promised now.")
    for name, state in stores.items():
        labels = labels_of(store=name)
        up.add(labels, int(state is not None))
        if state is not None:
            memory.add(labels, state.memory_bytes)
            clients.add(labels, state.clients)
            commands.add(labels, state.commands)
            aof.add(labels, state.aof_bytes)
            fail.add(labels, int(state.writes_fail))
            kept.add(f"{labels},{labels_of(durability=state.durability)}", 1)
    return [up, memory, clients, commands, aof, fail, kept]


def _used_by(pid: int | None) -> tuple[float, int] | None:
    """Processor time in seconds and resident bytes, as Linux counts them (proc(5)); None where it does not."""
    try:
        fields = (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
