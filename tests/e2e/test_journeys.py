"""What a person does, from the login to the deletion, with and without scripts, with keys, on a phone."""

from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Page, Request, expect

from tests.e2e.conftest import OpenPage, Watched, publish
from tests.product import Product

pytestmark = [pytest.mark.e2e, pytest.mark.running]

PHONE = {"width": 390, "height": 844}


def test_a_login_is_required_and_leads_back(anonymous: OpenPage, running: object) -> None:
    page = anonymous()
    page.goto("/streams/?name=a")
    expect(page).to_have_url("/login/?next=/streams/%3Fname%3Da")


def make_publish_and_delete(page: Page, name: str) -> None:
    page.goto("/streams/_new/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Max age").fill("7 d")
    page.get_by_role("button", name="Create stream").click()
    expect(page.get_by_text(f"Stream {name} was created.")).to_be_visible()
    page.get_by_role("link", name="Publish", exact=True).click()
    page.get_by_label("Body (JSON)").fill('{"id": 9007199254740993}')
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("Stored at offset 1.")).to_be_visible()
    page.get_by_role("link", name="Show it").click()
    expect(page.locator(".tree .json-number")).to_have_text("9007199254740993")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Delete stream…").click()
    expect(page.get_by_role("link", name="Cancel").and_(page.locator(":focus"))).to_be_visible()
    deleting = page.locator("form").filter(has=page.get_by_role("button", name="Delete stream"))
    deleting.get_by_label(f"Type {name} to confirm").fill(name)
    deleting.get_by_role("button", name="Delete stream").click()
    expect(page.get_by_text(f"Stream {name} was deleted")).to_be_visible()


def test_a_stream_is_made_published_into_and_deleted(page: Page, unique: str) -> None:
    make_publish_and_delete(page, unique)


def test_every_action_works_without_scripts(log_in: OpenPage, unique: str) -> None:
    make_publish_and_delete(log_in(java_script_enabled=False), unique)


def test_a_row_opens_and_closes_in_place(page: Page, api: httpx.Client, stream: str) -> None:
    publish(api, stream, {"n": 9007199254740993, "text": "é"}, 2)
    page.goto(f"/streams/{stream}/?start=oldest")
    opener = page.get_by_role("link", name="1", exact=True)
    opener.click()
    expect(page.locator(".tree .json-number")).to_have_text("9007199254740993")
    expect(opener).to_have_attribute("aria-expanded", "true")
    opener.click()
    expect(page.locator(".detail")).to_have_count(0)
    expect(page).to_have_url(f"/streams/{stream}/?start=oldest")


def test_searching_changes_the_table_and_the_address(page: Page, stream: str) -> None:
    page.goto("/streams/")
    page.keyboard.press("/")
    page.keyboard.type(stream)
    expect(page.locator("#stream-table tbody tr")).to_have_count(1)
    expect(page).to_have_url(f"/streams/?name={stream}")
    page.keyboard.type("-no-such")
    expect(page.get_by_text("No stream matches")).to_be_visible()
    page.reload()
    expect(page.get_by_text("No stream matches")).to_be_visible()


def test_keys_lead_through_the_console(page: Page) -> None:
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("/streams/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()


def test_the_first_key_on_a_young_page_is_the_first(page: Page) -> None:
    page.clock.install(time=0)
    page.clock.pause_at(1)
    page.goto("/settings/system/")
    assert page.evaluate("new Event('now').timeStamp") < 1000
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.keyboard.press("g")
    page.keyboard.press("e")
    page.wait_for_url("/events/")
    assert not [url for url in asked if "/groups/" in url], "g is no second g"


def test_the_palette_goes_to_a_stream_by_keys_alone(page: Page, stream: str) -> None:
    page.goto("/settings/system/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type(stream)
    expect(page.get_by_role("option", name=stream)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    page.wait_for_url(f"/streams/{stream}/")


def test_a_sheet_shows_the_keys(page: Page) -> None:
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_contain_text("next row, previous row, open row")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.wait_for_url("/groups/?sort=-status")


def test_times_follow_the_browser_s_zone_and_the_choice(log_in: OpenPage, stream: str) -> None:
    page = log_in(timezone_id="Asia/Kathmandu")
    page.goto(f"/streams/{stream}/settings/")
    expect(page.get_by_role("row", name="Created")).to_contain_text("+05:45")
    page.goto("/profile/")
    page.get_by_role("button", name="UTC").click()
    page.goto(f"/streams/{stream}/settings/")
    expect(page.get_by_role("row", name="Created")).to_contain_text("UTC")


def choose_workspace(page: Page, name: str) -> None:
    page.goto("/")
    choice = page.get_by_label("Workspace", exact=True)
    if choice.input_value() != name:
        choice.select_option(name)
        page.get_by_role("button", name="Switch", exact=True).click()
    expect(page.get_by_label("Workspace", exact=True).locator("option[selected]")).to_have_text(name)


def test_a_newcomer_changes_their_password_looks_elsewhere_and_is_out_when_deactivated(
    page: Page, api: httpx.Client, anonymous: OpenPage, unique: str
) -> None:
    page.goto("/settings/people/")
    page.get_by_label("Name").fill(unique)
    page.get_by_role("button", name="Add", exact=True).click()
    secret = page.locator("[data-copy-source]").first.inner_text()
    theirs = anonymous()
    theirs.goto("/login/")
    theirs.get_by_label("Username").fill(unique)
    theirs.get_by_label("Password").fill(secret)
    theirs.get_by_role("button", name="Log in").click()
    theirs.get_by_label("New password", exact=True).fill("a-long-new-word")
    theirs.get_by_label("New password confirmation").fill("a-long-new-word")
    theirs.get_by_role("button", name="Change password").click()
    expect(theirs.locator("[data-live-word]")).to_have_text("Live")

    room = f"of-{unique}"
    api.post("/workspaces/", json={"name": room}).raise_for_status()
    api.post("/users/", json={"name": unique, "role": "viewer", "workspace": room}).raise_for_status()
    tab = theirs.context.new_page()
    tab.goto("/streams/")
    expect(tab.locator("[data-live-word]")).to_have_text("Live")
    events = theirs.context.new_page()  # a page of what does not move, without that word
    events.goto("/events/")
    choose_workspace(theirs, room)
    told = tab.get_by_role("dialog", name="You have switched to another workspace")
    expect(told).to_contain_text("This page is from the workspace default.")
    expect(tab.locator("[data-live-word]")).to_have_text("Workspace changed")
    expect(events.get_by_role("dialog", name="You have switched to another workspace")).to_be_visible()
    told.get_by_role("button", name="Stay here").click()
    choose_workspace(theirs, "default")
    expect(tab.locator("[data-live-word]")).to_have_text("Live")
    expect(told).to_be_hidden()
    expect(events.get_by_role("dialog")).to_have_count(0)
    events.close()
    tab.close()
    api.delete(f"/workspaces/{room}").raise_for_status()

    page.goto("/settings/people/")
    row = page.get_by_role("row", name=unique)
    row.locator("summary").click()
    row.get_by_role("button", name="Deactivate").click()
    expect(theirs.locator("[data-live-word]")).to_have_text("Logged out")


def test_a_token_is_shown_once_copied_and_revoked(log_in: OpenPage, running: object, unique: str) -> None:
    page = log_in(permissions=["clipboard-read", "clipboard-write"])
    page.goto("/settings/tokens/")
    page.get_by_label("Name").fill(unique)
    page.get_by_role("button", name="Create token").click()
    shown = page.get_by_role("status").filter(has_text="was created")
    secret = shown.locator("[data-copy-source]").inner_text()
    shown.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    page.goto("/settings/tokens/")
    assert secret not in page.content()
    row = page.get_by_role("row", name=unique)
    row.get_by_text("Revoke", exact=True).click()
    row.get_by_role("button", name=f"Revoke {unique} now").click()
    expect(page.get_by_text(f"Token {unique} was revoked")).to_be_visible()


def test_logging_out_in_one_tab_ends_the_live_numbers_of_the_others(page: Page) -> None:
    other = page.context.new_page()
    other.goto("/streams/")
    expect(other.locator("[data-live-word]")).to_have_text("Live")
    page.get_by_role("button", name="Log out").click()
    expect(other.locator("[data-live-word]")).to_have_text("Logged out")
    other.get_by_role("link", name="Log in").click()
    expect(other).to_have_url("/login/?next=/streams/")


def test_the_colours_are_chosen_and_kept(page: Page) -> None:
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/streams/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 23)"
    page.get_by_role("button", name="System").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(245, 246, 248)"


def pages_of(stream: str) -> list[str]:
    return [
        "/",
        "/streams/",
        "/streams/_new/",
        f"/streams/{stream}/",
        f"/streams/{stream}/?match=.key&start=oldest",
        f"/streams/{stream}/messages/1/",
        f"/streams/{stream}/messages/1/delete/",
        f"/streams/{stream}/tail/",
        f"/streams/_bulk/?do=delete&stream={stream}",
        f"/streams/{stream}/publish/",
        f"/streams/{stream}/history/",
        f"/streams/{stream}/settings/",
        "/settings/tokens/",
        "/settings/people/",
        "/settings/workspaces/",
        "/settings/workspaces/default/",
        "/settings/configuration/",
        "/settings/system/",
        "/events/",
        f"/streams/{stream}/activity/",
        "/profile/",
        "/search/?q=a",
    ]


def test_events_have_few_lines_on_a_phone_and_their_filters_a_fold(
    page: Page, api: httpx.Client, stream: str
) -> None:
    for text in ("one", "two", "three"):
        api.patch(f"/streams/{stream}", json={"description": text}).raise_for_status()
    page.goto(f"/streams/{stream}/activity/")
    asked = page.get_by_label("Actor", exact=True)
    expect(asked).to_be_visible()
    expect(page.locator("summary", has_text="Filter events")).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(asked).to_be_hidden()
    rows = page.locator("[id^=event-]")
    heights = [(row.bounding_box() or {"height": 999})["height"] for row in rows.all()]
    assert len(heights) >= 4
    assert max(heights) <= 160
    page.locator("summary", has_text="Filter events").click()
    expect(asked).to_be_visible()
    page.goto(f"/streams/{stream}/activity/?kind=stream.")
    expect(asked).to_be_visible()


@pytest.mark.parametrize(
    ("look", "language"),
    [
        ({"viewport": PHONE}, "en"),
        ({"viewport": PHONE, "color_scheme": "dark"}, "en"),
        ({"viewport": PHONE}, "de"),
    ],
    ids=["phone", "dark", "german"],
)
def test_no_page_is_wider_than_a_phone(
    log_in: OpenPage, api: httpx.Client, stream: str, look: dict[str, object], language: str
) -> None:
    publish(api, stream, {"key": "x" * 500})
    page = log_in(**look)
    page.context.add_cookies([{"name": "okmq_language", "value": language, "url": page.url}])
    for address in pages_of(stream):
        page.goto(address)
        assert page.locator("html").get_attribute("lang") == language
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], address


@pytest.mark.parametrize("path", ["/", "/streams/?size=100"])
def test_a_first_load_is_under_150_kilobytes(
    anonymous: OpenPage, running: Product, api: httpx.Client, unique: str, path: str
) -> None:
    api.post("/streams/", json=[{"name": f"{unique}-{number}"} for number in range(100)]).raise_for_status()
    page = anonymous()
    # On a slow machine a list may be asked for again before all is there.
    loaded: dict[str, int] = {}

    def note(request: Request) -> None:
        loaded.setdefault(request.url, request.sizes()["responseBodySize"])

    page.on("requestfinished", note)
    page.goto(f"/login/?next={quote(path)}")
    page.get_by_label("Username").fill("admin")
    page.get_by_label("Password").fill(running.password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(path)
    page.wait_for_load_state("networkidle")
    assert 0 < sum(loaded.values()) < 150 * 1024


def test_a_stream_that_is_not_there_says_so(page: Page, watched: Watched) -> None:
    watched.forgive("404")
    page.goto("/streams/no-such-stream/")
    expect(page.get_by_role("heading", name="Not found.")).to_be_visible()


@pytest.mark.parametrize("path", ["messages/1/", "groups/billing/dead-letters/1/"])
def test_the_id_and_the_key_of_a_message_are_copied(
    log_in: OpenPage, api: httpx.Client, stream: str, path: str
) -> None:
    sent = {"id": "order-1", "key": "orders.eu.7", "body": 1}
    api.post(f"/streams/{stream}/messages", json=sent).raise_for_status()
    group = f"/streams/{stream}/groups/billing"
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    api.post(f"{group}/fetch", json={"limit": 1, "wait": 0, "consumer": "one"}).raise_for_status()
    api.post(f"{group}/term", json={"offsets": [1], "reason": "no price"}).raise_for_status()
    page = log_in(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"/streams/{stream}/{path}")
    for what, copied in (("id", "order-1"), ("key", "orders.eu.7")):
        page.get_by_title(f"Copy the {what}").click()
        expect(page.get_by_text("Copied").first).to_be_attached()
        assert page.evaluate("navigator.clipboard.readText()") == copied
        expect(page.get_by_text("Copied")).to_have_count(0)
