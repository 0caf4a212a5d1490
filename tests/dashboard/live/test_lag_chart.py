"""The chart of a group's lag: its lines, its table, its range, what was done meanwhile."""

import json
import re
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from dashboard import formats
from dashboard.live.lag_chart import drawn_of
from streams import store
from streams.access import SYSTEM
from streams.log import standing, trails
from streams.log.trails import Looked, Point
from streams.models import Group
from streams.selectors import LagPoint
from streams.services.groups import group_create, group_delete, group_seek
from tests.dashboard.conftest import MakeStream

PAGE = "/streams/orders/groups/billing/"
Line = list[tuple[float, int | None]]


def line(
    *points: tuple[float, int],
    since: float = 0,
    until: float,
    step: int = 10,
    unsampled: Collection[int] = (),
) -> Line:
    """The lag that is drawn of these looks."""
    found = drawn_of(
        [LagPoint(at_s, lag, float(lag)) for at_s, lag in points],
        since_s=since,
        until_s=until,
        step_s=step,
        unsampled=unsampled,
    )
    return [(each.at_s, each.lag) for each in found]


def test_looks_that_follow_each_other_are_the_line() -> None:
    assert line((0, 5), (10, 7), (20, 6), until=25) == [(0, 5), (10, 7), (20, 6)]


def test_a_group_that_was_at_rest_stayed_so_until_it_was_looked_at_again() -> None:
    assert line((0, 0), (40, 6), until=45) == [(0, 0), (10, 0), (20, 0), (30, 0), (40, 6)]


def test_a_group_was_at_rest_only_as_far_as_somebody_sampled() -> None:
    found = line((0, 0), (50, 6), until=55, unsampled=range(15, 36))
    assert found == [(0, 0), (10, 0), (20, None), (30, None), (40, 0), (50, 6)]


def test_what_came_to_rest_before_the_range_is_at_rest_in_it() -> None:
    assert line((0, 0), since=1000, until=1030) == [(1000, 0), (1010, 0), (1020, 0)]


def test_where_nobody_looked_the_line_has_a_gap() -> None:
    assert line((0, 5), (90, 6), until=95) == [(0, 5), (1, None), (90, 6)]


def test_what_waits_is_not_drawn_on_beyond_the_last_look() -> None:
    assert line((0, 5), until=300) == [(0, 5)]


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    stream = make_stream("orders", bodies=[b"1", b"2", b"3"])
    return group_create(stream, name="billing", settings={}, actor=SYSTEM)[0]


def noted(group: Group, *ago_and_lag: tuple[float, int], by_minute: bool = False) -> None:
    """Looks at the group so many seconds ago, which found so much."""
    named = (group.stream.stream_id, group.name)
    state = store.log().run(standing.inspect(*named))
    for ago_s, lag in ago_and_lag:
        point = Point(state.steady_ms - int(ago_s * 1000), lag, lag * 1000)
        store.log().run(trails.note({named: Looked(point, point if by_minute else None)}))


def seed_on(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="lag-series" type="application/json">(.*?)</script>', page)
    assert found
    seed: dict[str, Any] = json.loads(found[1])
    return seed


def rows_on(page: str) -> list[list[str]]:
    (table,) = re.findall(r"<table.*?Highest lag in messages.*?</table>", page, re.DOTALL)
    body = table.split("<tbody>")[1]
    return [
        [strip_tags(cell) for cell in re.findall(r"<td.*?</td>", row)] for row in body.split("</tr>")[:-1]
    ]


def test_the_page_draws_the_looks_and_how_it_stands_now(viewer: Client, billing: Group) -> None:
    noted(billing, (30, 5), (20, 7), (10, 6))
    seed = seed_on(viewer.get(PAGE).content.decode())
    assert seed["lag"] == [5, 7, 6, 3]
    assert seed["lag_seconds"][:3] == [5.0, 7.0, 6.0]
    assert seed["window_s"] == 900
    assert seed["span"] is None
    assert seed["times"] == sorted(seed["times"])


def test_steps_of_the_age_are_told_apart_however_small(viewer: Client, billing: Group) -> None:
    page = viewer.get(PAGE).content.decode()
    (said_as,) = re.findall(r'data-series="lag_seconds" data-format="(\w+)"', page)
    say = getattr(formats, said_as)
    for steps in ((0, 0.01, 0.02, 0.03), (0, 0.5, 1, 1.5), (0, 10, 20, 30), (0, 60, 120)):
        assert len({say(each) for each in steps}) == len(steps)


def test_the_table_says_the_highest_of_each_step(viewer: Client, billing: Group) -> None:
    noted(billing, (3 * 3600, 1500), (3 * 3600 - 60, 1200), by_minute=True)
    rows = rows_on(viewer.get(PAGE + "?range=6h").content.decode())
    assert ["1,500", "25 min"] in [row[1:] for row in rows]
    assert rows[0][1] == "3"


def test_six_hours_are_drawn_by_the_minute(viewer: Client, billing: Group) -> None:
    noted(billing, (7200, 40), by_minute=True)
    noted(billing, (30, 9))
    seed = seed_on(viewer.get(PAGE + "?range=6h").content.decode())
    assert (seed["step_s"], seed["lag"][0]) == (60, 40)
    assert 9 not in seed["lag"]


def test_a_range_of_ones_own_stands_still(viewer: Client, billing: Group) -> None:
    noted(billing, (600, 4), (590, 5), (300, 8))
    now = timezone.now()
    since, until = (f"{now - timedelta(seconds=ago):%Y-%m-%dT%H:%M:%S}Z" for ago in (620, 500))
    page = viewer.get(PAGE, {"since": since, "until": until}).content.decode()
    seed = seed_on(page)
    assert seed["lag"] == [4, 5, None], "nobody looked between this and the next"
    assert seed["span"][1] - seed["span"][0] == 120
    assert 'data-kind="line"' in page


@pytest.mark.parametrize(
    "query",
    ["range=1y", "range=", "since=soon", "until=2026-01-01T00:00:00Z", "since=2020-01-01&until=2020-01-02"],
)
def test_a_range_that_is_none_is_the_last_quarter_of_an_hour(
    viewer: Client, billing: Group, query: str
) -> None:
    answer = viewer.get(f"{PAGE}?{query}")
    assert answer.status_code == 200
    assert seed_on(answer.content.decode())["window_s"] == 900


def test_a_group_that_nobody_looked_at_in_a_range_says_so(viewer: Client, billing: Group) -> None:
    page = viewer.get(PAGE, {"since": "3 h ago", "until": "2 h ago"}).content.decode()
    assert "No samples of this group in this range" in page


def test_what_was_done_to_this_group_is_marked_and_to_others_not(viewer: Client, billing: Group) -> None:
    other = group_create(billing.stream, name="other", settings={}, actor=SYSTEM)[0]
    group_seek(billing, next_offset=2, actor=SYSTEM)
    group_seek(other, next_offset=3, actor=SYSTEM)
    told = " ".join(text for _, text in seed_on(viewer.get(PAGE).content.decode())["marks"])
    assert "billing" in told
    assert "orders" in told
    assert "other" not in told


def test_a_group_made_again_has_nothing_of_the_one_before(viewer: Client, billing: Group) -> None:
    noted(billing, (30, 5), (20, 7), by_minute=True)
    group_delete(billing, actor=SYSTEM)
    group_create(billing.stream, name="billing", settings={}, actor=SYSTEM)
    for wanted in ("15m", "6h"):
        assert seed_on(viewer.get(f"{PAGE}?range={wanted}").content.decode())["lag"] == [3]
