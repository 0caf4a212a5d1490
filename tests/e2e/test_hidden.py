"""A page that nobody sees costs nothing, no socket and no request, and is fresh at once when it is seen again.

Playwright keeps every page of a browser that it starts for itself in sight. These are pages of one that it joins as it
is: each has a window, which Chromium minimizes and puts back. Beside them a page in sight tells how time goes on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, BrowserType, CDPSession, Page, expect

from tests.e2e.conftest import ARGUMENTS, CHROMIUM, Watched, fill_in_login, publish
from tests.e2e.live import becomes, is_live, not_reloaded, soon, value
from tests.product import Product, free_port
from tests.waiting import Stopwatch, until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

GAP_S = 5
"""Without a sample for so long a chart of the overview has a gap."""

BEATS = 17
"""A page that is seen hears one each second, and asks again for what has no socket every fifteenth."""

Figure = tuple[str, str]
"""A topic of the socket, and a field of it that a page shows."""


@dataclass
class Traffic:
    """What Chromium sends and gets for a page: open sockets, what came through them, and every other request."""

    sockets: int = 0
    heard: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, page: Page) -> "Traffic":
        """From now on, with the sockets that are opened from now on."""
        traffic, chromium = cls(), page.context.new_cdp_session(page)
        chromium.on("Network.webSocketCreated", lambda _: traffic.count(1))
        chromium.on("Network.webSocketClosed", lambda _: traffic.count(-1))
        chromium.on("Network.webSocketFrameReceived", lambda told: traffic.heard.append(frame(told)))
        chromium.on("Network.webSocketFrameSent", lambda told: traffic.said.append(frame(told)))
        chromium.on("Network.requestWillBeSent", lambda told: traffic.requests.append(told["request"]["url"]))
        chromium.send("Network.enable")
        return traffic

    def count(self, sockets: int) -> None:
        self.sockets += sockets

    def forget(self) -> None:
        """What has been so far; the sockets that are open stay."""
        self.heard, self.said, self.requests = [], [], []

    @property
    def beats(self) -> int:
        return sum("overview_sampled" in each for each in self.heard)

    @property
    def all(self) -> list[str]:
        return [*self.heard, *self.said, *self.requests, *["a socket"] * self.sockets]


def frame(told: dict[str, Any]) -> str:
    return str(told["response"]["payloadData"])


@dataclass
class Windows:
    """A browser as somebody has it: pages in windows of their own, logged in as the administrator."""

    context: BrowserContext
    chromium: CDPSession
    watched: Watched | None = None

    def open(self) -> Page:
        with self.context.expect_page() as opened:
            self.chromium.send("Target.createTarget", {"url": "about:blank", "newWindow": True})
        if self.watched:
            self.watched.watch(opened.value)
        return opened.value

    def hide(self, page: Page) -> None:
        self._turn(page, "minimized")
        until(lambda: page.evaluate("document.hidden"), what="Chromium tells the page that nobody sees it")

    def show(self, page: Page) -> None:
        self._turn(page, "normal")

    def _turn(self, page: Page, state: str) -> None:
        of_page = self.context.new_cdp_session(page)
        window = of_page.send("Browser.getWindowForTarget")["windowId"]
        of_page.send("Browser.setWindowBounds", {"windowId": window, "bounds": {"windowState": state}})
        of_page.detach()


@pytest.fixture(scope="module")
def joined(chromium: BrowserType, running: Product) -> Iterator[Windows]:
    port = free_port()
    started = chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, f"--remote-debugging-port={port}"])
    joined = chromium.connect_over_cdp(f"http://127.0.0.1:{port}", no_defaults=True)
    windows = Windows(joined.contexts[0], joined.new_browser_cdp_session())
    page = windows.open()
    page.goto(f"{running.url}/login/")
    fill_in_login(page, "admin", running.password)
    page.wait_for_url(f"{running.url}/")
    page.close()
    yield windows
    joined.close()
    started.close()


@pytest.fixture
def windows(joined: Windows, watched: Watched) -> Iterator[Windows]:
    """Its pages of this test; what they do that they should not fails it."""
    joined.watched = watched
    before = set(joined.context.pages)
    yield joined
    for page in set(joined.context.pages) - before:
        page.close()


def rests(page: Page, traffic: Traffic) -> None:
    """Until the page has taken note that nobody sees it; what it costs from then on is what counts."""

    def has_no_socket() -> bool:
        page.evaluate("0")  # or Playwright takes no events
        return traffic.sockets == 0

    until(has_no_socket, what="its socket is closed")
    expect(page.locator("[data-live-word]")).to_have_text("Paused")
    traffic.forget()


def pass_time(seen: Page, clock: Traffic, *, beats: int) -> None:
    """Until a page that is seen has heard so many beats."""

    def beat() -> bool:
        seen.evaluate("0")
        return clock.beats >= beats

    until(beat, within_s=3.0 * beats, what=f"{beats} beats")


def test_a_page_that_is_hidden_costs_nothing_and_is_fresh_when_it_is_seen_again(
    windows: Windows, page: Page, running: Product, api: httpx.Client, stream: str
) -> None:
    api.post(f"/streams/{stream}/groups/", json={"name": "billing"}).raise_for_status()
    group = f"/streams/{stream}/groups/billing"
    figures: dict[str, Figure] = {
        "/": ("overview", "messages"),
        f"/streams/?name={stream}": (f"stream:{stream}", "messages"),
        f"/streams/{stream}/tail/": (f"stream:{stream}", "messages"),
        f"{group}/": (f"stream:{stream}", "messages"),
    }
    hidden: dict[str, tuple[Page, Traffic, int]] = {}
    for path, figure in figures.items():
        opened = windows.open()
        traffic = Traffic.of(opened)
        opened.goto(running.url + path)
        is_live(opened)
        assert traffic.sockets == 1
        hidden[path] = (opened, traffic, int(value(opened, *figure).replace(",", "")))
    clock = Traffic.of(page)
    page.goto(f"{group}/")
    for opened, traffic, _ in hidden.values():
        windows.hide(opened)
        rests(opened, traffic)
    clock.forget()
    publish(api, stream, 1, 2, 3)
    api.post(f"{group}/fetch", json={"limit": 1, "wait": 0, "consumer": "newcomer"}).raise_for_status()
    pass_time(page, clock, beats=BEATS)
    assert clock.requests, "one that is seen has asked for what has no socket"
    for path, (opened, traffic, _) in hidden.items():
        opened.evaluate("0")
        assert traffic.all == [], path
    for number, (path, (opened, _, before)) in enumerate(hidden.items(), start=4):
        publish(api, stream, number, start=number)
        watch = Stopwatch()
        windows.show(opened)
        becomes(opened, *figures[path], f"{before + number:,}", watch=watch)
        word = opened.locator("[data-live-word]", has_text="Live")
        soon(word.is_visible, watch=watch, what=f"{path} is live")
        if path.endswith("/tail/"):
            newest = opened.locator(f"[data-rows] tbody tr[data-offset='{number}']")
            soon(newest.is_visible, watch=watch, what="its newest row is there")
            expect(opened.locator("[data-rows] tbody tr[data-offset]")).to_have_count(number)
        if path.startswith(group):
            member = opened.locator("#members-table").get_by_text("newcomer")
            soon(member.is_visible, watch=watch, what="what has no socket was asked for")
        not_reloaded(opened)


def test_its_charts_have_what_came_meanwhile(
    windows: Windows, page: Page, running: Product, stream: str
) -> None:
    opened = windows.open()
    traffic = Traffic.of(opened)
    opened.goto(f"{running.url}/")
    is_live(opened)
    expect(opened.locator(".chart canvas")).to_have_count(2)
    clock = Traffic.of(page)
    page.goto("/")
    windows.hide(opened)
    rests(opened, traffic)
    pass_time(page, clock, beats=GAP_S + 3)
    windows.show(opened)

    def asks() -> bool:
        opened.evaluate("0")
        return f"{running.url}/" in traffic.requests

    until(asks, what="the charts ask for what they have not")
    assert traffic.requests.count(f"{running.url}/") == 1, "once for both"
    not_reloaded(opened)


def test_a_page_that_is_opened_where_nobody_sees_it_begins_when_it_is_seen(
    windows: Windows, page: Page, running: Product, api: httpx.Client, stream: str
) -> None:
    opened = windows.open()
    traffic = Traffic.of(opened)
    windows.hide(opened)
    opened.goto(f"{running.url}/streams/{stream}/")
    assert traffic.requests, "it was loaded"
    traffic.forget()
    clock = Traffic.of(page)
    page.goto(f"/streams/{stream}/")
    publish(api, stream, 1, 2, 3)
    pass_time(page, clock, beats=3)
    opened.evaluate("0")
    assert traffic.all == []
    watch = Stopwatch()
    windows.show(opened)
    becomes(opened, f"stream:{stream}", "messages", "3", watch=watch)
    is_live(opened)


def test_a_page_that_polls_asks_for_nothing_while_it_is_hidden(
    windows: Windows, page: Page, running: Product, stream: str, watched: Watched
) -> None:
    watched.forgive("WebSocket")
    opened = windows.open()
    opened.route_web_socket("**/live/", lambda socket: socket.close())
    traffic = Traffic.of(opened)
    opened.goto(f"{running.url}/streams/{stream}/")
    expect(opened.locator("[data-live-word]")).to_have_text("Live, polling")
    windows.hide(opened)
    rests(opened, traffic)
    clock = Traffic.of(page)
    page.goto(f"/streams/{stream}/")
    pass_time(page, clock, beats=6)
    opened.evaluate("0")
    assert traffic.requests == []
    windows.show(opened)
    expect(opened.locator("[data-live-word]")).to_have_text("Live, polling")
    assert traffic.requests
