"""Half of the peak for long: the scene works, and what creeps up is found."""

import random
from pathlib import Path

import pytest

from okmq.prove.steady import WATCHED, Look, at_half_of_the_peak, judged, trends_of
from okmq.prove.trend import trend

MINUTES = range(0, 3600, 10)


@pytest.mark.parametrize("an_hour", [0.0, 0.02, -0.5])
def test_a_trend_is_found_in_noise_and_its_bounds_hold_it(an_hour: float) -> None:
    chance = random.Random(1)
    values = [100 * (1 + an_hour * at / 3600) + chance.gauss(0, 0.5) for at in MINUTES]
    for at in range(0, len(values), 40):
        values[at] *= 5  # outliers
    found = trend(MINUTES, values)
    assert found.least <= found.an_hour <= found.most
    assert abs(found.an_hour - an_hour * 100 / sorted(values)[len(values) // 2]) < 0.005
    assert found.most - found.least < 0.01


def test_what_stays_exactly_as_it_is_has_no_trend() -> None:
    found = trend(MINUTES, [7.0] * len(MINUTES))
    assert (found.an_hour, found.least, found.most) == (0, 0, 0)
    assert str(found) == "+0.0% an hour (+0.0% to +0.0%)"


def test_a_process_that_creeps_is_told_from_one_that_does_not() -> None:
    looks = [
        Look(
            at_s=at,
            memory={name: 10**8 + (3000 * at if name == "worker" else 0) for name in WATCHED},
            files={name: 20 + (at // 1800 if name == "web-2" else 0) for name in WATCHED},
            took_s=[0.001 * n for n in range(100)],
        )
        for at in MINUTES
    ]
    creeping = {what for what, found in trends_of(looks).items() if found.least > 0.01}
    assert creeping == {"memory of worker"}
    assert trends_of(looks)["open files of web-2"].most > 0.01
    (grows, noisy) = judged(trends_of(looks))
    assert grows.startswith("memory of worker grows: ")
    assert noisy.startswith("open files of web-2: its noise does not tell whether it grows, ")


@pytest.mark.parametrize("seed", range(20))
def test_growth_that_noise_hides_is_no_steadiness(seed: int) -> None:
    """A tenth in an hour under noise of a third: at best it is found, and it never passes."""
    chance = random.Random(seed)
    values = [100 * (1 + 0.1 * at / 3600) * (1 + chance.gauss(0, 0.3)) for at in MINUTES]
    assert trend(MINUTES, values).judged(may_grow=0.01) in {"grows", "not told"}


@pytest.mark.parametrize(("noise", "hours"), [(0.01, 1), (0.03, 3)])
def test_what_is_steady_can_be_told_in_time(noise: float, hours: int) -> None:
    """Within an hour at a noise of 1 %; what is noisier takes longer, and gets it."""
    chance = random.Random(3)
    times_s = range(0, 3600 * hours, 10)
    values = [100 * (1 + chance.gauss(0, noise)) for _ in times_s]
    assert trend(times_s, values).judged(may_grow=0.01) == "steady"
    growing = [value * (1 + 0.03 * at / 3600) for at, value in zip(times_s, values, strict=True)]
    assert trend(times_s, growing).judged(may_grow=0.01) == "grows"


@pytest.mark.running
@pytest.mark.timeout(300)
def test_half_of_the_peak_is_borne_without_a_refusal(tmp_path: Path) -> None:
    apart = at_half_of_the_peak(tmp_path, seconds=12, longest=1)
    assert (apart.load.scene.late, apart.load.scene.surprises) == ([], {})
    (told,) = apart.struck
    assert all(f"memory of {name}" in told.note and f"open files of {name}" in told.note for name in WATCHED)
    assert not told.note.startswith("0 publishes")
