"""What calls cost, in statements and round trips: it must not grow with the number of streams."""

import math

import pytest
from django.db import connection
from django.db.models import AutoField, Model

from streams.access import SYSTEM
from streams.models import Event, RemovalCount, Stream
from streams.services.groups import group_create
from tests.costs import cost_of
from tests.streams.api.conftest import Api

pytestmark = pytest.mark.long


def names(count: int, first: int = 0) -> list[dict[str, str]]:
    return [{"name": f"s{n:04}"} for n in range(first, first + count)]


def slices(rows: int, model: type[Model]) -> int:
    """Statements of one bulk insert: SQLite takes only so many values in one."""
    fields = [field for field in model._meta.concrete_fields if not isinstance(field, AutoField)]
    return math.ceil(rows / connection.ops.bulk_batch_size(fields, [None] * rows))


def test_making_a_thousand_takes_a_few_round_trips(owner: Api) -> None:
    many = cost_of(lambda: owner.post("streams/", names(1000)))
    assert many.statements <= slices(1000, Stream) + slices(1000, Event) + slices(1000, RemovalCount) + 13
    assert many.trips <= 12


def test_a_page_costs_the_same_whatever_there_is(owner: Api) -> None:
    owner.post("streams/", names(20))
    few = cost_of(lambda: owner.get("streams/?limit=10"))
    owner.post("streams/", names(500, first=20))
    assert cost_of(lambda: owner.get("streams/?limit=10")) == few
    assert few.statements <= 3
    assert few.trips == 1


def test_the_account_reads_one_field_of_each_stream(owner: Api) -> None:
    owner.post("streams/", names(300))
    account = cost_of(lambda: owner.get("account"))
    assert account.statements <= 3
    assert (account.trips, account.commands) == (1, 300)


def test_many_groups_cost_a_few_round_trips(owner: Api) -> None:
    """With and without a filter; a hundred go together."""
    owner.post("streams/", [{"name": "orders"}])
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    for number in range(250):
        settings = {"filter_keys": ["a.>"]} if number % 2 else {}
        group_create(stream, name=f"g{number:03}", settings=settings, actor=SYSTEM)
    owner.post("streams/orders/messages", [{"id": "1", "key": "a.b", "body": 1}])
    listed = cost_of(lambda: owner.get("streams/orders/groups/"))
    assert listed.statements <= 4
    assert listed.trips <= 45
    assert listed.commands >= 4 * 250


def test_a_preview_asks_for_hundreds_of_groups_together(owner: Api) -> None:
    owner.post("streams/", [{"name": "orders"}])
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    for number in range(250):
        group_create(stream, name=f"g{number:03}", settings={}, actor=SYSTEM)
    owner.post("streams/orders/messages", [{"id": "1", "body": 1}])
    limits = cost_of(lambda: owner.post("streams/orders/retention/preview", {"max_messages": 1}))
    purge = cost_of(lambda: owner.post("streams/orders/purge/preview?keep=0"))
    for previewed in (limits, purge):
        assert previewed.trips <= 15
        assert previewed.commands >= 4 * 250


def test_metrics_of_many_streams_cost_a_few_round_trips(owner: Api) -> None:
    """In slices, so that nobody else waits for more than one of them."""
    owner.post("streams/", names(600))
    metrics = cost_of(lambda: owner.client.get("/metrics", headers={"authorization": owner.secret}))
    assert metrics.statements <= 5
    assert metrics.trips == 3
