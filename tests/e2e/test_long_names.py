"""Names as long as they may be, also without a place to break: no column of a list leaves its panel for them."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from streams.naming import LONGEST_NAME
from tests.e2e.conftest import OpenPage, publish

pytestmark = [pytest.mark.e2e, pytest.mark.running]

Make = Callable[[str], str]
VIEWPORTS = [{"width": 1280, "height": 800}, {"width": 390, "height": 844}]


def solid(begin: str) -> str:
    return begin.replace("-", "").ljust(LONGEST_NAME, "W")


def dashed(begin: str) -> str:
    return (begin + "-payments_of.the-shop" * 3)[:LONGEST_NAME]


def reaches_beyond(page: Page, table: str) -> Any:
    """What of a table lies right of the panel that it stands in."""
    return page.locator(table).evaluate(
        """(table) => { const end = table.closest(".panel").getBoundingClientRect().right + 0.5;
           return [...table.querySelectorAll("td, th, a, span")].filter((it) => it.getBoundingClientRect().right > end)
             .map((it) => it.outerHTML.slice(0, 200)); }"""
    )


@pytest.mark.parametrize("viewport", VIEWPORTS, ids=["desk", "phone"])
@pytest.mark.parametrize("longest", [solid, dashed])
def test_lists_keep_their_columns_in_sight_and_a_name_that_is_cut_can_be_read(
    log_in: OpenPage, api: httpx.Client, unique: str, longest: Make, viewport: dict[str, int]
) -> None:
    stream, group = longest(unique), longest(f"g{unique}")
    api.post("/streams/", json={"name": stream}).raise_for_status()
    api.post(f"/streams/{stream}/groups/", json={"name": group}).raise_for_status()
    publish(api, stream, *range(1, 1001))
    page = log_in(viewport=viewport)
    for address, table, names in (
        (f"/groups/?group={group}", ".group-rows", [group, stream]),
        (f"/streams/{stream}/groups/", ".group-rows", [group]),
        (f"/streams/?name={stream}", ".grid.streams", [stream]),
        (f"/events/?stream={stream}", ".grid.events", []),
    ):
        page.goto(address)
        expect(page.locator(table)).to_be_visible()
        assert reaches_beyond(page, table) == [], address
        for name in names:
            expect(page.locator(table).get_by_title(name, exact=True).first).to_be_visible()
