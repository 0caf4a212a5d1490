"""The SQL page: asked, waited for, shown, downloaded, cancelled, saved; what comes out of streams does nothing."""

import html
import json
import re
import time
from typing import Any
from xml.etree import ElementTree

import pytest
from django.test import Client

from dashboard.views.sql import TABLES
from spark.tables import COLUMNS
from streams import selectors, store
from streams.access import SYSTEM
from streams.log import stats
from streams.models import Event, Query, QueryState, SavedQuery, Workspace
from streams.services import queries as service
from streams.services.streams import stream_create

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def asked(client: Client, sql: str = "SELECT 1", **more: Any) -> Query:
    answer = client.post("/sql/", {"sql": sql, "limit": 100, "ask": "", **more})
    assert answer.status_code == 302, answer.content.decode()
    query = Query.objects.latest("id")
    assert answer.headers["Location"] == f"/sql/{query.pk}/"
    return query


def answered(
    query: Query, columns: list[tuple[str, str]], rows: list[Any], *, truncated: bool = False
) -> str:
    service.query_answer(query, columns=columns, rows=[json.dumps(row) for row in rows], truncated=truncated)
    return f"/sql/{query.pk}/"


CUT = "The query has more rows than its limit let into the answer; they were not published."


def text(client: Client, path: str, **headers: Any) -> str:
    answer = client.get(path, **headers)
    assert answer.status_code == 200, answer.content.decode()
    return answer.content.decode()


def seed_in(page: str) -> dict[str, Any]:
    """What the chart of an answer is drawn from."""
    [seed] = re.findall(r'<div id="answer-chart" data-seed hidden>([^<]*)</div>', page)
    told: dict[str, Any] = json.loads(html.unescape(seed))
    return told


def test_a_question_waits_with_its_progress_and_a_way_to_cancel(owner: Client) -> None:
    query = asked(owner)
    path = f"/sql/{query.pk}/"
    assert "Queued." in text(owner, path)
    assert service.query_take() is not None
    assert "Spark is starting" in text(owner, path)
    service.query_runs(query)
    assert service.query_progress(query, 0.25)
    part = text(owner, path, headers={"HX-Request": "true"})
    assert 'value="0.250"' in part
    assert 'hx-trigger="okmq:second from:document"' in part
    assert "<html" not in part
    assert owner.post(f"{path}cancel/").status_code == 302
    assert "Cancelling." in text(owner, path)
    service.query_end(query, QueryState.CANCELLED)
    for page in (text(owner, path, headers={"HX-Request": "true"}), text(owner, path)):
        assert "Cancelled." in page
        assert "okmq:second" not in page


def test_an_answer_is_a_table_with_its_digits_and_a_file(owner: Client) -> None:
    path = answered(
        asked(owner),
        [("big", "bigint"), ("text", "string"), ("n", "string"), ("m", "map<string,int>")],
        [[9007199254740993, "=1+1", None, {"a": 1}]],
        truncated=True,
    )
    page = text(owner, path)
    for shown in (
        '<th scope="col" class="num"><bdi>big</bdi>',
        '<th scope="col"><bdi>text</bdi>',
        "<bdi>9007199254740993</bdi>",
        "<bdi>=1+1</bdi>",
        "<bdi>null</bdi>",
        "{&quot;a&quot;: 1}",
        "1 row",
    ):
        assert shown in page
    assert "truncated: only the first rows are here" in page
    finished_at = Query.objects.get().finished_at
    assert finished_at
    assert re.search(rf'as of <time [^>]*data-ms="{int(finished_at.timestamp() * 1000)}"', page)
    file = owner.get(f"{path}csv/")
    assert file.headers["Content-Disposition"] == f'attachment; filename="query-{Query.objects.get().pk}.csv"'
    assert file.getvalue().decode() == 'big,text,n,m\r\n9007199254740993,\'=1+1,,"{""a"": 1}"\r\n'


def test_times_of_an_answer_are_in_the_zone_of_the_page_and_those_of_its_file_in_utc(owner: Client) -> None:
    owner.cookies["okmq_zone"] = "Asia/Kathmandu"
    columns = [("at", "timestamp"), ("local", "timestamp_ntz"), ("day", "date"), ("said", "string")]
    moment, plain = "2026-01-01T20:00:00.250Z", "2026-01-01T20:00:00.250"
    unreadable = "+12026-01-01T20:00:00.000Z"
    edge, before_unix = "0001-01-01T00:00:00.000Z", "1969-12-31T23:59:59.250Z"
    path = answered(
        asked(owner),
        columns,
        [
            [moment, plain, "2026-01-01", moment],
            [unreadable, None, None, None],
            [edge, None, None, None],
            [before_unix, None, None, None],
            [None] * 4,
        ],
    )
    page = text(owner, path)
    assert "timestamp · Asia/Kathmandu</span>" in page
    assert f'datetime="{moment}" title="{moment}">2026-01-02 01:45:00.250</time>' in page
    assert f'title="{before_unix}">1970-01-01 05:29:59.250</time>' in page
    for as_it_is in (plain, "2026-01-01", moment, unreadable):
        assert f"<bdi>{as_it_is}</bdi>" in page
    file = owner.get(f"{path}csv/").getvalue().decode()
    assert file.splitlines()[1] == f"{moment},{plain},2026-01-01,{moment}"
    owner.cookies["okmq_zone"] = "America/New_York"
    page = text(owner, path)
    assert "2026-01-01 15:00:00.250</time>" in page
    assert f"<bdi>{edge}</bdi>" in page
    owner.cookies["okmq_zone"] = "UTC"
    assert "timestamp · UTC</span>" in text(owner, path)


def test_a_day_on_a_chart_begins_where_the_days_of_the_page_do(owner: Client) -> None:
    """A chart's axis is in the page's zone: a midnight of UTC would stand on the day before, west of it."""
    owner.cookies["okmq_zone"] = "America/New_York"
    path = answered(
        asked(owner), [("day", "date"), ("messages", "bigint")], [["2026-01-01", 5], ["2026-01-02", 6]]
    )
    assert seed_in(text(owner, path))["times"] == [1767243600.0, 1767330000.0]


def test_an_answer_comes_by_itself_with_its_chart_and_the_newest_queries_and_without_the_editor(
    owner: Client,
) -> None:
    path = answered(asked(owner), [("x", "bigint"), ("<b>", "bigint")], [[1, 2], [2, 3]])
    part = text(owner, path, headers={"HX-Request": "true"})
    assert seed_in(part) == seed_in(text(owner, path))
    assert seed_in(part)["names"] == ["<b>"]
    assert "<script" not in part, "htmx takes scripts out of a part"
    assert "<b>" not in part
    assert "textarea" not in part
    assert '<section class="panel" id="queries-latest" hx-swap-oob="true">' in part
    assert "hx-swap-oob" not in text(owner, path)
    assert '<button class="btn btn-sm btn-outline-secondary">Publish</button>' in part


def test_the_newest_queries_say_of_one_that_goes_on_what_its_page_says(owner: Client) -> None:
    query = asked(owner)
    taken = service.query_take()
    assert taken is not None
    part = text(owner, f"/sql/{query.pk}/", headers={"HX-Request": "true"})
    before, _, latest = part.partition('id="queries-latest"')
    assert "starting" in before
    assert "starting" in latest
    assert "queued" not in latest


def test_an_answer_goes_into_a_stream_of_those_who_may_publish(
    owner: Client, viewer: Client, workspace: Workspace
) -> None:
    stream, _ = stream_create(workspace, name="totals", settings={}, actor=SYSTEM)
    path = answered(asked(owner), [("stream", "string"), ("n", "bigint")], [["orders", 2], ["bills", 3]])
    assert f'action="{path}publish/"' in text(owner, path)
    assert "This needs the right to publish." in text(viewer, path)
    page = owner.post(f"{path}publish/", {"stream": "totals", "key": "stream"}, follow=True)
    assert "2 messages were published to totals; rows that it already had: 0." in page.content.decode()
    assert selectors.message_at(stream, 2).key == "bills"
    assert CUT not in page.content.decode()
    many = answered(asked(owner), [("n", "bigint")], [[n] for n in range(1_001)], truncated=True)
    for told in (
        "1,001 messages were published to totals; rows that it already had: 0.",
        "already had: 1,001.",
    ):
        answer = owner.post(f"{many}publish/", {"stream": "totals"}, follow=True)
        assert told in answer.content.decode()
        assert CUT in answer.content.decode()
    wrong = owner.post(f"{path}publish/", {"stream": HOSTILE, "key": ""}, follow=True).content.decode()
    assert HOSTILE not in wrong
    assert 'role="alert"' in wrong
    viewer.post(f"{path}publish/", {"stream": "totals"})
    assert store.log().run(stats.inspect(stream.stream_id)).messages == 1_003


def test_hostile_text_is_text_everywhere(owner: Client) -> None:
    path = answered(
        asked(owner, f"SELECT '{HOSTILE}'"), [(HOSTILE, "int"), (HOSTILE, "int")], [[1, 2], [2, 3]]
    )
    page = text(owner, path)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    service.query_end(asked(owner), QueryState.REFUSED, error=HOSTILE)
    assert "<img src=x" not in text(owner, f"/sql/{Query.objects.latest('id').pk}/")
    owner.post("/sql/", {"sql": HOSTILE, "limit": 1, "name": HOSTILE, "save": "1"})
    page = text(owner, "/sql/")
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


@pytest.mark.parametrize(
    ("kind", "values", "seed"),
    [
        ("timestamp", ["2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z"], [1767225600.0, 1767229200.0]),
        ("date", ["2026-01-02", "2026-01-01"], [1767225600.0, 1767312000.0]),
        ("bigint", [2, 1], [1.0, 2.0]),
    ],
)
def test_a_first_column_of_times_or_numbers_makes_a_chart(
    owner: Client, kind: str, values: list[Any], seed: list[float]
) -> None:
    columns = [("x", kind), ("messages", "bigint"), ("name", "string")]
    path = answered(asked(owner), columns, [[values[0], 5, "a"], [values[1], None, "b"]])
    page = text(owner, path)
    assert page.count('data-chart="answer-chart"') == 1
    chart = seed_in(page)
    assert (chart["times"], chart["names"], sorted(chart["s0"], key=str)) == (seed, ["messages"], [5.0, None])


def test_a_saved_page_of_an_answer_has_its_charts(owner: Client) -> None:
    columns = [("x", "bigint"), ("messages", "bigint"), ("<b>", "double")]
    path = answered(asked(owner), columns, [[1, 5, 0.5], [2, 7, 1.5]])
    page = text(owner, f"{path}?snapshot=1").partition("</head>")[2]
    charts = re.findall(r'<div class="chart"[^>]*>(.*?)</div>', page, re.DOTALL)
    assert len(charts) == 2
    assert all(ElementTree.fromstring(chart).findall("path") for chart in charts)
    assert 'id="answer-chart"' not in page
    assert "&quot;times&quot;" not in page


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ([("x", "string"), ("n", "int")], [["a", 1], ["b", 2]]),
        ([("x", "int"), ("n", "string")], [[1, "a"], [2, "b"]]),
        ([("x", "int"), ("n", "int")], [[1, 1], [1, 2]]),
        ([("x", "int"), ("n", "int")], [[1, 1]]),
        ([("x", "double"), ("n", "int")], [["NaN", 1], [1.5, 2]]),
    ],
)
def test_other_answers_make_none(owner: Client, columns: list[tuple[str, str]], rows: list[Any]) -> None:
    assert "data-chart" not in text(owner, answered(asked(owner), columns, rows))


def test_a_long_answer_comes_in_pages(owner: Client) -> None:
    path = answered(asked(owner), [("n", "string")], [[f"row-{n}"] for n in range(450)])
    assert "<bdi>row-199</bdi>" in text(owner, path)
    last = text(owner, f"{path}?page=3")
    assert "rows 401 to 450" in last
    assert "<bdi>row-399</bdi>" not in last
    assert "rows 401 to 450" in text(owner, f"{path}?page=99")


def test_a_page_of_an_answer_with_many_columns_has_few_rows(owner: Client) -> None:
    columns = [(f"c{n}", "bigint") for n in range(1_500)]
    path = answered(asked(owner), columns, [[*range(1_500)]] * 400)
    seconds = []
    for page in (1, 30, 67):
        began = time.thread_time()
        shown = text(owner, f"{path}?page={page}")
        seconds.append(time.thread_time() - began)
    table, last, _ = shown.partition("rows 397 to 400")
    assert (table.rpartition("<tbody>")[2].count("<td"), bool(last)) == (4 * 1_500, True)
    assert len(shown) < 2_000_000
    assert min(seconds) < 3, "all cells of the answer took ten times as long"


def test_queries_are_saved_for_the_workspace_and_let_go(owner: Client, viewer: Client) -> None:
    saved = {"sql": "SELECT 2", "limit": 1, "name": "two & more", "save": "1"}
    assert owner.post("/sql/", {**saved, "name": " "}).status_code == 422
    assert owner.post("/sql/", saved).status_code == 200
    assert SavedQuery.objects.get().saved_by == "owner"
    assert ">SELECT 2</textarea>" in text(viewer, "/sql/?saved=two%20%26%20more").replace("\n", "")
    assert viewer.post("/sql/", saved).status_code == 403
    assert viewer.post("/sql/saved/delete/", {"name": "two & more"}).status_code == 403
    assert owner.post("/sql/saved/delete/", {"name": "two & more"}).status_code == 302
    assert not SavedQuery.objects.exists()
    kinds = Event.objects.filter(kind__startswith="history.query").order_by("id")
    assert [event.kind for event in kinds] == ["history.query_saved", "history.query_deleted"]


def test_a_viewer_cancels_what_they_asked_and_nothing_else(viewer: Client, owner: Client) -> None:
    theirs, own = asked(owner), asked(viewer)
    page = text(viewer, f"/sql/{theirs.pk}/")
    assert f'action="/sql/{theirs.pk}/cancel/"' not in page
    assert "Only who ran it, or who may manage, may cancel it." in page
    assert viewer.post(f"/sql/{theirs.pk}/cancel/").status_code == 403
    theirs.refresh_from_db()
    assert theirs.state == QueryState.QUEUED
    assert f'action="/sql/{own.pk}/cancel/"' in text(
        viewer, f"/sql/{own.pk}/", headers={"HX-Request": "true"}
    )
    for client, query in ((viewer, own), (owner, theirs)):
        assert client.post(f"/sql/{query.pk}/cancel/").status_code == 302
        query.refresh_from_db()
        assert query.state == QueryState.CANCELLED


def test_a_viewer_asks_and_a_stranger_sees_nothing_of_it(viewer: Client, stranger: Client) -> None:
    query = asked(viewer, "SELECT 'secret'")
    path = answered(query, [("s", "string")], [["secret"]])
    for address in (path, f"{path}csv/"):
        assert stranger.get(address).status_code == 404
    assert stranger.post(f"{path}cancel/").status_code == 404
    assert "secret" not in text(stranger, "/sql/")
    assert Client().get(path).status_code == 302


@pytest.mark.parametrize("given", [{"sql": ""}, {"sql": "x" * 20_001}, {"limit": "0"}, {"limit": "x"}])
def test_what_is_no_question_is_said_at_its_field(owner: Client, given: dict[str, str]) -> None:
    answer = owner.post("/sql/", {"sql": "SELECT 1", "limit": "10", "ask": "", **given})
    assert answer.status_code == 422
    assert "invalid-feedback" in answer.content.decode()
    assert not Query.objects.exists()


def test_the_editor_begins_with_the_stream_that_one_came_from(owner: Client, workspace: Workspace) -> None:
    page = text(owner, "/sql/?stream=it%27s")
    assert "WHERE stream = &#x27;it\\&#x27;s&#x27;" in page
    assert {name: ", ".join(column for column, _ in columns) for name, columns in COLUMNS.items()} == TABLES
