"""A stream as the pages show it: its row, how it stands, how fast it moves, what it keeps.

The fields that move have the names of ``live_events.StreamSampled``, so that a template can bind them to the socket.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from dashboard import formats
from dashboard.groups.group_rows import DOTS
from streams.log.stats import State
from streams.models import Stream
from streams.models.stream import Discard, Storage
from streams.selectors import GroupSums, JudgedGroup, StreamView

ACTIVE_WITHIN_MS = 60_000
FULL_FROM = 0.9


@dataclass(frozen=True, slots=True)
class Retention:
    """What a stream keeps, in short, and how much of its tightest countable limit is used (None: no such limit).

    ``is_limited``: whether there is such a limit, also where nobody knows how much of it is used.
    A stream that evicts is full for most of its life; only one that refuses when it is full is worth a warning.
    """

    parts: Sequence[str]
    used: float | None
    refuses: bool
    is_limited: bool = False

    @property
    def text(self) -> str:
        return " · ".join(self.parts)

    @property
    def will_refuse(self) -> bool:
        return self.refuses and self.used is not None and self.used >= FULL_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What the samples of the last minute tell: messages and bytes published and messages committed or acknowledged a
    second, the mean of the last ten seconds, and the last minute's means.

    Attributes:
        arriving: as of ``StreamRow``.
    """

    rate_in: float | None = 0.0
    bytes_in: float | None = 0.0
    rate_out: float | None = 0.0
    last_minute: Sequence[float] = field(default_factory=tuple)
    arriving: float = 0.0


UNKNOWN = Rates(rate_in=None, bytes_in=None, rate_out=None)
"""Of a stream whose server does not answer."""


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One stream on a page."""

    view: StreamView
    rates: Rates
    worst: JudgedGroup | None = None
    sums: GroupSums | None = None

    @property
    def stream(self) -> Stream:
        return self.view.stream

    @property
    def _known(self) -> State | None:
        """How it stands; None while the server of a stream in memory does not answer."""
        return self.view.figures

    @property
    def is_in_memory(self) -> bool:
        return self.stream.storage == Storage.MEMORY

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def topic(self) -> str:
        return f"stream:{self.name}"

    @property
    def messages(self) -> int | None:
        return None if self._known is None else self._known.messages

    @property
    def bytes(self) -> int | None:
        return None if self._known is None else self._known.bytes

    @property
    def offset(self) -> int | None:
        return None if self._known is None else self._known.offset

    @property
    def arriving(self) -> float:
        """Messages that may come in a minute: as many as in the last one, or at the rate of the last ten seconds where
        that is lower.
        """
        return self.rates.arriving

    @property
    def first_offset(self) -> int | None:
        return None if self._known is None else self._known.first_offset

    @property
    def committed(self) -> int | None:
        return None if self._known is None else self._known.committed_offset

    @property
    def lag(self) -> int | None:
        return None if self._known is None else self._known.lag

    @property
    def limit_pending(self) -> int:
        """Messages that a limit a key has yet to look at."""
        return 0 if self._known is None else self._known.limit_pending

    @property
    def duplicates(self) -> int | None:
        return None if self._known is None else self._known.duplicates

    @property
    def first_ms(self) -> int | None:
        return self.view.state.first_ms

    @property
    def last_ms(self) -> int | None:
        return self.view.state.last_ms

    @property
    def span_s(self) -> float | None:
        return span_s(self.view.state)

    @property
    def groups(self) -> int:
        return self.view.groups

    @property
    def worst_dot(self) -> str:
        return DOTS[self.worst.verdict.status] if self.worst else "empty"

    @property
    def created_ms(self) -> int:
        return int(self.stream.created_at.timestamp() * 1000)

    @property
    def labels(self) -> list[tuple[str, str]]:
        """By name, but the one that guards a stream first: a list may have room for one."""
        return sorted(self.stream.labels.items(), key=lambda label: (label[0] != "env", label))

    @property
    def health(self) -> str:
        return health(messages=self.messages, last_ms=self.last_ms, now_ms=time.time() * 1000)

    @property
    def retention(self) -> Retention:
        return retention_of(self.stream, messages=self.messages, size_bytes=self.bytes)


def span_s(state: State) -> float | None:
    """Seconds between the first and the last message; None of an empty stream."""
    if state.first_ms is None or state.last_ms is None:
        return None
    return (state.last_ms - state.first_ms) / 1000


def health(*, messages: int | None, last_ms: int | None, now_ms: float) -> str:
    """``active`` (written to within a minute), ``idle`` or ``empty``; ``static/js/bind.js`` says the same.

    Or ``unavailable``: nobody knows how it stands.
    """
    if messages is None:
        return "unavailable"
    if last_ms is not None and now_ms - last_ms < ACTIVE_WITHIN_MS:
        return "active"
    return "idle" if messages else "empty"


def retention_of(stream: Stream, *, messages: int | None, size_bytes: int | None) -> Retention:
    """``7 d · 10.0 GiB`` and the used part of the tighter of its count and size limits.

    None for what is not known: then nothing is said of how much is used.
    """
    parts, used = [], []
    if stream.ttl is not None:
        parts.append(formats.duration(stream.ttl))
    if stream.max_bytes is not None:
        parts.append(formats.size(stream.max_bytes))
        used += [] if size_bytes is None else [size_bytes / stream.max_bytes]
    if stream.max_messages is not None:
        parts.append(_("%(count)s messages") % {"count": formats.short_count(stream.max_messages)})
        used += [] if messages is None else [messages / stream.max_messages]
    if stream.max_messages_per_key is not None:
        parts.append(_("%(count)s per key") % {"count": formats.short_count(stream.max_messages_per_key)})
    return Retention(
        parts or [_("no limit")],
        max(used, default=None),
        refuses=stream.discard == Discard.NEW,
        is_limited=stream.max_bytes is not None or stream.max_messages is not None,
    )
