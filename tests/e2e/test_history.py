"""A run that a person starts is followed on the page, and its numbers are in the charts."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import publish

pytestmark = [pytest.mark.e2e, pytest.mark.running, pytest.mark.spark, pytest.mark.timeout(400)]


def test_a_run_is_started_followed_and_seen_in_the_charts(page: Page, api: httpx.Client, stream: str) -> None:
    publish(api, stream, *range(120))
    page.goto(f"/streams/{stream}/history/?range=1h")
    expect(page.get_by_text("No history yet")).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    fresh = page.locator("#runs").get_by_text("(offset 120)")
    expect(fresh).to_be_visible(timeout=240_000)
    page.reload()
    expect(page.get_by_text("120 in this range")).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(3)
    page.get_by_text("Charts as a table").click()
    cells = page.locator("details table tbody td.num:nth-child(2)").all_inner_texts()
    assert sum(int(text.replace(",", "")) for text in cells) == 120
