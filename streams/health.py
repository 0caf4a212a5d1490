"""How a group is doing over the last minutes: what the worker keeps of it from look to look, and what may be said.

A state is entered when it was found twice in a row, and left for ok when that was found three times, so that a page
does not flicker; what was not found three times in a row is left for what is.
"""

from collections.abc import Sequence

import msgspec

from streams import reasons
from streams.pace import usual_gap
from streams.unanswered import Unanswered, unanswered, unanswered_over
from streams.verdicts import EVERY_MS, KNOWN_FROM, STALE_MS, WINDOW, Sample, Status, Verdict, because, judged

ENTER_AFTER, LEAVE_AFTER = 2, 3


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
