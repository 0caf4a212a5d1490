"""A rule about groups that nobody fetches from, tried on what is kept: as the worker judged it."""

import json
import time
from typing import Any

import pytest

from streams import store
from streams.log import groups, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import DEFAULT_WORKSPACE, AlertRule, Stream, Workspace
from streams.services.installation import METRICS_STREAM
from streams.services.streams import internal_stream
from streams.upkeep.alerting import Alerting
from tests.streams.api.conftest import Api
from tests.waiting import until


@pytest.fixture
def orders(owner: Api) -> Stream:
    AlertRule.objects.all().delete()
    owner.post("streams/", {"name": "orders"})
    owner.post("streams/orders/groups/", {"name": "billing"})
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=10))
    return stream


def sampled(stream: Stream, *records: tuple[float, float]) -> None:
    """Samples of the group: so many seconds ago, quiet for so long; instead of those that are kept."""
    Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)
    metrics = internal_stream(METRICS_STREAM, archive=False)
    store.log().run(trim.purge(metrics.stream_id, below=2**40))
    now_ms = int(time.time() * 1000)
    for ago_s, quiet in records:
        at = now_ms - int(ago_s * 1000)
        group = {"billing": {"status": "ok", "quiet": quiet}}
        body = json.dumps({"at": at, "streams": {}, "groups": {stream.stream_id: group}})
        store.log().run(append(metrics.stream_id, [NewMessage(id=f"{at}", body=body.encode())]))


def tried(owner: Api, *, limit: float) -> dict[str, Any]:
    rule = {"stream": "orders", "watch": "no_consumer", "limit": limit, "for_seconds": 0}
    found: dict[str, Any] = owner.post("alerts/try", rule).json()
    return found


def test_a_group_at_rest_that_nobody_fetches_from_would_have_fired(owner: Api, orders: Stream) -> None:
    sampled(orders, (0.0, 0.0))
    rule = {"name": "quiet", "stream": "orders", "watch": "no_consumer", "limit": 1, "for_seconds": 0}
    owner.post("alerts/rules/", rule)
    assert tried(owner, limit=3600)["fired"] == 0
    until(lambda: tried(owner, limit=1)["fired"] == 1)
    Alerting().look(now_s=0)
    assert len(owner.get("alerts/").json()) == 1, "as the worker judges it"


def test_what_was_silent_until_somebody_came_would_have_fired_until_then(owner: Api, orders: Stream) -> None:
    sampled(orders, (900.0, 20.0))
    found = tried(owner, limit=240)
    assert (found["subjects"], found["fired"]) == (1, 1)
    assert 640 < found["longest_seconds"] < 700


def test_what_was_fetched_from_all_along_would_not_have_fired(owner: Api, orders: Stream) -> None:
    sampled(orders, (900.0, 0.0))
    assert tried(owner, limit=240)["fired"] == 0


def test_a_group_at_rest_since_before_the_samples_is_looked_at_from_their_beginning(
    owner: Api, orders: Stream
) -> None:
    sampled(orders, (900.0, 0.0))
    owner.post("streams/orders/groups/", {"name": "other"})
    assert tried(owner, limit=240)["subjects"] == 2
