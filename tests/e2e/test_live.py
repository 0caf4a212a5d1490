"""Numbers move by themselves, within two seconds, and come back by themselves."""

import itertools
import os
import re
import signal
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from dashboard.live.means import MEAN_S
from tests.e2e.conftest import OpenPage, Watched, publish
from tests.product import Product
from tests.waiting import Stopwatch, until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

# The promise is two seconds from the answer of the publish to the painted number.
PROMISED_S = 2.0
AT_ONCE_S = 1.5


def is_live(page: Page) -> None:
    expect(page.locator("[data-live-word]")).to_have_text("Live", timeout=10_000)
    page.evaluate("window.notReloaded = true")


def value(page: Page, topic: str, field: str) -> str:
    return page.locator(
        f'[data-live="{topic}"][data-field="{field}"]:not([data-format=differs])'
    ).first.inner_text()


def becomes(
    page: Page,
    topic: str,
    field: str,
    wanted: str,
    *,
    within_s: float = PROMISED_S,
    watch: Stopwatch | None = None,
) -> None:
    """A number is shown in time, since now or since the watch was started."""
    watch = watch or Stopwatch()
    shown = f'[data-live="{topic}"][data-field="{field}"]:not([data-format=differs])'
    expect(page.locator(shown).first).to_have_text(wanted)
    assert watch.elapsed_s <= within_s


def not_reloaded(page: Page) -> None:
    assert page.evaluate("window.notReloaded") is True


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
    expect(events.get_by_text(f"Group second of {stream}")).to_be_visible()
    expect(by_status).to_contain_text(f"{groups + 1} by status")
    assert watch.elapsed_s <= AT_ONCE_S
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
    expect(unknown).to_be_hidden()
    assert watch.elapsed_s <= AT_ONCE_S
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
    expect(page.get_by_role("button", name="Stop demo")).to_be_hidden()
    assert watch.elapsed_s <= AT_ONCE_S
    not_reloaded(page)


def test_the_page_of_events_says_how_many_came_since(page: Page, api: httpx.Client, stream: str) -> None:
    page.goto(f"/events/?stream={stream}")
    is_live(page)
    for name in ("first", "second"):
        api.post(f"/streams/{stream}/groups/", json={"name": name}).raise_for_status()
    watch = Stopwatch()
    expect(page.get_by_text("2 newer events.")).to_be_visible()
    assert watch.elapsed_s <= AT_ONCE_S
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
    expect(page.get_by_text("This stream was deleted.")).to_be_visible()
    expect(page.locator("[data-live-word]")).to_have_text("Deleted")
    assert watch.elapsed_s <= PROMISED_S
    expect(of_group.get_by_text("This group was deleted.")).to_be_visible()
    api.post("/streams/", json={"name": stream}).raise_for_status()
    publish(api, stream, "again")
    expect(rows).to_have_count(1)
    expect(page.get_by_text("Another one was created with the same name")).to_be_visible()
    becomes(page, f"stream:{stream}", "messages", "1")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    not_reloaded(page)


def test_the_page_recovers_by_itself_from_a_web_process_that_died(
    page: Page, api: httpx.Client, stream: str, running: Product, watched: Watched
) -> None:
    for provoked in ("WebSocket", "ERR_CONNECTION", "Failed to load resource", "/live/now/"):
        watched.forgive(provoked)
    page.goto(f"/streams/{stream}/")
    is_live(page)
    os.kill(running.pid("web"), signal.SIGKILL)
    word = page.locator("[data-live-word]")
    expect(word).to_have_text("Reconnecting", timeout=5_000)
    # Of the newest numbers, not of the line that is tried again meanwhile.
    expect(page.locator("[data-live-status]")).to_have_text(re.compile(r"Reconnecting\s+[0-9]+ s"))
    expect(word).to_have_text("Live", timeout=30_000)
    publish(api, stream, 1, 2, 3)
    becomes(page, f"stream:{stream}", "messages", "3", within_s=5)
    not_reloaded(page)


def test_the_page_recovers_by_itself_from_a_store_that_died(
    page: Page, api: httpx.Client, stream: str, running: Product, watched: Watched
) -> None:
    for provoked in ("WebSocket", "ERR_CONNECTION", "Failed to load resource", "/live/now/"):
        watched.forgive(provoked)
    page.goto(f"/streams/{stream}/")
    is_live(page)
    os.kill(running.pid("valkey"), signal.SIGKILL)

    def is_published() -> bool:
        return api.post(f"/streams/{stream}/messages", json=[{"id": "a", "body": 1}]).is_success

    until(is_published, within_s=30, what="the store takes messages again")
    becomes(page, f"stream:{stream}", "messages", "1", within_s=20)
    expect(page.locator("[data-live-word]")).to_have_text("Live", timeout=10_000)
    not_reloaded(page)


def test_a_store_that_is_away_for_a_moment_takes_no_list_away(
    page: Page, api: httpx.Client, stream: str, running: Product, watched: Watched
) -> None:
    watched.forgive("503")
    publish(api, stream, *range(20))
    page.goto(f"/streams/{stream}/")
    is_live(page)
    store = running.pid("valkey")
    os.kill(store, signal.SIGSTOP)
    try:
        page.locator("a[data-open]").first.click()
        note = page.locator("[data-unanswered]")
        expect(note).to_contain_text(re.compile("did not respond.*[0-9a-f]{8}"), timeout=20_000)
    finally:
        os.kill(store, signal.SIGCONT)
    expect(page.locator("a[data-open]")).to_have_count(20)
    page.locator("a[data-open]").first.click()
    expect(page.locator(".detail")).to_be_visible()
    expect(note).to_be_hidden()
    not_reloaded(page)


def test_a_tail_that_is_refused_does_not_say_live(
    page: Page, api: httpx.Client, stream: str, watched: Watched
) -> None:
    watched.forgive("401")
    page.goto(f"/streams/{stream}/tail/")
    word = page.locator("[data-tail-word]")
    expect(word).to_have_text("Waiting for messages")
    page.context.clear_cookies(name="sessionid")  # its socket stays
    publish(api, stream, {"n": 1})
    expect(word).to_have_text("Stale")
    expect(page.get_by_text("The server did not respond.")).to_be_visible()


def test_a_part_that_nobody_answers_is_said_and_the_effect_of_other_limits_is_not_saved(
    page: Page, api: httpx.Client, stream: str, watched: Watched
) -> None:
    for provoked in ("ERR_INTERNET_DISCONNECTED", "htmx:"):
        watched.forgive(provoked)
    publish(api, stream, *range(20))
    word = page.get_by_text("The server did not respond. This page shows earlier data")
    page.goto(f"/streams/{stream}/")
    page.context.set_offline(True)
    page.locator("a[data-open]").first.click()
    expect(word).to_be_visible()
    page.context.set_offline(False)
    page.locator("a[data-open]").first.click()
    expect(page.locator(".detail")).to_be_visible()
    expect(word).to_be_hidden()
    page.goto(f"/streams/{stream}/retention/")
    page.get_by_label("Max messages", exact=True).fill("15")
    expect(page.get_by_role("button", name="Save and remove 5 messages")).to_be_visible()
    page.context.set_offline(True)
    page.get_by_label("Max messages", exact=True).fill("8")
    expect(word).to_be_visible()
    expect(page.locator("#effect")).to_have_js_property("inert", True)
    page.context.set_offline(False)
    expect(page.get_by_role("button", name="Save and remove 12 messages")).to_be_visible()
    expect(page.locator("#effect")).to_have_js_property("inert", False)
    expect(word).to_be_hidden()


def test_a_restarted_worker_is_told_on_the_overview(page: Page, running: Product) -> None:
    is_live(page)
    os.kill(running.pid("worker"), signal.SIGKILL)
    row = page.locator("#processes li", has_text="worker")
    expect(row).to_contain_text("restarted", timeout=20_000)
    not_reloaded(page)


def test_while_the_worker_hangs_nothing_passes_for_fresh(
    page: Page, api: httpx.Client, stream: str, running: Product
) -> None:
    tailing, tailed = page.context.new_page(), page.context.new_page()
    for each in (tailing, tailed):
        each.goto(f"/streams/{stream}/tail/")
        is_live(each)
        expect(each.locator("[data-tail-word]")).to_have_text("Waiting for messages")
    is_live(page)
    # What nobody counted is a gap only behind what somebody did.
    until(lambda: api.get(f"/streams/{stream}/metrics").json()["points"], what="the stream has a sample")
    worker = running.pid("worker")
    os.kill(worker, signal.SIGSTOP)
    try:
        ready = f"{running.url}/readyz"
        until(lambda: "has not sampled for" in httpx.get(ready).json()["checks"]["worker"], within_s=20)
        assert httpx.get(ready).json()["status"] == "degraded"
        tailed.reload()  # one that was opened before it hung, and one since
        for each in (tailing, tailed):
            expect(each.locator("[data-tail-word]")).to_have_text("Stale")
            expect(each.locator("[data-tail] .dot")).to_have_attribute("data-state", "empty")
        publish(api, stream, 1, 2, 3)
        fresh = page.context.new_page()
        for path in (f"/streams/{stream}/", "/streams/", "/"):
            fresh.goto(path)
            expect(fresh.locator("[data-live-word]")).to_have_text("Stale")
            expect(fresh.locator(".figures [data-field=rate_in]").first).to_have_text("–")
            assert int(fresh.locator("[data-live-age]").inner_text().split()[0]) > 5
        expect(fresh.get_by_text("The worker has not sampled for").first).to_be_visible()
        expect(fresh.locator("#processes li", has_text="worker")).to_contain_text("has not sampled for")
        expect(page.locator("[data-live-word]")).to_have_text("Stale")
    finally:
        os.kill(worker, signal.SIGCONT)
    for each in (page, fresh):
        expect(each.locator("[data-live-word]")).to_have_text("Live")
    expect(tailing.locator("[data-tail-word]")).to_have_text("Live")  # the three have come
    until(lambda: httpx.get(ready).json()["status"] == "ok", within_s=20)
    points = api.get(f"/streams/{stream}/metrics").json()["points"]
    assert None in {point["in"] for point in points}, "nobody counted while it hung"


def test_a_browser_without_a_socket_polls(
    log_in: OpenPage, api: httpx.Client, stream: str, watched: Watched
) -> None:
    watched.forgive("WebSocket")
    page = log_in()
    page.route_web_socket("**/live/", lambda socket: socket.close())
    page.goto(f"/streams/{stream}/")
    expect(page.locator("[data-live-word]")).to_have_text("Live, polling", timeout=20_000)
    publish(api, stream, 1, 2)
    becomes(page, f"stream:{stream}", "messages", "2", within_s=5)


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
