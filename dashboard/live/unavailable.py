"""What is told of streams, and of their groups, while their server does not answer: that nothing is known of them.

They are told as what is known is, on the same topics and as the same kinds of events, so that the newest holds. What a
page asks for anew once it differs (``GroupSampled.out_mark``) is left out: nobody could answer.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import ClassVar

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats, languages
from dashboard.groups.group_rows import DOTS
from dashboard.languages import Said
from streams import store
from streams.log.client import Reachable, one
from streams.models import Group, Stream
from streams.services.open_pages import consumers_group, stream_group

AT_ONCE = 500
"""A database bounds how many values one statement takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAway:
    """A stream whose server does not answer, by the fields of ``live_events.StreamSampled``."""

    kind: ClassVar[str] = "stream_sampled"
    stream_id: str
    workspace_id: int
    name: str
    at_ms: int
    offset: None = None
    first_offset: None = None
    messages: None = None
    bytes: None = None
    committed: None = None
    lag: None = None
    duplicates: None = None
    rate_in: None = None
    bytes_in: None = None
    rate_out: None = None
    first_ms: None = None
    last_ms: None = None
    span_s: None = None

    @property
    def topic(self) -> str:
        return f"stream:{self.name}"

    @property
    def group(self) -> str:
        return stream_group(self.stream_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAway:
    """A consumer group of such a stream, by the fields of ``live_events.GroupSampled``."""

    kind: ClassVar[str] = "group_sampled"
    stream_id: str
    group_id: int
    stream: str
    name: str
    at_ms: int
    reason: str
    said: Said
    status: str = "unknown"
    state: str = DOTS["unknown"]
    is_away: bool = True
    lag: None = None
    lag_seconds: None = None
    ack_pending: None = None
    delivered: None = None
    ack_floor: None = None
    redelivered: None = None
    dead_letters: None = None
    lost: None = None
    members: None = None
    waiting: None = None
    ack_rate: None = None
    eta_seconds: None = None
    edge_seconds: None = None
    fetched_ms: None = None
    acked_ms: None = None
    judged_ms: None = None

    @property
    def topic(self) -> str:
        return f"group:{self.stream}/{self.name}"

    @property
    def group(self) -> str:
        return consumers_group(self.stream_id, self.name)


def stream_away(stream: Stream, *, at_ms: int) -> StreamAway:
    """The event; ``at_ms`` is from before its server was asked."""
    return StreamAway(
        stream_id=stream.stream_id, workspace_id=stream.workspace_id, name=stream.name, at_ms=at_ms
    )


def group_away(group: Group, *, at_ms: int) -> GroupAway:
    """The event; ``at_ms`` is from before the server was asked."""
    return GroupAway(
        stream_id=group.stream.stream_id,
        group_id=group.pk,
        stream=group.stream.name,
        name=group.name,
        at_ms=at_ms,
        reason=_why(),
        said=languages.in_others(lambda: {"reason": _why()}),
    )


def streams_away(stream_ids: Collection[str], *, at_ms: int) -> list[StreamAway]:
    """The events of these streams, those that were deleted left out."""
    ids = sorted(stream_ids)
    return [
        stream_away(stream, at_ms=at_ms)
        for first in range(0, len(ids), AT_ONCE)
        for stream in Stream.objects.filter(stream_id__in=ids[first : first + AT_ONCE])
    ]


def answering(stream_ids: Iterable[str]) -> set[str]:
    """Those of these streams whose servers answer."""
    return set(store.log().run(one(Reachable(list(stream_ids)))))


def left_out(streams: int) -> str:
    """What sums say beside themselves while so many streams are not in them; empty where all are."""
    if not streams:
        return ""
    said = ngettext("without %(count)s stream", "without %(count)s streams", streams)
    return said % {"count": formats.count(streams)}


def _why() -> str:
    return _("The server of its stream is not responding; how it stands is not known.")
