"""The overview: groups by status, what needs attention, events that repeat."""

import re
import time
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.lists.event_rows import folded
from streams import store
from streams.access import SYSTEM
from streams.log import flow
from streams.log.flow import Flow
from streams.models import Event, Rollup, RollupPosition, Run, Stream, Workspace
from streams.selectors import METRICS_STREAM
from streams.services.events import event_record
from streams.services.groups import group_create
from streams.services.streams import internal_stream
from streams.verdicts import Status
from tests.dashboard.conftest import MakeStream, sampled_ago
from tests.dashboard.verdicts import judged

STATUSES: dict[str, Status] = {"billing": "ok", "search": "ok", "newsletter": "stopped", "mirror": "slow"}


@pytest.fixture
def orders(make_stream: MakeStream) -> Stream:
    stream = make_stream("orders", bodies=[b"1"])
    for group, status in STATUSES.items():
        group_create(stream, name=group, settings={}, actor=SYSTEM)
        judged(stream, group, status)
    return stream


def test_groups_are_counted_by_status_the_worst_first(viewer: Client, orders: Stream) -> None:
    page = viewer.get("/")
    counts = [(status, count) for status, _, count in page.context["statuses"]]
    assert counts == [("stopped", 1), ("slow", 1), ("ok", 2)]
    (groups,) = re.findall(r"<h2>Groups</h2>(.*?)</div>", page.content.decode(), re.DOTALL)
    assert re.search(r"4 by status · sampled <time [^>]*data-age", groups), "and how fresh that is"


def test_groups_of_which_nothing_is_known_yet_are_not_said_to_be_well(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    sure = "no group is in trouble"
    assert sure in viewer.get("/").content.decode()
    group_create(stream, name="billing", settings={}, actor=SYSTEM)
    page = viewer.get("/").content.decode()
    assert "the status of some groups is not known yet" in page
    assert sure not in page
    judged(stream, "billing", "ok")
    assert sure in viewer.get("/").content.decode()


def test_a_group_in_trouble_needs_attention_with_its_reason(viewer: Client, orders: Stream) -> None:
    found = [(each.level, each.sentence, each.url) for each in viewer.get("/").context["concerns"]]
    assert found == [
        (
            "bad",
            "Group newsletter of orders is stopped: It is stopped.",
            "/streams/orders/groups/newsletter/",
        ),
        ("warn", "Group mirror of orders is slow: It is slow.", "/streams/orders/groups/mirror/"),
    ]


def test_many_groups_of_a_stream_with_the_same_trouble_are_one_concern(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders", bodies=[b"1"])
    for number in range(4):
        group_create(stream, name=f"g{number}", settings={}, actor=SYSTEM)
        judged(stream, f"g{number}", "stopped")
    (concern,) = viewer.get("/").context["concerns"]
    assert concern.sentence.startswith("4 groups of orders are stopped; the worst, g")
    page = viewer.get(concern.url)
    assert {row.name for row in page.context["page"].rows} == {"g0", "g1", "g2", "g3"}


def test_what_was_done_to_streams_and_processes_stands_on_the_charts(viewer: Client, orders: Stream) -> None:
    for kind, summary in (("session.opened", "ada logged in."), ("process.restarted", "web was restarted.")):
        event_record(orders.workspace, kind=kind, actor=SYSTEM, summary=summary)
    page = viewer.get("/")
    said = [text for _, text in page.context["seed"]["marks"]]
    assert said[0].startswith("web was restarted. ")
    assert sum(text.startswith("Group ") for text in said) == len(STATUSES)
    assert not any("logged in" in text for text in said)
    assert page.content.decode().count("web was restarted. ") >= 2, "beside the table, too"


def test_a_part_of_the_last_minutes_is_chosen_and_stands_still(
    viewer: Client, orders: Stream, workspace: Workspace
) -> None:
    internal_stream(METRICS_STREAM, archive=False)
    Stream.objects.filter(name=METRICS_STREAM).update(created_at="2020-01-01T00:00Z")
    now_ms = int(time.time() * 1000)
    for minutes in (7, 4, 1):
        store.log().run(flow.note({workspace.pk: Flow(now_ms - minutes * 60_000, float(minutes), 0.0, 0.0)}))
    page = viewer.get("/?since=5+min+ago&until=2+min+ago")
    seed = page.context["seed"]
    assert max(seed["rate_in"]) == 0.4, "means of ten seconds"
    assert seed["span"][1] - seed["span"][0] == pytest.approx(180, abs=1)
    assert 3 <= len(page.context["minutes"]) <= 4
    assert 'data-kind="line"' in page.content.decode()
    for query in ("", "?since=2+h+ago&until=1+h+ago", "?range=6h"):
        assert max(viewer.get(f"/{query}").context["seed"]["rate_in"]) == 0.7, (
            "only the last minutes are kept"
        )


def test_groups_of_another_workspace_are_not_counted(stranger: Client, orders: Stream) -> None:
    page = stranger.get("/")
    assert page.context["groups"].total == 0
    assert "newsletter" not in page.content.decode()


def test_the_part_that_has_no_socket_can_be_asked_for_alone(viewer: Client, orders: Stream) -> None:
    answer = viewer.get("/", headers={"HX-Request": "true"})
    assert answer["Vary"].startswith("HX-Request")
    assert b"Group newsletter of orders is stopped" in answer.content
    assert b"<html" not in answer.content


@pytest.mark.parametrize("path", ["/", "/settings/system/"])
def test_the_processes_are_asked_for_again_with_what_has_no_socket(viewer: Client, path: str) -> None:
    page, part = viewer.get(path), viewer.get(path, headers={"HX-Request": "true"})
    assert b'id="processes" data-live="processes" data-field="version"' in page.content
    assert b'id="processes" hx-swap-oob="true"' in part.content


def test_events_that_repeat_are_one_row_whatever_lies_between_them() -> None:
    terminated = {"kind": "group.terminated", "stream": "orders", "group": "billing", "actor": "a"}
    events = [
        Event(id=5, **terminated),
        Event(id=4, **terminated),
        Event(id=3, kind="stream.created", stream="orders", actor="a"),
        Event(id=2, **terminated),
        Event(id=1, kind="stream.created", stream="clicks", actor="a"),
    ]
    assert [(row.event.id, row.count) for row in folded(events, most=3)] == [(5, 3), (3, 1), (1, 1)]


def test_what_is_usual_at_this_hour_stands_beside_the_live_chart(
    viewer: Client, orders: Stream, make_stream: MakeStream
) -> None:
    page = viewer.get("/").content.decode()
    assert "usually" not in page
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for ago in (timedelta(weeks=weeks, hours=hours) for weeks in range(1, 5) for hours in (-1, 0, 1)):
        Rollup.objects.create(
            stream_id=orders.stream_id, step="hour", start=hour - ago, messages=36_000, bytes=1
        )
    run = Run.objects.create(job="rollup")
    for stream, fresh_to, by in ((orders, hour, run), (make_stream("idle"), hour - timedelta(days=9), None)):
        RollupPosition.objects.create(stream_id=stream.stream_id, fresh_to=fresh_to, run=by)
    page = viewer.get("/").content.decode()
    assert 'data-low="8.500000" data-high="11.500000"' in page
    assert re.search(rf'<span id="usual-fresh" class="faint small">[^#]*from run #{run.pk}\b', page)
    assert "unusual now: 0/s, usually 8.50/s to 11.5/s" in page
    (asks,) = re.findall(r'<div hx-get="(/\?usual=1)"', page)
    part = viewer.get(asks, headers={"HX-Request": "true"}).content.decode()
    assert re.search(r'<span id="usual" hx-swap-oob="true"[^>]*>.*unusual now: 0/s, usually', part)
    assert re.search(rf'<span id="usual-fresh" hx-swap-oob="true"[^>]*>[^#]*from run #{run.pk}\b', part)
    sampled_ago(ms=60_000)
    assert "usually" not in viewer.get("/").content.decode(), "nobody counts what comes in now"
    sampled_ago(ms=-60_000)
    Stream.objects.filter(pk=make_stream("apart").pk).update(archive=False)
    assert "usually" not in viewer.get("/").content.decode(), "the rate is also of what nobody counts"
    part = viewer.get(asks, headers={"HX-Request": "true"}).content.decode()
    assert '<span id="usual" hx-swap-oob="true" hidden></span>' in part
    assert 'id="usual"' not in viewer.get("/", headers={"HX-Request": "true"}).content.decode()
