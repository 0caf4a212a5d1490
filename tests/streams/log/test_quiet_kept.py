"""What is kept of the samples of a minute tells of long silences what all samples tell."""

import random
from itertools import groupby

import pytest

from streams import alarms
from streams.alarms import Limit, Span
from streams.log.counts import Quiet, quiet_kept

HOURS_MS = 6 * 3_600_000
MINUTE_MS = 60_000


def samples(chance: random.Random) -> list[Quiet]:
    """Of six hours, every ten seconds and when somebody comes or goes, of one who fetches for a while now and then."""
    found, silent_since, is_there = dict[int, int](), 0, True
    turns, at_ms = set[int](), 0
    while at_ms < HOURS_MS:
        at_ms += int(chance.expovariate(1 / chance.choice([5_000, 90_000, 600_000]))) + 1
        turns.add(at_ms)
    for at_ms in sorted({*range(0, HOURS_MS, 10_000), *turns}):
        if at_ms in turns:
            is_there = not is_there
            silent_since = at_ms
        found[at_ms] = 0 if is_there else at_ms - silent_since
    return list(found.items())


def fired(seen: list[Quiet], limit_s: int) -> list[Span]:
    points = [(at_ms / 1000, ms / 1000) for at_ms, ms in seen]
    held = alarms.silences(points, limit=limit_s)
    return alarms.would_have_fired(
        Limit(limit=limit_s, clear=limit_s, for_s=0), held, until_s=HOURS_MS / 1000
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("limit_s", [60, 300])
def test_a_silence_of_more_than_a_minute_is_told_to_the_minute(seed: int, limit_s: int) -> None:
    seen = samples(random.Random(seed))
    kept = [
        each
        for _, minute in groupby(seen, key=lambda each: each[0] // MINUTE_MS)
        for each in quiet_kept(minute)
    ]
    assert len(kept) <= 3 * HOURS_MS / MINUTE_MS
    wanted, found = fired(seen, limit_s), fired(kept, limit_s)
    assert [span.start_s for span in found] == pytest.approx([span.start_s for span in wanted], abs=0.01)
    assert len(wanted) > 3
    for one, other in zip(wanted, found, strict=True):
        assert 0 <= other.end_s - one.end_s < MINUTE_MS / 1000


def test_what_is_kept_of_parts_of_a_window_has_what_is_kept_of_the_whole() -> None:
    seen = samples(random.Random(1))[:200]
    for cut in range(1, len(seen)):
        assert quiet_kept([*quiet_kept(seen[:cut]), *quiet_kept(seen[cut:])]) == quiet_kept(seen)
