"""Where a stream is going, by hand-made rates."""

import pytest

from dashboard.forecasts import Forecast, Going, forecast

HOLDS = {"messages": 100, "bytes": 1000, "rate_in": 10.0, "bytes_in": 100.0}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, Forecast({}, None, None, None)),
        ({"ttl": 60}, Forecast({}, 60.0, 600, 6000)),
        ({"max_messages": 300}, Forecast({"max_messages": 20.0}, 30.0, 300, 3000)),
        ({"max_bytes": 2000}, Forecast({"max_bytes": 10.0}, 20.0, 200, 2000)),
        ({"max_messages": 100}, Forecast({"max_messages": 0.0}, 10.0, 100, 1000)),
        # Age holds it below the count, which it never comes to.
        ({"ttl": 60, "max_messages": 10_000}, Forecast({}, 60.0, 600, 6000)),
    ],
)
def test_the_tightest_limit_decides(limits: dict[str, int], expected: Forecast) -> None:
    assert forecast(Going(**HOLDS, **limits)) == expected  # type: ignore[arg-type]


def test_nothing_is_foreseen_while_nothing_comes_in() -> None:
    assert forecast(Going(messages=1, bytes=1, rate_in=0.0, bytes_in=0.0, ttl=60)) is None
