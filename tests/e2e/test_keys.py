"""The keys: rows and the filter field of each list, the sheet that says what a page has, and the palette's words."""

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.e2e, pytest.mark.running]

ROWS = re.compile("next row")
SEARCH = re.compile("search on this page")
PAUSE = re.compile("pause live updates")


def is_in_row(page: Page, number: int) -> None:
    """What is focused is in the list's row of this number."""
    row = page.locator("main tbody tr").filter(has=page.locator("[data-row]")).nth(number)
    expect(row.locator("[data-row]")).to_be_focused()


@pytest.mark.parametrize("path", ["/events/", "/streams/{stream}/activity/"])
@pytest.mark.parametrize("width", [1280, 390])
def test_events_are_filtered_and_opened_by_keys(
    page: Page, api: httpx.Client, stream: str, path: str, width: int
) -> None:
    for ttl in (600, 700):
        assert api.patch(f"/streams/{stream}", json={"ttl": ttl}).status_code == 200
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path.format(stream=stream))
    page.keyboard.press("/")
    expect(page.get_by_label("Actor")).to_be_focused()
    page.goto(path.format(stream=stream))
    page.keyboard.press("j")
    is_in_row(page, 0)
    page.keyboard.press("j")
    is_in_row(page, 1)
    page.keyboard.press("k")
    is_in_row(page, 0)
    page.keyboard.press("Enter")
    expect(page.locator("tr[id^=event-]").first.get_by_role("table", name="Before and after")).to_be_visible()


def test_an_event_that_changed_no_field_has_an_address(page: Page, api: httpx.Client, stream: str) -> None:
    page.goto(f"/events/?stream={stream}&kind=stream.created")
    page.keyboard.press("j")
    is_in_row(page, 0)


def test_the_keys_go_on_after_a_box_was_ticked(page: Page, api: httpx.Client, stream: str) -> None:
    for n in range(2):
        assert api.post("/streams/", json={"name": f"{stream}-{n}"}).status_code == 201
    page.goto(f"/streams/?name={stream}")
    box = page.get_by_role("checkbox", name=f"Select {stream}-0", exact=True)
    box.focus()
    page.keyboard.press("Space")
    expect(box).to_be_checked()
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_be_visible()
    page.keyboard.press("?")
    expect(sheet).to_be_hidden()
    box.focus()
    page.keyboard.press("j")
    is_in_row(page, 2)
    expect(box).to_be_checked()


@pytest.fixture
def rule(api: httpx.Client, stream: str) -> str:
    """A rule that watches the stream, without anything that fires."""
    sent = {"name": stream, "stream": stream, "watch": "lag", "limit": 1000}
    assert api.post("/alerts/rules/", json=sent).status_code == 201
    return stream


def test_rules_are_opened_by_keys(page: Page, rule: str) -> None:
    page.goto("/alerts/")
    link = page.get_by_role("link", name=rule, exact=True)
    expect(link).to_have_attribute("data-row", "")
    page.keyboard.press("j")
    expect(page.locator("[data-row]").first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/(alerts/.+|streams/.+)/$"))


@pytest.mark.parametrize("path", ["/settings/tokens/", "/settings/people/"])
def test_tokens_and_people_have_their_actions_opened_by_keys(page: Page, path: str) -> None:
    page.goto(path)
    page.keyboard.press("j")
    is_in_row(page, 0)
    page.keyboard.press("Enter")
    expect(page.locator("details[open] .btn-danger").first).to_be_visible()


def test_workspaces_are_opened_by_keys(page: Page) -> None:
    page.goto("/settings/workspaces/")
    page.keyboard.press("j")
    is_in_row(page, 0)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/settings/workspaces/.+/$"))


@pytest.mark.parametrize(
    ("path", "has_search", "has_rows", "has_pause"),
    [
        ("/events/", True, True, True),
        ("/streams/", True, True, True),
        ("/settings/tokens/", False, True, False),
        ("/settings/system/", False, False, True),
        ("/streams/_new/", False, False, False),
    ],
)
def test_the_sheet_says_the_keys_that_the_page_has(
    page: Page, stream: str, path: str, has_search: bool, has_rows: bool, has_pause: bool
) -> None:
    page.goto(path)
    page.get_by_title("Keyboard shortcuts").click()
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet.get_by_text("this help")).to_be_visible()
    for words, is_there in (SEARCH, has_search), (ROWS, has_rows), (PAUSE, has_pause):
        expect(sheet.get_by_text(words)).to_be_visible(visible=is_there)


def test_the_palette_leads_to_a_page_by_a_name_and_its_words(
    page: Page, api: httpx.Client, stream: str
) -> None:
    group = {"name": "billing"}
    assert api.post(f"/streams/{stream}/groups/", json=group).status_code == 201
    for words, path in (
        (f"retention {stream}", f"/streams/{stream}/retention/"),
        ("letters of all", "/groups/?sort=-dead"),
    ):
        page.keyboard.press("Control+k")
        expect(page.locator("#palette-input")).to_be_focused()
        page.keyboard.type(words)
        option = page.locator("#palette-list [role=option]")
        expect(option).to_have_count(1)
        expect(option).to_have_attribute("aria-selected", "true")
        page.keyboard.press("Enter")
        page.wait_for_url(path)


def test_enter_waits_for_what_the_palette_finds(page: Page, stream: str) -> None:
    """Nobody waits for a list before they press it."""
    page.keyboard.press("Control+k")
    expect(page.locator("#palette-list [role=option]").first).to_be_visible()
    page.keyboard.type(f"{stream} retention")
    page.keyboard.press("Enter")
    page.wait_for_url(f"/streams/{stream}/retention/")


def test_escape_closes_the_palette_at_once(page: Page, stream: str) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type(stream)
    page.keyboard.press("Escape")
    expect(page.locator("[data-palette]")).to_be_hidden()
