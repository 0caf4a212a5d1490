"""What fired, over HTTP: pages that go on to the last one, and what fires apart from what is resolved."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from streams.models import Alert, AlertRule
from tests.streams.api.conftest import Api


@pytest.fixture
def alerts(owner: Api) -> None:
    """Five that are resolved, the first of all and each second one, of nine."""
    owner.post("alerts/rules/", {"name": "lags", "stream": "*", "watch": "lag", "limit": 2})
    rule, now = AlertRule.objects.get(workspace=owner.workspace), timezone.now()
    for number in range(9):
        began_at = now - timedelta(minutes=60 - number)
        ended_at = None if number % 2 else now - timedelta(minutes=number)
        Alert.objects.create(
            rule=rule, stream=f"s{number}", began_at=began_at, ended_at=ended_at, value=3, sentence="It lags."
        )


def streams(answer: Any) -> list[str]:
    return [each["stream"] for each in answer.json()]


def followed(owner: Api, path: str) -> list[list[str]]:
    """The streams of each page, from link to link."""
    pages = []
    while path:
        answer = owner.get(path)
        pages.append(streams(answer))
        link = answer.headers.get("Link", "")
        path = link.partition("/api/v1/")[2].partition(">")[0]
    return pages


def test_pages_lead_to_the_oldest(owner: Api, alerts: None) -> None:
    assert followed(owner, "alerts/?limit=4") == [
        ["s8", "s7", "s6", "s5"],
        ["s4", "s3", "s2", "s1"],
        ["s0"],
    ]
    assert "Link" not in owner.get("alerts/").headers


def test_what_fires_and_what_is_resolved_are_asked_for_apart(owner: Api, alerts: None) -> None:
    assert followed(owner, "alerts/?state=firing&limit=3") == [["s7", "s5", "s3"], ["s1"]]
    assert followed(owner, "alerts/?state=resolved&limit=3") == [["s8", "s6", "s4"], ["s2", "s0"]]


@pytest.mark.parametrize("query", ["state=loud", "limit=0", "limit=1001", "after=x", "status=firing"])
def test_what_cannot_be_asked_is_refused(owner: Api, query: str) -> None:
    answer = owner.get(f"alerts/?{query}")
    assert answer.json()["error"]["details"]["fields"] == [query.partition("=")[0]]
