"""Every stream and group in figures, for a monitoring system."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from streams import store
from streams.access import Caller
from streams.log import stats
from streams.log.stats import Counted
from streams.models import Group, Stream
from streams.models.stream import Storage
from streams.selectors.failures import replays_failing_counts
from streams.selectors.groups import GroupView, reachable_views
from streams.selectors.narrowing import inside

AT_ONCE = 250
"""Streams in one round trip: nobody else waits for more than some milliseconds."""


class MonitoredStream(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One stream: its names, its limits (None is none), how it stands, how many groups it has, whether the history
    copies it and how many of its replays failed.
    """

    workspace: str
    name: str
    ttl: int | None
    max_messages: int | None
    max_bytes: int | None
    archive: bool
    groups: int
    replays_failing: int
    state: Counted

    def retention_ratios(self, *, now_ms: int) -> Iterator[tuple[str, float]]:
        """How full each limit is that is set: ``messages``, ``bytes``, ``age``; at 1 the oldest go."""
        if self.max_messages is not None:
            yield "messages", self.state.messages / self.max_messages
        if self.max_bytes is not None:
            yield "bytes", self.state.bytes / self.max_bytes
        if self.ttl is not None:
            age_ms = 0 if self.state.first_ms is None else max(0, now_ms - self.state.first_ms)
            yield "age", age_ms / (self.ttl * 1000)


def streams_monitored(caller: Caller, *, in_memory: bool = True) -> list[MonitoredStream]:
    """The streams that a caller may see, of all workspaces for who rules them all; those just deleted are left out.

    Args:
        in_memory: also those in memory; False does not ask their server.
    """
    found = Stream.objects.filter(internal=False).order_by("workspace__name", "name")
    if not caller.rules_all:
        found = found.filter(workspace=caller.workspace)
    if caller.streams:
        found = found.filter(inside(caller.streams, "name"))
    if not in_memory:
        found = found.filter(storage=Storage.DURABLE)
    groups = Counter(Group.objects.values_list("stream_id", flat=True))
    failing = replays_failing_counts(caller)
    # Plain values: rows of 10,000 streams would take longer to make than all the rest.
    rows = list(
        found.values_list(
            "pk",
            "stream_id",
            "workspace_id",
            "workspace__name",
            "name",
            "ttl",
            "max_messages",
            "max_bytes",
            "archive",
        )
    )
    log = store.log()
    states: dict[str, Counted] = {}
    for first in range(0, len(rows), AT_ONCE):
        states |= log.run(stats.counted([row[1] for row in rows[first : first + AT_ONCE]]))
    return [
        MonitoredStream(
            workspace=workspace,
            name=name,
            ttl=ttl,
            max_messages=max_messages,
            max_bytes=max_bytes,
            archive=archive,
            groups=groups[pk],
            replays_failing=failing[of, name],
            state=states[stream_id],
        )
        for pk, stream_id, of, workspace, name, ttl, max_messages, max_bytes, archive in rows
        if stream_id in states
    ]


def groups_monitored(caller: Caller, *, in_memory: bool = True) -> list[GroupView]:
    """The groups of the streams that a caller may see, of all workspaces for who rules them all.

    Those of streams in memory are left out while their server is away, and where ``in_memory`` says so.
    """
    found = Group.objects.select_related("stream__workspace").filter(stream__internal=False)
    if not caller.rules_all:
        found = found.filter(stream__workspace=caller.workspace)
    if caller.streams:
        found = found.filter(inside(caller.streams, "stream__name"))
    if not in_memory:
        found = found.filter(stream__storage=Storage.DURABLE)
    return reachable_views(found.order_by("stream__workspace__name", "stream__name", "name"))
