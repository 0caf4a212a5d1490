"""Questions in SQL over HTTP: queued, answered, refused, cancelled, and who may see what. Spark is not here."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from streams.access import SYSTEM
from streams.api import sql
from streams.models import Query, QueryState, Workspace
from streams.services import queries as service
from streams.services.tokens import token_create
from tests.streams.api.conftest import Api, caller, code, fields
from tests.waiting import until

PATH = "analytics/query"


@pytest.fixture(autouse=True)
def no_queries(database: None) -> None:
    Query.objects.all().delete()


def asked(api: Api, text: str = "SELECT 1", **more: Any) -> Any:
    answer = api.post(PATH, {"sql": text, **more})
    assert answer.status_code == 202, answer.content
    return answer.json()


def taken() -> Query:
    query = service.query_take()
    assert query is not None
    return query


def test_an_answer_within_the_wait_is_given_as_spark_wrote_it(
    owner: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "WAIT_S", 30.0)

    def answer() -> None:
        until(Query.objects.exists, what="somebody asks")
        service.query_answer(
            taken(),
            columns=[("n", "decimal(3,2)"), ("n", "string")],
            rows=['[1.50,"ü"]', "[9007199254740993,null]"],
            truncated=True,
        )
        connections.close_all()

    answering = threading.Thread(target=answer)
    answering.start()
    found = owner.post(PATH, {"sql": "SELECT 1.50 AS n, 'ü' AS n", "limit": 2})
    answering.join()
    assert found.status_code == 200
    assert b'"rows": [[1.50,"\xc3\xbc"],[9007199254740993,null]]' in found.content
    assert found.json()["columns"] == [{"name": "n", "type": "decimal(3,2)"}, {"name": "n", "type": "string"}]
    assert found.json()["truncated"] is True
    assert found.json()["elapsed"] >= 0


def test_a_slow_answer_is_asked_for_until_it_is_there(owner: Api) -> None:
    first = owner.post(PATH, {"sql": "SELECT 1"})
    shown = first.json()
    assert first.headers["Location"] == shown["url"] == f"http://testserver/api/v1/{PATH}/{shown['id']}"
    assert (shown["state"], shown["progress"], shown["error"]) == ("queued", 0.0, None)
    query = taken()
    service.query_runs(query)
    assert service.query_progress(query, 0.5)
    waiting = owner.get(f"{PATH}/{shown['id']}")
    assert (waiting.status_code, waiting.json()["state"], waiting.json()["progress"]) == (202, "running", 0.5)
    service.query_answer(query, columns=[("1", "int")], rows=["[1]"], truncated=False)
    answer = owner.get(f"{PATH}/{shown['id']}")
    assert (answer.status_code, answer.json()["rows"]) == (200, [[1]])
    assert [each["state"] for each in owner.get(PATH).json()] == ["succeeded"]


@pytest.mark.parametrize(
    ("state", "status", "refused"),
    [
        (QueryState.REFUSED, 400, "query_refused"),
        (QueryState.FAILED, 422, "query_failed"),
        (QueryState.CANCELLED, 409, "query_cancelled"),
    ],
)
def test_an_end_without_an_answer_is_a_refusal(
    owner: Api, state: QueryState, status: int, refused: str
) -> None:
    shown = asked(owner)
    service.query_end(taken(), state, error="That is why.")
    answer = owner.get(f"{PATH}/{shown['id']}")
    assert (answer.status_code, code(answer)) == (status, refused)
    assert answer.json()["error"]["message"] == "That is why."


def test_names_and_errors_may_hold_what_no_text_of_postgresql_does(owner: Api) -> None:
    failed, answered = asked(owner), asked(owner)
    service.query_end(taken(), QueryState.FAILED, error="'\x00' is no number.")
    service.query_answer(taken(), columns=[("a\x00", "struct<b\x00:int>")], rows=[], truncated=False)
    assert owner.get(f"{PATH}/{failed['id']}").json()["error"]["message"] == "'␀' is no number."
    assert owner.get(f"{PATH}/{answered['id']}").json()["columns"] == [
        {"name": "a␀", "type": "struct<b␀:int>"}
    ]


def test_a_process_that_ended_meanwhile_is_told_and_may_be_asked_again(owner: Api) -> None:
    shown = asked(owner)
    taken()
    assert service.queries_lost() == 1
    answer = owner.client.get(shown["url"], headers={"authorization": owner.secret})
    assert (answer.status_code, code(answer)) == (503, "query_lost")
    assert answer.headers["Retry-After"] == "1"


def test_cancelling_ends_what_waits_at_once_and_tells_who_works_on_the_rest(owner: Api) -> None:
    waits, runs = asked(owner), asked(owner)
    assert owner.delete(f"{PATH}/{waits['id']}").status_code == 204
    assert code(owner.get(f"{PATH}/{waits['id']}")) == "query_cancelled"
    query = taken()
    assert query.pk == runs["id"]
    assert owner.delete(f"{PATH}/{runs['id']}").status_code == 204
    assert not service.query_progress(query, 0.1)
    service.query_end(query, QueryState.CANCELLED)
    assert owner.delete(f"{PATH}/{runs['id']}").status_code == 204
    service.query_answer(query, columns=[], rows=["[1]"], truncated=False)
    assert code(owner.get(f"{PATH}/{runs['id']}")) == "query_cancelled"


def test_only_who_asked_or_may_manage_cancels(owner: Api) -> None:
    readers = [
        Api(token_create(owner.workspace, name=name, scopes=["read"], actor=SYSTEM)[1], owner.workspace)
        for name in ("one", "other")
    ]
    first, second = asked(readers[0]), asked(readers[0])
    query = taken()
    refused = readers[1].delete(f"{PATH}/{first['id']}")
    assert (refused.status_code, code(refused)) == (403, "forbidden")
    assert code(readers[1].delete(f"{PATH}/{second['id']}")) == "forbidden"
    assert service.query_progress(query, 0.1)
    assert Query.objects.get(pk=second["id"]).state == QueryState.QUEUED
    assert readers[0].delete(f"{PATH}/{first['id']}").status_code == 204
    assert not service.query_progress(query, 0.2)
    manager = caller(owner.workspace, scopes=["read", "manage"])
    assert manager.delete(f"{PATH}/{second['id']}").status_code == 204
    assert Query.objects.get(pk=second["id"]).state == QueryState.CANCELLED


def test_a_stranger_sees_no_query_and_cancels_none(owner: Api, stranger: Api) -> None:
    shown = asked(owner)
    for answer in (stranger.get(f"{PATH}/{shown['id']}"), stranger.delete(f"{PATH}/{shown['id']}")):
        assert (answer.status_code, code(answer)) == (404, "query_not_found")
    assert stranger.get(PATH).json() == []
    assert Query.objects.get().cancel is False


def test_a_narrowed_token_asks_as_narrow_and_sees_only_such_answers(owner: Api) -> None:
    wide = asked(owner)
    narrow = caller(owner.workspace, scopes=["read"], streams=["orders.*"])
    own = asked(narrow)
    assert Query.objects.get(pk=own["id"]).streams == ["orders.*"]
    assert code(narrow.get(f"{PATH}/{wide['id']}")) == "query_not_found"
    assert [each["id"] for each in narrow.get(PATH).json()] == [own["id"]]
    assert narrow.get(f"{PATH}/{own['id']}").status_code == 202
    assert owner.get(f"{PATH}/{own['id']}").status_code == 202


def test_asking_needs_the_scope_read(owner: Api) -> None:
    publisher = caller(owner.workspace, scopes=["publish"])
    for answer in (
        publisher.post(PATH, {"sql": "SELECT 1"}),
        publisher.get(PATH),
        publisher.get(f"{PATH}/1"),
    ):
        assert (answer.status_code, code(answer)) == (403, "forbidden")


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ({}, "sql"),
        ({"sql": ""}, "sql"),
        ({"sql": 5}, "sql"),
        ({"sql": "x" * 20_001}, "sql"),
        ({"sql": "SELECT '\x00'"}, "sql"),
        ({"sql": "SELECT 1", "limit": 0}, "limit"),
        ({"sql": "SELECT 1", "limit": 10_001}, "limit"),
        ({"sql": "SELECT 1", "rows": 5}, "rows"),
    ],
)
def test_what_is_no_question_is_refused_by_field(owner: Api, body: dict[str, Any], refused: str) -> None:
    answer = owner.post(PATH, body)
    assert answer.status_code == 400
    assert fields(answer) == [refused]
    assert not Query.objects.exists()


def test_a_lone_surrogate_is_no_server_error(owner: Api) -> None:
    answer = owner.call("POST", PATH, b'{"sql": "SELECT \'\\ud800\'"}')
    assert answer.status_code == 400


def test_a_workspace_has_so_many_questions_open(owner: Api, stranger: Api) -> None:
    for _ in range(service.MOST_UNFINISHED):
        asked(owner)
    answer = owner.post(PATH, {"sql": "SELECT 1"})
    assert (answer.status_code, code(answer)) == (429, "rate_limited")
    assert answer.headers["Retry-After"] == "5"
    asked(stranger)


def test_where_nothing_answers_that_is_said_at_once(owner: Api, settings: Any) -> None:
    settings.ENV = replace(settings.ENV, history=False)
    answer = owner.client.post(
        f"/api/v1/{PATH}",
        b'{"sql": "SELECT 1"}',
        content_type="application/json",
        headers={"authorization": owner.secret},
    )
    assert (answer.status_code, code(answer)) == (409, "history_off")
    shown = Query.objects.create(workspace=owner.workspace, sql="SELECT 1", limit=1, asked_by="x")
    assert service.queries_refuse(reason="Java is missing.") == 1
    shown.refresh_from_db()
    assert (shown.state, shown.error) == (QueryState.LOST, "Java is missing.")


def test_answers_and_queries_are_forgotten(owner: Api) -> None:
    ids = [asked(owner)["id"] for _ in range(3)]
    for _ in ids:
        service.query_answer(taken(), columns=[("1", "int")], rows=["[1]"], truncated=False)
    now = timezone.now()
    Query.objects.filter(pk=ids[0]).update(created_at=now - timedelta(hours=25))
    Query.objects.filter(pk=ids[1]).update(finished_at=now - timedelta(minutes=61))
    service.queries_forget()
    statuses = [owner.get(f"{PATH}/{each}").status_code for each in ids]
    assert statuses == [404, 404, 200]
    assert Query.objects.get(pk=ids[1]).rows == "[]"


def test_the_queries_of_a_workspace_go_with_it(ruler: Api, unique: str) -> None:
    ruler.post("workspaces/", {"name": unique})
    workspace = Workspace.objects.get(name=unique)
    asked(caller(workspace))
    assert ruler.delete(f"workspaces/{unique}").status_code == 204
    assert not Query.objects.exists()
