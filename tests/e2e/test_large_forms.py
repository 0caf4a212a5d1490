"""Large messages through the forms of the product as it runs."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenPage, Watched

pytestmark = [pytest.mark.e2e, pytest.mark.running]

MIB = 1024 * 1024


@pytest.fixture
def stream(api: httpx.Client, unique: str) -> str:
    """One that takes four MiB."""
    api.post("/streams/", json={"name": unique, "max_message_bytes": 4 * MIB}).raise_for_status()
    return unique


def body_of(api: httpx.Client, stream: str) -> str:
    return str(api.get(f"/streams/{stream}/messages/1").raise_for_status().json()["body"])


def test_a_message_of_three_mib_is_published(log_in: OpenPage, api: httpx.Client, stream: str) -> None:
    page, text = log_in(), "x" * (3 * MIB)
    page.goto(f"/streams/{stream}/publish/")
    page.get_by_label("Body (JSON)").fill(f'"{text}"')
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("Stored at offset 1.")).to_be_visible()
    assert body_of(api, stream) == text


def test_lines_of_three_mib_are_published_without_a_script(
    log_in: OpenPage, api: httpx.Client, stream: str
) -> None:
    page, text = log_in(java_script_enabled=False), "x" * (3 * MIB)
    page.goto(f"/streams/{stream}/publish/many/")
    page.get_by_label("Each line is").select_option("body")
    page.get_by_label("Lines", exact=True).fill(f'"{text}"')
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("1 message was stored.")).to_be_visible()
    assert body_of(api, stream) == text


def test_what_is_larger_than_any_message_gets_a_page_with_the_reason_and_the_id(
    log_in: OpenPage, stream: str, watched: Watched
) -> None:
    watched.forgive("413")
    page = log_in()
    page.goto(f"/streams/{stream}/publish/")
    # Out of sight: to lay out so long a line takes the browser longer than to send it.
    page.locator("[name=body]").evaluate(
        "(body, size) => { body.hidden = true; body.value = 'x'.repeat(size); }", 34 * MIB
    )
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("heading", name="This form is too large.")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Request \S{8,}$"))).to_be_visible()
