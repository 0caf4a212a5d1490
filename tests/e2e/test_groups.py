"""What a person does with a consumer group, with and without scripts."""

import re

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import OpenPage, publish

pytestmark = [pytest.mark.e2e, pytest.mark.running]

UNKNOWN = re.compile("Not enough samples yet to tell|too short to tell")


def lag(page: Page) -> Locator:
    """Of the group that the page shows, or the only one that it lists."""
    return page.locator('[data-live^="group:"][data-field="lag"]')


def make_seek_and_replay(page: Page, api: httpx.Client, stream: str) -> None:
    publish(api, stream, *range(1, 11))
    page.goto(f"/streams/{stream}/")
    page.get_by_role("navigation", name="Stream").get_by_role("link", name="Groups").click()
    expect(page.get_by_text("No groups yet")).to_be_visible()
    page.get_by_label("Name").fill("billing")
    page.get_by_role("button", name="Create group").click()
    expect(page.get_by_text(UNKNOWN)).to_be_visible()
    expect(lag(page)).to_have_text("10")
    group = f"/streams/{stream}/groups/billing"
    (first,) = api.post(f"{group}/fetch", json={"limit": 1, "wait": 0}).raise_for_status().json()
    api.post(f"{group}/term", json={"offsets": [first["offset"]], "reason": "<b>bad</b>"}).raise_for_status()

    page.goto(f"{group}/")
    page.locator("#seek").get_by_label("Seek to").select_option("offset")
    page.get_by_label("Offset or time").fill("8")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("6 messages are skipped.")).to_be_visible()
    expect(page.get_by_text("Next offset: from 2 to 8.")).to_be_visible()
    page.get_by_role("button", name="Go to offset 8").click()
    expect(page.get_by_text("The next offset is 8; it was 2. 6 were skipped.")).to_be_visible()
    expect(lag(page)).to_have_text("3")

    page.get_by_role("navigation", name="Group").get_by_role("link", name="Dead letters 1").click()
    letters = page.locator("#dead-letters")
    expect(letters.get_by_role("cell", name="<b>bad</b>")).to_be_visible()
    letters.get_by_role("button", name="Replay 1").click()
    expect(page.get_by_text("1 dead letter is redelivered.")).to_be_visible()
    again = api.post(f"{group}/fetch", json={"limit": 1, "wait": 0}).raise_for_status().json()
    assert [message["offset"] for message in again] == [1]


def test_a_group_is_made_sought_and_its_dead_letter_replayed(
    page: Page, api: httpx.Client, stream: str
) -> None:
    make_seek_and_replay(page, api, stream)


def test_previews_of_what_is_done_to_many_have_addresses(page: Page, api: httpx.Client, stream: str) -> None:
    publish(api, stream, *range(1, 6))
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    group = f"/streams/{stream}/groups/billing"
    out = (
        api.post(f"{group}/fetch", json={"limit": 5, "wait": 0, "consumer": "c-1"}).raise_for_status().json()
    )
    offsets = [message["offset"] for message in out[:3]]
    api.post(f"{group}/term", json={"offsets": offsets, "reason": "bad"}).raise_for_status()

    listed = f"{group}/dead-letters/?reason=bad&order=newest"
    page.goto(listed)
    letters = page.locator("#dead-letters")
    letters.get_by_role("link", name="3", exact=True).click()
    expect(page).to_have_url(f"{listed}&open=3")
    page.reload()
    expect(letters.get_by_role("link", name="Link to this dead letter")).to_be_visible()
    letters.get_by_label("Select 2").check()
    letters.get_by_role("button", name="Continue…").click()
    expect(page.get_by_text("1 dead letter, of offset 2.")).to_be_visible()
    page.reload()
    page.get_by_role("link", name="Cancel").click()
    expect(page).to_have_url(f"{listed}&open=3")
    page.go_back()
    page.get_by_role("button", name="Replay 1").click()
    expect(page.get_by_text("1 dead letter is redelivered.")).to_be_visible()
    expect(page).to_have_url(f"{listed}&open=3")
    page.go_back()
    expect(page.get_by_text("No dead letter matches any more.")).to_be_visible()

    desk = f"{group}/pending/?consumer=c-1"
    page.goto(desk)
    page.get_by_label("Select 4").check()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("1 message in flight, at offset 4.")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(desk)
    page.go_forward()
    page.reload()
    page.get_by_role("button", name="Nack 1").click()
    expect(page.get_by_text("Nacked: 1.")).to_be_visible()
    expect(page).to_have_url(desk)


def test_all_dead_letters_of_a_page_are_chosen_by_one_box(page: Page, api: httpx.Client, stream: str) -> None:
    publish(api, stream, 1, 2, 3)
    group = f"/streams/{stream}/groups/billing"
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    api.post(f"{group}/fetch", json={"limit": 3, "wait": 0}).raise_for_status()
    api.post(f"{group}/term", json={"offsets": [1, 2, 3], "reason": "bad"}).raise_for_status()
    page.goto(f"{group}/dead-letters/")
    letters = page.locator("#dead-letters")
    letters.get_by_label("Select all on this page").check()
    letters.get_by_role("button", name="Continue…").click()
    page.get_by_role("button", name="Replay 3").click()
    expect(page.get_by_text("3 dead letters are redelivered.")).to_be_visible()


def test_the_same_without_scripts(log_in: OpenPage, api: httpx.Client, stream: str) -> None:
    make_seek_and_replay(log_in(java_script_enabled=False), api, stream)


def test_the_numbers_of_a_group_move_while_one_looks(page: Page, api: httpx.Client, stream: str) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    page.goto(f"/streams/{stream}/groups/")
    publish(api, stream, *range(1, 8))
    expect(page.get_by_role("row", name="billing").locator('[data-label="Lag"]')).to_have_text("7")


def test_the_reason_of_a_group_that_is_not_well_is_a_line_under_its_row(
    page: Page, api: httpx.Client, stream: str
) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    page.goto(f"/streams/{stream}/groups/")
    why, table = page.locator(".why"), page.locator(".group-rows")
    why.evaluate(
        "it => { it.textContent = 'No consumers: nobody has fetched for 2 min; 3,035 messages waiting.' }"
    )
    assert why.evaluate("it => it.scrollWidth <= it.clientWidth && it.clientHeight < 24"), "one line, not cut"
    inside = "it => it.scrollWidth <= it.parentElement.clientWidth"
    assert table.evaluate(inside), "no column is pushed out of sight"


def test_on_a_phone_a_groups_figures_are_whole_and_its_reason_is_read_in_the_list(
    log_in: OpenPage, api: httpx.Client, stream: str
) -> None:
    # Waiting for nobody it has a reason as long as it is looked at; others have groups on this product, too.
    group = f"of-{stream}"
    api.post(f"/streams/{stream}/groups/", json={"name": group}).raise_for_status()
    publish(api, stream, 1, 2)
    page = log_in(viewport={"width": 390, "height": 844}, has_touch=True)
    for address in (f"/streams/{stream}/groups/", "/groups/"):
        page.goto(f"{address}?group={group}")
        expect(page.locator(".why")).to_have_text(re.compile(f"{UNKNOWN.pattern}|No consumers"))
    page.goto(f"/streams/{stream}/groups/{group}/")
    page.keyboard.press("p")
    figures = page.locator("dl.figures:not(.of-stream)")
    figures.locator('[data-field="lag_seconds"]').evaluate("it => { it.textContent = '59 min 59 s' }")
    cut = "all => all.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.textContent)"
    assert figures.locator("dd").evaluate_all(cut) == []
    for told in ("acks", "lost unread", "of max", "ack floor", "redelivered"):
        expect(figures.get_by_text(told)).to_be_visible()
    for field in ("messages", "bytes", "rate_in", "last_ms"):
        expect(page.locator(f'dl.line [data-field="{field}"]')).to_be_visible()
    page.goto(f"/streams/{stream}/")
    for field in ("bytes", "first_ms", "last_ms", "bytes_in", "duplicates"):
        expect(page.locator(f'dl.of-stream [data-field="{field}"]')).to_be_visible()


def test_on_a_phone_groups_are_sorted_by_a_menu(log_in: OpenPage, api: httpx.Client, stream: str) -> None:
    for name in ("a", "b"):
        api.post(f"/streams/{stream}/groups/", json={"name": f"{name}-{stream}"}).raise_for_status()
    page = log_in(viewport={"width": 390, "height": 844}, has_touch=True)
    for address in (f"/groups/?group={stream}", f"/streams/{stream}/groups/"):
        page.goto(address)
        expect(page.locator("[data-row]").first).to_have_text(f"a-{stream}")
        page.get_by_label("Sort by").select_option("Name ↓")
        expect(page.locator("[data-row]").first).to_have_text(f"b-{stream}")
        expect(page).to_have_url(re.compile(r"sort=-name"))
        page.get_by_label("Sort by").select_option("Dead letters ↓")
        expect(page.get_by_label("Sort by")).to_have_value("-dead")
        expect(page).to_have_url(re.compile(r"sort=-dead"))
        page.go_back()
        expect(page.locator("[data-row]").first).to_have_text(f"b-{stream}")
        expect(page.get_by_label("Sort by")).to_have_value("-name")
        page.go_forward()
        expect(page).to_have_url(re.compile(r"sort=-dead"))
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.get_by_role("columnheader", name="Dead letters")).to_have_attribute("aria-sort", "descending")
    expect(page.get_by_label("Sort by")).to_be_hidden()


def test_a_lag_shows_live_with_its_reason_and_what_is_out_is_given_back_and_ended_by_hand(
    page: Page, api: httpx.Client, stream: str
) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    page.goto(f"/streams/{stream}/groups/billing/")
    publish(api, stream, *range(1, 6))
    expect(page.get_by_text(UNKNOWN)).to_be_visible()
    expect(lag(page)).to_have_text("5", timeout=10_000)
    group = f"/streams/{stream}/groups/billing"
    api.post(f"{group}/fetch", json={"limit": 2, "wait": 0, "consumer": "one"}).raise_for_status()
    expect(lag(page)).to_have_text("3", timeout=10_000)

    page.get_by_role("link", name="In flight").click()
    newer = page.get_by_text("This list has changed.")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    expect(newer).to_be_hidden()
    api.post(f"{group}/fetch", json={"limit": 1, "wait": 0}).raise_for_status()
    expect(newer).to_be_visible(timeout=10_000)
    api.post(f"{group}/ack", json={"offsets": [3]}).raise_for_status()
    page.get_by_role("link", name="Refresh").click()
    expect(newer).to_be_hidden()
    expect(page.get_by_label(re.compile("^Select [0-9]"))).to_have_count(2)
    page.get_by_label("Select 2").check()
    page.get_by_label("Action", exact=True).select_option("term")
    page.get_by_label("Reason").fill("no such customer")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("1 message in flight, at offset 2.")).to_be_visible()
    page.get_by_role("button", name="Terminate 1").click()
    expect(page.get_by_text("Terminated, now dead letters: 1.")).to_be_visible()
    page.get_by_label("Apply to", exact=True).select_option("all")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Nack 1").click()
    again = api.post(f"{group}/fetch", json={"limit": 1, "wait": 0}).raise_for_status().json()
    assert [(message["offset"], message["deliveries"]) for message in again] == [(1, 2)]
    expect(page.get_by_text("Nacked: 1.")).to_be_visible()
    page.get_by_role("navigation", name="Group").get_by_role("link", name="Dead letters").click()
    expect(page.locator("#dead-letters").get_by_role("cell", name="no such customer")).to_be_visible()
