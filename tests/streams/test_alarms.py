"""When an alert begins and ends."""

import pytest

from streams.alarms import Limit, Track, followed, silences, would_have_fired

ABOVE = Limit(limit=10, clear=5, for_s=20)


def fires(limit: Limit, values: list[float | None]) -> list[bool]:
    """Whether it fires after each of the values, ten seconds apart."""
    track, found = Track(), []
    for number, value in enumerate(values):
        track = followed(track, limit, value, at_s=number * 10)
        found.append(track.fires)
    return found


@pytest.mark.parametrize(
    ("limit", "values", "expected"),
    [
        (ABOVE, [11, 11, 11], [False, False, True]),
        (ABOVE, [11, 10, 11, 11], [False] * 4),
        (ABOVE, [11, 11, 11, 6, 11, 5], [False, False, True, True, True, False]),
        (ABOVE, [11, None, 11], [False, False, True]),
        (ABOVE, [11, 11, 11, None], [False, False, True, True]),
        (Limit(limit=10, clear=10, for_s=0), [11, 10, 11], [True, False, True]),
        (Limit(limit=10, clear=15, for_s=0, falls=True), [9, 12, 15], [True, True, False]),
    ],
)
def test_it_fires_after_its_time_and_ends_beyond_the_limit_for_clearing(
    limit: Limit, values: list[float | None], expected: list[bool]
) -> None:
    assert fires(limit, values) == expected


def test_a_look_back_tells_each_alert_and_how_long_it_was() -> None:
    points = [(0.0, 11.0), (30.0, 11.0), (100.0, 1.0), (200.0, 20.0)]
    spans = would_have_fired(ABOVE, points, until_s=300.0)
    assert [(span.start_s, span.end_s) for span in spans] == [(20.0, 100.0), (220.0, 300.0)]
    assert spans[0].seconds == 80.0


def test_a_look_back_over_nothing_tells_nothing() -> None:
    assert would_have_fired(ABOVE, [], until_s=300.0) == []


@pytest.mark.parametrize(
    ("points", "spans"),
    [
        # At rest: nobody fetches, and nothing is sampled until the end.
        ([(0.0, 3.0), (1000.0, 1003.0)], [(237.0, 1000.0)]),
        # Silent, then somebody came, and went on until now.
        ([(0.0, 15.0), (1000.0, 5.0)], [(225.0, 995.0)]),
        # Fetched from all along, and nothing came.
        ([(0.0, 3.0), (1000.0, 5.0)], []),
        ([(0.0, 0.0), (1000.0, 0.0)], []),
        # Somebody polled until a while ago.
        ([(0.0, 0.0), (1000.0, 300.0)], [(940.0, 1000.0)]),
        # The clocks of two samples differ a little.
        ([(0.0, 100.0), (10.0, 109.6), (400.0, 498.7)], [(141.3, 400.0)]),
    ],
)
def test_between_two_samples_a_silence_goes_on(
    points: list[tuple[float, float]], spans: list[tuple[float, float]]
) -> None:
    quiet = Limit(limit=240, clear=240, for_s=0)
    found = would_have_fired(quiet, silences(points, limit=240), until_s=points[-1][0])
    assert [(span.start_s, span.end_s) for span in found] == [pytest.approx(span) for span in spans]
