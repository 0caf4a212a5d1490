"""A stream over time: rollups by step, live samples by range."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streams import selectors, store
from streams.access import SYSTEM
from streams.api import history
from streams.log import keys
from streams.log.append import append
from streams.log.counts import Counts, grown
from streams.log.entries import NewMessage
from streams.models import Rollup, Run, StandingRollup, Stream, Workspace
from streams.selectors import METRICS_STREAM
from streams.services.events import event_record
from streams.services.history import Progressed, RollupPoint, history_missed, rollups_add
from streams.services.standing import StoodPoint, standing_add
from streams.services.streams import internal_stream
from streams.services.windows import WindowFigures, windows_due, windows_store
from tests.streams.api.conftest import Api, code, fields

START = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)

SIZES = ("size_p50", "size_p90", "size_p99", "size_max")
NOT_LOOKED_AT = {
    "looked_at": 0,
    **dict.fromkeys(
        (
            "looked_run",
            "looked_time",
            "ids",
            "keys",
            "missing",
            *SIZES,
            "top_keys",
            "bodies",
            "unreadable",
            "fields",
        )
    ),
}


@pytest.fixture
def stream(owner: Api) -> Stream:
    owner.post("streams/", {"name": "orders"})
    return Stream.objects.get(workspace=owner.workspace, name="orders")


def add(stream: Stream) -> Run:
    """Three minutes in two hours: 1, 2 and 4 messages of 10 bytes."""
    run = Run.objects.create(job="rollup")
    minutes = {0: 1, 59: 2, 60: 4}
    points = [
        RollupPoint(
            stream_id=stream.stream_id,
            step="minute",
            start=START + timedelta(minutes=minute),
            messages=count,
            bytes=10 * count,
        )
        for minute, count in minutes.items()
    ]
    points += [
        RollupPoint(stream_id=stream.stream_id, step="hour", start=START, messages=3, bytes=30),
        RollupPoint(
            stream_id=stream.stream_id, step="hour", start=START + timedelta(hours=1), messages=4, bytes=40
        ),
    ]
    moved = Progressed(
        stream_id=stream.stream_id,
        from_offset=0,
        to_offset=7,
        fresh_to=START + timedelta(minutes=60, seconds=1),
    )
    rollups_add(points, positions=[moved], run=run)
    return run


def test_no_history_yet(owner: Api, stream: Stream) -> None:
    assert owner.get("streams/orders/history").json() == {
        "step": "hour",
        "from": None,
        "to": None,
        "fresh_to": None,
        "run": None,
        "points": [],
        "gaps": [],
        "duplicates": [],
        "removed": [],
        "groups": [],
        "drift": [],
    }


def test_points_of_all_time_sum_to_everything(owner: Api, stream: Stream) -> None:
    run = add(stream)
    for step in ("minute", "hour"):
        history = owner.get(f"streams/orders/history/?step={step}").json()
        assert sum(point["messages"] for point in history["points"]) == 7
        assert sum(point["bytes"] for point in history["points"]) == 70
    assert history == {
        "step": "hour",
        "from": "2026-11-21T06:00:00.000Z",
        "to": "2026-11-21T08:00:00.000Z",
        "fresh_to": "2026-11-21T07:00:01.000Z",
        "run": {
            "id": run.pk,
            "url": f"http://testserver/api/v1/analytics/runs/{run.pk}",
            "finished_at": None,
        },
        "points": [
            {"start": "2026-11-21T06:00:00.000Z", "messages": 3, "bytes": 30, **NOT_LOOKED_AT},
            {"start": "2026-11-21T07:00:00.000Z", "messages": 4, "bytes": 40, **NOT_LOOKED_AT},
        ],
        "gaps": [],
        "duplicates": [],
        "removed": [],
        "groups": [],
        "drift": [],
    }


def test_a_look_at_a_step_is_told_with_how_many_messages_it_knows(owner: Api, stream: Stream) -> None:
    add(stream)
    here = [each for each in windows_due(now=START) if each.stream_id == stream.stream_id]
    (due, *_) = [each for each in here if each.step == "hour"]
    sizes: dict[str, Any] = dict(zip(SIZES, (5, 8, 9, 10), strict=True))
    found = WindowFigures(
        pk=due.pk,
        looked_at=3,
        scanned=3,
        first_offset=5,
        last_offset=9,
        missing=1,
        ids=4,
        keys=2,
        top_keys=[("a", 2), ("b", 1)],
        **sizes,
    )
    run = Run.objects.create(job="rollup")
    windows_store([found], since=START, run=run)
    point = owner.get("streams/orders/history?step=hour").json()["points"][-1]
    assert point == {
        "start": "2026-11-21T07:00:00.000Z",
        "messages": 4,
        "bytes": 40,
        "looked_at": 3,
        "looked_run": run.pk,
        "looked_time": "2026-11-21T06:00:00.000Z",
        "ids": 4,
        "keys": 2,
        "missing": 1,
        **sizes,
        "top_keys": [{"key": "a", "messages": 2}, {"key": "b", "messages": 1}],
        **dict.fromkeys(("bodies", "unreadable", "fields")),
    }


def test_how_groups_stood_what_came_twice_and_what_went(owner: Api, stream: Stream) -> None:
    def stood(group: str, hour: int, held: dict[str, int] | None = None, **counters: int) -> StoodPoint:
        counted = Counts(1, counters)
        seen = {"lag": {2: 1, 8: 1}, "lag_ms": {500: 1, 1_500: 1}} if group else {}
        return StoodPoint(
            stream_id=stream.stream_id,
            group=group,
            step="hour",
            start=START + timedelta(hours=hour),
            samples=2,
            last_ms=hour,
            counted=counted,
            counted_first=None if held else counted,
            counted_grown=grown(Counts(1, held), counted) if held else {},
            ack_ms=None,
            ack_ms_first=None,
            ack_ms_grown={},
            highest={name: max(values) for name, values in seen.items()},
            seen=seen,
        )

    standing_add(
        [
            stood("g", 0, deliveries=9, redelivered=2),
            stood("g", 1, {"deliveries": 9, "redelivered": 2}, deliveries=12, redelivered=2),
            stood("", 0, duplicates=3),
            stood("", 1, {"duplicates": 3}, duplicates=7),
        ],
        position=Progressed(
            stream_id=f"of-{stream.stream_id}"[:12], from_offset=0, to_offset=9, fresh_to=None
        ),
    )
    second = (START + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    found = owner.get(f"streams/orders/history?step=hour&from={second}").json()
    lags = {"p50": 2.0, "p90": 8.0, "p99": 8.0, "max": 8.0}
    counted = {"deliveries": 3, "acked": 0, "redelivered": 0, "dead_lettered": 0, "lost": 0}
    none = dict.fromkeys(("p50", "p90", "p99", "max"))
    in_time = {"p50": 0.5, "p90": 1.5, "p99": 1.5, "max": 1.5}
    known = {"lag": lags, "lag_seconds": in_time, "ack_seconds": none, **counted}
    point = {"start": "2026-11-21T07:00:00.000Z", "samples": 2, **known}
    assert found["groups"] == [{"name": "g", **known, "points": [point]}]
    assert found["duplicates"] == [{"start": "2026-11-21T07:00:00.000Z", "messages": 4}]
    event_record(
        stream.workspace,
        kind="stream.expired",
        actor=SYSTEM,
        stream="orders",
        after={"messages": 6},
        summary="Retention removed 6 messages of orders, 60 bytes.",
    )
    (removed,) = owner.get("streams/orders/history?step=day").json()["removed"]
    assert (removed["messages"], removed["start"][10:]) == (6, "T00:00:00.000Z")


def test_the_fields_of_days_and_how_they_changed(owner: Api, stream: Stream) -> None:
    def day(start: datetime, **types: dict[str, int]) -> None:
        fields = [{"name": name, "present": sum(of.values()), "types": of} for name, of in types.items()]
        known = {"step": "day", "bytes": 1, "messages": 12, "looked_at": 12, "top_keys": []}
        Rollup.objects.create(
            stream_id=stream.stream_id, start=start, bodies=11, unreadable=1, fields=fields, **known
        )

    first = START.replace(hour=0)
    day(first, a={"string": 10}, b={"number": 9, "null": 1}, c={"string": 4})
    day(first + timedelta(days=2), a={"string": 9, "number": 1}, b={"number": 8, "null": 2}, d={"array": 1})
    found = owner.get("streams/orders/history?step=day").json()
    assert found["points"][0]["fields"][1] == {"name": "b", "present": 10, "types": {"number": 9, "null": 1}}
    assert (found["points"][0]["bodies"], found["points"][0]["unreadable"]) == (11, 1)
    against = {"start": "2026-11-23T00:00:00.000Z", "against": "2026-11-21T00:00:00.000Z"}
    assert found["drift"] == [
        {**against, "field": "a", "change": "type", "before": "string", "after": "string, number"},
        {**against, "field": "b", "change": "nulls", "before": "10%", "after": "20%"},
        {**against, "field": "c", "change": "gone", "before": "string", "after": ""},
        {**against, "field": "d", "change": "new", "before": "", "after": "array"},
    ]
    later = owner.get("streams/orders/history?step=day&from=2026-11-23T00:00:00Z").json()
    assert later["drift"] == found["drift"], "also against a day before the range"
    assert owner.get("streams/orders/history?step=hour").json()["drift"] == []


def test_a_day_of_whose_bodies_none_could_be_taken_apart_says_nothing_of_fields(
    owner: Api, stream: Stream
) -> None:
    first = START.replace(hour=0)
    known = {"step": "day", "bytes": 1, "messages": 3, "looked_at": 3, "bodies": 3}
    for n, (unreadable, present) in enumerate([(None, 3), (3, 0), (0, 3), (3, 0)]):
        fields = [{"name": "a", "present": present, "types": {"string": present}}] if present else []
        Rollup.objects.create(
            stream_id=stream.stream_id,
            start=first + timedelta(days=n),
            unreadable=unreadable,
            fields=fields,
            **known,
        )
    assert owner.get("streams/orders/history?step=day").json()["drift"] == []
    newest = selectors.profile_latest(stream, until=first + timedelta(days=4))
    assert newest is not None
    assert (newest.unreadable, newest.fields, newest.against, newest.gone) == (3, [], None, [])
    before = selectors.profile_latest(stream, until=first + timedelta(days=3))
    assert before is not None
    assert before.against == first
    assert [each.drift for each in before.fields] == [[]]


def test_a_long_name_of_a_field_is_told_in_short(owner: Api, stream: Stream) -> None:
    for days, name in enumerate(["n" * 50_000, "n" * 49_999 + "o"]):
        Rollup.objects.create(
            stream_id=stream.stream_id,
            step="day",
            start=START.replace(hour=0) + timedelta(days=days),
            bytes=1,
            messages=1,
            looked_at=1,
            bodies=1,
            top_keys=[],
            fields=[{"name": name, "present": 1, "types": {"number": 1}}],
        )
    answer = owner.get("streams/orders/history?step=day")
    assert len(answer.content) < 10_000
    found, short = answer.json(), "n" * 100 + "…"
    assert [point["fields"][0]["name"] for point in found["points"]] == [short, short]
    assert [(each["field"], each["change"]) for each in found["drift"]] == [(short, "gone"), (short, "new")]


def test_a_part_is_whole_points(owner: Api, stream: Stream) -> None:
    add(stream)
    part = owner.get(
        "streams/orders/history?step=hour&from=2026-11-21T08:30:00%2B02:00&to=2026-11-21T07:00:00Z"
    )
    assert part.json()["from"] == "2026-11-21T06:00:00.000Z"
    assert part.json()["to"] == "2026-11-21T07:00:00.000Z"
    assert [point["messages"] for point in part.json()["points"]] == [3]
    part = owner.get("streams/orders/history?step=hour&to=2026-11-21T07:00:01Z").json()
    assert (part["to"], [point["messages"] for point in part["points"]]) == (
        "2026-11-21T08:00:00.000Z",
        [3, 4],
    )


def test_a_plus_sign_may_be_left_as_it_is(owner: Api, stream: Stream) -> None:
    assert owner.get("streams/orders/history?from=2026-11-21T08:30:00+02:00").status_code == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("step=week", "step"),
        ("from=yesterday", "from"),
        ("from=2026-11-21", "from"),
        ("from=2026-11-21T06:00:00", "from"),
        ("from=0001-01-01T00:00:00%2B14:00", "from"),
        ("to=", "to"),
        ("to=20261121", "to"),
        ("from=2026-11-21T06:00:01Z&to=2026-11-21T06:00:00Z", "from"),
        ("until=2026-11-21T06:00:00Z", "until"),
    ],
)
def test_a_wrong_query_is_refused(owner: Api, stream: Stream, query: str, field: str) -> None:
    assert fields(owner.get(f"streams/orders/history?{query}")) == [field]


@pytest.mark.parametrize("edge", ["from=0001-01-01T00:00:00Z", "to=9999-12-31T23:59:59.999999Z"])
def test_the_edges_of_time_are_times(owner: Api, stream: Stream, edge: str) -> None:
    assert owner.get(f"streams/orders/history?{edge}&step=day").status_code == 200


@pytest.fixture
def of_a_year(stream: Stream) -> datetime:
    """A minute a year ago in which something was published, and one lately."""
    first = START - timedelta(days=365)
    for start in (first, START):
        Rollup.objects.create(stream_id=stream.stream_id, step="minute", start=start, messages=1, bytes=1)
    return first


def test_more_steps_than_one_answer_tells_are_refused_with_what_would_fit(
    owner: Api, of_a_year: datetime
) -> None:
    for since in (of_a_year, of_a_year - timedelta(days=900)):
        answer = owner.get(f"streams/orders/history?step=minute&from={since:%Y-%m-%dT%H:%M:%SZ}")
        assert (answer.status_code, code(answer), fields(answer)) == (400, "validation_error", ["from"])
    message = answer.json()["error"]["message"]
    assert "10,000" in message
    assert "525,601" in message
    fits = "2026-11-14T07:21:00.000Z"
    assert f"Those from {fits} on can be told at once" in message
    told = owner.get(f"streams/orders/history?step=minute&from={fits}").json()
    assert (told["from"], len(told["points"])) == (fits, 1)
    earlier = owner.get(f"streams/orders/history?step=minute&from=2025-01-01T00:00:00Z&to={fits}").json()
    assert len(earlier["points"]) == 1


def test_without_a_beginning_the_newest_steps_are_told_where_all_are_too_many(
    owner: Api, of_a_year: datetime
) -> None:
    told = owner.get("streams/orders/history?step=minute").json()
    assert (told["from"], len(told["points"])) == ("2026-11-14T07:21:00.000Z", 1)
    assert len(owner.get("streams/orders/history?step=minute&to=2026-11-21T06:00:00Z").json()["points"]) == 1


def test_steps_of_groups_count_each(owner: Api, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_GROUP_STEPS", 6)
    for hour in range(4):
        for group in ("", "g", "h"):
            StandingRollup.objects.create(
                stream_id=stream.stream_id,
                group=group,
                step="hour",
                start=START + timedelta(hours=hour),
                samples=1,
                last_ms=1,
            )
    path = "streams/orders/history?step=hour"
    told = owner.get(path).json()
    assert told["from"] == "2026-11-21T08:00:00.000Z"
    assert [len(group["points"]) for group in told["groups"]] == [2, 2]
    assert code(owner.get(f"{path}&from=2026-11-21T07:00:00Z")) == "validation_error"
    assert owner.get(f"{path}&from=2026-11-21T08:00:00Z").json() == told
    monkeypatch.setattr(history, "MOST_GROUP_STEPS", 2)
    assert owner.get(path).json()["from"] == "2026-11-21T09:00:00.000Z", "one step is always told"


def test_what_the_history_misses_is_told_where_it_was_noticed(owner: Api, stream: Stream) -> None:
    history_missed(stream, messages=5, why="removed")
    (gap,) = owner.get("streams/orders/history").json()["gaps"]
    assert gap.pop("time") == owner.get("events?kind=history.gap").json()[0]["time"]
    assert gap == {"messages": 5, "summary": "5 messages of orders were removed before the history had them."}
    assert owner.get("streams/orders/history?to=2026-11-21T06:00:00Z").json()["gaps"] == []
    owner.delete("streams/orders")
    owner.post("streams/", {"name": "orders"})
    assert owner.get("streams/orders/history").json()["gaps"] == [], "those of the stream before"


@pytest.fixture
def metrics(database: None) -> Stream:
    Workspace.objects.get_or_create(name="default")
    return internal_stream(METRICS_STREAM, archive=False)


def sample(metrics: Stream, at_ms: int, **figures: Any) -> None:
    body = json.dumps({"at": at_ms, "streams": figures}).encode()
    store.log().run(append(metrics.stream_id, [NewMessage(id=f"{at_ms}", body=body)]))


def test_live_samples_by_steps_rest_included(owner: Api, stream: Stream, metrics: Stream) -> None:
    now_ms = int(time.time() * 1000) // 5000 * 5000
    figures = {"name": "orders", "offset": 9, "messages": 8, "bytes": 80, "lag": 7, "committed": 1, "out": 0}
    sample(metrics, now_ms - 20_000, **{stream.stream_id: {**figures, "in": 10, "bytes_in": 100}})
    sample(metrics, now_ms - 19_000, other={**figures, "in": 1, "bytes_in": 1})
    sample(
        metrics,
        now_ms - 18_000,
        **{stream.stream_id: {**figures, "offset": 10, "in": 5, "bytes_in": 50, "out": 20}},
    )
    answer = owner.get("streams/orders/metrics?range=1h").json()
    assert answer["step"] == 5
    first, second, *_ = answer["points"]
    assert first["time"].endswith("Z")
    assert {
        "offset": 10,
        "messages": 8,
        "bytes": 80,
        "lag": 7,
        "in": 3.0,
        "out": 4.0,
        "bytes_in": 30.0,
    }.items() <= first.items()
    assert (second["offset"], second["in"]) == (10, 0.0)
    assert 4 <= len(answer["points"]) <= 7


@pytest.fixture
def silent_lately(database: None) -> Iterator[int]:
    """The worker took no samples from 600 to 300 seconds ago and samples now; the unix ms of now, by the minute."""
    now_ms, log = int(time.time() * 1000), store.log().client
    log.zadd(keys.SILENCES, {f"{now_ms - 600_000} {now_ms - 300_000}": now_ms - 300_000})
    log.set(keys.SAMPLED, now_ms + 60_000)
    yield now_ms
    log.delete(keys.SILENCES, keys.SAMPLED)


def test_a_step_in_which_nobody_counted_has_no_figures(
    owner: Api, stream: Stream, metrics: Stream, silent_lately: int
) -> None:
    figures = {"name": "orders", "offset": 9, "messages": 8, "bytes": 80, "lag": 7, "in": 10, "bytes_in": 100}
    for ago_s in (700, 300):
        sample(metrics, silent_lately - ago_s * 1000, **{stream.stream_id: figures})
    for asked, least in (("15m", 299), ("1h", 58), ("6h", 8)):
        points = owner.get(f"streams/orders/metrics?range={asked}").json()["points"]
        silent = [point for point in points if point["in"] is None]
        assert least <= len(silent) <= 300
        assert {value for point in silent for name, value in point.items() if name != "time"} == {None}
        told = {point["in"] for point in points} - {None, 0}
        assert told, "what was counted is told"
        assert sorted(points, key=lambda point: point["time"]) == points


def test_a_rate_is_judged_by_what_was_counted(
    owner: Api, stream: Stream, metrics: Stream, silent_lately: int
) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for ago in (timedelta(weeks=weeks, hours=hours) for weeks in (1, 2, 3) for hours in (-1, 0, 1)):
        Rollup.objects.create(
            stream_id=stream.stream_id, step="hour", start=hour - ago, messages=36_000, bytes=1
        )
    figures = {"name": "orders", "offset": 9, "messages": 8, "bytes": 80, "lag": 7, "bytes_in": 1}
    sample(metrics, silent_lately - 30_000, **{stream.stream_id: {**figures, "in": 6_000}})
    usual = owner.get("streams/orders/metrics").json()["usual"]
    assert usual["rate"] == pytest.approx(10, rel=0.01)
    assert not usual["is_unusual"]
    store.log().client.set(keys.SAMPLED, silent_lately - 290_000)
    assert owner.get("streams/orders/metrics").json()["usual"] is None, "nobody has counted since, either"


def test_a_rate_stands_beside_what_is_usual_at_this_hour(owner: Api, stream: Stream, metrics: Stream) -> None:
    now_ms = int(time.time() * 1000)
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for ago in (timedelta(weeks=weeks, hours=hours) for weeks in (1, 2, 3) for hours in (-1, 0, 1)):
        Rollup.objects.create(
            stream_id=stream.stream_id, step="hour", start=hour - ago, messages=36_000, bytes=1
        )
    figures = {"name": "orders", "offset": 9, "messages": 8, "bytes": 80, "lag": 7, "bytes_in": 1}
    sample(metrics, now_ms - 3_000_000, **{stream.stream_id: {**figures, "in": 100_000}})
    sample(metrics, now_ms - 30_000, **{stream.stream_id: {**figures, "in": 900}})
    for asked in ("15m", "1h", "6h"):
        usual = owner.get(f"streams/orders/metrics?range={asked}").json()["usual"]
        assert usual == {
            "rate": 1.0,
            "low": pytest.approx(8.5),
            "high": pytest.approx(11.5),
            "weeks": 3,
            "is_unusual": True,
        }
    sample(metrics, now_ms - 20_000, **{stream.stream_id: {**figures, "in": 8_100}})
    for asked in ("15m", "1h", "6h"):
        assert not owner.get(f"streams/orders/metrics?range={asked}").json()["usual"]["is_unusual"]


def test_no_samples_no_points(owner: Api, stream: Stream, metrics: Stream) -> None:
    assert owner.get("streams/orders/metrics").json() == {"step": 1, "points": [], "usual": None}


@pytest.mark.parametrize("query", ["range=2h", "range=", "range=1h&range=6h", "step=1"])
def test_a_wrong_range_is_refused(owner: Api, stream: Stream, query: str) -> None:
    assert code(owner.get(f"streams/orders/metrics?{query}")) == "validation_error"


def test_figures_of_a_step_as_a_whole_name_the_run_that_looked_and_what_was_there(
    owner: Api, stream: Stream
) -> None:
    run = Run.objects.create(job="rollup", requested_by="schedule")
    Rollup.objects.create(
        stream_id=stream.stream_id,
        step="hour",
        start=START,
        messages=10,
        bytes=1,
        looked_at=9,
        scanned=8,
        look_run=run,
        look_time=START,
    )
    (point,) = owner.get("streams/orders/history?step=hour").json()["points"]
    assert (point["messages"], point["looked_at"], point["looked_run"]) == (10, 8, run.pk)
    assert point["looked_time"] is not None
