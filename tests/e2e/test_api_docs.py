"""The documentation of the API in a browser: whole, under the policy that forbids inline scripts and styles."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage
from tests.product import Product

pytestmark = [pytest.mark.e2e, pytest.mark.running]


def test_a_person_browses_and_calls_the_api(page: Page, running: Product) -> None:
    page.goto("/api/v1/docs")
    expect(page.get_by_role("heading", name="OKMQ")).to_be_visible()
    page.get_by_role("button", name="Authorize").click()
    page.get_by_role("textbox").fill(running.token)
    page.get_by_role("button", name="Apply credentials").click()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="GET /api/v1/account").first.click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator(".live-responses-table .microlight").first).to_contain_text('"workspace": "default"')


def test_who_is_not_logged_in_is_asked_to_be(anonymous: OpenPage, running: Product) -> None:
    page = anonymous()
    page.goto("/api/v1/docs")
    expect(page).to_have_url("/login/?next=/api/v1/docs")
