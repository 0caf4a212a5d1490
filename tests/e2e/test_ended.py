"""A session that ends while somebody types: nothing of it is lost, and nobody else is shown it."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from dashboard.views.stream_publish import EXAMPLE
from tests.e2e.conftest import OpenPage, Watched, fill_in_login, join
from tests.product import Product

pytestmark = [pytest.mark.e2e, pytest.mark.running]

TYPED = '{"written": "for a quarter of an hour"}'


def type_and_lose_the_session(page: Page, stream: str) -> None:
    page.goto(f"/streams/{stream}/publish/")
    page.get_by_label("Body (JSON)").fill(TYPED)
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Publish", exact=True).click()


def test_what_was_typed_is_there_again_after_the_login(
    page: Page, running: Product, api: httpx.Client, stream: str
) -> None:
    type_and_lose_the_session(page, stream)
    expect(page.get_by_text("You were logged out; nothing was done.")).to_be_visible()
    fill_in_login(page, "admin", running.password)
    expect(page.get_by_text("You were logged out; nothing was done.")).to_be_visible()
    expect(page.get_by_label("Body (JSON)")).to_have_value(TYPED)
    assert api.get(f"/streams/{stream}/").json()["messages"] == 0
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_text("Stored at offset 1.")).to_be_visible()


def test_a_limit_that_was_typed_is_previewed_again_after_the_login(
    page: Page, running: Product, stream: str, watched: Watched
) -> None:
    watched.forgive("401")
    page.goto(f"/streams/{stream}/retention/")
    page.context.clear_cookies(name="sessionid")
    page.get_by_label("Max messages", exact=True).fill("1234")
    fill_in_login(page, "admin", running.password)
    expect(page.get_by_label("Max messages", exact=True)).to_have_value("1234")
    expect(page.locator("#effect")).to_contain_text("No message is removed now.")


def test_what_was_chosen_and_ticked_is_there_again_too(page: Page, running: Product, unique: str) -> None:
    """Half of a form would mean something else."""
    page.goto("/streams/_new/")
    page.get_by_label("Name").fill(unique)
    for name, value in (("storage", "memory"), ("discard", "new")):
        page.locator(f"[name={name}]").and_(page.locator("select")).select_option(value)
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Create stream").click()
    fill_in_login(page, "admin", running.password)
    expect(page.get_by_label("Name")).to_have_value(unique)
    expect(page.locator("select[name=storage]")).to_have_value("memory")
    expect(page.locator("select[name=discard]")).to_have_value("new")

    page.goto("/alerts/")
    for label, text in (("Name", unique), ("Stream", "orders"), ("Limit", "5")):
        page.get_by_label(label, exact=True).fill(text)
    page.locator("select[name=watch]").select_option("rate_below")
    page.get_by_label("E-mail address").fill("night@example.org")
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Create rule").click()
    fill_in_login(page, "admin", running.password)
    expect(page.locator("select[name=watch]")).to_have_value("rate_below")
    expect(page.get_by_label("E-mail address")).to_have_value("night@example.org")


def test_what_nobody_touched_is_as_somebody_else_saved_it_meanwhile(
    page: Page, running: Product, api: httpx.Client, stream: str
) -> None:
    page.goto(f"/streams/{stream}/settings/")
    page.get_by_label("Description").fill("for a quarter of an hour")
    page.get_by_label("Keep a copy in the history").uncheck()
    saved = {"labels": {"team": "shop"}, "dedup_window": 7200}
    api.patch(f"/streams/{stream}", json=saved).raise_for_status()
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Save", exact=True).click()
    fill_in_login(page, "admin", running.password)
    expect(page.get_by_label("Description")).to_have_value("for a quarter of an hour")
    expect(page.get_by_label("Keep a copy in the history")).not_to_be_checked()
    expect(page.get_by_label("Labels")).to_have_value("team:shop")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text(f"Stream {stream} was changed.")).to_be_visible()
    told = api.get(f"/streams/{stream}").json()
    assert {name: told[name] for name in saved} == saved
    assert (told["description"], told["archive"]) == ("for a quarter of an hour", False)


def test_what_was_typed_before_a_form_was_refused_is_there_again_too(
    page: Page, running: Product, stream: str
) -> None:
    page.goto(f"/streams/{stream}/settings/")
    page.get_by_label("Description").fill("typed first")
    page.get_by_label("Duplicate window").fill("soon")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".invalid-feedback").first).to_be_visible()
    page.get_by_label("Duplicate window").fill("2 h")
    for _ in range(2):
        page.context.clear_cookies(name="sessionid")
        page.get_by_role("button", name="Save", exact=True).click()
        fill_in_login(page, "admin", running.password)
        expect(page.get_by_label("Description")).to_have_value("typed first")
        expect(page.get_by_label("Duplicate window")).to_have_value("2 h")


def test_nobody_else_is_shown_what_was_typed(
    page: Page, anonymous: OpenPage, running: Product, stream: str
) -> None:
    other = anonymous()
    name = join(other, running, role="operator")
    expect(other.locator("[data-live-word]")).to_have_text("Live")

    type_and_lose_the_session(page, stream)
    fill_in_login(page, name, running.password)
    expect(page.get_by_text("You were logged out; nothing was done.")).to_be_visible()
    expect(page.get_by_label("Body (JSON)")).to_have_value(EXAMPLE)
