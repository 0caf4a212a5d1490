"""What a page may subscribe to: found through the access door, so nobody hears of another workspace."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings

from dashboard.groups.group_rows import GroupRow
from dashboard.live import live_events, live_groups, rates
from dashboard.live.live_events import GROUP_PREFIX, OVERVIEW, PROCESSES, STREAM_PREFIX, Event
from streams import selectors
from streams.access import Caller
from streams.models import Group, Stream
from streams.upkeep import processes

MOST_TOPICS = 200


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that may be heard: its name on the page and its group in the channel layer."""

    name: str
    group: str
    stream: Stream | None = None
    consumers: Group | None = None


def resolve(caller: Caller, names: Iterable[str]) -> dict[str, Topic]:
    """The topics of these names that the caller may hear; unknown ones are passed over."""
    wanted = set(names)
    found = {}
    if OVERVIEW in wanted:
        found[OVERVIEW] = Topic(OVERVIEW, live_events.workspace_group(caller.workspace.pk))
    if PROCESSES in wanted:
        found[PROCESSES] = Topic(PROCESSES, live_events.PROCESSES_GROUP)
    stream_names = {name.removeprefix(STREAM_PREFIX) for name in wanted if name.startswith(STREAM_PREFIX)}
    if stream_names and caller.may("read"):
        for stream in selectors.streams_of(caller).filter(name__in=stream_names):
            name = f"{STREAM_PREFIX}{stream.name}"
            found[name] = Topic(name, live_events.stream_group(stream.stream_id), stream)
    if caller.may("read"):
        found |= _of_groups(caller, wanted)
    return found


def _of_groups(caller: Caller, wanted: Iterable[str]) -> dict[str, Topic]:
    pairs = {
        tuple(name.removeprefix(GROUP_PREFIX).split("/", 1))
        for name in wanted
        if name.startswith(GROUP_PREFIX) and "/" in name
    }
    if not pairs:
        return {}
    groups = Group.objects.select_related("stream").filter(
        stream__in=selectors.streams_of(caller), stream__name__in={stream for stream, _ in pairs}
    )
    found = {}
    for group in groups.filter(name__in={name for _, name in pairs}):
        if (group.stream.name, group.name) in pairs:
            topic = live_events.group_topic(group.stream.name, group.name)
            channel = live_events.consumers_group(group.stream.stream_id, group.name)
            found[topic] = Topic(topic, channel, consumers=group)
    return found


def snapshots(asked: Iterable[Topic]) -> list[tuple[Topic, Event]]:
    """How the topics stand now, where that is known.

    The overview has none: its next beat is less than a second away, or it is stale.
    """
    topics = list(asked)
    at_ms = int(time.time() * 1000)
    found = _of_streams({topic.stream.stream_id: topic for topic in topics if topic.stream}, at_ms=at_ms)
    by_group = {topic.name: topic for topic in topics if topic.consumers is not None}
    wanted = [topic.consumers for topic in by_group.values() if topic.consumers is not None]
    found += [
        (by_group[event.topic], event)
        for event in (
            live_groups.group_sampled(GroupRow(view), at_ms=at_ms)
            for view in selectors.reachable_views(wanted)
        )
    ]
    found += [
        (topic, live_events.processes_changed(processes.read(settings.ENV.processes_file)))
        for topic in topics
        if topic.name == PROCESSES
    ]
    return found


def _of_streams(by_stream: Mapping[str, Topic], *, at_ms: int) -> list[tuple[Topic, Event]]:
    """How the streams stand that can be reached, and the worst group of each."""
    streams = [topic.stream for topic in by_stream.values() if topic.stream is not None]
    if not streams:
        return []
    moving = rates.moving_lately()
    found: list[tuple[Topic, Event]] = []
    reachable = [view for view in selectors.stream_views(streams) if view.is_reachable]
    for view in reachable:
        now = moving.get(view.stream.stream_id, rates.AT_REST)
        event = live_events.stream_sampled(
            view, at_ms=at_ms, rate_in=now.rate_in, bytes_in=now.bytes_in, rate_out=now.rate_out
        )
        found.append((by_stream[view.stream.stream_id], event))
    worst = live_groups.worst_sampled([view.stream for view in reachable], at_ms=at_ms)
    return [*found, *((by_stream[event.stream_id], event) for event in worst)]
