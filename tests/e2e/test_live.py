"""Numbers move by themselves, within a second and a half."""

import itertools
import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from dashboard.live.means import MEAN_S
from tests.e2e.conftest import OpenPage, publish
from tests.e2e.live import becomes, is_live, not_reloaded, soon, value
from tests.waiting import Stopwatch, until

pytestmark = [pytest.mark.e2e, pytest.mark.running]


def moves(page: Page, change: Callable[[], None], checks: list[tuple[str, str, str]]) -> None:
    """Every check holds within the promised time of one change, without a reload."""
    is_live(page)
    change()
    watch = Stopwatch()
    for topic, field, wanted in checks:
        becomes(page, topic, field, wanted, watch=watch)
    not_reloaded(page)


def test_the_stream_page_moves_with_a_publish(page: Page, api: httpx.Client, stream: str) -> None:
    page.goto(f"/streams/{stream}/")
    topic = f"stream:{stream}"
    moves(
        page,
        lambda: publish(api, stream, *range(1234)[:1000]),
        [(topic, "messages", "1,000"), (topic, "offset", "1,000"), (topic, "lag", "1,000")],
    )
    expect(page.get_by_text("New messages have arrived.")).to_be_visible()


def test_lag_falls_with_a_commit_and_duplicates_are_counted(
    page: Page, api: httpx.Client, stream: str
) -> None:
    publish(api, stream, 1, 2, 3)
    page.goto(f"/streams/{stream}/")
    topic = f"stream:{stream}"

    def change() -> None:
        api.post(f"/streams/{stream}/commit", json={"offset": 2}).raise_for_status()
        publish(api, stream, 1, 2)

    moves(page, change, [(topic, "lag", "1"), (topic, "committed", "2"), (topic, "duplicates", "2")])


def test_the_list_moves_with_a_publish(page: Page, api: httpx.Client, stream: str) -> None:
    page.goto(f"/streams/?name={stream}")
    topic = f"stream:{stream}"
    dot = page.locator(f'[data-live="{topic}"][data-format="health"]')
    expect(dot).to_have_attribute("data-state", "empty")
    moves(page, lambda: publish(api, stream, "a", "b"), [(topic, "messages", "2"), (topic, "bytes", "6 B")])
    expect(dot).to_have_attribute("data-state", "active")
    api.delete(f"/streams/{stream}").raise_for_status()
    expect(page.locator("tr", has_text=stream).get_by_text("deleted")).to_be_visible()


def test_the_overview_moves_with_a_publish(page: Page, api: httpx.Client, stream: str) -> None:
    is_live(page)
    before = int(value(page, "overview", "messages").replace(",", ""))
    moves(page, lambda: publish(api, stream, *range(7)), [("overview", "messages", f"{before + 7:,}")])


def test_what_happens_is_on_the_overview_at_once(page: Page, api: httpx.Client, stream: str) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "first"}).raise_for_status()
    page.goto("/")
    is_live(page)
    events = page.locator("section", has=page.get_by_role("heading", name="Newest events"))
    by_status = page.locator("section", has=page.get_by_role("heading", name="Groups", exact=True))
    groups = int(by_status.locator(".aside").inner_text().split()[0].replace(",", ""))
    api.post(f"/streams/{stream}/groups/", json={"name": "second"}).raise_for_status()
    watch = Stopwatch()
    told = events.get_by_text(f"Group second of {stream}")
    soon(told.is_visible, watch=watch, what="the event is among the newest")
    counted = by_status.get_by_text(f"{groups + 1} by status")
    soon(counted.is_visible, watch=watch, what="the groups are counted")
    not_reloaded(page)


def test_a_group_in_another_status_is_on_the_overview_at_once(
    page: Page, api: httpx.Client, stream: str
) -> None:
    at = f"/streams/{stream}/groups/billing"
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    page.goto("/")
    is_live(page)
    unknown = page.locator("#status-unknown")
    expect(unknown).to_be_visible()
    until(
        lambda: api.get(at).raise_for_status().json()["health"]["status"] != "unknown",
        within_s=120,
        what="the worker has judged the group",
    )
    watch = Stopwatch()
    soon(unknown.is_hidden, watch=watch, what="no group is unknown")
    not_reloaded(page)


def test_the_banner_of_the_demo_goes_with_it(log_in: OpenPage) -> None:
    page, other = log_in(), log_in()
    is_live(page)
    token = other.locator("[name=csrfmiddlewaretoken]").first.input_value()
    started = other.request.post("/demo/start/", form={"csrfmiddlewaretoken": token})
    assert started.ok
    other.goto("/")
    expect(page.get_by_role("button", name="Stop demo")).to_be_visible()
    other.get_by_role("button", name="Stop demo").click()
    expect(other.get_by_text("its stream stays")).to_be_visible()
    watch = Stopwatch()
    soon(page.get_by_role("button", name="Stop demo").is_hidden, watch=watch, what="its banner has gone")
    not_reloaded(page)


def test_the_page_of_events_says_how_many_came_since(page: Page, api: httpx.Client, stream: str) -> None:
    page.goto(f"/events/?stream={stream}")
    is_live(page)
    for name in ("first", "second"):
        api.post(f"/streams/{stream}/groups/", json={"name": name}).raise_for_status()
    watch = Stopwatch()
    soon(page.get_by_text("2 newer events.").is_visible, watch=watch, what="two are newer")
    page.get_by_role("link", name="Show", exact=True).click()
    expect(page.get_by_text("newer event")).to_be_hidden()
    expect(page.locator("tr", has_text="second").first).to_be_visible()


def test_a_rate_is_told_while_it_lasts_and_falls_back_to_nought(
    page: Page, api: httpx.Client, stream: str
) -> None:
    page.goto(f"/streams/{stream}/")
    is_live(page)
    topic, ids = f"stream:{stream}", itertools.count(step=10)

    def is_moving() -> bool:
        publish(api, stream, *range(10), start=next(ids))
        return value(page, topic, "rate_in") != "0/s"

    until(is_moving, within_s=4, what="a rate is shown")
    becomes(page, topic, "rate_in", "0/s", within_s=MEAN_S + 5)


def test_what_a_group_acknowledges_is_told_as_the_rate_out(
    page: Page, api: httpx.Client, stream: str
) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    page.goto(f"/streams/{stream}/")
    is_live(page)
    topic, ids = f"stream:{stream}", itertools.count(step=10)

    def is_moving() -> bool:
        publish(api, stream, *range(10), start=next(ids))
        taken = api.post(f"/streams/{stream}/groups/billing/fetch", json={"limit": 10, "wait": 0}).json()
        offsets = [each["offset"] for each in taken]
        api.post(f"/streams/{stream}/groups/billing/ack", json={"offsets": offsets}).raise_for_status()
        return value(page, topic, "rate_out") != "0/s"

    until(is_moving, within_s=6, what="a rate is shown")
    becomes(page, topic, "rate_out", "0/s", within_s=MEAN_S + 6)


def test_who_fetches_is_among_the_members_at_once(page: Page, api: httpx.Client, stream: str) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    publish(api, stream, *range(10))
    page.goto(f"/streams/{stream}/groups/billing/")
    is_live(page)
    members = page.locator("#members-table tbody tr")
    for consumer, out in (("one", 3), ("two", 2)):
        taken = {"limit": out, "wait": 0, "consumer": consumer}
        api.post(f"/streams/{stream}/groups/billing/fetch", json=taken).raise_for_status()
        row = members.filter(has_text=consumer)
        until(
            lambda row=row: row.count() == 1,  # type: ignore[misc]
            within_s=6,
            what="who has fetched is a member, long before all is asked for again",
        )
        expect(row.get_by_role("cell").nth(2)).to_have_text(str(out))


def test_a_stream_that_is_made_elsewhere_is_told_on_the_list(
    page: Page, api: httpx.Client, stream: str
) -> None:
    page.goto("/streams/")
    is_live(page)
    api.post("/streams/", json={"name": f"{stream}-2"}).raise_for_status()
    expect(page.get_by_text("Streams were created or deleted.")).to_be_visible(timeout=5_000)


def test_a_page_says_that_its_stream_was_deleted_and_follows_the_next_of_its_name(
    page: Page, api: httpx.Client, stream: str
) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    of_group = page.context.new_page()
    of_group.goto(f"/streams/{stream}/groups/billing/")
    is_live(of_group)
    page.goto(f"/streams/{stream}/tail/")
    is_live(page)
    publish(api, stream, 1, 2, 3)
    rows = page.locator("[data-rows] tr[data-offset]")
    expect(rows).to_have_count(3)
    api.delete(f"/streams/{stream}").raise_for_status()
    watch = Stopwatch()
    said = page.get_by_text("This stream was deleted, or you may no longer see it.")
    soon(said.is_visible, watch=watch, what="the page says so")
    word = page.locator("[data-live-word]", has_text="Deleted")
    soon(word.is_visible, watch=watch, what="its word, too")
    expect(of_group.get_by_text("This group was deleted, or you may no longer see it.")).to_be_visible()
    api.post("/streams/", json={"name": stream}).raise_for_status()
    publish(api, stream, "again")
    expect(rows).to_have_count(1)
    expect(page.get_by_text("Another one was created with the same name")).to_be_visible()
    becomes(page, f"stream:{stream}", "messages", "1")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    not_reloaded(page)


def test_one_pause_holds_every_number_still_and_says_for_how_long(
    page: Page, api: httpx.Client, stream: str
) -> None:
    page.goto(f"/streams/{stream}/publish/")
    is_live(page)
    page.keyboard.press("p")
    expect(page.locator("[data-live-word]")).to_have_text("Paused")
    publish(api, stream, {"n": 1}, {"n": 2})
    expect(page.locator("[data-live-age]")).to_have_text(re.compile(r"^\d+ s$"))
    assert value(page, f"stream:{stream}", "messages") == "0"
    page.get_by_role("button", name="Resume").click()
    becomes(page, f"stream:{stream}", "messages", "2")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    not_reloaded(page)
