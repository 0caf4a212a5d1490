"""A consumer group as the pages show it: its row, its status with the reason in one sentence, its dead letters."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.browse import bodies, coded
from dashboard.browse.coded import Reading
from dashboard.browse.message_rows import MessageRow
from dashboard.groups.letting_go import LettingGo
from streams.log.dead_letters import DeadLetter
from streams.log.entries import Message
from streams.log.standing import GroupState
from streams.models import Event, Group
from streams.selectors import Gone, GroupView, reason_in_words
from streams.verdicts import STALE_MS, Status

DOTS: dict[Status, str] = {
    "ok": "active",
    "unknown": "empty",
    "stalled": "bad",
    "paused": "empty",
    "losing": "bad",
    "poisoned": "bad",
    "stopped": "bad",
    "slow": "warn",
    "catching up": "warn",
}
"""How a status looks; the word always stands beside the dot."""


def _paused(state: GroupState) -> str:
    if state.paused_until_ms is None or state.paused_until_ms < 0:
        return _("Paused until resumed by hand")
    moment = formats.moment(state.paused_until_ms // 1000 * 1000).replace(".000 ", " ")
    return _("Paused until %(moment)s") % {"moment": moment}


def _waits(lag: int) -> str:
    if not lag:
        return _("nothing waiting")
    return ngettext("%(count)s message waiting", "%(count)s messages waiting", lag) % {
        "count": formats.count(lag)
    }


@dataclass(frozen=True)
class GroupRow:
    """One group on a page."""

    view: GroupView

    @property
    def group(self) -> Group:
        return self.view.group

    @property
    def name(self) -> str:
        return self.group.name

    @property
    def state(self) -> GroupState:
        return self.view.state

    @property
    def status(self) -> Status:
        """The verdict over the last minutes, as lists and sums have it."""
        return self.view.health.status

    @property
    def dot(self) -> str:
        return DOTS[self.status]

    @property
    def reason(self) -> str:
        """Why it has its status, in one sentence with the figures it follows from; of a pause, until when."""
        if self.status == "paused":
            return f"{_paused(self.state)}; {_waits(self.state.lag)}."
        return self.view.health.reason

    @property
    def is_paused(self) -> bool:
        return self.state.paused_until_ms is not None

    @property
    def topic(self) -> str:
        return f"group:{self.group.stream.name}/{self.name}"

    @property
    def lag_seconds(self) -> float:
        return self.view.lag_seconds

    @property
    def eta_seconds(self) -> float | None:
        return self.view.health.eta_seconds

    @property
    def edge_seconds(self) -> float | None:
        return self.view.edge_seconds

    @property
    def fetched_ms(self) -> int | None:
        return self._wall_ms(self.state.fetched_ms)

    @property
    def acked_ms(self) -> int | None:
        return self._wall_ms(self.state.acked_ms)

    @property
    def judged_ms(self) -> int | None:
        """When the worker found what is said; None where it is of now, as of a group that stood still since."""
        watched = self.view.watched
        if watched is None or self.view.health is not watched.verdict:
            return None
        at_ms = watched.samples[-1].at_ms
        return self._wall_ms(at_ms) if self.state.steady_ms - at_ms <= STALE_MS else None

    def _wall_ms(self, steady_ms: int | None) -> int | None:
        return None if steady_ms is None else self.state.now_ms - (self.state.steady_ms - steady_ms)

    @property
    def out_mark(self) -> str:
        """Differs once other messages are in flight, or one of them for another time."""
        return f"{self.state.deliveries} {self.state.acked} {self.state.ack_pending}"

    @property
    def dead_mark(self) -> str:
        """Differs once other messages are dead letters."""
        return f"{self.state.dead_letters} {self.state.dead_lettered}"

    @property
    def lags(self) -> list[int]:
        """The lag at each look of the last minutes, oldest first."""
        watched = self.view.watched
        return [sample.lag for sample in watched.samples] if watched else []

    @property
    def ack_rate(self) -> float | None:
        """Messages acknowledged a second over the last minutes; None until they were watched, and while nobody does."""
        return self._rate("acked")

    @property
    def delivery_rate(self) -> float | None:
        """Messages handed out a second over the last minutes, redeliveries among them."""
        return self._rate("deliveries")

    def _rate(self, field: str) -> float | None:
        samples = self.view.watched.samples if self.view.watched else []
        if len(samples) < 2 or self.view.seen.is_stale:
            return None
        first, last = samples[0], samples[-1]
        seconds = (last.at_ms - first.at_ms) / 1000
        moved = getattr(last, field) - getattr(first, field)
        return max(0.0, float(moved)) / seconds if seconds > 0 else None

    @property
    def max_deliver(self) -> str:
        limit = self.group.max_deliver
        return _("no limit") if limit == -1 else formats.count(limit)


@dataclass(frozen=True)
class DeadLetterRow:
    """A dead letter as the pages show it; its body is hostile input, made visible as on the page of messages."""

    letter: DeadLetter
    reading: Reading = coded.AUTOMATIC

    @cached_property
    def message(self) -> MessageRow:
        """The letter as the message that it was."""
        letter = self.letter
        return MessageRow(
            Message(
                id=letter.id,
                offset=letter.offset,
                timestamp_ms=letter.timestamp_ms,
                body=letter.body.encode(),
                key=letter.key,
                headers=None if letter.headers is None else letter.headers.encode(),
                expires_ms=None,
                cumulative_bytes=0,
            ),
            reading=self.reading,
        )

    @property
    def reason(self) -> str:
        return bodies.visible(reason_in_words(self.letter.reason))

    @property
    def reason_given(self) -> str:
        """As the API tells it."""
        return bodies.visible(self.letter.reason)


@dataclass(frozen=True, slots=True)
class SeekPreview:
    """What a seek would do: the next offset before and after, and how many messages it is about.

    Attributes:
        messages: that are delivered or skipped.
        skipped: of these, that will not be delivered; before a position to go back to they wait for their key.
        next_message: what would be delivered first; None when nothing that the group takes is stored from there on.
        first, last: of the stored messages between the two that the group takes; None where there are none.
        gone: what lies behind the place that was asked for and is no longer in the stream.
        is_searched: whether the stream was looked through to its end for ``next_message``.
        effect: what is delivered, again or for the first time, or skipped, in a sentence.
        letting_go: what is removed for good; None where nothing is.
    """

    before: int
    after: int
    messages: int
    skipped: int
    next_message: MessageRow | None
    first: MessageRow | None = None
    last: MessageRow | None = None
    gone: Gone | None = None
    is_searched: bool = True
    effect: str = ""
    letting_go: LettingGo | None = None

    @property
    def goes_back(self) -> bool:
        return self.after < self.before

    @property
    def moves(self) -> bool:
        return self.after != self.before


@dataclass(frozen=True, slots=True)
class PastSeek:
    """A seek of a group, and what it takes to undo it.

    Attributes:
        back_to: the offset that was next before it.
        in_flight, waiting, oldest: messages that were out then, and those that waited for their key, which the
            seek dropped, and the offset that the first of them may have; None where none were, or it was not noted.
    """

    who: str
    at_ms: int
    to: int
    back_to: int
    in_flight: int
    waiting: int
    oldest: int | None

    @property
    def dropped(self) -> int:
        return self.in_flight + self.waiting

    @property
    def moved(self) -> bool:
        return self.to != self.back_to


def past_seek(event: Event) -> PastSeek | None:
    """What an event of the kind ``group.sought`` tells; None where it moved and dropped nothing, or tells nothing."""
    if not isinstance(event.before, dict) or not isinstance(event.after, dict):
        return None
    before, after = event.before.get("next"), event.after.get("next")
    if not isinstance(before, int) or not isinstance(after, int):
        return None
    in_flight, waiting = event.before.get("in_flight") or 0, event.before.get("waiting") or 0
    if before == after and not in_flight and not waiting:
        return None
    return PastSeek(
        who=event.actor,
        at_ms=int(event.time.timestamp() * 1000),
        to=after,
        back_to=before,
        in_flight=in_flight,
        waiting=waiting,
        oldest=event.before.get("oldest") if in_flight or waiting else None,
    )


@dataclass(frozen=True, slots=True)
class NotGivenBack:
    """Messages that seeks dropped and that were not delivered again since.

    Attributes:
        messages: how many there are, or may be at most.
        is_exact: whether none of them was.
        oldest: the offset that the first of them may have.
        below: all of them lie below this offset.
    """

    messages: int
    is_exact: bool
    oldest: int
    below: int


def not_given_back(seeks: Sequence[PastSeek]) -> NotGivenBack | None:
    """What was dropped by a seek that a later one went back on, as an Undo does, and is still to be delivered again.

    Each seek had what lies between where it went and where the next one found the group delivered again.

    Args:
        seeks: newest first; what the first of them dropped is left out.
    """
    open_: list[NotGivenBack] = []
    for number, dropping in enumerate(seeks[1:], start=1):
        since = seeks[number::-1]
        if dropping.oldest is None or not any(later.to <= dropping.back_to for later in since[1:]):
            continue
        low, high = dropping.oldest, dropping.back_to
        for seek, following in zip(since, [*since[1:], None], strict=True):
            if seek.to <= low:
                low = high if following is None else max(low, following.back_to)
            elif following is None or following.back_to >= high:
                high = min(high, seek.to)
        if low < high:
            is_exact = (low, high) == (dropping.oldest, dropping.back_to)
            open_.append(NotGivenBack(min(dropping.dropped, high - low), is_exact, low, high))
    if not open_:
        return None
    return NotGivenBack(
        sum(each.messages for each in open_),
        all(each.is_exact for each in open_),
        min(each.oldest for each in open_),
        max(each.below for each in open_),
    )


def skips_more(*, seen_from: int, now_from: int, to: int) -> bool:
    """Whether a seek would now skip offsets that its preview did not name; delivering more again is no loss."""
    return max(0, to - now_from) > max(0, to - seen_from)
