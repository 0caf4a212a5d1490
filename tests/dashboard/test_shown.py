"""Which messages a page has shown, as its form brings them back."""

import pytest

from dashboard.shown import offsets_read, offsets_written


@pytest.mark.parametrize(
    ("offsets", "text"),
    [([7], "7"), ([1, 2, 3], "1-3"), ([1, 3, 4, 9], "1,3-4,9"), (list(range(1, 10_001)), "1-10000")],
)
def test_offsets_are_written_and_read(offsets: list[int], text: str) -> None:
    assert offsets_written(offsets) == text
    assert offsets_read(text, most=10_000) == offsets


@pytest.mark.parametrize(
    "text", ["", "x", "1-", "-1", "3-1", "1-3,3", "2,1", "1,,2", " 1", "1-101", "1-90,91-101", "٣", "1" * 17]
)
def test_what_no_page_has_written_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        offsets_read(text, most=100)
