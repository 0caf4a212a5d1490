"""Charts of what has been: a drag over one chooses the range of the page, and what was done stands on it."""

import json
import re
import subprocess
import sys

import httpx
import pytest
from playwright.sync_api import Page, expect

from okmq import env
from tests.e2e.conftest import publish
from tests.product import Product
from tests.waiting import LONG_ENOUGH_S, until

pytestmark = [pytest.mark.e2e, pytest.mark.running]

COUNTED = """
import django
django.setup()
from datetime import timedelta
from django.utils import timezone
from streams.models import Rollup, StandingRollup, Stream
stream = Stream.objects.get(name={stream!r})
now = timezone.now().replace(second=0, microsecond=0)
for minutes, messages in ((50, 7), (10, 120)):
    start = now - timedelta(minutes=minutes)
    Rollup.objects.create(stream_id=stream.stream_id, step="minute", start=start, messages=messages, bytes=2048)
    lag = dict(lag_max=1, lag_seen={{"1": 1}}, lag_ms_max=900, lag_ms_seen={{"900": 1}})
    known = dict(stream_id=stream.stream_id, group="g", step="minute", samples=1, last_ms=1)
    StandingRollup.objects.create(start=start, **known, **lag)
"""


HOURS_COUNTED = """
import django
django.setup()
from datetime import timedelta
from django.utils import timezone
from streams.models import Rollup, StandingRollup, Stream
stream = Stream.objects.get(name={stream!r})
now = timezone.now().replace(minute=0, second=0, microsecond=0)
for hours in (7, 6, 3):
    known = dict(stream_id=stream.stream_id, step="hour", start=now - timedelta(hours=hours))
    Rollup.objects.create(messages=2, bytes=500, looked_at=2, ids=2, size_p50=100, size_p99=400, size_max=400, **known)
    lag = dict(lag_ms_max=4000, lag_ms_seen={{"1000": 1, "4000": 1}})
    StandingRollup.objects.create(group="g", samples=2, last_ms=1, **lag, **known)
    print(int(known["start"].timestamp()))
"""


ANSWERED = """
import django, json
django.setup()
from streams.models import Query, Workspace
from streams.services.queries import query_answer
query = Query.objects.create(workspace=Workspace.objects.get(name="default"), sql="SELECT", limit=10, state="running")
columns = [("n", "bigint")] + [(f"c{{n}}", "bigint") for n in range({series})]
rows = [json.dumps([at] + [{sign} * at] * {series}) for at in (1, 2, 3)]
query_answer(query, columns=columns, rows=rows, truncated=False)
print(query.pk)
"""


def in_product(running: Product, code: str) -> str:
    """What a program prints that works on the product's database."""
    environ = {**running.environ, "DJANGO_SETTINGS_MODULE": "okmq.settings"}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=env.PROJECT, env=environ, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def counted(running: Product, stream: str) -> str:
    """A stream of which the history counted 7 messages 50 minutes ago and 120 ten minutes ago."""
    in_product(running, COUNTED.format(stream=stream))
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
    expect(page.locator("#group-lags .chart canvas")).to_have_count(1)
    drag_over(page, 0.5, 1.0)
    expect(page).to_have_url(re.compile(r"\?since=.*&until=[^#]*$"))  # and not at the group's lag
    expect(page.get_by_text("120 in this range")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("127 in this range")).to_be_visible()


def test_charts_side_by_side_are_level_however_long_their_heads(page: Page, counted: str) -> None:
    page.set_viewport_size({"width": 1100, "height": 800})
    page.goto("/")
    tops = "() => [...document.querySelectorAll('.columns .chart')].map((each) => each.getBoundingClientRect().top)"
    first, second = page.evaluate(tops)
    assert first == second
    page.locator("#usual").evaluate(
        "(usual) => { usual.hidden = false; usual.textContent = 'usually '.repeat(20); }"
    )
    wrapped, beside = page.evaluate(tops)
    assert wrapped == beside > first


def test_what_is_usual_is_renewed_where_it_stands_on_a_streams_own_chart(page: Page, counted: str) -> None:
    page.goto(f"/streams/{counted}/rates/")
    expect(page.locator(".chart canvas")).to_have_count(2)
    page.locator("#usual").evaluate("(usual) => { usual.hidden = false; usual.textContent = 'of before'; }")
    expect(page.get_by_text("of before")).to_be_visible()
    with page.expect_response(lambda answer: "usual=1" in answer.url):
        page.evaluate("document.dispatchEvent(new Event('okmq:quarter-minute'))")
    expect(page.get_by_text("of before")).to_have_count(0)
    expect(page.locator("#usual")).to_have_count(1)
    expect(page.locator(".chart canvas")).to_have_count(2)


@pytest.mark.parametrize(("series", "wide"), [(1, [0]), (2, []), (3, [2])])
def test_an_answer_in_sql_leaves_no_half_of_its_card_empty(
    page: Page, running: Product, series: int, wide: list[int]
) -> None:
    page.goto(f"/sql/{in_product(running, ANSWERED.format(series=series, sign=1))}/")
    expect(page.locator("#answer .chart canvas")).to_have_count(series)
    whole = page.locator("#answer table").bounding_box()
    assert whole is not None
    widths = page.locator("#answer .chart canvas").evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect().width)"
    )
    assert [at for at, width in enumerate(widths) if width > 0.9 * whole["width"]] == wide
    assert all(width > 0.4 * whole["width"] for width in widths)


# Of a chart's middle: what lies beyond its edges may colour these.
PAINTED = """(canvas) => {
  const quarter = Math.floor(canvas.height / 4);
  const { data } = canvas.getContext("2d").getImageData(0, quarter, canvas.width, quarter);
  const colourful = (at) => Math.max(...data.slice(at, at + 3)) - Math.min(...data.slice(at, at + 3)) > 60;
  return Array.from({ length: data.length / 4 }, (_, n) => 4 * n).filter((at) => data[at + 3] && colourful(at)).length;
}"""


def test_an_answer_in_sql_of_values_below_nought_is_drawn(page: Page, running: Product) -> None:
    page.goto(f"/sql/{in_product(running, ANSWERED.format(series=1, sign=-1))}/")
    expect(page.locator("#answer .chart canvas")).to_have_count(1)
    painted = page.locator("#answer .chart canvas")
    until(lambda: painted.evaluate(PAINTED) > 200, within_s=LONG_ENOUGH_S, what="the chart shows its line")


def test_a_chart_that_is_not_drawn_anew_yet_widens_no_narrower_page(page: Page, counted: str) -> None:
    """A frame passes between a window that is made narrower (a phone that is turned) and its charts drawn anew."""
    page.goto(f"/streams/{counted}/history/?range=1h")
    expect(page.locator(".chart canvas").first).to_be_visible()
    wide = """() => {
      for (const plot of document.querySelectorAll(".chart .uplot")) plot.style.width = "4000px";
      return [document.documentElement.scrollWidth, innerWidth];
    }"""
    reaches, shown = page.evaluate(wide)
    assert reaches <= shown


def test_what_was_done_is_said_where_its_mark_is_pointed_at(page: Page, counted: str) -> None:
    page.goto(f"/streams/{counted}/history/?range=1h")
    chart = page.locator(".chart .u-over").first
    seed = json.loads(page.locator("#history").text_content() or "")
    [[made_s, _]] = seed["marks"]
    first, last = seed["times"][0], seed["times"][-1] + seed["step_s"]
    readout = page.locator("[data-readout]").first

    def is_said() -> bool:  # a chart that is just being laid out moves, and lets go of the pointer
        box = chart.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
        x = box["x"] + box["width"] * (made_s - first) / (last - first)
        page.mouse.move(x, box["y"] + 22)
        return f"Stream {counted} was created" in (readout.text_content() or "")

    until(is_said, within_s=LONG_ENOUGH_S, what="the chart says what was done")


def lines_of(page: Page, chart: str) -> int:
    """How many points a chart began with."""
    return len(json.loads(page.locator(f"#{chart}").text_content() or "")["times"])


def test_the_rates_of_a_stream_are_drawn_live_and_a_drag_holds_them_still(
    page: Page, api: httpx.Client, stream: str
) -> None:
    page.goto(f"/streams/{stream}/rates/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    count = 0

    def is_told() -> bool:  # the worker samples once a second what moved
        nonlocal count
        count += 1
        publish(api, stream, {"n": count}, start=count)
        page.reload()
        return lines_of(page, "rates") > 2

    until(is_told, within_s=LONG_ENOUGH_S, what="samples of the stream")
    page.get_by_text("Charts as a table").click()
    expect(page.get_by_role("cell", name="/s").first).to_be_visible()
    drag_over(page, 0.5, 1.0)
    expect(page).to_have_url(re.compile(r"/rates/\?since=.*&until="))
    expect(page.locator("[data-chart]").first).to_have_attribute("data-kind", "line")
    page.get_by_role("link", name="1 h", exact=True).click()
    expect(page.locator("[data-chart]").first).to_have_attribute("data-kind", "live")
    expect(page).to_have_url(re.compile(r"/rates/\?range=1h$"))


def test_the_lag_of_a_group_moves_on_its_chart(page: Page, api: httpx.Client, stream: str) -> None:
    publish(api, stream, *range(1, 6))
    api.post(f"/streams/{stream}/groups/", json={"name": "g"}).raise_for_status()
    page.goto(f"/streams/{stream}/groups/g/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    assert json.loads(page.locator("#lag-series").text_content() or "")["lag"][-1] == 5
    page.evaluate(
        """() => { window.drawn = []; document.addEventListener("okmq:live", ({ detail: { event } }) => {
             if (event.kind === "group_sampled") window.drawn.push(event.lag); }); }"""
    )
    publish(api, stream, 6, 7, start=6)
    until(
        lambda: page.evaluate("() => window.drawn.includes(7)"),
        within_s=LONG_ENOUGH_S,
        what="the page is told of the new lag",
    )
    box = page.locator("#lag .chart .u-over").first.bounding_box()
    assert box is not None
    readout = page.locator("#lag [data-readout]").first

    def is_said() -> bool:  # the newest point stands at the right edge
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
        page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20)
        return (readout.text_content() or "").split(" · ")[-1] == "7"

    until(is_said, within_s=LONG_ENOUGH_S, what="the chart shows the newest lag")
    page.get_by_text("Charts as a table").click()
    expect(page.get_by_role("columnheader", name="Highest time lag")).to_be_visible()
    page.locator("#lag").get_by_role("link", name="6 h").click()
    expect(page).to_have_url(re.compile(r"range=6h"))


# The steps of a chart that the dashed line, which is as dark as ink, goes along: more than a third of their columns.
LINED = """(box) => {
  const seed = JSON.parse(document.getElementById(box.dataset.chart).textContent);
  const canvas = box.querySelector("canvas");
  const plot = box.querySelector(".u-over");
  const [left, width] = [plot.offsetLeft, plot.offsetWidth].map((css) => Math.round(css * devicePixelRatio));
  const { data } = canvas.getContext("2d").getImageData(left, 0, width, canvas.height);
  const isInk = (at) => data[at + 3] > 100 && Math.max(...data.slice(at, at + 3)) < 60;
  const column = (x) => Array.from({ length: canvas.height }, (_, y) => 4 * (y * width + x)).some(isInk);
  const lined = (n) => {
    const [from, to] = [n, n + 1].map((each) => Math.round((each * width) / seed.times.length));
    const columns = Array.from({ length: to - from }, (_, x) => from + x);
    return columns.filter(column).length > columns.length / 3;
  };
  return seed.times.filter((_, n) => lined(n));
}"""


@pytest.mark.parametrize("line", ["size_p99", "p99_0"])
def test_the_dashed_line_goes_along_every_step_that_has_a_value_also_one_without_neighbours(
    page: Page, running: Product, stream: str, line: str
) -> None:
    hours = [int(each) for each in in_product(running, HOURS_COUNTED.format(stream=stream)).split()]
    page.goto(f"/streams/{stream}/history/")
    chart = page.locator(f"[data-line={line}]")
    expect(chart.locator("canvas")).to_have_count(1)
    until(
        lambda: chart.evaluate(LINED) == hours, within_s=LONG_ENOUGH_S, what="the line goes along these hours"
    )


def test_the_line_of_the_period_before_goes_along_the_last_step_too(
    page: Page, running: Product, stream: str
) -> None:
    in_product(running, HOURS_COUNTED.format(stream=stream))
    page.goto(f"/streams/{stream}/history/?compare=1")
    times = json.loads(page.locator("#history").text_content() or "")["times"]
    chart = page.locator("[data-line=before_messages]")
    until(
        lambda: chart.evaluate(LINED) == times, within_s=LONG_ENOUGH_S, what="the line goes along all steps"
    )
