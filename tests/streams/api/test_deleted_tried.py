"""A rule tried on what is kept of a group that was deleted: what holds until then, and no longer."""

import json
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from streams import store
from streams.log import trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import DEFAULT_WORKSPACE, AlertRule, StandingRollup, Stream, Workspace
from streams.selectors import back_test
from streams.selectors.back_tests import BackTest
from streams.services.installation import METRICS_STREAM
from streams.services.streams import internal_stream
from tests.streams.api.conftest import Api

LATER_MS = 3_600_000


@pytest.fixture
def orders(owner: Api) -> Stream:
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/orders/groups/", {"name": "billing"})
    return Stream.objects.get(workspace=owner.workspace, name="orders")


def now_ms() -> int:
    return int(time.time() * 1000)


def sampled(stream: Stream, *records: tuple[float, dict[str, Any]]) -> None:
    """Samples of the group, so many seconds from now, instead of those that are kept."""
    Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)
    metrics = internal_stream(METRICS_STREAM, archive=False)
    store.log().run(trim.purge(metrics.stream_id, below=2**40))
    for at_s, group in records:
        at = now_ms() + int(at_s * 1000)
        body = json.dumps({"at": at, "streams": {}, "groups": {stream.stream_id: {"billing": group}}})
        store.log().run(append(metrics.stream_id, [NewMessage(id=uuid4().hex, body=body.encode())]))


def tried(owner: Api, **rule: object) -> BackTest:
    """As an hour from now."""
    held = AlertRule(workspace=owner.workspace, stream="orders", for_seconds=0, **rule)
    return back_test(held, now_ms=now_ms() + LATER_MS)


def test_its_last_value_holds_until_it_was_deleted(owner: Api, orders: Stream) -> None:
    sampled(orders, (-100, {"lag": 50}))
    assert tried(owner, watch="lag", limit=10).longest_seconds > LATER_MS / 1000, "while it is there"
    assert owner.delete("streams/orders/groups/billing").status_code == 204
    (span,) = tried(owner, watch="lag", limit=10).spans
    assert 99 < span.seconds < 130
    assert tried(owner, watch="lag", limit=10).longest_seconds == span.seconds, "however late it is tried"


def test_one_of_that_name_begins_anew(owner: Api, orders: Stream) -> None:
    sampled(orders, (-100, {"lag": 50}))
    owner.delete("streams/orders/groups/billing")
    owner.post("streams/orders/groups/", {"name": "billing"})
    assert 99 < tried(owner, watch="lag", limit=10).longest_seconds < 130
    sampled(orders, (-100, {"lag": 50}), (1800, {"lag": 20}))
    first, second = tried(owner, watch="lag", limit=10).spans
    assert 99 < first.seconds < 130
    assert 1700 < second.seconds < 1830


def test_how_long_nobody_fetched_from_it_grows_until_then(owner: Api, orders: Stream) -> None:
    sampled(orders, (-100, {"quiet": 10}))
    owner.delete("streams/orders/groups/billing")
    (span,) = tried(owner, watch="no_consumer", limit=60).spans
    assert 49 < span.seconds < 80
    assert not tried(owner, watch="no_consumer", limit=600).spans


def test_who_waited_for_a_message_when_it_was_deleted_had_been_there_all_along(
    owner: Api, orders: Stream
) -> None:
    sampled(orders, (-100, {"quiet": 0}))
    owner.delete("streams/orders/groups/billing")
    found = tried(owner, watch="no_consumer", limit=60)
    assert (found.subjects, found.spans) == (1, [])


def test_one_that_nothing_says_was_deleted_and_that_is_not_there_holds_no_longer_than_it_was_looked_at(
    owner: Api, orders: Stream
) -> None:
    twenty_days_ago = timezone.now() - timedelta(days=20)
    StandingRollup.objects.create(
        stream_id=orders.stream_id,
        group="search",
        step="minute",
        start=twenty_days_ago.replace(second=0, microsecond=0),
        samples=6,
        last_ms=0,
        lag_max=50,
        lag_ms_max=0,
    )
    assert tried(owner, watch="lag", limit=10).longest_seconds == 60
