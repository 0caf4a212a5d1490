"""Pages that stay open while messages come: what their memory does, minute by minute."""

import shutil
import time
from threading import Event, Thread
from typing import Any

from playwright.sync_api import CDPSession, Page, StorageState, sync_playwright

from bench.measure import Figure
from bench.product import Product

CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
STREAMS = 50
EVERY_S = 0.5
WARM_S = 60.0
"""Until charts and the ring of the tail have begun to turn over, and the engine has compiled what is hot."""
GROWN = 1.05
LOOKS = 10
TAILED = 50
"""Messages a turn of the stream whose tail is open: its ring of rows is full within the first minute."""


def live_pages(ours: Product, *, minutes: float) -> list[Figure]:
    """Four pages on which all moves: what they hold after so many minutes by what they held at half time."""
    streams = [name for name, _ in ours.streams(STREAMS)]
    ours.ask("POST", f"/streams/{streams[0]}/groups/", {"name": "billing"})
    ended = Event()
    traffic = Thread(target=_publish, args=(ours, streams, ended), daemon=True)
    traffic.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
            )
            base_url = f"http://127.0.0.1:{ours.port}"
            with browser.new_context(base_url=base_url) as door:
                cookies = _logged_in(door.new_page(), ours.password)
            looked = {
                "overview": "/",
                "list of streams": "/streams/",
                "tail": f"/streams/{streams[0]}/tail/",
                "group": f"/streams/{streams[0]}/groups/billing/",
            }
            # Each in a context of its own, so that each has a process of its own to measure.
            pages = {
                name: browser.new_context(base_url=base_url, storage_state=cookies).new_page()
                for name in looked
            }
            for name, page in pages.items():
                page.goto(looked[name])
                page.wait_for_selector("[data-live-status][data-state=live]")
            tools = {name: page.context.new_cdp_session(page) for name, page in pages.items()}
            _wait(pages["overview"], WARM_S)
            courses: dict[str, list[tuple[int, int]]] = {name: [] for name in tools}
            for _ in range(LOOKS):
                for name, tool in tools.items():
                    courses[name].append(_held(tool))
                _wait(pages["overview"], minutes * 60 / LOOKS)
            for name, tool in tools.items():
                courses[name].append(_held(tool))
            states = {
                page.locator("[data-live-status]").get_attribute("data-state") for page in pages.values()
            }
            browser.close()
    finally:
        ended.set()
        traffic.join()
    assert states == {"live"}, f"A page was not live at the end: {states}"
    return [figure for name in looked for figure in _figures(name, courses[name], minutes=minutes)]


def _figures(page: str, course: list[tuple[int, int]], *, minutes: float) -> list[Figure]:
    """``course`` begins after the first minute; what an engine learns and a chart shows come in its first half."""
    what = f"{page}, {minutes:g} minutes live"
    (first, _), (half, half_nodes), (last, nodes) = course[0], course[LOOKS // 2], course[-1]
    return [
        Figure(name=f"{what}: memory of its scripts after the first", reached=first / 1024, unit="KiB"),
        Figure(name=f"{what}: at the end", reached=last / 1024, unit="KiB"),
        Figure(name=f"{what}: by that at half time", reached=last / half, unit="", at_most=GROWN),
        Figure(
            name=f"{what}: nodes by those at half time", reached=nodes / half_nodes, unit="", at_most=GROWN
        ),
    ]


def _held(tool: CDPSession) -> tuple[int, int]:
    """Bytes and nodes that a page holds once what nobody holds is gone."""
    for _ in range(3):  # what one round lets go of may have held something else
        tool.send("HeapProfiler.collectGarbage")
    used: dict[str, Any] = tool.send("Runtime.getHeapUsage")
    counted: dict[str, Any] = tool.send("Memory.getDOMCounters")
    return int(used["usedSize"]), int(counted["nodes"])


def _logged_in(page: Page, password: str) -> StorageState:
    """What a browser keeps of somebody who has logged in."""
    page.goto("/login/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_selector("[data-live-status]")
    return page.context.storage_state()


def _wait(page: Page, seconds: float) -> None:
    """Let the browser go on for so long; Playwright's own loop must turn meanwhile."""
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        page.wait_for_timeout(min(left_s, 5.0) * 1000)


def _publish(ours: Product, streams: list[str], ended: Event) -> None:
    """A few messages into every stream, again and again, in one call each."""
    number = 0
    while not ended.wait(EVERY_S):
        for at, name in enumerate(streams):
            bodies = range(TAILED if at == 0 else 1)
            ours.ask(
                "POST",
                f"/streams/{name}/messages",
                [{"id": f"{number}-{each}", "body": {"n": number, "text": "a line"}} for each in bodies],
            )
        number += 1
