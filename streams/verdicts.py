"""How a group is doing, judged over a window of samples: pure functions, the first state that holds is the verdict.

Losing, poisoned, paused, stopped, stalled, slow, catching up, ok. Times are ms of the store's steady clock.
"""

import itertools
from collections.abc import Sequence
from typing import Literal

import msgspec

from streams import reasons
from streams.edges import edges_of
from streams.pace import growth
from streams.reasons import Reason
from streams.unanswered import Unanswered, unanswered_over

Status = Literal["unknown", "losing", "poisoned", "paused", "stopped", "stalled", "slow", "catching up", "ok"]

EVERY_MS = 10_000
STALE_MS = 3 * EVERY_MS
WINDOW = 15
KNOWN_FROM = WINDOW // 3
OVER_MS = (WINDOW - 1) * EVERY_MS
QUIET_MS = 60_000
RECENT_MS = 30_000


class Sample(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """How a group stood at one moment.

    Attributes:
        at_ms, fetched_ms, acked_ms: of the steady clock; a group that nobody fetched from was so since it was made.
        lag, pending, floor: not yet delivered, out, and the offset up to which everything is done.
        held: of those that are out, the ones that are not yet due again.
        deliveries, acked, redelivered, dead: how many ever.
        removed: messages that went before they were acknowledged, ever.
        polls: open ones.
        edge_ms: until the age limit takes the oldest one not acknowledged, or None; ttl_ms is that limit.
        room_messages, room_bytes: what may be published before a limit of messages or bytes takes it, or None;
            max_messages and max_bytes are those limits.
        offset, appended_bytes: how much was published ever; None in a sample of an older version.
        on_last: messages out for the last time, as far as they were counted; is_more_on_last: there may be more.
        generation: of the group, another one after every seek; None in a sample of an older version.
    """

    at_ms: int
    lag: int
    pending: int
    held: int
    floor: int
    deliveries: int
    acked: int
    redelivered: int
    dead: int
    removed: int
    polls: int
    fetched_ms: int
    acked_ms: int
    lag_ms: int = 0
    edge_ms: int | None = None
    ttl_ms: int | None = None
    is_last_chance: bool = False
    is_paused: bool = False
    room_messages: int | None = None
    max_messages: int | None = None
    room_bytes: int | None = None
    max_bytes: int | None = None
    offset: int | None = None
    appended_bytes: int | None = None
    on_last: int = 0
    is_more_on_last: bool = False
    generation: int | None = None

    @property
    def is_at_rest(self) -> bool:
        return not self.lag and not self.pending

    def is_before_seek(self, generation: int | None) -> bool:
        """Whether the group of this generation was moved since."""
        return None not in (self.generation, generation) and self.generation != generation


class Verdict(msgspec.Struct, frozen=True, rename={"text": "reason"}):
    """A state, why, and where it is known in how many seconds nothing will wait any more.

    Attributes:
        text: the reason in the language of who found it, which is all that hosts of the version before read.
        why: the figures of the reason; None where a worker of the version before kept it.
    """

    status: Status
    text: str
    eta_seconds: float | None = None
    why: Reason | None = None

    @property
    def reason(self) -> str:
        """One sentence, with the figures it follows from, in the language that is active."""
        return self.text if self.why is None else self.why.words()


def because(status: Status, why: Reason, eta_seconds: float | None = None) -> Verdict:
    """The verdict with its reason in both forms."""
    return Verdict(status, why.words(), eta_seconds, why)


def judged(
    window: Sequence[Sample],
    *,
    fetch_gap_ms: float = 0.0,
    ack_gap_ms: float = 0.0,
    handed: Unanswered | None = None,
) -> Verdict:
    """The first state that holds over a window of samples, oldest first, since the newest seek among them.

    Args:
        fetch_gap_ms, ack_gap_ms: as ``Health`` has them.
        handed: what is known from before the window, too; None where nothing but the window is known.
    """
    samples = [each for each in window if not each.is_before_seek(window[-1].generation)]
    first, last = samples[0], samples[-1]
    if len(samples) < KNOWN_FROM:
        if len(samples) < len(window):
            if last.is_paused:
                return because("paused", reasons.Paused(last.lag))
            within_ms = last.at_ms - window[-len(samples) - 1].at_ms
            return because("unknown", reasons.Sought(KNOWN_FROM * EVERY_MS, within_ms))
        return because("unknown", reasons.TooShort(last.at_ms - first.at_ms))
    # An undo takes back what its removal took.
    removed = last.removed - min(each.removed for each in samples)
    if removed > 0:
        return because("losing", reasons.Removed(removed, last.at_ms - first.at_ms))
    near = [edge.left_ms for edge in edges_of(last, samples) if edge.is_near and not last.is_at_rest]
    if near:
        return because("losing", reasons.RemovedSoon(min(near)))
    if last.is_last_chance:
        return because("poisoned", reasons.OnLast(last.on_last, last.is_more_on_last))
    if last.is_paused:
        return because("paused", reasons.Paused(last.lag))
    behind = last.lag > last.deliveries - samples[-2].deliveries
    overdue = last.pending - last.held
    return (
        _stopped(last, works=behind or overdue > 0, gap_ms=fetch_gap_ms)
        or _stalled(
            samples,
            handed or unanswered_over(samples),
            behind=behind,
            fetch_gap_ms=fetch_gap_ms,
            gap_ms=ack_gap_ms,
        )
        or (_moving(samples, gap_ms=fetch_gap_ms) if behind else None)
        or _fine(last, behind=behind)
    )


def _stopped(last: Sample, *, works: bool, gap_ms: float) -> Verdict | None:
    quiet_ms = last.at_ms - max(last.fetched_ms, last.acked_ms)
    if not works or last.polls or quiet_ms < max(QUIET_MS, 3 * gap_ms):
        return None
    if last.held:
        return because("stopped", reasons.Held(last.held, quiet_ms, last.lag))
    return because("stopped", reasons.NoConsumers(quiet_ms, last.lag or last.pending))


def _stalled(
    samples: Sequence[Sample],
    handed: Unanswered | None,
    *,
    behind: bool,
    fetch_gap_ms: float,
    gap_ms: float,
) -> Verdict | None:
    first, last = samples[0], samples[-1]
    if last.floor != first.floor or last.dead != first.dead:
        return None
    if last.acked != first.acked:
        return _stuck(samples) if last.redelivered > first.redelivered else None
    since_ms = last.at_ms - max(last.acked_ms, first.at_ms)
    # Longer than the window where something waited for it so long.
    over_ms = max(since_ms, min(last.at_ms - last.acked_ms, last.lag_ms)) if last.acked_ms else since_ms
    always_behind = behind and all(sample.lag for sample in samples) and over_ms >= 3 * fetch_gap_ms
    goes_on = handed is not None and handed.goes_on(last, over_ms=OVER_MS)
    if not (always_behind or goes_on) or since_ms < QUIET_MS or over_ms < 3 * gap_ms:
        return None
    is_ever = not last.acked and not last.acked_ms
    return because("stalled", reasons.NothingAcknowledged(over_ms, last.pending, last.lag, is_ever))


def _stuck(samples: Sequence[Sample]) -> Verdict | None:
    """Others are acknowledged, but the oldest one comes again and again, over a whole window."""
    first, last = samples[0], samples[-1]
    if len(samples) < WINDOW or not all(sample.pending for sample in samples):
        return None
    why = reasons.OldestStuck(last.at_ms - first.at_ms, last.redelivered - first.redelivered)
    return because("stalled", why)


def _moving(samples: Sequence[Sample], *, gap_ms: float) -> Verdict | None:
    last, slope = samples[-1], growth([(each.at_ms / 1000, each.lag) for each in samples])
    never_fell = all(a.lag <= b.lag for a, b in itertools.pairwise(samples))
    grew = any(each.lag < last.lag for each in samples if last.at_ms - each.at_ms <= RECENT_MS)
    if never_fell and grew:
        return because("slow", reasons.Growing(last.lag, slope))
    if slope < 0:
        quiet_ms = last.at_ms - last.fetched_ms
        if not last.polls and quiet_ms > max(RECENT_MS, 2 * gap_ms):
            return because("catching up", reasons.FallingNoLonger(last.lag, quiet_ms))
        eta = last.lag / -slope
        return because("catching up", reasons.Falling(last.lag, eta * 1000), eta)
    return None


def _fine(last: Sample, *, behind: bool) -> Verdict:
    return because(
        "ok",
        reasons.AtRest() if last.is_at_rest else reasons.Steady(last.lag, last.pending, is_behind=behind),
    )
