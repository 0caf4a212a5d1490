"""Pages that stay open while messages come: what their memory does, minute by minute."""

import time
from threading import Event, Thread
from typing import Any

from playwright.sync_api import CDPSession, Page, StorageState, sync_playwright

from bench.measure import Figure
from bench.product import Product

CHROMIUM = "/usr/bin/chromium"
STREAMS = 50
EVERY_S = 0.5
WARM_S = 60.0
"""Until charts and the ring of the tail have begun to turn over, and the engine has compiled what is hot."""
GROWN = 1.1
TAILED = 50
"""Messages a turn of the stream whose tail is open: its ring of rows is full within the first minute."""


def live_pages(ours: Product, *, minutes: float) -> list[Figure]:
    """Four pages on which all moves: their memory after so many minutes by that after the first."""
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
            first = {name: _held(tool) for name, tool in tools.items()}
            _wait(pages["overview"], minutes * 60)
            last = {name: _held(tool) for name, tool in tools.items()}
            states = {
                page.locator("[data-live-status]").get_attribute("data-state") for page in pages.values()
            }
            browser.close()
    finally:
        ended.set()
        traffic.join()
    assert states == {"live"}, f"A page was not live at the end: {states}"
    return [figure for name in looked for figure in _figures(name, first[name], last[name], minutes=minutes)]


def _figures(page: str, first: tuple[int, int], last: tuple[int, int], *, minutes: float) -> list[Figure]:
    what = f"{page}, {minutes:g} minutes live"
    return [
        Figure(name=f"{what}: memory of its scripts", reached=last[0] / 1024, unit="KiB"),
        Figure(
            name=f"{what}: by that after the first minute",
            reached=last[0] / first[0],
            unit="",
            at_most=GROWN,
        ),
        Figure(
            name=f"{what}: nodes, by those after the first minute",
            reached=last[1] / first[1],
            unit="",
            at_most=GROWN,
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
