"""Names as long as they may be, also without a place to break, and large headers: nothing leaves its panel."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from streams.naming import LONGEST_NAME
from tests.e2e.conftest import OpenPage, publish
from tests.waiting import until

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


def leaves(page: Page) -> Any:
    """What of a page's words and buttons lies right of the panel, or of the page, that it stands in."""
    return page.locator(".content").evaluate(
        """(content) => [...content.querySelectorAll("h2, label, p, .btn, .chip, bdi")].filter((it) => {
             const around = (it.closest(".panel") ?? content).getBoundingClientRect();
             return it.getBoundingClientRect().right > around.right + 0.5;
           }).map((it) => it.outerHTML.slice(0, 200))"""
    )


@pytest.mark.parametrize("viewport", VIEWPORTS, ids=["desk", "phone"])
@pytest.mark.parametrize("longest", [solid, dashed])
def test_a_name_stays_on_its_page(
    log_in: OpenPage, api: httpx.Client, unique: str, longest: Make, viewport: dict[str, int]
) -> None:
    stream, group = longest(unique), longest(f"g{unique}")
    for name in (stream, unique):
        api.post("/streams/", json={"name": name}).raise_for_status()
    api.post(f"/streams/{stream}/groups/", json={"name": group}).raise_for_status()
    publish(api, stream, 1, 2)
    at = f"/streams/{stream}/groups/{group}"
    api.post(f"{at}/fetch", json={"limit": 1, "wait": 0}).raise_for_status()
    api.post(f"{at}/term", json={"offsets": [1], "reason": "no price"}).raise_for_status()
    page = log_in(viewport=viewport)
    for address in (
        f"{at}/",
        f"{at}/pending/",
        f"{at}/dead-letters/",
        f"{at}/dead-letters/1/",
        f"{at}/settings/",
        f"{at}/activity/",
        f"/streams/{stream}/publish/?like=1&letter_of={group}",
        f"/streams/{stream}/settings/",
        f"/tail/?streams={stream},{unique}",
    ):
        page.goto(address)
        expect(page.locator("h1")).to_be_visible()
        assert leaves(page) == [], address


@pytest.mark.parametrize("viewport", VIEWPORTS, ids=["desk", "phone"])
def test_a_rule_with_a_long_name_keeps_its_buttons_in_sight_also_while_it_is_muted(
    log_in: OpenPage, api: httpx.Client, unique: str, viewport: dict[str, int]
) -> None:
    stream, rule = solid(unique), solid(f"r{unique}")
    api.post("/streams/", json={"name": stream}).raise_for_status()
    api.post(f"/streams/{stream}/groups/", json={"name": solid(f"g{unique}")}).raise_for_status()
    publish(api, stream, 1, 2)
    wanted = {"name": rule, "stream": stream, "watch": "lag", "limit": 1, "for_seconds": 0}
    api.post("/alerts/rules/", json=wanted).raise_for_status()
    page = log_in(viewport=viewport)
    page.goto("/alerts/")
    firing = page.locator(".panel").filter(has=page.get_by_role("heading", name="Firing now"))

    def fires() -> bool:
        page.reload()
        return firing.get_by_text(rule).first.is_visible()

    until(fires, what="the worker has judged the rule")
    assert leaves(page) == []
    firing.get_by_role("button", name=f"Mute the rule {rule} for").first.click()
    expect(firing.get_by_role("button", name="Unmute this rule")).to_be_visible()
    assert leaves(page) == [], "muted"
    api.delete(f"/alerts/rules/{rule}").raise_for_status()


def test_a_large_header_scrolls_in_its_box(page: Page, api: httpx.Client, stream: str) -> None:
    message = {"id": "m1", "body": 1, "headers": {"trace": "W" * 10_000, "small": "one"}}
    api.post(f"/streams/{stream}/messages", json=[message]).raise_for_status()
    at = f"/streams/{stream}/groups/g"
    api.post(f"/streams/{stream}/groups/", json={"name": "g"}).raise_for_status()
    api.post(f"{at}/fetch", json={"limit": 1, "wait": 0}).raise_for_status()
    api.post(f"{at}/term", json={"offsets": [1], "reason": "no price"}).raise_for_status()
    for address in (f"/streams/{stream}/messages/1/", f"{at}/dead-letters/1/"):
        page.goto(address)
        box = page.locator(".facts dd", has_text="WWW")
        assert box.evaluate("(box) => box.clientHeight < 200 && box.scrollHeight > box.clientHeight")
        expect(box).to_have_attribute("tabindex", "0")
