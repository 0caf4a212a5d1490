"""Where something would go for good, Cancel has the focus: what is pressed by mistake does nothing."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage, publish

pytestmark = [pytest.mark.e2e, pytest.mark.running]

SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])


@pytest.fixture
def production(api: httpx.Client, stream: str) -> str:
    """A stream labelled ``env=production`` with ten messages."""
    api.patch(f"/streams/{stream}", json={"labels": {"env": "production"}}).raise_for_status()
    publish(api, stream, *range(10))
    return stream


def cancel(page: Page) -> None:
    expect(page.locator("#effect").get_by_role("link", name="Cancel")).to_be_focused()


@SCRIPTS
def test_of_a_purge(log_in: OpenPage, production: str, scripts: bool) -> None:
    page = log_in(java_script_enabled=scripts)
    page.goto(f"/streams/{production}/purge/")
    page.get_by_label("Purge", exact=True).select_option("All but the newest")
    page.get_by_label("Offset, time, number or key").fill("5")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("This removes 5 messages")).to_be_visible()
    cancel(page)


@SCRIPTS
def test_of_retention(log_in: OpenPage, production: str, scripts: bool) -> None:
    page = log_in(java_script_enabled=scripts)
    page.goto(f"/streams/{production}/retention/")
    page.get_by_label("Max messages", exact=True).fill("4")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#effect")).to_contain_text("6 messages (")
    cancel(page)


def test_of_retention_by_a_preset(log_in: OpenPage, api: httpx.Client, production: str) -> None:
    page = log_in()
    again = [{"id": f"again-{n}", "key": "k", "body": n} for n in range(3)]
    api.post(f"/streams/{production}/messages", json=again).raise_for_status()
    page.goto(f"/streams/{production}/retention/")
    page.get_by_role("link", name="Latest per key").click()
    expect(page.locator("#effect")).to_contain_text("2 messages (")
    cancel(page)


@SCRIPTS
def test_of_an_erasure_while_it_is_counted(log_in: OpenPage, production: str, scripts: bool) -> None:
    page = log_in(java_script_enabled=scripts)
    page.goto(f"/streams/{production}/history/erasures/")
    page.get_by_label("Offset or key").fill("3")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#effect")).to_contain_text("Offset 3")
    cancel(page)


@SCRIPTS
def test_of_a_seek_that_lets_go(log_in: OpenPage, api: httpx.Client, production: str, scripts: bool) -> None:
    api.patch(f"/streams/{production}", json={"retention": "interest"}).raise_for_status()
    api.post(f"/streams/{production}/groups", json={"name": "g"}).raise_for_status()
    page = log_in(java_script_enabled=scripts)
    page.goto(f"/streams/{production}/groups/g/")
    page.get_by_label("Seek to").select_option("latest")
    page.locator("#seek").get_by_role("button", name="Preview").click()
    expect(page.locator("#seek")).to_contain_text("removes 10 messages")
    expect(page.locator("#seek").get_by_role("link", name="Cancel")).to_be_focused()


def test_what_a_seek_without_a_loss_would_do_is_looked_at(
    log_in: OpenPage, api: httpx.Client, production: str
) -> None:
    api.post(f"/streams/{production}/groups", json={"name": "g"}).raise_for_status()
    page = log_in()
    page.goto(f"/streams/{production}/groups/g/")
    page.get_by_label("Seek to").select_option("latest")
    page.locator("#seek").get_by_role("button", name="Preview").click()
    effect = page.locator("#seek [role=status]")
    expect(effect).to_contain_text("10 messages are skipped")
    expect(effect).to_be_focused()
    expect(effect).to_be_in_viewport()
