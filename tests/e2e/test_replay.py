"""What the socket tells a page that was opened before is what a page says that is opened after."""

import httpx
import pytest
from playwright.sync_api import Page

from tests.e2e.conftest import publish
from tests.e2e.live import is_live, not_reloaded
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

# All that follows the socket, by its topic and field; ages differ with the second in which they are looked at.
FIGURES = """() => Object.fromEntries([...document.querySelectorAll("[data-live][data-format]")]
  .filter((each) => !["age", "differs", "duration", "part"].includes(each.dataset.format))
  .map((each) => [`${each.dataset.live} ${each.dataset.field} ${each.dataset.format}`,
    { title: each.title, health: `${each.dataset.state} ${each.dataset.worst}` }[each.dataset.format]
      ?? each.dataset.state ?? each.textContent.trim()]))"""
# What is asked for again when the socket says that it differs, and the rows of a list, in words; without what tells how
# long something has lasted.
WORDS = r"""() => [
    ...document.querySelectorAll(":is(#concerns, #processes, .by-status, [data-field=events_mark]) li"),
    ...document.querySelectorAll("#stream-table tbody tr"),
  ].map((each) => {
    const copy = each.cloneNode(true);
    for (const part of copy.querySelectorAll("time, [popover], [data-format=duration]")) part.remove();
    return copy.textContent.replace(/[\d,.]+ (s|min|h|d)\b/g, "").replace(/\s+/g, " ").trim();
  })"""


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/streams/?name={stream}",
        "/streams/{stream}/?start=oldest",
        "/groups/?group=billing",
        "/streams/{stream}/groups/",
        "/streams/{stream}/groups/billing/",
        "/streams/{stream}/groups/billing/pending/",
        "/streams/{stream}/retention/",
    ],
)
def test_an_old_page_comes_to_say_what_a_fresh_one_says(
    page: Page, api: httpx.Client, stream: str, path: str
) -> None:
    publish(api, stream, 1, 2, 3)
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    page.goto(path.format(stream=stream))
    is_live(page)
    before = page.evaluate(FIGURES), page.evaluate(WORDS)
    assert len(before[0]) > 5
    publish(api, stream, *range(20), start=4)
    publish(api, stream, 1, 2)  # told as duplicates
    group = f"/streams/{stream}/groups/billing"
    api.post(f"{group}/fetch", json={"limit": 9, "wait": 0, "consumer": "one"}).raise_for_status()
    api.post(f"{group}/ack", json={"offsets": [1, 2, 3]}).raise_for_status()
    api.post(f"{group}/term", json={"offsets": [4], "reason": "no price"}).raise_for_status()
    api.post(f"/streams/{stream}/commit", json={"offset": 7}).raise_for_status()
    # On record, and of a status: what the overview asks for again.
    api.post(f"/streams/{stream}/groups/billing/pause", json={}).raise_for_status()
    fresh = page.context.new_page()

    def differing() -> dict[str, tuple[str, str]]:
        fresh.goto(page.url)
        new, old = fresh.evaluate(FIGURES), page.evaluate(FIGURES)
        assert new.keys() == old.keys()
        told = {name: (old[name], new[name]) for name in new if old[name] != new[name]}
        new_words, old_words = fresh.evaluate(WORDS), page.evaluate(WORDS)
        return told | {
            f"line {number}": (old_words[number:][:1], new_words[number:][:1])
            for number in range(max(len(new_words), len(old_words)))
            if old_words[number:][:1] != new_words[number:][:1]
        }

    until(lambda: not differing(), what=f"an old page is as a fresh one: {differing()}")
    assert page.evaluate(FIGURES) != before[0]
    if path in ("/", "/streams/?name={stream}"):
        assert page.evaluate(WORDS) != before[1]
    not_reloaded(page)
