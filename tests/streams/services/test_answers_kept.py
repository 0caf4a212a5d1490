"""Answers of queries take no more of the database than they may, whoever asks how often; the oldest go first."""

from datetime import timedelta

import pytest
from django.utils import timezone

from streams.models import Query, QueryState, Workspace
from streams.services import queries as service

pytestmark = pytest.mark.django_db

ROW = '["äöü"]'
"""Ten bytes; with the brackets of the answer twelve."""


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two such answers of a workspace are kept, and three in all."""
    monkeypatch.setattr(service, "ANSWERS_BYTES_OF_WORKSPACE", 24)
    monkeypatch.setattr(service, "ANSWERS_BYTES", 36)


def asked(workspace: Workspace) -> Query:
    return Query.objects.create(
        workspace=workspace, sql="SELECT 1", limit=1, asked_by="somebody", state=QueryState.RUNNING
    )


def answered(query: Query, *, minutes_ago: int = 0) -> int:
    service.query_answer(query, columns=[("a", "string")], rows=[ROW], truncated=False)
    Query.objects.filter(pk=query.pk).update(finished_at=timezone.now() - timedelta(minutes=minutes_ago))
    return query.pk


def kept() -> set[int]:
    return {each.pk for each in Query.objects.filter(state=QueryState.SUCCEEDED) if each.columns}


def test_of_a_workspace_the_answer_that_was_given_first_goes(unique: str) -> None:
    workspace, other = (Workspace.objects.create(name=f"{unique}-{n}") for n in "ab")
    slow = asked(workspace)
    beside = answered(asked(other), minutes_ago=50)
    first, second = (answered(asked(workspace), minutes_ago=minutes) for minutes in (40, 30))
    assert kept() == {beside, first, second}
    last = answered(slow)
    assert kept() == {beside, second, last}
    gone = Query.objects.get(pk=first)
    assert (gone.state, gone.rows, gone.row_count) == (QueryState.SUCCEEDED, "[]", 1)


def test_of_all_workspaces_too(unique: str) -> None:
    ids = [
        answered(asked(Workspace.objects.create(name=f"{unique}-{n}")), minutes_ago=9 - n) for n in range(5)
    ]
    assert kept() == set(ids[2:])


def test_the_newest_answer_is_kept_however_large(unique: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "ANSWERS_BYTES_OF_WORKSPACE", 5)
    workspace = Workspace.objects.create(name=unique)
    assert answered(asked(workspace), minutes_ago=1) in kept()
    newest = answered(asked(workspace))
    assert kept() == {newest}
