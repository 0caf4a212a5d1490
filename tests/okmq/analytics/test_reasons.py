"""Why a replay or a query failed may tell a body: that is told until the body is erased."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pyspark.sql import SparkSession

from okmq.analytics import replays
from okmq.analytics.answering import Answering
from streams.log.entries import NewMessage
from streams.models import Query, Replay, Role, Workspace
from streams.services.failures import NOT_KEPT
from tests.dashboard.conftest import person
from tests.okmq.analytics.replaying import Here
from tests.okmq.analytics.working import in_workspace, inside
from tests.okmq.web.served import make_static_root
from tests.spark.published import Published
from tests.streams.api.conftest import caller

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

SECRET = "Jane Roe, 12 Elm Street"
BODY = json.dumps({"of": SECRET}).encode()

CAST = "cast(body AS INT) > 1"
"""Spark says which value cannot be cast: the whole body."""


@pytest.fixture
def here(published: Published, tmp_path: Path, settings: Any, spark: SparkSession) -> Iterator[Here]:
    published = in_workspace(published)
    with inside(published, settings, tmp_path) as analytics:
        yield Here(published, Workspace.objects.get(pk=published.workspace_id), analytics)


def archived(here: Here) -> str:
    """A stream ``a`` whose history has the body."""
    stream_id = here.stream("a")
    here.published.publish(stream_id, [NewMessage(id="m1", body=BODY)])
    here.archive()
    return stream_id


def asked(workspace: Workspace, condition: str = CAST) -> Query:
    sql = f"SELECT offset FROM messages WHERE {condition}"
    return Query.objects.create(workspace=workspace, sql=sql, limit=10, streams=[], asked_by="somebody")


def erased(here: Here, stream_id: str) -> None:
    here.published.delete(stream_id, [1])
    assert here.erased("a", stream_id, offset=1).state == "succeeded"


def told_at(here: Here, owner: Client, replay: Replay, query: Query) -> list[str]:
    """Where somebody reads the body: the API, the console, the database."""
    reader = caller(here.workspace, scopes=["read"])
    paths = [f"analytics/replays/{replay.pk}", "analytics/replays/"]
    paths += [f"analytics/query/{query.pk}", "analytics/query"]
    said = {path: reader.get(path).content.decode() for path in paths}
    for page in ("/", f"/streams/a/history/?replay={replay.pk}", f"/sql/{query.pk}/"):
        said[page] = owner.get(page).content.decode()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            said[table] = repr(cursor.fetchall())
    return [where for where, what in said.items() if SECRET in what]


def test_what_was_erased_is_in_no_failure_of_before(here: Here, caplog: pytest.LogCaptureFixture) -> None:
    make_static_root()
    owner = person("owner", workspace=here.workspace, role=Role.ADMIN)
    stream_id = archived(here)
    elsewhere = asked(Workspace.objects.create(name="elsewhere"))
    Query.objects.filter(pk=elsewhere.pk).update(state="failed", error="The value '1' cannot be cast.")
    replay = here.worked(here.asked("a", "a", where=CAST))
    query = asked(here.workspace)
    assert here.analytics.queries.answer_next()
    told = told_at(here, owner, replay, query)
    assert {"streams_replay", "streams_query", "/", f"analytics/replays/{replay.pk}"} <= set(told)
    erased(here, stream_id)
    assert told_at(here, owner, replay, query) == []
    for each in (replay, query):
        each.refresh_from_db()
        assert (each.state, each.error) == ("failed", NOT_KEPT)
    assert NOT_KEPT in owner.get("/").content.decode()
    elsewhere.refresh_from_db()
    assert elsewhere.error == "The value '1' cannot be cast.", "another workspace knows nothing of the body"
    assert SECRET not in caplog.text


def test_a_replay_that_fails_over_what_was_erased_since_it_began_does_not_tell_it(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id, told = archived(here), replays._told

    def told_late(error: Exception) -> str:
        assert SECRET in told(error)
        erased(here, stream_id)
        return told(error)

    monkeypatch.setattr(replays, "_told", told_late)
    replay = here.worked(here.asked("a", "a", where=CAST))
    assert (replay.state, replay.error) == ("failed", NOT_KEPT)


def test_a_query_that_fails_over_what_was_erased_since_it_began_does_not_tell_it(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id = archived(here)

    def told_late(_: Answering, sentence: str) -> str:
        assert SECRET in sentence
        erased(here, stream_id)
        return sentence

    monkeypatch.setattr(Answering, "_without_places", told_late)
    query = asked(here.workspace)
    assert here.analytics.queries.answer_next()
    query.refresh_from_db()
    assert (query.state, query.error) == ("failed", NOT_KEPT)


def test_the_next_failure_is_told_again(here: Here) -> None:
    stream_id = archived(here)
    here.published.publish(stream_id, [NewMessage(id="m2", body=b'"of John Doe"')])
    erased(here, stream_id)
    replay = here.worked(here.asked("a", "a", where=CAST))
    query = asked(here.workspace)
    assert here.analytics.queries.answer_next()
    query.refresh_from_db()
    assert "John Doe" in replay.error
    assert "John Doe" in query.error
