"""The retention editor under a keyboard: a wrong limit is marked at its field, and nothing that is typed is lost."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage, publish

pytestmark = [pytest.mark.e2e, pytest.mark.running]


def test_a_field_is_marked_once_it_is_left_with_a_wrong_limit(
    page: Page, api: httpx.Client, stream: str
) -> None:
    publish(api, stream, *range(10))
    page.goto(f"/streams/{stream}/retention/")
    age = page.get_by_label("Max age", exact=True)
    age.press_sequentially("soon")
    expect(page.locator("#effect")).to_contain_text("Max age:")
    expect(age).to_be_focused()
    expect(age).to_have_value("soon")
    age.press("Tab")
    expect(age).to_have_attribute("aria-invalid", "true")
    expect(age).to_contain_class("is-invalid")
    expect(page.get_by_label("Max messages", exact=True)).to_be_focused()
    age.fill("1 d")
    expect(page.locator("#effect")).to_contain_text("No message is removed now.")
    age.press("Tab")
    expect(age).not_to_have_attribute("aria-invalid", "true")
    expect(age).to_have_value("1 d")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Retention saved.")).to_be_visible()
    assert api.get(f"/streams/{stream}").json()["ttl"] == 86400


def test_limits_that_are_typed_can_be_sent_to_somebody(
    page: Page, log_in: OpenPage, api: httpx.Client, stream: str
) -> None:
    publish(api, stream, *range(10))
    page.goto(f"/streams/{stream}/retention/")
    page.get_by_label("Max messages", exact=True).fill("9")
    page.wait_for_url(f"/streams/{stream}/retention/?max_messages=9")
    for shown in (page, log_in()):
        shown.goto(page.url)
        expect(shown.get_by_label("Max messages", exact=True)).to_have_value("9")
        expect(shown.locator("#effect")).to_contain_text("Not saved yet: Max messages: no limit → 9")
        expect(shown.locator("#effect")).to_contain_text("1 message (1 B) is removed now.")
    page.get_by_label("Max messages", exact=True).clear()
    page.wait_for_url(f"/streams/{stream}/retention/")


def test_a_filter_of_a_group_is_saved_after_its_exact_loss_was_seen(
    page: Page, api: httpx.Client, unique: str
) -> None:
    wanted = {"name": unique, "retention": "interest", "labels": {"env": "production"}}
    api.post("/streams/", json=wanted).raise_for_status()
    publish(api, unique, *range(10))
    page.goto(f"/streams/{unique}/groups/")
    page.get_by_label("Name", exact=True).fill("only")
    page.get_by_label("Key filter").fill("us.>")
    page.get_by_role("button", name="Create group").click()
    expect(page.get_by_text("This removes 10 messages")).to_be_visible()
    expect(page.get_by_role("link", name="Cancel")).to_be_focused()
    assert api.get(f"/streams/{unique}").json()["messages"] == 10
    page.get_by_label(f"Type {unique} to confirm").fill(unique)
    page.get_by_role("button", name="Create and remove").click()
    expect(page.get_by_text("Group only was created.")).to_be_visible()
