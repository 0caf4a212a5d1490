"""What a page may subscribe to: found through the access door, so nobody hears of another workspace."""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings

from dashboard.live import live_events, live_groups, rates
from dashboard.live.live_events import (
    GROUP_PREFIX,
    OVERVIEW,
    PROCESSES,
    STREAM_PREFIX,
    WORKSPACE_PREFIX,
    Event,
    Gone,
    Here,
    WorkerSilent,
)
from dashboard.live.unavailable import stream_away
from dashboard.stream_rows import UNKNOWN
from streams import bearer, selectors
from streams.access import Caller
from streams.models import Group, Stream
from streams.services.open_pages import absent_group, consumers_group, stream_group
from streams.upkeep import processes

MOST_TOPICS = 200


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that may be heard: its name on the page and its group in the channel layer.

    Attributes:
        is_absent: it names a stream or a consumer group that is not there; its group hears when one is made. Or a
            workspace that is not the caller's.
    """

    name: str
    group: str
    stream: Stream | None = None
    consumers: Group | None = None
    is_absent: bool = False


Told = tuple[Topic, Event | Here | Gone | WorkerSilent]
"""A topic, and what is told of it."""


def resolve(caller: Caller, names: Iterable[str]) -> dict[str, Topic]:
    """The topics of these names that the caller may hear; what is no topic is passed over.

    A page of another workspace than the caller looks at hears of nothing but that: its names mean something else here.
    """
    wanted = set(names)
    here = live_events.workspace_topic(caller.workspace.pk)
    found = {
        name: Topic(name, absent_group(caller.workspace.pk, name), is_absent=name != here)
        for name in wanted
        if name.startswith(WORKSPACE_PREFIX)
    }
    if found.keys() - {here}:
        return found
    if OVERVIEW in wanted:
        found[OVERVIEW] = Topic(OVERVIEW, live_events.workspace_group(caller.workspace.pk, caller.streams))
    if PROCESSES in wanted:
        found[PROCESSES] = Topic(PROCESSES, live_events.PROCESSES_GROUP)
    stream_names = {name.removeprefix(STREAM_PREFIX) for name in wanted if name.startswith(STREAM_PREFIX)}
    if stream_names and caller.may("observe"):
        for stream in selectors.streams_of(caller, internal=caller.rules_all).filter(name__in=stream_names):
            name = f"{STREAM_PREFIX}{stream.name}"
            found[name] = Topic(name, stream_group(stream.stream_id), stream)
    if caller.may("observe"):
        found |= _of_groups(caller, wanted)
    return found | {name: topic for name in wanted - found.keys() if (topic := _absent(caller, name))}


def _absent(caller: Caller, name: str) -> Topic | None:
    """The topic of a stream or of a consumer group that is not there, or not for the caller."""
    of_group = name.removeprefix(GROUP_PREFIX)
    if name.startswith(STREAM_PREFIX):
        parts = [name.removeprefix(STREAM_PREFIX)]
    elif of_group != name and "/" in of_group:
        parts = of_group.split("/", 1)
    else:
        return None
    if not bearer.streams_cover(caller.streams, parts[0]):
        # Nobody tells the group of a stream without a name: when another one is made is not the caller's to hear.
        parts = ["", name]
    return Topic(name, absent_group(caller.workspace.pk, *parts), is_absent=True)


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
            channel = consumers_group(group.stream.stream_id, group.name)
            found[topic] = Topic(topic, channel, consumers=group)
    return found


def unsure(asked: Iterable[Topic], *, told: Collection[str]) -> list[str]:
    """The streams and consumer groups that nothing was told of: they may have been made or deleted since."""
    return [
        topic.name for topic in asked if topic.name not in told and topic.name not in (OVERVIEW, PROCESSES)
    ]


def snapshots(asked: Iterable[Topic]) -> list[Told]:
    """How the topics stand now, where that is known, and which are gone.

    The overview has none, since its next beat is less than a second away; but what is known for how long not to come.
    """
    topics = list(asked)
    at_ms = int(time.time() * 1000)
    seen = selectors.sampling()
    found: list[Told] = [
        (topic, WorkerSilent(at_ms=seen.at_ms, silent_ms=seen.silent_ms))
        for topic in topics
        if topic.name == OVERVIEW and seen.at_ms is not None and seen.silent_ms is not None and seen.is_stale
    ]
    found += [
        (topic, Gone(at_ms=at_ms) if topic.is_absent else Here(at_ms=at_ms))
        for topic in topics
        if topic.is_absent or topic.name.startswith(WORKSPACE_PREFIX)
    ]
    of_streams = {topic.stream.stream_id: topic for topic in topics if topic.stream}
    found += _of_streams(of_streams, at_ms=at_ms, is_sampled=seen.is_going_on)
    by_group = {topic.name: topic for topic in topics if topic.consumers is not None}
    wanted = [topic.consumers for topic in by_group.values() if topic.consumers is not None]
    found += [(by_group[event.topic], event) for event in live_groups.sampled(wanted, at_ms=at_ms)]
    found += [
        (topic, live_events.processes_changed(processes.read(settings.ENV.processes_file)))
        for topic in topics
        if topic.name == PROCESSES
    ]
    return found


def _of_streams(by_stream: Mapping[str, Topic], *, at_ms: int, is_sampled: bool) -> list[tuple[Topic, Event]]:
    """How the streams stand, and the worst group of each; unsampled, nobody knows their rates."""
    streams = [topic.stream for topic in by_stream.values() if topic.stream is not None]
    if not streams:
        return []
    moving = rates.moving_lately(by_stream)
    found: list[tuple[Topic, Event]] = []
    for view in selectors.stream_views(streams):
        if not view.is_reachable:
            found.append((by_stream[view.stream.stream_id], stream_away(view.stream, at_ms=at_ms)))
            continue
        now = moving.get(view.stream.stream_id, rates.AT_REST) if is_sampled else UNKNOWN
        event = live_events.stream_sampled(
            view, at_ms=at_ms, rate_in=now.rate_in, bytes_in=now.bytes_in, rate_out=now.rate_out
        )
        found.append((by_stream[view.stream.stream_id], event))
    worst = live_groups.worst_sampled(streams, at_ms=at_ms)
    return [*found, *((by_stream[event.stream_id], event) for event in worst)]
