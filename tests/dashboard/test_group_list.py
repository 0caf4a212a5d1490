"""The list of a stream's groups: in pages, narrowed, ordered."""

import re

from django.test import Client

from dashboard.group_list import PAGE_SIZE
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_groups import make_group
from tests.dashboard.verdicts import judged


def test_groups_come_in_pages_in_the_order_and_by_the_name_that_is_asked_for(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    for number in range(PAGE_SIZE + 2):
        make_group(stream, f"g{number:02}")
    judged(stream, "g30", "stopped", lag_ms=5_000)
    judged(stream, "g40", "slow", lag_ms=9_000)

    def shown(query: str) -> list[str]:
        page = viewer.get(f"/streams/orders/groups/?{query}").content.decode()
        return re.findall(r'id="group-(g\d+)"', page)

    assert shown("") == [f"g{number:02}" for number in range(PAGE_SIZE)]
    assert shown("page=2") == shown("page=99") == ["g50", "g51"]
    assert shown("sort=-status")[:2] == ["g30", "g40"]
    assert shown("sort=-time")[:2] == ["g40", "g30"]
    assert shown("group=4&sort=-name") == [
        "g49",
        "g48",
        "g47",
        "g46",
        "g45",
        "g44",
        "g43",
        "g42",
        "g41",
        "g40",
        "g34",
        "g24",
        "g14",
        "g04",
    ]
    assert "No group matches" in viewer.get("/streams/orders/groups/?group=no-such").content.decode()
