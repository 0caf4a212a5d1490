"""Pages that ask again by themselves leave the focus where it is."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import publish
from tests.product import Product

pytestmark = [pytest.mark.e2e, pytest.mark.running]

STREAM, GROUP = "asked-again", "billing"
AT = f"/streams/{STREAM}"
SCRIPT = """() => {
  const focusable = "a[href], button:enabled, summary, select, input:enabled:not([type=hidden]), [tabindex='0']";
  const all = `#main :is(${focusable})`;
  window.reached = () => [...document.querySelectorAll(all)].filter((each) => each.checkVisibility());
  window.askAgain = () => new Promise((done) => {
    let left = document.querySelectorAll("[hx-trigger*='okmq:quarter-minute']").length;
    const heard = () => {
      if (--left) return;
      document.removeEventListener("htmx:afterOnLoad", heard);
      done();
    };
    document.addEventListener("htmx:afterOnLoad", heard);
    document.dispatchEvent(new Event("okmq:quarter-minute"));
  });
  window.replaced = async () => {
    const before = reached();
    await askAgain();
    return before.filter((each) => !each.isConnected).map((each) => each.id || each.outerHTML.slice(0, 150));
  };
  window.kept = async (id) => {
    const before = document.getElementById(id);
    if (!before) return `has no id, or went: ${id}`;
    before.focus();
    if (document.activeElement !== before) return `takes no focus: ${id}`;
    await askAgain();
    return document.activeElement.id === id ? "" : `lost it: ${id}`;
  };
}"""


@pytest.fixture(scope="module")
def made(running: Product) -> None:
    """A stream that is full, two groups of which one has something of everything, a rule and a replay."""
    with running.client() as api:
        made = {"name": STREAM, "max_messages": 30, "discard": "new"}
        api.post("/streams/", json=made).raise_for_status()
        publish(api, STREAM, *range(30))
        for name in (GROUP, "idle"):
            api.post(f"{AT}/groups/", json={"name": name, "max_deliver": 2}).raise_for_status()
        at = f"{AT}/groups/{GROUP}"
        api.post(f"{at}/fetch", json={"limit": 9, "wait": 0, "consumer": "one"}).raise_for_status()
        api.post(f"{at}/term", json={"offsets": [3], "reason": "no price"}).raise_for_status()
        api.post(f"{at}/nack", json={"offsets": [5, 6]}).raise_for_status()
        api.post(f"{at}/fetch", json={"limit": 2, "wait": 0, "consumer": "two"}).raise_for_status()


@pytest.fixture
def page(shared_page: Page) -> Page:
    return shared_page


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ("/", 3),
        ("/settings/system/", 1),
        (f"/streams/?name={STREAM}", 1),
        (f"/groups/?group={GROUP}&sort=-status", 8),
        (f"{AT}/groups/", 8),
        (f"{AT}/groups/{GROUP}/", 4),
        (f"{AT}/history/", 1),
    ],
)
def test_what_has_the_focus_keeps_it_when_its_part_is_asked_for_again(
    page: Page, made: None, path: str, least: int
) -> None:
    page.goto(path)
    page.evaluate(SCRIPT)
    replaced = page.evaluate("replaced()")
    assert len(replaced) >= least
    assert [lost for each in replaced if (lost := page.evaluate("kept", each))] == []


def test_a_list_of_streams_says_how_many_groups_there_are_now_under_what_is_ticked_and_open(
    page: Page, made: None, running: Product
) -> None:
    page.goto(f"/streams/?name={STREAM}")
    page.evaluate(SCRIPT)
    groups = page.locator("#stream-table tbody td[data-label=Groups]")
    before = int(groups.inner_text())
    page.get_by_label(f"Select {STREAM}", exact=True).check()
    page.get_by_role("button", name=f"More actions for {STREAM}").click()
    with running.client() as api:
        api.post(f"{AT}/groups/", json={"name": "later"}).raise_for_status()
    page.evaluate("askAgain()")
    expect(groups).to_have_text(str(before + 1))
    expect(page.get_by_label(f"Select {STREAM}", exact=True)).to_be_checked()
    expect(page.get_by_role("link", name="Publish", exact=True)).to_be_visible()
