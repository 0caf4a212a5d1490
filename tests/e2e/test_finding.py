"""A message is found again by what somebody knows of it: its time, in whatever way they type it, or its id."""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, expect

from dashboard.zones import CHOICE_COOKIE
from streams import moments
from tests.e2e.conftest import OpenPage, publish
from tests.product import Product
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

BEFORE = 60
"""Messages that came before the one that is sought, and as many after it."""

APART_S, AGO_S = 8, 4
"""By so much it came later than those; and an age that is so much too high lies between, also when asked late."""

TOKYO = ZoneInfo("Asia/Tokyo")
WAYS: dict[str, Callable[[datetime], str]] = {
    "an age": lambda at: f"{int(time.time() - at.timestamp()) + AGO_S} s ago",
    "to the second, in the person's zone": lambda at: f"{at.astimezone(TOKYO):%Y-%m-%d %H:%M:%S}",
    "as the page says it": lambda at: f"{at.astimezone(TOKYO):%Y-%m-%d %H:%M:%S.%f}"[:-3],
    "with a zone of its own": lambda at: at.isoformat(timespec="milliseconds"),
    "unix milliseconds": lambda at: str(moments.unix_ms(at)),
}


@dataclass(frozen=True)
class Sought:
    """A message in the middle of a stream."""

    stream: str
    offset: int
    at: datetime


@pytest.fixture(scope="module")
def sought(running: Product) -> Sought:
    stream, offset = f"t{secrets.token_hex(6)}", BEFORE + 1
    with running.client() as api:

        def came(number: int) -> datetime:
            told = api.get(f"/streams/{stream}/messages/{number}").raise_for_status().json()
            at = moments.parse(told["timestamp"])
            assert at is not None
            return at

        api.post("/streams/", json={"name": stream}).raise_for_status()
        publish(api, stream, *range(BEFORE))
        before = came(BEFORE).timestamp()
        until(lambda: time.time() - before >= APART_S, what="some seconds pass")
        publish(api, stream, {"n": 9007199254740993}, start=offset)
        at = came(offset)
        until(lambda: time.time() * 1000 >= moments.unix_ms(at) + 2, what="another millisecond")
        publish(api, stream, *range(BEFORE), start=offset + 1)
    return Sought(stream, offset, at)


def found(page: Page, sought: Sought, *, start: str, text: str) -> Locator:
    """The rows after somebody typed this on the page of the newest messages."""
    page.goto(f"/streams/{sought.stream}/")
    rows = page.locator("[data-rows] tbody tr")
    expect(rows.first).to_have_attribute("data-offset", str(2 * BEFORE + 1))
    page.get_by_label("Start", exact=True).select_option(start)
    page.get_by_label("Offset, time or id").fill(text)
    page.get_by_role("button", name="Show").click()
    return rows


def find_by_time_and_by_id(page: Page, sought: Sought) -> None:
    here, after = str(sought.offset), str(sought.offset + 1)
    for start in ("From time", "Newest first"):
        for way, typed in WAYS.items():
            rows = found(page, sought, start=start, text=typed(sought.at))
            expect(rows.first, f"{start}, {way}").to_have_attribute("data-offset", here)
            expect(rows).to_have_count(50)
            expect(page.get_by_label("Start", exact=True)).to_have_value("time")
    rows = found(page, sought, start="From time", text=str(moments.unix_ms(sought.at) + 1))
    expect(rows.first, "a millisecond later").to_have_attribute("data-offset", after)
    for start in ("From id", "Newest first"):
        rows = found(page, sought, start=start, text=f"m{here}")
        expect(rows.first).to_have_attribute("data-offset", here)
        expect(rows.first).to_contain_text("9007199254740993")
        expect(rows).to_have_count(50)
        expect(page).to_have_url(re.compile(rf"[?&]at=m{here}(&|$)"))
        expect(page.get_by_label("Start", exact=True)).to_have_value("id")


def test_a_message_is_found_by_time_and_by_id(log_in: OpenPage, sought: Sought) -> None:
    find_by_time_and_by_id(log_in(timezone_id=TOKYO.key), sought)


def test_a_message_is_found_without_scripts(log_in: OpenPage, sought: Sought, running: Product) -> None:
    page = log_in(java_script_enabled=False)
    page.context.add_cookies([{"name": CHOICE_COOKIE, "value": TOKYO.key, "url": running.url}])
    find_by_time_and_by_id(page, sought)


def test_the_time_of_a_message_is_typed_as_it_is_read(log_in: OpenPage, sought: Sought) -> None:
    page = log_in(timezone_id=TOKYO.key)
    page.goto(f"/streams/{sought.stream}/?start=offset&at={sought.offset}")
    in_the_list = page.locator("[data-rows] tbody tr .exact").first.inner_text()
    page.goto(f"/streams/{sought.stream}/messages/{sought.offset}/")
    published = page.locator("dt", has_text="Published").locator("xpath=following-sibling::dd[1]")
    on_its_page = published.inner_text().splitlines()[0]
    assert on_its_page == f"{in_the_list} +09:00"
    for read in (in_the_list, on_its_page):
        rows = found(page, sought, start="From time", text=read)
        expect(rows.first).to_have_attribute("data-offset", str(sought.offset))
