"""How a group is doing, judged over the last minutes: pure functions over samples that the worker takes.

The first state that holds is the verdict: losing, poisoned, paused, stopped, stalled, slow, catching up, ok. It is
entered when it was found twice in a row, and left for ok when that was found three times, so that a page does not
flicker; what was not found three times in a row is left for what is. Times are ms of the store's steady clock.
"""

import itertools
from collections.abc import Sequence
from typing import Literal

import msgspec

from streams import reasons
from streams.edges import edges_of
from streams.pace import growth, usual_gap
from streams.reasons import Reason
from streams.unanswered import Unanswered, unanswered, unanswered_over

Status = Literal["unknown", "losing", "poisoned", "paused", "stopped", "stalled", "slow", "catching up", "ok"]

EVERY_MS = 10_000
STALE_MS = 3 * EVERY_MS
WINDOW = 15
KNOWN_FROM = WINDOW // 3
ENTER_AFTER, LEAVE_AFTER = 2, 3
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


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a group between two looks, by the worker in the store.

    Attributes:
        samples: the window, oldest first.
        verdict: the state that is shown, and what is so at the newest look.
        since_ms: when it was entered.
        found_ms: when it was last found; None where a worker of the version before kept it.
        next_status, next_count: what was found instead, and how often in a row.
        missed: how often in a row something else was found than what is shown, the same or not.
        fetch_gap_ms, ack_gap_ms: the usual time between two looks that saw somebody fetch, or acknowledge.
        unanswered: what was handed out since the newest acknowledgement; None where a version before kept it, too.
    """

    samples: list[Sample]
    verdict: Verdict
    since_ms: int
    found_ms: int | None = None
    next_status: Status | None = None
    next_count: int = 0
    missed: int = 0
    fetch_gap_ms: float = 0.0
    ack_gap_ms: float = 0.0
    unanswered: Unanswered | None = None

    @property
    def is_settled(self) -> bool:
        """Whether looking again at a group at rest would tell nothing new."""
        window = self.samples
        return (
            len(window) == WINDOW
            and all(sample.is_at_rest for sample in window)
            and window[0].removed == window[-1].removed
            and self.verdict.status == "ok"
        )


class _Brief(msgspec.Struct):
    samples: list[msgspec.Raw]
    verdict: Verdict


_decode = msgspec.json.Decoder(Health).decode
_decode_brief = msgspec.json.Decoder(_Brief).decode
_decode_sample = msgspec.json.Decoder(Sample).decode
written = msgspec.json.encode
"""What is kept of it, as JSON."""


def read(kept: bytes | None) -> Health | None:
    """What was kept; None where nothing was, or where another version of this module kept it."""
    try:
        return None if kept is None else _decode(kept)
    except msgspec.DecodeError:
        return None


def read_brief(kept: bytes | None) -> tuple[Verdict, Sample] | None:
    """As ``read``, only the verdict and the newest sample: a list of a thousand groups needs no more of each."""
    try:
        if kept is None:
            return None
        brief = _decode_brief(kept)
        return brief.verdict, _decode_sample(brief.samples[-1])
    except (msgspec.DecodeError, IndexError):
        return None


def told(
    watched: tuple[Verdict, Sample] | None,
    *,
    now_ms: int,
    is_at_rest: bool = True,
    is_paused: bool | None = None,
    silent_ms: int = 0,
    generation: int | None = None,
) -> Verdict:
    """The verdict on a group as it may be said now: on its own page, in lists, in sums and by the API.

    Args:
        watched: what the worker found last, and the sample it found it by.
        now_ms: of the steady clock.
        is_at_rest: whether nothing waits and nothing is out; what has something to do has to be looked at.
        is_paused: None where only the worker has looked.
        silent_ms: how long ago the worker sampled last; so long, no rest is known to have lasted.
        generation: of the group now; None where only the worker has looked.

    Returns:
        A verdict that is unknown where the worker has not looked for long enough, or not for a while.
    """
    is_sought = watched is not None and watched[1].is_before_seek(generation)
    is_fresh = watched is not None and not is_sought and now_ms - watched[1].at_ms <= STALE_MS
    if is_paused:
        # At once, without waiting for the worker; but what is lost meanwhile comes before a pause.
        if watched is not None and is_fresh and watched[0].status in {"losing", "poisoned"}:
            return watched[0]
        return because("paused", reasons.Paused())
    if watched is None:
        return because("unknown", reasons.NotSampled())
    if is_sought:
        return because("unknown", reasons.Sought(KNOWN_FROM * EVERY_MS))
    verdict, last = watched
    if is_paused is not None and verdict.status == "paused":
        return because("unknown", reasons.Resumed())
    is_rest_known = is_at_rest and last.is_at_rest and silent_ms <= STALE_MS
    if not is_rest_known and not is_fresh:
        return because("unknown", reasons.NotSampledRecently())
    return verdict


def looked(before: Health | None, sample: Sample) -> Health:
    """What is known after another look; the first may follow a rest, in which the group stood still."""
    samples = [*_over_rest(before.samples if before else [], sample), sample][-WINDOW:]
    fetch_gap_ms = usual_gap(before.fetch_gap_ms if before else 0.0, [each.fetched_ms for each in samples])
    ack_gap_ms = usual_gap(before.ack_gap_ms if before else 0.0, [each.acked_ms for each in samples])
    handed = _handed(before, sample)
    found = judged(samples, fetch_gap_ms=fetch_gap_ms, ack_gap_ms=ack_gap_ms, handed=handed)
    health = Health(
        samples=samples,
        verdict=found,
        since_ms=sample.at_ms,
        found_ms=sample.at_ms,
        fetch_gap_ms=fetch_gap_ms,
        ack_gap_ms=ack_gap_ms,
        unanswered=handed,
    )
    if before is None:
        return health
    shown = before.verdict
    if found.status == shown.status:
        return msgspec.structs.replace(health, since_ms=before.since_ms)
    count = before.next_count + 1 if before.next_status == found.status else 1
    missed = before.missed + 1
    # What a person did shows at once, and so does the first that is known.
    needed = LEAVE_AFTER if found.status == "ok" else ENTER_AFTER
    is_undone = shown.status == "losing" and sample.removed < before.samples[-1].removed
    if is_undone or "unknown" in (shown.status, found.status) or "paused" in (shown.status, found.status):
        needed = 1
    if count >= needed or missed >= LEAVE_AFTER:
        return health
    found_ms = before.samples[-1].at_ms if before.found_ms is None else before.found_ms
    return msgspec.structs.replace(
        health,
        verdict=_held(shown, found, over_ms=sample.at_ms - found_ms),
        since_ms=before.since_ms,
        found_ms=found_ms,
        next_status=found.status,
        next_count=count,
        missed=missed,
    )


def _handed(before: Health | None, sample: Sample) -> Unanswered | None:
    if before is None:
        return unanswered(None, [sample])
    known = unanswered_over(before.samples) if before.unanswered is None else before.unanswered
    return unanswered(known, [*before.samples[-1:], sample])


def _held(shown: Verdict, found: Verdict, *, over_ms: int) -> Verdict:
    """The status that is shown on, with a reason that is true now: not with the figures of when it was found."""
    now = found.why
    return (
        shown
        if now is None or isinstance(now, reasons.Outlasted)
        else because(shown.status, reasons.Outlasted(over_ms, now))
    )


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


def _over_rest(samples: Sequence[Sample], sample: Sample) -> list[Sample]:
    """The samples that were not taken since the last one, because nothing moved."""
    if not samples:
        return []
    last = samples[-1]
    missing = (sample.at_ms - last.at_ms) // EVERY_MS - 1
    if missing <= 0:
        return list(samples)
    if not last.is_at_rest:  # nobody looked: what was in between is not known
        return []
    stood = [
        msgspec.structs.replace(last, at_ms=sample.at_ms - n * EVERY_MS)
        for n in range(min(missing, WINDOW), 0, -1)
    ]
    return [*samples, *stood]
