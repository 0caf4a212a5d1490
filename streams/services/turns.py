"""Whose turn it is among workspaces that share what answers queries and carries out replays."""

from collections import Counter
from collections.abc import Iterable


def next_turn(waiting: Iterable[tuple[int, int]], under_way: Iterable[int], *, most: int) -> int | None:
    """Of what waits, that of the workspace with the least under way, and of it what has waited longest.

    Args:
        waiting: id and workspace, the oldest first.
        under_way: the workspace of each that has been begun.
        most: so many of one workspace go on at a time.

    Returns:
        Its id; None where nothing waits but of workspaces that have as many.
    """
    waiting = list(waiting)
    if not waiting:
        return None  # and nobody need be asked what is under way
    held = Counter(under_way)
    may = [(held[workspace], at, pk) for at, (pk, workspace) in enumerate(waiting) if held[workspace] < most]
    return min(may)[2] if may else None
