"""What the socket tells a page that was opened before is what a page says that is opened after."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import publish
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

# All that follows the socket, by its topic and field; ages differ with the second in which they are looked at.
FIGURES = """() => Object.fromEntries([...document.querySelectorAll("[data-live][data-field]")]
  .filter((each) => each.dataset.live.startsWith("stream:") || each.dataset.live.startsWith("group:"))
  .filter((each) => !["age", "differs", "duration"].includes(each.dataset.format))
  .map((each) => [`${each.dataset.live} ${each.dataset.field} ${each.dataset.format}`,
    each.dataset.format === "title" ? each.title : each.dataset.state ?? each.textContent.trim()]))"""


@pytest.mark.parametrize(
    "path", ["?start=oldest", "groups/", "groups/billing/", "groups/billing/pending/", "retention/"]
)
def test_an_old_page_comes_to_say_what_a_fresh_one_says(
    page: Page, api: httpx.Client, stream: str, path: str
) -> None:
    publish(api, stream, 1, 2, 3)
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    page.goto(f"/streams/{stream}/{path}")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    page.evaluate("window.notReloaded = true")
    before = page.evaluate(FIGURES)
    assert len(before) > 5
    publish(api, stream, *range(20), start=4)
    publish(api, stream, 1, 2)  # told as duplicates
    group = f"/streams/{stream}/groups/billing"
    api.post(f"{group}/fetch", json={"limit": 9, "wait": 0, "consumer": "one"}).raise_for_status()
    api.post(f"{group}/ack", json={"offsets": [1, 2, 3]}).raise_for_status()
    api.post(f"{group}/term", json={"offsets": [4], "reason": "no price"}).raise_for_status()
    api.post(f"/streams/{stream}/commit", json={"offset": 7}).raise_for_status()
    fresh = page.context.new_page()

    def differing() -> dict[str, tuple[str, str]]:
        fresh.goto(page.url)
        new, old = fresh.evaluate(FIGURES), page.evaluate(FIGURES)
        assert new.keys() == old.keys()
        return {name: (old[name], new[name]) for name in new if old[name] != new[name]}

    until(lambda: not differing(), what=f"an old page is as a fresh one: {differing()}")
    assert page.evaluate(FIGURES) != before
    assert page.evaluate("window.notReloaded") is True
