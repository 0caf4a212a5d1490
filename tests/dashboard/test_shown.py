"""Which messages a page has shown, as its form brings them back."""

import pytest
from django.test import Client

from dashboard.shown import counts_read, offsets_read, offsets_written
from tests.dashboard.conftest import MakeStream

DEEP = "[" * 100_000


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


def test_counts_are_what_a_page_has_written_or_none() -> None:
    assert counts_read('{"orders": 3}') == {"orders": 3}
    for text in ("", "[1]", '{"a": -1}', '{"a": true}', f'{{"a": {2**63}}}', "7" * 5_000, "[" * 100_000):
        assert counts_read(text) is None


@pytest.mark.parametrize(
    ("page", "form", "status"),
    [
        ("/settings/workspaces/default/", {"plan": "free", "do": "save", "seen_unread": DEEP}, 200),
        (
            "/settings/configuration/",
            {"text": "okmq: 1\nstreams:\n  orders: {ttl: 3600}\n", "do": "apply", "seen_each": DEEP},
            200,
        ),
        ("/streams/_bulk/?do=purge&stream=orders", {"upto": DEEP}, 422),
        ("/streams/orders/settings/", {"opened": DEEP}, 422),
        ("/streams/orders/publish/", {"body": DEEP, "headers": DEEP}, 422),
    ],
)
def test_json_that_no_page_has_written_is_nothing_that_was_seen(
    owner: Client, make_stream: MakeStream, page: str, form: dict[str, str], status: int
) -> None:
    make_stream("orders", bodies=[b"1"])
    assert owner.post(page, form).status_code == status
