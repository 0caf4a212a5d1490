"""The rule by which ages follow the steady clock: held against a model, and scripts against Python."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streams.log import scripts
from streams.log.client import Log
from streams.log.clock import NEVER_SET, STEP_MS, UNKNOWN_MS, Jumps, Reading, jumps_noted, told, written

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
SETTLED_MS = 3_000
"""Longer than it takes the worker to note a jump."""

offsets = st.integers(-2 * DAY_MS, 2 * DAY_MS)
ttls = st.sampled_from([1_000, 5_000, HOUR_MS, DAY_MS, 7 * DAY_MS])


@dataclass(frozen=True)
class Course:
    """A wall clock that is set now and then: when, to how far ahead, and when that was noted, by the steady clock."""

    set_ms: list[int]
    ahead_ms: list[int]
    noted_ms: list[int]

    def ahead_at(self, steady_ms: int) -> int:
        return self.ahead_ms[bisect_right(self.set_ms, steady_ms) - 1]

    def seen_at(self, steady_ms: int) -> Reading:
        """What a process knows then: what was noted until then."""
        count = bisect_right(self.noted_ms, steady_ms)
        return Reading(
            steady_ms, tuple(zip([0, *self.noted_ms[1:count]], self.ahead_ms[:count], strict=True))
        )


@st.composite
def courses(draw: st.DrawFn) -> Course:
    """Jumps of more than what counts as drift, none before the one before it was noted."""
    set_ms, ahead_ms, noted_ms = [0], [draw(offsets)], [0]
    for _ in range(draw(st.integers(0, 6))):
        ahead = draw(offsets)
        assume(abs(ahead - ahead_ms[-1]) > STEP_MS)
        set_ms.append(noted_ms[-1] + draw(st.integers(1, 2 * DAY_MS)))
        noted_ms.append(set_ms[-1] + draw(st.integers(0, SETTLED_MS)))
        ahead_ms.append(ahead)
    return Course(set_ms, ahead_ms, noted_ms)


def timestamps(course: Course, published_ms: list[int]) -> list[int]:
    """What the messages of a stream bear: the wall clock's time, which never runs backwards there."""
    found: list[int] = []
    for steady_ms in published_ms:
        found.append(max([steady_ms + course.ahead_at(steady_ms), *found[-1:]]))
    return found


@given(
    course=courses(),
    gaps=st.lists(st.integers(0, DAY_MS), min_size=1, max_size=8),
    ages=st.lists(st.integers(0, 8 * DAY_MS), min_size=1, max_size=8),
    ttl_ms=ttls,
)
def test_nothing_is_over_before_its_time(
    course: Course, gaps: list[int], ages: list[int], ttl_ms: int
) -> None:
    published_ms = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    for at_ms, timestamp in zip(published_ms, timestamps(course, published_ms), strict=True):
        for age_ms in [*ages, ttl_ms - 1]:
            now_ms = at_ms + age_ms
            times = course.seen_at(now_ms).at(now_ms + course.ahead_at(now_ms))
            assert times.steady_ms == now_ms
            if age_ms < ttl_ms:
                assert timestamp > times.cutoff_ms(ttl_ms)


@given(ahead_ms=offsets, at_ms=st.integers(DAY_MS, 30 * DAY_MS), ttl_ms=ttls)
def test_where_nobody_sets_the_clock_it_is_over_to_the_millisecond(
    ahead_ms: int, at_ms: int, ttl_ms: int
) -> None:
    course = Course([0], [ahead_ms], [0])
    for age_ms in (ttl_ms - 1, ttl_ms):
        now_ms = at_ms + age_ms
        times = course.seen_at(now_ms).at(now_ms + ahead_ms)
        assert (at_ms + ahead_ms <= times.cutoff_ms(ttl_ms)) is (age_ms == ttl_ms)


@given(
    ahead_ms=st.integers(STEP_MS + 1, 2 * DAY_MS),
    lag_ms=st.integers(0, SETTLED_MS),
    ttl_ms=ttls,
    data=st.data(),
)
def test_after_a_jump_ahead_it_is_over_to_the_millisecond_once_that_is_noted(
    ahead_ms: int, lag_ms: int, ttl_ms: int, data: st.DataObject
) -> None:
    set_ms = 10 * DAY_MS
    course = Course([0, set_ms], [0, ahead_ms], [0, set_ms + lag_ms])
    at_ms = data.draw(st.one_of(st.integers(0, set_ms - 1), st.integers(set_ms + lag_ms, 20 * DAY_MS)))
    now_ms = at_ms + ttl_ms
    times = course.seen_at(now_ms).at(now_ms + course.ahead_at(now_ms))
    assert at_ms + course.ahead_at(at_ms) <= times.cutoff_ms(ttl_ms)


@given(back_ms=st.integers(-2 * DAY_MS, -STEP_MS - 1), ttl_ms=ttls, at_ms=st.integers(0, 12 * DAY_MS))
def test_after_a_jump_back_it_is_late_by_no_more_than_that(back_ms: int, ttl_ms: int, at_ms: int) -> None:
    set_ms = 10 * DAY_MS
    course = Course([0, set_ms], [0, back_ms], [0, set_ms])
    (_, timestamp) = timestamps(course, [min(at_ms, set_ms - 1), at_ms])
    now_ms = at_ms + ttl_ms - back_ms
    assert timestamp <= course.seen_at(now_ms).at(now_ms + course.ahead_at(now_ms)).cutoff_ms(ttl_ms)


PROBE = """
library.register{function_name = 'clock_probe', callback = function(KEYS, ARGV)
library_begin(ARGV)
local answer = {server_ms(), steady_ms()}
for n = 1, #ARGV do answer[n + 2] = age_cutoff(tonumber(ARGV[n])) end
return answer
end}
"""


@pytest.fixture
def probe(redis_url: str) -> Iterator[Log]:
    """A server that tells what scripts make of the time that they are told."""
    parts = ["#!lua name=clock_probe", scripts._source("lib/_library"), scripts._source("lib/clock"), PROBE]
    with closing(Log(redis_url)) as log:
        log.client.execute_command("FUNCTION", "LOAD", "REPLACE", "\n".join(parts))
        yield log
        log.client.execute_command("FUNCTION", "DELETE", "clock_probe")


def jumps(now_ms: int, ages_ms: list[int], ahead_ms: list[int]) -> Jumps:
    starts = sorted(now_ms - age_ms for age_ms in ages_ms[: len(ahead_ms) - 1])
    return tuple(zip([0, *starts], ahead_ms[: len(starts) + 1], strict=True))


def test_scripts_and_readers_have_one_rule(probe: Log) -> None:
    seconds, _ = probe.client.execute_command("TIME")
    began_ms = int(seconds) * 1000

    @given(
        ages_ms=st.lists(st.integers(0, 8 * DAY_MS), max_size=6),
        ahead_ms=st.lists(offsets, min_size=1, max_size=7),
        apart_ms=st.one_of(st.integers(-2 * STEP_MS, 2 * STEP_MS), offsets),
        ttls_ms=st.lists(ttls, min_size=1, max_size=3),
        is_unknown=st.booleans(),
    )
    def hold(
        ages_ms: list[int], ahead_ms: list[int], apart_ms: int, ttls_ms: list[int], is_unknown: bool
    ) -> None:
        noted = jumps(began_ms, ages_ms, ahead_ms)
        if is_unknown:
            noted = jumps_noted(written(noted), ahead_ms=noted[-1][1] + HOUR_MS)
        reading = Reading(began_ms - noted[-1][1] + apart_ms, noted)
        text = told(reading.steady_ms, written(noted))
        server_ms, steady_ms, *cutoffs_ms = probe.client.execute_command(
            "FCALL", "clock_probe", 0, *ttls_ms, text
        )
        times = reading.at(server_ms)
        assert (times.steady_ms, [times.cutoff_ms(each) for each in ttls_ms]) == (steady_ms, cutoffs_ms)

    hold()


def test_what_was_noted_is_read_as_it_was_written() -> None:
    noted = ((0, 0), (5_000, HOUR_MS), (9_000, -DAY_MS))
    assert jumps_noted(written(noted), ahead_ms=-DAY_MS) == noted
    assert jumps_noted(None, ahead_ms=0) == NEVER_SET
    assert written(NEVER_SET) == ""
    assert jumps_noted(None, ahead_ms=7) == (*NEVER_SET, (UNKNOWN_MS, 7))
