"""How often something happens, and how fast something grows: pure functions."""

from collections.abc import Sequence


def usual_gap(before: float, moments: Sequence[int]) -> float:
    """The usual time between two moments, from what was usual and the newest two."""
    if len(moments) < 2 or moments[-1] <= moments[-2] or not moments[-2]:
        return before
    fresh = moments[-1] - moments[-2]
    return fresh if not before else 0.7 * before + 0.3 * fresh


def growth(points: Sequence[tuple[float, float]]) -> float:
    """By how much a second the values of (seconds, value) grow, over all of them (least squares)."""
    middle_s = sum(at_s for at_s, _ in points) / len(points)
    middle = sum(value for _, value in points) / len(points)
    spread = sum((at_s - middle_s) ** 2 for at_s, _ in points)
    if not spread:
        return 0.0
    return sum((at_s - middle_s) * (value - middle) for at_s, value in points) / spread
