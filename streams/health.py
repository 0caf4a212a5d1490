"""How a group is doing, judged over the last minutes: pure functions over samples that the worker takes.

The first state that holds is the verdict: losing, poisoned, paused, stopped, stalled, slow, catching up, ok. It is
entered when it was found twice in a row, and left for ok when that was found three times, so that a page does not
flicker. Times are ms of the store's steady clock.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

Status = Literal["unknown", "losing", "poisoned", "paused", "stopped", "stalled", "slow", "catching up", "ok"]

EVERY_MS = 10_000
STALE_MS = 3 * EVERY_MS
WINDOW = 15
KNOWN_FROM = WINDOW // 3
ENTER_AFTER, LEAVE_AFTER = 2, 3
QUIET_MS = 60_000
RECENT_MS = 30_000
NEAR_MS = 300_000


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


class Edges(Protocol):
    """What a sample and a group's state know of the limits of their stream."""

    @property
    def edge_ms(self) -> int | None: ...
    @property
    def ttl_ms(self) -> int | None: ...
    @property
    def room_messages(self) -> int | None: ...
    @property
    def max_messages(self) -> int | None: ...
    @property
    def room_bytes(self) -> int | None: ...
    @property
    def max_bytes(self) -> int | None: ...


class Edge(NamedTuple):
    """In how many ms a limit takes the oldest message not acknowledged, and for how many ms it keeps one in all."""

    left_ms: float
    span_ms: float

    @property
    def is_near(self) -> bool:
        """Nearer than five minutes or a tenth of what is kept, but never at more than half of it."""
        return self.left_ms < min(max(NEAR_MS, self.span_ms / 10), self.span_ms / 2)


class Verdict(msgspec.Struct, frozen=True):
    """A state, why, and where it is known in how many seconds nothing will wait any more."""

    status: Status
    reason: str
    eta_seconds: float | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a group between two looks, by the worker in the store.

    Attributes:
        samples: the window, oldest first.
        verdict: the state that is shown, with the newest reason for it.
        since_ms: when it was entered.
        next_status, next_count: what was found instead, and how often in a row.
        fetch_gap_ms, ack_gap_ms: the usual time between two looks that saw somebody fetch, or acknowledge.
    """

    samples: list[Sample]
    verdict: Verdict
    since_ms: int
    next_status: Status | None = None
    next_count: int = 0
    fetch_gap_ms: float = 0.0
    ack_gap_ms: float = 0.0

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
        return Verdict("paused", "Paused; acknowledgements still count.")
    if watched is None:
        return Verdict("unknown", "Not enough samples yet to tell.")
    if is_sought:
        return Verdict("unknown", f"Seek since the last sample; {_needs()}.")
    verdict, last = watched
    if is_paused is not None and verdict.status == "paused":
        return Verdict("unknown", "Not sampled since it was resumed.")
    is_rest_known = is_at_rest and last.is_at_rest and silent_ms <= STALE_MS
    if not is_rest_known and not is_fresh:
        return Verdict("unknown", "The worker has not sampled this group recently.")
    return verdict


def looked(before: Health | None, sample: Sample) -> Health:
    """What is known after another look; the first may follow a rest, in which the group stood still."""
    samples = [*_over_rest(before.samples if before else [], sample), sample][-WINDOW:]
    fetch_gap_ms = _gap(before.fetch_gap_ms if before else 0.0, [each.fetched_ms for each in samples])
    ack_gap_ms = _gap(before.ack_gap_ms if before else 0.0, [each.acked_ms for each in samples])
    found = judged(samples, fetch_gap_ms=fetch_gap_ms, ack_gap_ms=ack_gap_ms)
    health = Health(
        samples=samples,
        verdict=found,
        since_ms=sample.at_ms,
        fetch_gap_ms=fetch_gap_ms,
        ack_gap_ms=ack_gap_ms,
    )
    if before is None:
        return health
    shown = before.verdict
    if found.status == shown.status:
        return msgspec.structs.replace(health, since_ms=before.since_ms)
    count = before.next_count + 1 if before.next_status == found.status else 1
    # What a person did shows at once, and so does the first that is known.
    needed = LEAVE_AFTER if found.status == "ok" else ENTER_AFTER
    if "unknown" in (shown.status, found.status) or "paused" in (shown.status, found.status):
        needed = 1
    if count >= needed:
        return health
    return msgspec.structs.replace(
        health, verdict=shown, since_ms=before.since_ms, next_status=found.status, next_count=count
    )


def judged(window: Sequence[Sample], *, fetch_gap_ms: float = 0.0, ack_gap_ms: float = 0.0) -> Verdict:
    """The first state that holds over a window of samples, oldest first, since the newest seek among them."""
    samples = [each for each in window if not each.is_before_seek(window[-1].generation)]
    first, last = samples[0], samples[-1]
    if len(samples) < KNOWN_FROM:
        if len(samples) < len(window):
            sought_ms = last.at_ms - window[-len(samples) - 1].at_ms
            reason = f"Seek less than {_time(sought_ms)} ago; {_needs()}."
            return _paused(last) if last.is_paused else Verdict("unknown", reason)
        return Verdict("unknown", f"Watched for {_time(last.at_ms - first.at_ms)}, too short to tell.")
    removed = last.removed - first.removed
    if removed > 0:
        return Verdict(
            "losing",
            f"{_messages(removed)} removed unacknowledged in the last {_time(last.at_ms - first.at_ms)}.",
        )
    near = [edge.left_ms for edge in _edges(last, samples) if edge.is_near and not last.is_at_rest]
    if near:
        return Verdict(
            "losing", f"Retention removes the oldest unacknowledged message in {_time(min(near))}."
        )
    if last.is_last_chance:
        return Verdict("poisoned", _on_last(last))
    if last.is_paused:
        return _paused(last)
    behind = last.lag > last.deliveries - samples[-2].deliveries
    overdue = last.pending - last.held
    return (
        _stopped(last, works=behind or overdue > 0, gap_ms=fetch_gap_ms)
        or _stalled(samples, behind=behind, gap_ms=ack_gap_ms)
        or (_moving(samples, gap_ms=fetch_gap_ms) if behind else None)
        or _fine(last, behind=behind)
    )


def nearest_ms(edges: Edges, samples: Sequence[Sample]) -> float | None:
    """In how many ms a limit takes the oldest message not acknowledged; None where none is about to.

    Args:
        edges: of now.
        samples: of the last minutes, which tell how fast the stream grows.
    """
    return min((edge.left_ms for edge in _edges(edges, samples)), default=None)


def _edges(edges: Edges, samples: Sequence[Sample]) -> Iterator[Edge]:
    if edges.edge_ms is not None and edges.ttl_ms is not None:
        yield Edge(edges.edge_ms, edges.ttl_ms)
    if len(samples) < 2:
        return
    first, last = samples[0], samples[-1]
    for room, most, before, now in (
        (edges.room_messages, edges.max_messages, first.offset, last.offset),
        (edges.room_bytes, edges.max_bytes, first.appended_bytes, last.appended_bytes),
    ):
        if room is None or most is None or before is None or now is None or now <= before:
            continue
        ms_each = (last.at_ms - first.at_ms) / (now - before)
        yield Edge(room * ms_each, most * ms_each)


def _stopped(last: Sample, *, works: bool, gap_ms: float) -> Verdict | None:
    quiet_ms = last.at_ms - max(last.fetched_ms, last.acked_ms)
    if not works or last.polls or quiet_ms < max(QUIET_MS, 3 * gap_ms):
        return None
    if last.held:
        held = f"Consumers hold {_messages(last.held)} and have neither fetched nor acknowledged for"
        return Verdict("stopped", f"{held} {_time(quiet_ms)}; {_waits(last.lag)}.")
    return Verdict(
        "stopped",
        f"No consumers: nobody has fetched for {_time(quiet_ms)}; {_waits(last.lag or last.pending)}.",
    )


def _stalled(samples: Sequence[Sample], *, behind: bool, gap_ms: float) -> Verdict | None:
    first, last = samples[0], samples[-1]
    if last.floor != first.floor or last.dead != first.dead:
        return None
    in_vain = last.redelivered > first.redelivered
    if last.acked != first.acked:
        return _stuck(samples) if in_vain else None
    since_ms = last.at_ms - max(last.acked_ms, first.at_ms)
    always_behind = behind and all(sample.lag for sample in samples)
    if not (always_behind or in_vain) or since_ms < max(QUIET_MS, 3 * gap_ms):
        return None
    return Verdict(
        "stalled",
        f"Consumers fetch, but nothing was acknowledged for {_time(since_ms)};"
        f" {_messages(last.pending)} in flight, {_waits(last.lag)}.",
    )


def _stuck(samples: Sequence[Sample]) -> Verdict | None:
    """Others are acknowledged, but the oldest one comes again and again, over a whole window."""
    first, last = samples[0], samples[-1]
    if len(samples) < WINDOW or not all(sample.pending for sample in samples):
        return None
    return Verdict(
        "stalled",
        f"Others are acknowledged, but the oldest message has not been for {_time(last.at_ms - first.at_ms)};"
        f" {_messages(last.redelivered - first.redelivered)} redelivered.",
    )


def _moving(samples: Sequence[Sample], *, gap_ms: float) -> Verdict | None:
    last, slope = samples[-1], _slope(samples)
    never_fell = all(a.lag <= b.lag for a, b in itertools.pairwise(samples))
    if never_fell and slope > 0:
        return Verdict(
            "slow", f"More is published than acknowledged: {_waits(last.lag)}, {slope:.3g} more per second."
        )
    if slope < 0:
        quiet_ms = last.at_ms - last.fetched_ms
        if not last.polls and quiet_ms > max(RECENT_MS, 2 * gap_ms):
            return Verdict(
                "catching up",
                f"{_waits(last.lag).capitalize()}; the lag fell, but nobody has fetched for {_time(quiet_ms)}.",
            )
        eta = last.lag / -slope
        return Verdict("catching up", f"{_waits(last.lag).capitalize()}, ETA {_time(eta * 1000)}.", eta)
    return None


def _fine(last: Sample, *, behind: bool) -> Verdict:
    if last.is_at_rest:
        return Verdict("ok", "Everything was delivered and acknowledged.")
    how = "Neither falls behind nor catches up" if behind else "Keeps up"
    return Verdict("ok", f"{how}; {_waits(last.lag)}, {_messages(last.pending)} in flight.", None)


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


def _gap(before: float, moments: Sequence[int]) -> float:
    """The usual time between two moments, from what was usual and the newest two."""
    if len(moments) < 2 or moments[-1] <= moments[-2] or not moments[-2]:
        return before
    fresh = moments[-1] - moments[-2]
    return fresh if not before else 0.7 * before + 0.3 * fresh


def _slope(samples: Sequence[Sample]) -> float:
    """Messages a second by which the lag grows, over the whole window (least squares)."""
    seconds = [(sample.at_ms - samples[0].at_ms) / 1000 for sample in samples]
    middle_s, middle = sum(seconds) / len(samples), sum(sample.lag for sample in samples) / len(samples)
    spread = sum((at - middle_s) ** 2 for at in seconds)
    if not spread:
        return 0.0
    return (
        sum((at - middle_s) * (each.lag - middle) for at, each in zip(seconds, samples, strict=True)) / spread
    )


def _messages(count: int) -> str:
    return f"{count:,} message{'' if count == 1 else 's'}"


def _paused(last: Sample) -> Verdict:
    return Verdict("paused", f"Paused; {_waits(last.lag)}.")


def _needs() -> str:
    return f"the status needs {_time(KNOWN_FROM * EVERY_MS)} of samples after it"


def _on_last(last: Sample) -> str:
    if last.on_last < 2:
        return (
            f"{last.on_last or 'A'} message is on its last delivery; one more failure makes it a dead letter."
        )
    count = f"{'At least ' if last.is_more_on_last else ''}{_messages(last.on_last)}"
    return f"{count} are on their last delivery; one more failure makes each a dead letter."


def _waits(count: int) -> str:
    return f"{_messages(count)} waiting" if count else "nothing waiting"


def _time(ms: float) -> str:
    seconds = round(ms / 1000)
    for name, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}"
    return f"{seconds} s"
