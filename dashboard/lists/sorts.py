"""What a list without headings, as a phone has it, offers to be sorted by."""

from collections.abc import Iterable


def both_ways(columns: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each column, by name and label, both ways: names from the first, all else from the most."""
    return [
        (f"{sign}{column}", f"{label} {arrow}")
        for column, label in columns
        for sign, arrow in ((("", "↑"), ("-", "↓")) if column == "name" else (("-", "↓"), ("", "↑")))
    ]
