"""Streams: their rows together with how they stand in the log."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, NamedTuple

from django.db.models import QuerySet, Value
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import StrIndex

from streams import naming, store
from streams.access import Caller
from streams.log import keys, stats
from streams.log.client import Reachable, one
from streams.log.errors import Damaged, StoreUnavailable, StreamNotFound
from streams.log.stats import Figures, State
from streams.models import (
    Group,
    Stream,
)
from streams.models.stream import Discard
from streams.selectors.narrowing import inside, named_like
from streams.selectors.times import moment


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream's row, how it stands, and how many consumer groups it has."""

    stream: Stream
    state: State
    groups: int = 0
    is_reachable: bool = True
    """Whether its server told how it stands: one in memory can be away, or one damaged, while others are not."""

    @property
    def figures(self) -> State | None:
        """How it stands, or None where that is not known."""
        return self.state if self.is_reachable else None

    @property
    def first_timestamp(self) -> datetime | None:
        return moment(self.state.first_ms)

    @property
    def last_timestamp(self) -> datetime | None:
        return moment(self.state.last_ms)


class StreamName(NamedTuple):
    """What a stream is called: its row, in the log, and by people."""

    pk: int
    stream_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Overview:
    """A workspace in figures; ``last_ms`` is the unix ms of its newest message."""

    streams: int
    messages: int
    bytes: int
    last_ms: int | None


def stream_view(stream: Stream) -> StreamView:
    """One stream with its state."""
    return stream_views([stream])[0]


def stream_known(stream: Stream) -> StreamView:
    """As ``stream_view``, of a stream whose figures have to be told.

    Raises:
        StoreUnavailable: it is in memory, and its server does not answer or has yet to begin it again, or it lies on a
            node of a cluster that is away.
        Damaged: what the store holds of it cannot be read.
    """
    view = stream_view(stream)
    if not view.is_reachable:
        if not keys.in_memory(stream.stream_id):
            store.log().run(stats.inspect(stream.stream_id))
        raise StoreUnavailable(f"the server of stream {stream.stream_id} is away")
    return view


def stream_views(streams: Sequence[Stream]) -> list[StreamView]:
    """Streams with their states, in one round trip."""
    stream_ids = [stream.stream_id for stream in streams]
    states = store.log().run(stats.inspect_many(stream_ids, within_s=stats.EXACT_WITHIN_S))
    left_out = [each for each in stream_ids if each not in states and not keys.in_memory(each)]
    there = store.log().run(one(Reachable(left_out))) if left_out else ()
    gone = {each for each in there if _is_gone(each)}
    groups_of = Counter(Group.objects.filter(stream__in=streams).values_list("stream_id", flat=True))
    return [
        StreamView(
            stream,
            states.get(stream.stream_id, stats.EMPTY),
            groups_of[stream.pk],
            is_reachable=stream.stream_id in states or stream.stream_id in gone,
        )
        for stream in streams
    ]


def _is_gone(stream_id: str) -> bool:
    """Whether the log has no such stream (any more), rather than one that cannot be read."""
    try:
        store.log().run(stats.inspect(stream_id))
    except StreamNotFound:
        return True
    except Damaged:
        return False
    return False


def streams_of(
    caller: Caller,
    *,
    name: str = "",
    name_regex: str = "",
    labels: Iterable[tuple[str, str]] = (),
    internal: bool = False,
) -> QuerySet[Stream]:
    """The streams that a caller may see, by name.

    Args:
        name: a part of the name, as written.
        name_regex: a regular expression without a fault that the name matches somewhere.
        labels: label and value pairs, all of which must hold.
    """
    found = Stream.objects.filter(workspace=caller.workspace).select_related("workspace").order_by("name")
    if not internal:
        found = found.filter(internal=False)
    if name:
        # LIKE is blind to case on SQLite; names are not.
        found = found.alias(at=StrIndex("name", Value(name))).filter(at__gt=0)
    for number, (label, value) in enumerate(labels):
        if not naming.is_label(label):
            return found.none()
        # Not as a keyword: a label's name may look like a look-up.
        found = found.alias(**{f"label_{number}": KeyTransform(label, "labels")})
        found = found.filter(**{f"label_{number}": value})
    if caller.streams:
        found = found.filter(inside(caller.streams, "name"))
    return named_like(found, name_regex) if name_regex else found


def streams_page(
    caller: Caller, *, after: str = "", limit: int = 100, **filters: Any
) -> tuple[list[StreamView], bool]:
    """A page of streams by name, those after a name, and whether there are more."""
    found = streams_of(caller, **filters)
    if after:
        found = found.filter(name__gt=after)
    rows = list(found[: limit + 1])
    return stream_views(rows[:limit]), len(rows) > limit


def streams_matching(caller: Caller, key: str) -> list[StreamView]:
    """The streams whose key patterns match a key; a stream without patterns matches none."""
    patterns = streams_of(caller).exclude(keys=[]).values_list("pk", "keys")
    found = list(naming.PatternIndex(patterns).owners(key))
    # In slices: a database bounds how many values one statement takes.
    rows = [
        stream
        for n in range(0, len(found), 500)
        for stream in streams_of(caller).filter(pk__in=found[n : n + 500])
    ]
    return stream_views(sorted(rows, key=lambda stream: stream.name))


def overview(caller: Caller, *, counted: Sequence[Figures] | None = None) -> Overview:
    """Totals over the streams that a caller may see; ``counted`` of all of them, where that has just been read."""
    found = counted
    if found is None:
        stream_ids = list(streams_of(caller).order_by().values_list("stream_id", flat=True))
        found = store.log().run(stats.figures(stream_ids))
    return Overview(
        streams=len(found),
        messages=sum(figures.messages for figures in found),
        bytes=sum(figures.bytes for figures in found),
        last_ms=max((figures.last_ms for figures in found if figures.last_ms), default=None),
    )


def stream_figures(streams: QuerySet[Stream]) -> list[tuple[StreamName, Figures]]:
    """Many streams with what is counted of them: no rows, and one plain read of the log for each."""
    names = [StreamName(*each) for each in streams.values_list("pk", "stream_id", "name")]
    return list(zip(names, store.log().run(stats.figures([name.stream_id for name in names])), strict=True))


def streams_filling(caller: Caller, *, used: float, most: int) -> list[Stream]:
    """The streams that refuse what is beyond a limit and have used so much of it (0 to 1); the fullest, at most."""
    refusing = streams_of(caller).filter(discard=Discard.NEW)
    limits = {pk: held for pk, *held in refusing.values_list("pk", "max_messages", "max_bytes")}
    found = []
    for name, figures in stream_figures(refusing):
        max_messages, max_bytes = limits[name.pk]
        parts = (figures.messages / (max_messages or inf), figures.bytes / (max_bytes or inf))
        if max(parts) >= used:
            found.append((max(parts), name.pk))
    return list(refusing.filter(pk__in=[pk for _, pk in sorted(found, reverse=True)[:most]]))
