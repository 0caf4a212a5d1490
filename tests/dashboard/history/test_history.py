"""The History tab: the rollups in ranges and steps, and asking for a run."""

import random
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.history.heat import Cell, week_of
from dashboard.history.history_figures import top_keys_of
from dashboard.history.history_ranges import asked_for
from dashboard.history.run_results import did
from dashboard.views.stream_history import seed_of
from streams import store
from streams.access import SYSTEM, Actor
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Replay, Rollup, RollupPosition, Run, StandingRollup, Stream, Workspace
from streams.models.history import Step
from streams.selectors import METRICS_STREAM
from streams.services.events import event_record
from streams.services.groups import group_create, group_delete
from streams.services.history import Progressed, history_missed, rollups_add
from streams.services.replays import replay_counted
from streams.services.standing import standing_add
from streams.services.streams import internal_stream, stream_change
from streams.upkeep import processes
from streams.upkeep.processes import ProcessStatus
from tests.dashboard.conftest import MakeStream

NOON = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ("24h", "hour", NOON - timedelta(days=1, seconds=30))),
        ({"range": "1h"}, ("1h", "minute", NOON - timedelta(hours=1, seconds=30))),
        ({"range": "24h", "step": "minute"}, ("24h", "minute", NOON - timedelta(days=1, seconds=30))),
        ({"range": "1y", "step": "minute"}, ("1y", "day", datetime(2025, 11, 21, tzinfo=UTC))),
        ({"range": "all", "step": "hour"}, ("all", "day", None)),
        ({"range": "?", "step": "?"}, ("24h", "hour", NOON - timedelta(days=1, seconds=30))),
    ],
)
def test_the_query_says_range_and_step(
    query: dict[str, str], expected: tuple[str, str, datetime | None]
) -> None:
    asked = asked_for(query, now=NOON)
    assert (asked.range, asked.step, asked.since) == expected


def test_the_chart_has_a_bar_for_every_step_also_the_silent_ones() -> None:
    point = Rollup(step="hour", start=NOON.replace(hour=11, minute=0, second=0), messages=5, bytes=50)
    seed = seed_of([point], step="hour", since=NOON.replace(hour=9, minute=0, second=0), until=NOON)
    assert (seed["messages"], seed["bytes"], seed["step_s"]) == ([0, 0, 5, 0], [0, 0, 50, 0], 3600)


def test_a_step_that_begins_where_a_range_ends_is_not_in_it(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    for hour in range(8, 13):
        Rollup.objects.create(
            stream_id=stream.stream_id,
            step="hour",
            start=datetime(2026, 11, 20, hour, tzinfo=UTC),
            messages=10**hour,
            bytes=1,
        )
    page = "/streams/orders/history/?since=2026-11-20T10:00Z&until=2026-11-20T{}Z&step=hour&compare=1"
    told = owner.get(page.format("12:00")).context
    assert (told["sums"]["messages"], told["sums"]["before_messages"]) == (10**10 + 10**11, 10**8 + 10**9)
    assert told["seed"]["messages"] == [10**10, 10**11]
    told = owner.get(page.format("11:30")).context
    assert (told["sums"]["messages"], told["sums"]["before_messages"]) == (10**10 + 10**11, 10**8 + 10**9)
    told = owner.get(page.format("11:00")).context
    assert (told["sums"]["messages"], told["sums"]["before_messages"]) == (10**10, 10**9)
    assert told["seed"]["messages"] == [10**10]


def test_a_range_that_ends_within_a_bar_is_told_as_it_is_counted(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    Rollup.objects.create(
        stream_id=stream.stream_id,
        step="day",
        start=datetime(2026, 11, 20, tzinfo=UTC),
        messages=4_250,
        bytes=1,
    )
    history = "/streams/orders/history/?since=2020-01-01T00:00Z&until=2026-11-20T{}Z&step=minute"
    page = owner.get(history.format("21:22")).content.decode()
    assert "4,250 in this range" in page
    assert re.search(r"2020-01-01 00:00 – 2026-11-21 00:00 UTC</span> <[^>]*>\(whole days", page)
    assert 'title="2020-01-01 00:00:00.000 UTC – 2026-11-21 00:00:00.000 UTC"' in page
    assert "by day: minute would need too many bars" in page
    assert "2020-01-01T00:00:00.000Z&amp;to=2026-11-21T00:00:00.000Z" in page
    page = owner.get(history.format("00:00").replace("=minute", "=day")).content.decode()
    assert "2020-01-01 00:00 – 2026-11-20 00:00 UTC</span></span>" in page
    assert "too many bars</span>" not in page
    since = (timezone.now() - timedelta(seconds=90)).isoformat().replace("+00:00", "Z")
    asked = owner.get(f"/streams/orders/history/?since={since}").context["asked"]
    assert asked.is_widened
    assert asked.until <= timezone.now()


def test_a_range_is_asked_for_counted_started_and_ended(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    into = make_stream("again")
    sent = {
        "target": "again",
        "from_offset": "5",
        "since": "2026-11-20 07:05",
        "key": "eu.>",
        "where": "bytes > 3",
        "rate": "50",
    }
    assert owner.post("/streams/orders/history/", sent).status_code == 302
    replay = Replay.objects.get()
    assert (replay.source, replay.target, replay.from_offset, replay.to_offset) == (
        "orders",
        "again",
        5,
        None,
    )
    assert (replay.key, replay.where, replay.rate, replay.starts) == ("eu.>", "bytes > 3", 50, False)
    assert replay.since == datetime(2026, 11, 20, 7, 5, tzinfo=UTC)
    page = owner.get("/streams/orders/history/").content.decode()
    assert f"#{replay.pk} <bdi>orders</bdi> → <bdi>again</bdi>" in page
    assert "/start/" not in page
    replay_counted(replay, messages=1234, size=99, first=5, last=2000)
    part = owner.get("/streams/orders/history/replays/", headers={"HX-Request": "true"}).content.decode()
    assert "1,234" in part
    assert "/start/" in part
    assert "data-pushed-out" not in part
    stream_change(into, changes={"max_messages": 1000}, actor=SYSTEM)
    part = owner.get("/streams/orders/history/replays/", headers={"HX-Request": "true"}).content.decode()
    told = part.split("data-pushed-out")[1].split("</tr>")[0]
    assert "And 234 of those republished, the first ones, are removed as well: again holds no more." in told
    for do, state in (
        ("start", "running"),
        ("pause", "paused"),
        ("start", "running"),
        ("cancel", "cancelled"),
    ):
        assert owner.post(f"/streams/orders/history/replays/{replay.pk}/{do}/").status_code == 302
        replay.refresh_from_db()
        assert replay.state == state
    answer = owner.post(f"/streams/orders/history/replays/{replay.pk}/start/", follow=True)
    assert b"This replay is cancelled; it cannot be started." in answer.content


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"target": ""}, "This field is required."),
        ({"target": "nope"}, "There is no stream"),
        ({"target": "sealed"}, "is sealed"),
        ({"target": "orders", "from_offset": "9", "to_offset": "3"}, "not below the first one"),
        ({"target": "orders", "since": "2026-11-21", "until": "2026-11-20"}, "Enter a time after"),
        ({"target": "orders", "until": "tomorrow"}, "Enter a time such as"),
        ({"target": "orders", "key": "eu..*"}, "dot-separated"),
        ({"target": "orders", "rate": "0"}, "greater than or equal to 1"),
        ({"target": "orders", "ids": "other"}, "not one of the available choices"),
    ],
)
def test_a_range_that_cannot_be_is_told_in_its_place_and_nothing_is_stored(
    owner: Client, make_stream: MakeStream, sent: dict[str, str], said: str
) -> None:
    make_stream("orders")
    make_stream("sealed", sealed=True)
    answer = owner.post("/streams/orders/history/", sent)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Replay.objects.exists()


def test_who_only_reads_sees_replays_and_starts_none(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert b"No replays of this stream" in viewer.get("/streams/orders/history/").content
    assert viewer.post("/streams/orders/history/", {"target": "orders"}).status_code == 403
    assert not Replay.objects.exists()


def test_without_a_rollup_the_page_says_that_there_is_no_history_yet(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    assert b"No history yet" in owner.get("/streams/orders/history/").content


def test_the_range_is_summed_and_told_as_a_table(viewer: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    for hours, messages in ((1, 1_000), (2, 336), (500, 7)):
        Rollup.objects.create(
            stream_id=stream.stream_id,
            step="hour",
            start=now - timedelta(hours=hours),
            messages=messages,
            bytes=2_048,
        )
    page = viewer.get("/streams/orders/history/").content.decode()
    assert "1,336 in this range" in page
    assert page.count('<td class="num">336</td>') == 1
    StandingRollup.objects.create(
        stream_id=stream.stream_id,
        step="hour",
        start=now - timedelta(hours=3),
        samples=1,
        last_ms=1,
        removed=77,
        grown={"removed": 77},
    )
    page = viewer.get("/streams/orders/history/").content.decode()
    assert page.count('<td class="num">77</td>') == 1, "in a step without a message, too"
    assert "messages removed by retention: 77" in page


def test_what_the_history_misses_stands_above_the_charts(viewer: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    assert "history misses" not in viewer.get("/streams/orders/history/").content.decode()
    history_missed(stream, messages=5, why="removed")
    page = viewer.get("/streams/orders/history/").content.decode()
    assert "The history is missing messages" in page
    assert "5 messages of orders were removed before the history had them." in page


def test_a_run_is_asked_for(owner: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert owner.post("/streams/orders/history/runs/")["Location"] == "/streams/orders/history/"
    assert {run.requested_by for run in Run.objects.all()} == {"owner"}
    part = owner.get("/streams/orders/history/runs/", headers={"HX-Request": "true"}).content.decode()
    assert 'hx-trigger="okmq:second from:document"' in part
    assert "queued" in part


def test_a_viewer_may_not_ask_for_a_run(viewer: Client, make_stream: MakeStream) -> None:
    make_stream("orders")
    assert viewer.post("/streams/orders/history/runs/").status_code == 403
    assert not Run.objects.exists()


def test_what_runs_counted_and_met_is_not_told_to_other_workspaces(
    viewer: Client, stranger: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    make_stream("mine", within=Workspace.objects.get(name="elsewhere"))
    Run.objects.create(job="archive", state="succeeded", requested_by="ann", counts={"messages": 10732})
    Run.objects.create(job="rollup", state="failed", requested_by="ann", error="NoSuchFile: orders.parquet")
    for client, name, sees in ((viewer, "orders", True), (stranger, "mine", False)):
        whole = client.get(f"/streams/{name}/history/").content.decode()
        part = client.get(f"/streams/{name}/history/runs/", headers={"HX-Request": "true"}).content.decode()
        for shown in (whole, part):
            assert "succeeded" in shown
            assert [said in shown for said in ("10,732", "orders.parquet", "<bdi>ann</bdi>")] == [sees] * 3
            assert ("the reason is shown to those who" in shown) != sees


def test_where_java_is_missing_the_page_says_what_to_install(owner: Client, make_stream: MakeStream) -> None:
    from django.conf import settings

    make_stream("orders")
    note = "Java 17 or newer was not found: apt install openjdk-17-jre-headless."
    path = settings.ENV.processes_file
    processes.write(
        path,
        [ProcessStatus(name="analytics", pid=None, state="unavailable", restarts=0, since=0.0, note=note)],
    )
    try:
        assert note in owner.get("/streams/orders/history/").content.decode()
        assert f"analytics is not running: {note}" in owner.get("/").content.decode()
    finally:
        path.unlink()


@pytest.fixture
def busy(make_stream: MakeStream) -> Stream:
    """A stream with 10 messages an hour from 6:00 to 8:00, and 30 an hour from 8:00 to 10:00."""
    stream = make_stream("orders")
    for hour, messages in ((6, 10), (7, 10), (8, 30), (9, 30)):
        start = NOON.replace(hour=hour, minute=0, second=0, microsecond=0)
        rollup = Rollup(stream_id=stream.stream_id, step="hour", start=start, messages=messages)
        rollup.bytes = messages * 7
        rollup.save()
    return stream


def test_a_range_of_ones_own_is_read_in_the_zone_of_the_page(owner: Client, busy: Stream) -> None:
    day = NOON.strftime("%Y-%m-%d")
    asked = {"since": f"{day} 08:00", "until": f"{day} 10:00", "step": "hour"}
    context = owner.get("/streams/orders/history/", asked).context
    assert (context["asked"].range, context["sums"]["messages"]) == ("custom", 60)
    assert len(context["seed"]["times"]) == 2
    owner.cookies["okmq_zone"] = "Asia/Tokyo"
    asked = {"since": f"{day} 15:00", "until": f"{day} 16:59", "step": "hour"}
    assert owner.get("/streams/orders/history/", asked).context["sums"]["messages"] == 20


def test_a_range_stands_beside_the_period_before(owner: Client, busy: Stream) -> None:
    day = NOON.strftime("%Y-%m-%d")
    asked = {"since": f"{day} 08:00", "until": f"{day} 09:59", "step": "hour", "compare": "1"}
    page = owner.get("/streams/orders/history/", asked)
    assert page.context["seed"]["messages"] == [30, 30]
    assert page.context["seed"]["before_messages"] == [10, 10]
    assert "+200 % vs. 20 before" in page.content.decode()
    assert 'data-line="before_messages"' in page.content.decode()
    assert '<td class="num">10</td>' in page.content.decode().partition("Messages before")[2]
    assert [(row.point.messages, row.before.messages) for row in page.context["rows"]] == [(30, 10)] * 2
    del asked["compare"]
    page = owner.get("/streams/orders/history/", asked)
    assert "Messages before" not in page.content.decode()
    assert "before_messages" not in page.context["seed"]
    assert "before_messages" not in page.content.decode()


def test_charts_that_cannot_draw_all_of_a_range_say_so_and_the_period_before_stays_in_its_place(
    owner: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first, shift = today - timedelta(days=1_799), timedelta(days=1_800)
    counted = {first: 5, today - timedelta(days=1): 2, today - timedelta(days=3) - shift: 7}
    for start, messages in counted.items():
        Rollup.objects.create(
            stream_id=stream.stream_id, step="day", start=start, messages=messages, bytes=messages
        )
    asked = {"since": f"{first:%Y-%m-%d}", "until": f"{today + timedelta(days=1):%Y-%m-%d}", "compare": "1"}
    page = owner.get("/streams/orders/history/", asked)
    said = "The charts show the last 1,501 days of it; sums and tables are of the whole range."
    assert said in page.content.decode()
    seed = page.context["seed"]
    drawn = dict(zip(seed["times"], seed["before_messages"], strict=True))
    rows = {row.start: row.before.messages for row in page.context["rows"] if row.before}
    assert {datetime.fromtimestamp(at, UTC): n for at, n in drawn.items() if n} == rows
    assert list(rows) == [today - timedelta(days=3)]
    assert (len(seed["times"]), sum(seed["messages"]), page.context["sums"]["messages"]) == (1_501, 2, 7)
    Rollup.objects.filter(start__lt=first).delete()
    assert said in owner.get("/streams/orders/history/?range=all").content.decode()
    assert "The charts show" not in owner.get("/streams/orders/history/?range=30d").content.decode()


def test_a_step_that_has_not_ended_is_compared_with_nothing(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for ago, messages in ((0, 1), (1, 20), (2, 20), (3, 10), (4, 10), (5, 10)):
        Rollup.objects.create(
            stream_id=stream.stream_id,
            step="hour",
            start=hour - timedelta(hours=ago),
            messages=messages,
            bytes=messages * 7,
        )
    since = (hour - timedelta(hours=2)).strftime("%Y-%m-%d %H:%M")
    page = owner.get("/streams/orders/history/", {"since": since, "step": "hour", "compare": "1"})
    assert page.context["sums"]["messages"] == 41
    assert "+100 % vs. 20 before" in page.content.decode()
    assert "40 in whole steps:" in page.content.decode()


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"since": "soon"}, "since"),
        ({"since": "1 h ago", "until": "2 h ago"}, "since"),
        ({"until": "1 h ago"}, "since"),
        ({"since": "1 h ago", "until": "x"}, "until"),
        ({"since": "9" * 60}, "since"),
    ],
)
def test_a_range_that_cannot_be_read_is_said_and_the_usual_one_shown(
    owner: Client, busy: Stream, asked: dict[str, str], field: str
) -> None:
    page = owner.get("/streams/orders/history/", asked)
    assert page.status_code == 200
    assert field in page.context["form"].errors
    assert page.context["asked"].range == "24h"
    assert 'role="alert"' in page.content.decode()


def test_all_of_it_has_no_period_before(owner: Client, busy: Stream) -> None:
    page = owner.get("/streams/orders/history/", {"range": "all", "compare": "1"})
    assert page.context["asked"].before is None
    assert "Compare with previous period" not in page.content.decode()


PERCENTILES = {
    "data-says": "median",
    "data-line-says": "99th percentile",
    "data-kind": "bars",
    "data-colour": "series-2",
}
LEGEND = '<span data-kind="bars">median</span><span data-kind="above">99th percentile</span>'


def charted(page: str, series: str) -> dict[str, str]:
    """How a chart of a page draws what: its bars are the series that is named."""
    (chart,) = re.findall(rf'<div class="chart[^>]*data-series="{series}"[^>]*>', page)
    said = dict(re.findall(r'(data-[a-z-]+)="([^"]*)"', chart))
    return {name: said[name] for name in (*PERCENTILES, "data-line")}


def test_what_a_look_at_each_bar_found_is_told_and_what_is_not_known_yet(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    looked = {
        "ids": 41,
        "keys": 2,
        "missing": 7,
        "size_p50": 10,
        "size_p90": 20,
        "size_p99": 1_536,
        "size_max": 2_048,
    }
    known = {"stream_id": stream.stream_id, "step": "hour", "bytes": 1}
    at = now - timedelta(hours=1)
    Rollup.objects.create(
        start=at, messages=50, looked_at=42, top_keys=[["eu.<b>", 9], ["us", 3]], **looked, **known
    )
    Rollup.objects.create(
        start=at - timedelta(hours=1), messages=8, top_keys=[["us", 7]], looked_at=8, **known
    )
    page = viewer.get("/streams/orders/history/").content.decode()
    assert page.count("not scanned yet") == 1
    assert "When last scanned it had 42 messages." in page
    assert '<td class="num">41 ' in page
    assert "1.50 KiB" in page
    first, second = re.findall(r"<bdi>([^<]*)</bdi></a></td><td class=.num.>([0-9]+)", page)
    assert (first, second) == (("us", "10"), ("eu.&lt;b&gt;", "9"))
    assert "?key=eu.%3Cb%3E" in page
    assert charted(page, "size_p50") == PERCENTILES | {"data-line": "size_p99"}
    assert page.count(LEGEND) == 1
    assert "max 2.00 KiB" in page


def test_the_fields_of_the_newest_day_and_what_became_of_them(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream = make_stream("orders")
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)

    def day(start: datetime, **types: dict[str, int]) -> None:
        fields = [{"name": name, "present": sum(of.values()), "types": of} for name, of in types.items()]
        known = {"step": "day", "bytes": 1, "messages": 10, "looked_at": 10, "bodies": 10, "unreadable": 0}
        Rollup.objects.create(stream_id=stream.stream_id, start=start, fields=fields, **known)

    page = viewer.get("/streams/orders/history/").content.decode()
    assert "Fields on" not in page
    long = "w" * 50_000
    day(today - timedelta(days=2), total={"number": 10}, old={"string": 10}, **{long: {"string": 10}})
    day(today, **{"<b>": {"boolean": 10}, "total": {"string": 6, "number": 1}, f"{long}x": {"number": 10}})
    page = viewer.get("/streams/orders/history/").content.decode()
    assert f"Fields on {today:%Y-%m-%d} (UTC)" in page
    assert long not in page
    told = re.findall(r"<bdi>([^<]*)</bdi></td><td>([^<]*)</td><td class=.num.>([^<]*)</td><td>([^<]*)", page)
    assert told == [
        ("&lt;b&gt;", "boolean", "0 %", "new"),
        ("total", "string, number", "30 %", "no value: 0%, now 30%; was number"),
        (f"{long[:100]}…", "number", "0 %", "new"),
        ("old", "string", "100 %", "removed"),
        (f"{long[:100]}…", "string", "100 %", "removed"),
    ]


@pytest.mark.parametrize("kept", [2, 5, 9])
def test_the_most_frequent_keys_of_a_range_are_told_with_what_is_certain(kept: int) -> None:
    chance, true, points = random.Random(kept), Counter[str](), []
    for _ in range(30):
        held = Counter(chance.choices("abcdefgh", weights=range(1, 9), k=40))
        true += held
        top = sorted(held.items(), key=lambda each: (-each[1], each[0]))[:kept]
        points.append(
            Rollup(messages=40, looked_at=40, keys=len(held), top_keys=[list(each) for each in top])
        )
    told = top_keys_of(points)
    assert all(each.messages <= true[each.key] <= each.most for each in told.keys)
    shown = {each.key for each in told.keys}
    assert all(count <= told.others for key, count in true.items() if key not in shown)
    assert told.is_exact is (kept > 8)
    if told.is_exact:
        assert [(each.key, each.messages) for each in told.keys] == true.most_common()


def test_keys_that_are_not_all_known_are_told_with_their_bounds(
    viewer: Client, make_stream: MakeStream
) -> None:
    stream, now = make_stream("orders"), timezone.now().replace(minute=0, second=0, microsecond=0)
    for ago, keys, top in ((1, 5, [["a", 9], ["b", 4]]), (2, 2, [["b", 7], ["c", 1]])):
        Rollup.objects.create(
            stream_id=stream.stream_id,
            step="hour",
            start=now - timedelta(hours=ago),
            bytes=1,
            messages=30,
            looked_at=30,
            keys=keys,
            top_keys=top,
        )
    page = viewer.get("/streams/orders/history/").content.decode()
    rows = re.findall(r"<bdi>([abc])</bdi></a></td><td class=.num.>(\d+)</td><td class=.num.>(\d+)<", page)
    assert rows == [("b", "11", "11"), ("a", "9", "9"), ("c", "1", "5")]
    assert "any other key may have up to 4" in page


def test_a_range_of_a_week_shows_when_it_is_busy_in_the_zone_of_the_page(owner: Client, busy: Stream) -> None:
    assert "Busy hours" not in owner.get("/streams/orders/history/?range=24h").content.decode()
    asked = {"since": (NOON - timedelta(days=8)).isoformat(), "until": NOON.isoformat()}
    page = owner.get("/streams/orders/history/", asked)
    assert "Busy hours" in page.content.decode()
    weekday = page.context["week"].days[NOON.weekday()]
    assert [(cell.hour, cell.mean, cell.level) for cell in weekday.cells[6:11]] == [
        (6, 10, 2),
        (7, 10, 2),
        (8, 30, 5),
        (9, 30, 5),
        (10, 0, 0),
    ]
    assert weekday.cells[5].mean is None, "before the first message nothing is known"
    owner.cookies["okmq_zone"] = "Asia/Tokyo"
    cells = owner.get("/streams/orders/history/", asked).context["week"].days[NOON.weekday()].cells
    assert [cells[hour].mean for hour in (15, 17)] == [10, 30]


@pytest.mark.parametrize(
    ("mean", "text"),
    [
        (None, "–"),
        (0, "0"),
        (7.5, "7.5"),
        (9.96, "10"),
        (890, "890"),
        (999.6, "1k"),
        (2_640, "2.6k"),
        (41_300, "41k"),
        (3e9, "3G"),
    ],
)
def test_a_mean_fits_its_cell(mean: float | None, text: str) -> None:
    assert Cell(0, mean, 0).text == text


def test_hours_are_means_over_the_weeks_of_a_range() -> None:
    week, hour = timedelta(days=7), NOON.replace(hour=8, minute=0, second=0, microsecond=0)
    days = week_of([(hour, 10), (hour + week, 20)], until=hour + 3 * week + timedelta(hours=1)).days
    assert days[hour.weekday()].cells[timezone.localtime(hour).hour].mean == 7.5
    assert week_of([], until=hour).days == []


def test_an_hour_that_is_not_whole_is_no_busy_or_quiet_one() -> None:
    week, hour = timedelta(days=7), NOON.replace(hour=8, minute=0, second=0, microsecond=0)
    under_way = week_of([(hour, 60), (hour + week, 5)], until=hour + week + timedelta(minutes=5))
    assert under_way.days[hour.weekday()].cells[timezone.localtime(hour).hour].mean == 60
    assert under_way.until == hour + week
    assert week_of([(hour, 60)], until=hour + timedelta(minutes=59)).days == []


def test_hours_that_are_not_counted_yet_are_unknown_and_not_silent(owner: Client, busy: Stream) -> None:
    asked = {"since": (NOON - timedelta(days=8)).isoformat(), "until": NOON.isoformat()}
    position = RollupPosition.objects.create(
        stream_id=busy.stream_id, offset=0, fresh_to=NOON.replace(hour=9, minute=59)
    )

    def shown() -> tuple[list[float | None], str]:
        page = owner.get("/streams/orders/history/", asked)
        cells = page.context["week"].days[NOON.weekday()].cells
        return [cell.mean for cell in cells[8:12]], page.content.decode()

    means, page = shown()
    assert means == [30, 30, 0, 0], "nothing came since"
    assert f"whole hours up to {NOON:%Y-%m-%d} 13:00 · – is unknown" in page
    store.log().run(append(busy.stream_id, [NewMessage(id="later", body=b"1")]))
    means, page = shown()
    assert means == [30, None, None, None]
    assert f"whole hours up to {NOON:%Y-%m-%d} 09:00 · – is unknown" in page
    RollupPosition.objects.filter(pk=position.pk).update(fresh_to=None)
    assert owner.get("/streams/orders/history/", asked).context["week"] is None


def test_what_was_done_to_the_stream_stands_on_its_charts(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    Rollup.objects.create(stream_id=stream.stream_id, step="hour", start=hour, messages=5, bytes=50)
    for kind, summary in (("stream.changed", "It keeps 7 d."), ("message.deleted", "One message went.")):
        event_record(stream.workspace, kind=kind, actor=Actor(name="ada"), stream="orders", summary=summary)
    answer = owner.get("/streams/orders/history/?range=24h")
    [(at_s, text)] = [(at, text) for at, text in answer.context["seed"]["marks"] if "7 d" in text]
    assert text.startswith("It keeps 7 d. ada, 20")
    assert abs(at_s - timezone.now().timestamp()) < 60
    page = answer.content.decode()
    assert text in page, "and in the table beside them"
    assert "One message went" not in page
    assert (
        "It keeps 7 d."
        not in owner.get("/streams/orders/history/?since=3+h+ago&until=2+h+ago").content.decode()
    )


def stood(stream: Stream, group: str, start: datetime, *lag_ms: int) -> None:
    """A group's samples of an hour."""
    StandingRollup.objects.create(
        stream_id=stream.stream_id,
        group=group,
        step="hour",
        start=start,
        samples=len(lag_ms),
        last_ms=1,
        lag_max=1,
        lag_seen={"1": len(lag_ms)},
        lag_ms_max=max(lag_ms),
        lag_ms_seen={str(each): lag_ms.count(each) for each in lag_ms},
    )


def test_groups_and_gaps_of_a_range_are_those_until_its_end(owner: Client, busy: Stream) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    stood(busy, "early", hour - timedelta(hours=5), 1_000)
    stood(busy, "late", hour - timedelta(hours=1), 1_000)
    history_missed(busy, messages=290, why="lost")
    asked = {
        "since": (hour - timedelta(hours=6)).isoformat(),
        "until": (hour - timedelta(hours=2)).isoformat(),
    }
    context = owner.get("/streams/orders/history/", {**asked, "step": "hour"}).context
    assert [past.group for past in context["past_groups"]] == ["early"]
    assert context["gaps"] == []
    context = owner.get("/streams/orders/history/").context
    assert [past.group for past in context["past_groups"]] == ["early", "late"]
    assert [gap.messages for gap in context["gaps"]] == [290]


def test_the_groups_that_lagged_most_have_charts_and_a_table_that_says_the_same(
    owner: Client, busy: Stream
) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    before = hour - timedelta(hours=1)
    for number in range(5):
        stood(busy, f"g{number}", before, *[1_000 * number] * 9, 60_000 * number)
    stood(busy, "g4", hour, 3_000)
    metrics = internal_stream(METRICS_STREAM, archive=False)
    run = Run.objects.create(job="rollup", requested_by="schedule")
    standing_add(
        [],
        position=Progressed(stream_id=metrics.stream_id, from_offset=0, to_offset=5, fresh_to=hour),
        run=run,
    )
    answer = owner.get("/streams/orders/history/")
    lags = answer.context["group_lags"]
    assert [past.group for past in lags.groups] == ["g4", "g3", "g2", "g1"]
    assert (lags.left, lags.seed["times"]) == (1, answer.context["seed"]["times"])
    assert (lags.seed["p50_0"][-3:], lags.seed["p99_0"][-3:]) == ([None, 4, 3], [None, 240, 3])
    assert [row.start for row in lags.rows] == [hour, before]
    page = answer.content.decode()
    assert "One more group had less lag" in page
    assert f"from run #{run.pk}" in page
    for place in range(4):
        assert charted(page, f"p50_{place}") == PERCENTILES | {"data-line": f"p99_{place}"}
    assert page.count(LEGEND) == 4
    assert "max 4 min" in page
    table = page.split("Group lag as a table")[1].split("</details>")[0]
    cells = re.findall(r'<td class="num">([^<]*)</td>', table.split("<tbody>")[1])
    assert cells == [
        *("3.00 s", "3.00 s", "–", "–", "–", "–", "–", "–"),
        *("4.00 s", "4 min", "3.00 s", "3 min", "2.00 s", "2 min", "1.00 s", "1 min"),
    ]


def test_only_groups_that_are_there_are_linked(owner: Client, busy: Stream) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for name in ("stays", "went"):
        stood(busy, name, hour, 3_000)
        group_create(busy, name=name, settings={}, actor=SYSTEM)
    at = "/streams/orders/groups"
    page = owner.get("/streams/orders/history/").content.decode()
    assert (page.count(f'href="{at}/stays/"'), page.count(f'href="{at}/went/"')) == (2, 2)
    group_delete(busy.groups.get(name="went"), actor=SYSTEM)
    page = owner.get("/streams/orders/history/").content.decode()
    assert (page.count(f'href="{at}/stays/"'), page.count(f'href="{at}/went/"')) == (2, 0)
    assert "<bdi>went</bdi>" in page


def test_a_lag_of_less_than_a_second_is_told_in_milliseconds_beside_what_it_is(
    owner: Client, busy: Stream
) -> None:
    stood(busy, "billing", timezone.now().replace(minute=0, second=0, microsecond=0), 0, 120, 640)
    page = owner.get("/streams/orders/history/").content.decode()
    assert "max 640 ms" in page
    rows = page.split("Lag from the worker")[1].split("</table>")[0].split("<tr>")[2:]
    measures = {
        re.findall(r'<th scope="row"[^>]*>([^<]*)</th>', row)[0]: re.findall(
            r'<td class="num">([^<]*)</td>', row
        )
        for row in rows
    }
    assert measures == {
        "Time lag": ["120 ms", "640 ms", "640 ms", "640 ms"],
        "Undelivered": ["1", "1", "1", "1"],
        "Publish to ack": ["–", "–", "–", "–"],
    }


def test_every_chart_says_how_fresh_it_is_and_from_which_run(owner: Client, busy: Stream) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    counting, standing, scanning = (
        Run.objects.create(job="rollup", requested_by="schedule") for _ in range(3)
    )
    look = {"looked_at": 10, "look_run": scanning, "look_time": hour}
    Rollup.objects.filter(stream_id=busy.stream_id).update(top_keys=[["eu", 3]], **look)
    day = {"step": "day", "start": hour.replace(hour=0), "messages": 80, "bytes": 560, "bodies": 3, **look}
    Rollup.objects.create(
        stream_id=busy.stream_id, fields=[{"name": "id", "present": 3, "types": {"int": 3}}], **day
    )
    of_messages = Progressed(stream_id=busy.stream_id, from_offset=0, to_offset=80, fresh_to=hour)
    rollups_add([], positions=[of_messages], run=counting)
    stood(busy, "late", hour - timedelta(hours=1), 1_000)
    metrics = internal_stream(METRICS_STREAM, archive=False).stream_id
    of_groups = Progressed(stream_id=metrics, from_offset=0, to_offset=5, fresh_to=hour)
    standing_add([], position=of_groups, run=standing)
    page = owner.get("/streams/orders/history/?range=30d&step=hour").content.decode()
    panels = [part.split("</section>")[0] for part in page.split('<section class="panel"')[1:]]
    said = {
        heading: re.findall(r"(?:from|by) run #(\d+)", panel)
        for panel in panels
        if (heading := re.sub(r"<[^>]*>", "", re.findall(r"<h[23].*?</h[23]>", panel)[0]))
        and "republish from history" not in heading.lower()
    }
    assert len(said) == 9, sorted(said)
    of_the_groups = {name: runs for name, runs in said.items() if name in {"late", "Groups in this range"}}
    assert list(of_the_groups.values()) == [[str(standing.pk)]] * 2
    of_looks = {
        name: runs
        for name, runs in said.items()
        if name in {"Size of a body", "Most frequent keys"} or name.startswith("Fields on")
    }
    assert list(of_looks.values()) == [[str(scanning.pk)]] * 3
    sums = said.keys() - of_the_groups.keys() - of_looks.keys()
    assert [said[name] for name in sums] == [[str(counting.pk)]] * 4


def test_a_stream_whose_groups_were_not_sampled_has_no_charts_of_them(owner: Client, busy: Stream) -> None:
    assert "Group lag" not in owner.get("/streams/orders/history/").content.decode()


def test_figures_of_bars_as_a_whole_say_what_they_are_from(viewer: Client, make_stream: MakeStream) -> None:
    stream, now = make_stream("orders"), timezone.now()
    run, later = (Run.objects.create(job="rollup", requested_by="schedule") for _ in range(2))
    RollupPosition.objects.create(stream_id=stream.stream_id, offset=1200, fresh_to=now, run=later)
    looked = {"looked_at": 1080, "scanned": 1080, "look_run": run, "look_time": now, "bytes": 1}
    hour = Step.HOUR.floor(now)
    figures = {"keys": 2, "ids": 1080, "size_p50": 1, "size_p99": 1, "top_keys": [["a", 1000], ["b", 80]]}
    Rollup.objects.create(
        stream_id=stream.stream_id, step="hour", start=hour, messages=1200, **looked, **figures
    )
    day: dict[str, object] = {"bodies": 1080, "unreadable": 0, "fields": []}
    Rollup.objects.create(
        stream_id=stream.stream_id, step="day", start=Step.DAY.floor(now), messages=1200, **looked, **day
    )
    page = " ".join(viewer.get("/streams/orders/history/").content.decode().split())
    assert page.count("from 1,080 of 1,200 messages so far, scanned") == 3, "sizes, keys, fields"
    assert page.count(f"by run #{run.pk} <") == 3
    assert "1,080 objects in 1,080 messages" in page
    assert "any other key may have up to 120" in page
    Rollup.objects.filter(stream_id=stream.stream_id).update(looked_at=1200, scanned=1100)
    page = " ".join(viewer.get("/streams/orders/history/").content.decode().split())
    assert page.count("from 1,100 messages, scanned") == 3, "a hundred were erased"
    assert "any other key" not in page


def test_a_bar_that_nobody_has_scanned_counts_for_what_any_key_may_have() -> None:
    known = Rollup(messages=10, looked_at=10, keys=1, top_keys=[["a", 10]])
    told = top_keys_of([known, Rollup(messages=7)])
    assert [(each.key, each.messages, each.most) for each in told.keys] == [("a", 10, 17)]
    assert (told.others, told.is_exact) == (7, False)


@pytest.mark.parametrize(
    ("job", "counts", "said"),
    [
        (
            "rollup",
            {"bytes": 0, "messages": 0, "points": 0, "samples": 3, "windows": 0},
            "3 group figures updated",
        ),
        (
            "rollup",
            {"bytes": 2048, "messages": 1200, "points": 3, "samples": 0, "windows": 13},
            "1,200 messages (2.00 KiB) counted · 3 sums updated · 13 windows rescanned",
        ),
        (
            "rollup",
            {"messages": 2, "windows": 3, "twice": 1},
            "2 messages counted · 3 windows rescanned · 1 message is in the history twice",
        ),
        ("archive", {"messages": 1, "bytes": 9, "batches": 1}, "1 message (9 B) archived · in 1 batch"),
        (
            "compact",
            {"messages": 40, "files": 16, "into": 1},
            "40 messages rewritten · 16 files merged into 1",
        ),
        ("rollup", {"messages": 0, "windows": 0}, "nothing new"),
    ],
)
def test_what_a_run_did_is_told_in_words(job: str, counts: dict[str, int], said: str) -> None:
    assert did(Run(job=job, counts=counts, state="succeeded")) == said


def test_in_german_the_history_says_what_it_does_in_german(owner: Client, make_stream: MakeStream) -> None:
    stream = make_stream("orders")
    Replay.objects.create(
        workspace=stream.workspace,
        source="orders",
        source_id=stream.stream_id,
        target="orders",
        target_id=stream.stream_id,
    )
    asked = {"range": "30d", "step": "minute"}
    page = owner.get("/streams/orders/history/", asked, headers={"Accept-Language": "de"}).content.decode()
    assert "je Tag: je Minute wären es zu viele Balken" in page
    assert 'placeholder="vor 2 d"' in page
    assert '<th scope="col">Replays</th>' in page
    assert "Erneut zustellen" not in page


def test_the_end_of_a_range_may_be_now_in_words_as_its_field_suggests(
    owner: Client, make_stream: MakeStream
) -> None:
    make_stream("orders")
    address = "/streams/orders/history/?since=2+d+ago&until="
    page = owner.get(f"{address}now")
    assert 'placeholder="now"' in page.content.decode()
    assert page.context["form"].errors == {}
    asked, open_ended = page.context["asked"], owner.get(address).context["asked"]
    assert asked.range == "custom"
    assert abs(asked.until - open_ended.until) < timedelta(minutes=1)
    assert owner.get("/streams/orders/history/?since=now").context["form"].errors == {
        "since": ["Must be before the end."]
    }
