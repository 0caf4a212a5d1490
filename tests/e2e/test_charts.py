"""Charts of what has been: a drag over one chooses the range of the page, and what was done stands on it."""

import json
import re
import subprocess
import sys

import pytest
from playwright.sync_api import Page, expect

from okmq import env
from tests.product import Product
from tests.waiting import LONG_ENOUGH_S, until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

COUNTED = """
import django
django.setup()
from datetime import timedelta
from django.utils import timezone
from streams.models import Rollup, Stream
stream = Stream.objects.get(name={stream!r})
now = timezone.now().replace(second=0, microsecond=0)
for minutes, messages in ((50, 7), (10, 120)):
    start = now - timedelta(minutes=minutes)
    Rollup.objects.create(stream_id=stream.stream_id, step="minute", start=start, messages=messages, bytes=2048)
"""


@pytest.fixture
def counted(running: Product, stream: str) -> str:
    """A stream of which the history counted 7 messages 50 minutes ago and 120 ten minutes ago."""
    environ = {**running.environ, "DJANGO_SETTINGS_MODULE": "okmq.settings"}
    code = COUNTED.format(stream=stream)
    subprocess.run([sys.executable, "-c", code], cwd=env.PROJECT, env=environ, check=True)
    return stream


def drag_over(page: Page, begin: float, end: float) -> None:
    """Drag over the first chart, from one fraction of its width to another."""
    box = page.locator(".chart .u-over").first.bounding_box()
    assert box is not None
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * begin, height)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (begin + end) / 2, height)
    page.mouse.move(box["x"] + box["width"] * end - 1, height)
    page.mouse.up()


def test_a_drag_over_a_chart_chooses_the_range(page: Page, counted: str) -> None:
    page.goto(f"/streams/{counted}/history/?range=1h")
    expect(page.get_by_text("127 in this range")).to_be_visible()
    drag_over(page, 0.5, 1.0)
    expect(page).to_have_url(re.compile(r"\?since=.*&until="))
    expect(page.get_by_text("120 in this range")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("127 in this range")).to_be_visible()


def test_what_was_done_is_said_where_its_mark_is_pointed_at(page: Page, counted: str) -> None:
    page.goto(f"/streams/{counted}/history/?range=1h")
    chart = page.locator(".chart .u-over").first
    box = chart.bounding_box()
    assert box is not None
    seed = json.loads(page.locator("#history").text_content() or "")
    [[made_s, _]] = seed["marks"]
    first, last = seed["times"][0], seed["times"][-1] + seed["step_s"]
    x = box["x"] + box["width"] * (made_s - first) / (last - first)
    readout = page.locator("[data-readout]").first

    def is_said() -> bool:  # a chart that is just being laid out lets go of the pointer
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
        page.mouse.move(x, box["y"] + 22)
        return f"Stream {counted} was created" in (readout.text_content() or "")

    until(is_said, within_s=LONG_ENOUGH_S, what="the chart says what was done")
