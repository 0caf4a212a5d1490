"""What calls cost, in statements and round trips: it must not grow with the number of streams."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from streams import store
from streams.log.client import Log
from tests.streams.api.conftest import Api


@dataclass
class Cost:
    """SQL statements, and round trips to the log."""

    statements: int = 0
    trips: int = 0


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Cost]:
    """What doing something costs."""

    def measure(act: Callable[[], Any]) -> Cost:
        counted = Cost()
        send = Log._send

        def counting(log: Log, command: Any) -> Any:
            counted.trips += 1
            return send(log, command)

        with monkeypatch.context() as patch, CaptureQueriesContext(connection) as queries:
            patch.setattr(Log, "_send", counting)
            answer = act()
        assert answer.status_code in {200, 201}, answer.content
        counted.statements = len(queries)
        return counted

    assert store.log()
    return measure


def names(count: int, first: int = 0) -> list[dict[str, str]]:
    return [{"name": f"s{n:04}"} for n in range(first, first + count)]


def test_making_a_thousand_takes_a_few_round_trips(owner: Api, cost: Callable[..., Cost]) -> None:
    many = cost(lambda: owner.post("streams/", names(1000)))
    assert many.statements <= 60  # bulk inserts come in slices on SQLite
    assert many.trips <= 12


def test_a_page_costs_the_same_whatever_there_is(owner: Api, cost: Callable[..., Cost]) -> None:
    owner.post("streams/", names(20))
    few = cost(lambda: owner.get("streams/?limit=10"))
    owner.post("streams/", names(500, first=20))
    assert cost(lambda: owner.get("streams/?limit=10")) == few
    assert few.statements <= 3
    assert few.trips == 1
