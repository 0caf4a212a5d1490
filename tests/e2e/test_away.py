"""While something is away the page says so, and it comes back by itself."""

import os
import re
import signal

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenPage, Watched, publish
from tests.e2e.live import becomes, is_live, not_reloaded
from tests.product import Product
from tests.waiting import Stopwatch, until

pytestmark = [pytest.mark.e2e, pytest.mark.running]


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


def test_while_the_server_of_the_streams_in_memory_hangs_open_pages_say_what_fresh_ones_do(
    page: Page, api: httpx.Client, stream: str, unique: str, running: Product, watched: Watched
) -> None:
    watched.forgive("503")
    memo = f"{unique}-memo"
    api.post("/streams/", json={"name": memo, "storage": "memory"}).raise_for_status()
    api.post(f"/streams/{memo}/groups/", json={"name": "readers"}).raise_for_status()
    publish(api, memo, 1, 2)
    publish(api, stream, 1)
    listed, grouped = page.context.new_page(), page.context.new_page()
    for each, path in (page, "/"), (listed, f"/streams/?name={unique}"), (grouped, "/groups/?group=readers"):
        each.goto(path)
        is_live(each)
    becomes(listed, f"stream:{memo}", "messages", "2", within_s=5)
    concern = page.locator("#concerns", has_text="in memory has not responded since")
    process = page.locator("#processes li", has_text="valkey-memory")
    away = grouped.locator("tr", has_text="how it stands is not known")
    expect(process).to_contain_text("running")
    server = running.pid("valkey-memory")
    os.kill(server, signal.SIGSTOP)
    try:
        for field in ("messages", "bytes", "rate_in", "last_ms"):
            becomes(listed, f"stream:{memo}", field, "–", within_s=4)
        dot = listed.locator(f'[data-live="stream:{memo}"][data-format=health]')
        expect(dot).to_have_attribute("data-state", "unavailable")
        expect(away.filter(has_text="readers").first).to_be_visible()
        expect(concern).to_contain_text("All other streams work")
        expect(process).to_contain_text("not responding")
        expect(page.get_by_text("without 1 stream")).to_be_visible()
        row = listed.locator("tbody tr", has=listed.locator(f'[title="{memo}"]'))
        said = row.inner_text()
        of_memo = [f"/streams/{memo}/{tab}" for tab in ("", "publish/", "groups/", "settings/")]
        for path in ("/", "/streams/", "/groups/", f"/streams/{stream}/", "/settings/system/", *of_memo):
            watch = Stopwatch()
            assert page.context.request.get(running.url + path).status in (
                {200, 503} if path in of_memo else {200}
            )
            assert watch.elapsed_s < 3, path
        watch = Stopwatch()
        assert api.get("/streams/").is_success
        assert api.post(f"/streams/{memo}/messages", json=[{"id": "x", "body": 1}]).status_code == 503
        assert watch.elapsed_s < 3
        becomes(listed, f"stream:{stream}", "messages", "1")
        publish(api, stream, 2, start=2)
        becomes(listed, f"stream:{stream}", "messages", "2", within_s=3)
        for each in (page, listed, grouped):
            expect(each.locator("[data-live-word]")).to_have_text("Live")
            not_reloaded(each)
        listed.reload()
        assert row.inner_text() == said
    finally:
        os.kill(server, signal.SIGCONT)
    watch = Stopwatch()
    becomes(listed, f"stream:{memo}", "messages", "2", within_s=5, watch=watch)

    def is_published() -> bool:
        return api.post(f"/streams/{memo}/messages", json=[{"id": "m3", "body": 3}]).is_success

    until(is_published, within_s=3, what="the server takes messages again")
    becomes(listed, f"stream:{memo}", "messages", "3", within_s=5)
    expect(concern).to_have_count(0)
    expect(process).to_contain_text("running")
    expect(away).to_have_count(0)


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
