"""What of a stream is read before anybody scrolls: its messages, and how they were looked for."""

import re

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import OpenPage, publish

pytestmark = [pytest.mark.e2e, pytest.mark.running]

PHONE = {"width": 390, "height": 844}
ROWS = "[data-rows] tbody tr[data-offset]"
LONG = "Orders of all shops, as the checkout of each of them sends them once they are paid for in full, or refunded."


@pytest.fixture
def orders(api: httpx.Client, stream: str) -> str:
    """A stream with limits, a long description, a group, and messages enough for more than a page."""
    changes = {"description": LONG, "ttl": 604_800, "max_bytes": 10 * 2**30, "labels": {"env": "production"}}
    api.patch(f"/streams/{stream}", json=changes).raise_for_status()
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    publish(api, stream, *({"n": n, "status": "refused" if n % 2 else "paid"} for n in range(1, 401)))
    return stream


def top(place: Locator) -> float:
    box = place.bounding_box()
    assert box is not None
    return box["y"]


def bottom(place: Locator) -> float:
    box = place.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


def saved(page: Page) -> float:
    """How high the row of filters is that other tests have saved for the workspace; 0 without any."""
    row = page.locator(".kept-filters:has(.chip)")
    return bottom(row) - top(row) + 16 if row.count() else 0.0


def whole_rows(page: Page) -> int:
    return sum(bottom(row) <= 800 for row in page.locator(ROWS).all()[:20])


def test_ten_messages_are_on_the_first_screen(page: Page, orders: str) -> None:
    page.goto(f"/streams/{orders}/")
    assert top(page.locator(ROWS).first) < 430 + saved(page)
    assert whole_rows(page) >= 10


def test_ten_matches_are_on_the_first_screen_with_what_was_scanned_above_them(
    page: Page, orders: str
) -> None:
    page.goto(f"/streams/{orders}/?match=refused")
    assert top(page.locator(ROWS).first) < 430 + saved(page)
    assert whole_rows(page) >= 10
    status, head = page.locator("[data-search-status]"), page.locator("[data-rows] thead")
    expect(status).to_contain_text("50 match")
    assert bottom(status) <= top(head) + 1
    assert top(head) - top(status) < 50
    page.locator(ROWS).last.scroll_into_view_if_needed()
    expect(page.get_by_role("link", name="Continue")).to_be_in_viewport()
    page.get_by_role("link", name="Continue").click()
    expect(page.locator(ROWS)).to_have_count(100)


def test_what_arrives_moves_no_row(page: Page, api: httpx.Client, orders: str) -> None:
    page.goto(f"/streams/{orders}/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    before = top(page.locator(ROWS).first)
    publish(api, orders, "one more", start=1000)
    expect(page.get_by_text("New messages have arrived.")).to_be_visible()
    assert top(page.locator(ROWS).first) == before


def test_on_a_phone_the_first_message_is_on_the_first_screen(log_in: OpenPage, orders: str) -> None:
    page = log_in(viewport=PHONE, has_touch=True)
    page.goto(f"/streams/{orders}/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    assert top(page.locator(ROWS).first) < 720 + saved(page)
    expect(page.get_by_label("Body", exact=True)).to_be_hidden()
    page.locator("summary").filter(has_text="Search messages").click()
    page.get_by_label("Body", exact=True).fill("paid")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_label("Body", exact=True)).to_have_value("paid")
    expect(page.get_by_label("Body", exact=True)).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_more_filters_unfold_and_are_open_when_one_is_set(
    log_in: OpenPage, orders: str, scripts: bool
) -> None:
    page = log_in(java_script_enabled=scripts)
    page.goto(f"/streams/{orders}/?key=orders.*")
    for name in ("Until (time)", "Header", "Columns", "Decode"):
        expect(page.get_by_label(name)).to_be_hidden()
    page.locator("summary").filter(has_text="More filters").click()
    page.get_by_label("Columns").fill(".n")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile("cols=.n"))
    expect(page.get_by_label("Columns")).to_be_visible()
    expect(page.get_by_label("Header")).to_be_visible()


def test_other_tabs_have_a_line_of_figures_and_the_description_whole_where_it_is_pointed_at(
    page: Page, orders: str
) -> None:
    page.goto(f"/streams/{orders}/publish/")
    line = page.locator("dl.line")
    assert bottom(line) - top(line) < 30
    expect(line).to_contain_text(
        re.compile(r"Messages\s*400\s*Size.*In.*Last write.*Retention.*used", re.DOTALL)
    )
    told = page.get_by_title(LONG)
    assert bottom(told) - top(told) < 30
    assert top(page.get_by_role("navigation", name="Stream")) < 110


def test_a_commit_lag_is_shown_once_something_was_committed(
    page: Page, api: httpx.Client, orders: str
) -> None:
    page.goto(f"/streams/{orders}/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    expect(page.get_by_text("Commit lag")).to_be_hidden()
    api.post(f"/streams/{orders}/commit", json={"offset": 150}).raise_for_status()
    expect(page.get_by_text("Commit lag")).to_be_visible()
    expect(page.locator("dl.of-stream [data-field=lag]")).to_have_text("250")
    page.reload()
    expect(page.get_by_text("Commit lag")).to_be_visible()


def test_a_row_whose_message_went_meanwhile_says_so_in_its_place(
    page: Page, api: httpx.Client, orders: str
) -> None:
    page.goto(f"/streams/{orders}/?start=oldest")
    api.delete(f"/streams/{orders}/messages", params={"offset": 11}).raise_for_status()
    opener = page.locator("[data-open]").first
    opener.click()
    note = page.locator("tr.detail-row").get_by_role("status")
    expect(note).to_have_text(
        "Message 1 was removed by retention or a purge. The stream holds offsets 11 to 400."
    )
    expect(page.locator(ROWS)).to_have_count(50)
    opener.click()
    expect(note).to_have_count(0)


@pytest.fixture
def listed(api: httpx.Client, unique: str) -> str:
    """The beginning of the names of three streams."""
    labels = {"env": "production", "team": "shop", "region": "eu", "tier": "gold"}
    for name in ("a", "b.floor-3.temperature-raw", "c"):
        api.post("/streams/", json={"name": f"{unique}.{name}", "labels": labels}).raise_for_status()
    return unique


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 800}, PHONE], ids=["desk", "phone"])
def test_ticking_streams_moves_no_row_and_says_how_many(
    log_in: OpenPage, listed: str, viewport: dict[str, int]
) -> None:
    page = log_in(viewport=viewport)
    page.goto(f"/streams/?name={listed}")
    rows, boxes = page.locator("#stream-table tbody tr"), page.get_by_label(re.compile(f"^Select {listed}"))
    places = "all => all.map((row) => row.getBoundingClientRect().top + scrollY)"
    before = rows.evaluate_all(places)
    boxes.first.check()
    told = page.locator("[data-picked]")
    expect(told).to_have_text("1 selected")
    expect(told).to_be_in_viewport()
    boxes.nth(1).check()
    expect(told).to_have_text("2 selected")
    assert rows.evaluate_all(places) == before
    if viewport != PHONE:
        page.get_by_label("Select all on this page").check()
        expect(told).to_have_text("3 selected")
        page.get_by_label("Select all on this page").uncheck()
    else:
        boxes.first.uncheck()
        boxes.nth(1).uncheck()
    expect(page.get_by_role("button", name="Purge…")).to_be_hidden()


def test_rows_of_streams_are_low_and_none_is_pushed_out(page: Page, listed: str) -> None:
    page.goto(f"/streams/?name={listed}")
    heights = [bottom(row) - top(row) for row in page.locator("#stream-table tbody tr").all()]
    assert len(heights) == 3
    assert max(heights) <= 80
    expect(page.get_by_role("link", name="+3").first).to_be_visible()
    assert page.locator("#stream-table .scroll").evaluate("it => it.scrollWidth <= it.clientWidth")


def test_on_a_phone_a_list_is_sorted_by_a_menu_and_the_zone_is_in_the_main_menu(
    log_in: OpenPage, listed: str
) -> None:
    page = log_in(viewport=PHONE, has_touch=True, timezone_id="Asia/Tokyo")
    page.goto(f"/streams/?name={listed}")
    page.get_by_label("Sort by").select_option("Name ↓")
    expect(page).to_have_url(re.compile(r"sort=-name"))
    expect(page.locator("[data-row]").first).to_have_text(f"{listed}.c")
    zone = page.get_by_role("navigation", name="Main").get_by_role("link", name="Asia/Tokyo")
    zone.click()
    expect(page).to_have_url("/profile/")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/streams/")
    expect(page.get_by_label("Sort by")).to_be_hidden()
