"""Somebody is narrowed to some streams, and widened again, while they look: their page says so by itself."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage, join, publish
from tests.e2e.live import is_live, not_reloaded
from tests.product import Product

pytestmark = [pytest.mark.e2e, pytest.mark.running]


@pytest.fixture
def outside(api: httpx.Client, stream: str) -> str:
    """A stream beside, with messages."""
    name = f"canary-{stream}"[:50]
    api.post("/streams/", json={"name": name}).raise_for_status()
    publish(api, name, *range(7))
    return name


def narrow(page: Page, person: str, streams: str) -> None:
    """What an administrator does on the page of people."""
    page.goto("/settings/people/")
    row = page.locator(f"#person-{person}")
    row.locator("summary").click()
    row.get_by_role("link", name="Restrict to streams…").click()
    panel = page.locator("section", has=page.get_by_role("heading", name=f"Streams of {person}"))
    panel.get_by_label("Only these streams").fill(streams)
    panel.get_by_role("button", name="Set streams").click()
    expect(page.get_by_text("sees only the streams" if streams else "sees all streams now")).to_be_visible()


def test_a_person_is_narrowed_while_they_look(
    page: Page, anonymous: OpenPage, running: Product, api: httpx.Client, stream: str, outside: str
) -> None:
    theirs = anonymous()
    person = join(theirs, running, role="operator")
    theirs.goto(f"/streams/{outside}/")
    is_live(theirs)
    narrow(page, person, f"{stream}*")
    expect(theirs.get_by_text("This stream was deleted, or you may no longer see it.")).to_be_visible()
    not_reloaded(theirs)
    theirs.goto("/")
    is_live(theirs)
    total = theirs.locator('[data-live="overview"][data-field="messages"]').first
    publish(api, stream, *range(3))
    expect(total).to_have_text("3")
    expect(theirs.get_by_text(outside)).to_have_count(0)
    theirs.goto("/streams/")
    expect(theirs.get_by_role("link", name=stream, exact=True)).to_be_visible()
    expect(theirs.get_by_text(outside)).to_have_count(0)
    narrow(page, person, "")
    theirs.goto(f"/streams/{outside}/")
    is_live(theirs)
