"""A page that was saved as a file opens anywhere: it looks as it did, moves nothing and asks nobody."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import TELL_VIOLATIONS, publish

pytestmark = [pytest.mark.e2e, pytest.mark.running]


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    """A browser that has no network, and fails its test for whatever it asks for or complains about."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page, wrongs, asked = context.new_page(), list[str](), list[str]()
    page.add_init_script(TELL_VIOLATIONS)
    page.on("console", lambda message: wrongs.append(message.text))
    page.on("pageerror", lambda error: wrongs.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert wrongs == []
    assert all(url.startswith("file:") for url in asked)


@pytest.mark.parametrize("where", ["", "groups/", "groups/g/", "retention/"])
def test_a_saved_page_opens_without_its_server(
    page: Page, offline: Page, api: httpx.Client, stream: str, tmp_path: Path, where: str
) -> None:
    publish(api, stream, {"total": 9007199254740993}, "<b>bold</b>")
    api.post(f"/streams/{stream}/groups/", json={"name": "g"}).raise_for_status()
    page.goto(f"/streams/{stream}/{where}")
    with page.expect_download() as told:
        page.get_by_role("link", name="Save this page").click()
    file = tmp_path / told.value.suggested_filename
    told.value.save_as(file)
    offline.goto(file.as_uri())
    expect(offline.get_by_role("heading", level=1)).to_contain_text(stream)
    expect(offline.get_by_text("Nothing in it moves.")).to_be_visible()
    assert offline.evaluate("document.scripts.length + document.forms.length") == 0
    assert offline.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for chart in offline.locator("div.chart").all():
        expect(chart.locator("svg path").first).to_be_attached()


def test_the_overview_is_saved_with_its_charts(page: Page, offline: Page, tmp_path: Path) -> None:
    page.goto("/")
    with page.expect_download() as told:
        page.get_by_role("link", name="Save this page").click()
    file = tmp_path / "overview.html"
    told.value.save_as(file)
    offline.goto(file.as_uri())
    expect(offline.locator("div.chart svg").first).to_be_visible()
