"""The preview of other limits: who may ask, what is refused, what it says."""

import json
import time
from typing import Any

import pytest

from streams import store
from streams.log import census, groups, keys, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream, Workspace
from streams.selectors import METRICS_STREAM
from streams.services.streams import internal_stream
from tests.streams.api.conftest import Api, caller, code, fields
from tests.waiting import until

PATH = "streams/orders/retention/preview"


@pytest.fixture
def stream(owner: Api) -> Stream:
    assert owner.post("streams/", {"name": "orders"}).status_code == 201
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    messages = [NewMessage(id=f"m{n}", body=b"12", key=f"k{n % 2}") for n in range(10)]
    store.log().run(append(stream.stream_id, messages))
    return stream


def test_it_says_what_would_go_and_of_which_group(owner: Api, stream: Stream) -> None:
    owner.post("streams/orders/groups/", {"name": "billing"})
    store.log().run(groups.fetch(stream.stream_id, "billing", limit=3))
    store.log().run(groups.ack(stream.stream_id, "billing", "up_to", [2]))
    told = owner.post(PATH, {"max_messages": 6}).json()
    oldest = told.pop("oldest_timestamp")
    assert oldest.endswith("Z")
    assert told == {
        "messages": 4,
        "bytes": 8,
        "first_offset": 5,
        "groups": [{"group": "billing", "unread": 2}],
        "as_of": 10,
        "complete": True,
        "counted": 1.0,
        "reason": None,
    }
    assert owner.get("streams/orders").json()["messages"] == 10


def test_what_is_saved_afterwards_is_what_it_said(owner: Api, stream: Stream) -> None:
    limits = {"max_messages_per_key": 2, "max_bytes": 18}
    told = owner.post(PATH, limits).json()
    saved = owner.patch("streams/orders", limits).json()
    assert told["messages"] == 10 - saved["messages"]
    assert (told["bytes"], told["first_offset"]) == (20 - saved["bytes"], saved["first_offset"])


def test_one_of_more_keys_than_are_counted_says_that_it_will_not_be_complete(
    owner: Api, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "MOST_KEYS", 1)
    told = owner.post(PATH, {"max_messages_per_key": 1}).json()
    assert (told["complete"], told["reason"]) == (False, "too_many_keys")
    assert owner.post(PATH, {"max_messages": 1}).json()["reason"] is None


def test_an_empty_body_asks_about_the_limits_as_they_are(owner: Api, stream: Stream) -> None:
    assert owner.post(PATH).json()["messages"] == 0
    assert owner.post(PATH, {}).json()["first_offset"] == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("ttl", 0), ("ttl", 101 * 365 * 86_400), ("max_bytes", "5"), ("max_mesages", 5), ("archive", True)],
)
def test_a_wrong_field_is_named(owner: Api, stream: Stream, field: str, value: Any) -> None:
    answer = owner.post(PATH, {field: value})
    assert (answer.status_code, fields(answer)) == (400, [field])


def test_reading_is_enough_and_another_workspace_sees_nothing(
    owner: Api, stranger: Api, stream: Stream
) -> None:
    assert caller(owner.workspace, scopes=["read"]).post(PATH, {}).status_code == 200
    assert code(caller(owner.workspace, scopes=["publish"]).post(PATH, {})) == "forbidden"
    assert code(stranger.post(PATH, {})) == "stream_not_found"


def test_more_than_the_plan_keeps_is_refused_as_saving_it_would_be(owner: Api, stream: Stream) -> None:
    Workspace.objects.filter(pk=owner.workspace.pk).update(plan="free")
    answer = owner.post(PATH, {"ttl": 40 * 86_400})
    assert (answer.status_code, code(answer)) == (403, "quota_exceeded")


def test_it_may_be_given_longer_to_look_at_messages(owner: Api, stream: Stream) -> None:
    told = owner.post(f"{PATH}?wait=2", {"max_messages_per_key": 1}).json()
    assert told == owner.post(PATH, {"max_messages_per_key": 1}).json()
    assert told["complete"]
    assert fields(owner.post(f"{PATH}?wait=31", {})) == ["wait"]
    assert fields(owner.post(f"{PATH}?wait=soon", {})) == ["wait"]


FORECAST = "streams/orders/retention/forecast"


def test_it_is_foreseen_when_limits_are_reached_and_groups_fall_off(owner: Api, stream: Stream) -> None:
    owner.post("streams/orders/groups/", {"name": "billing"})
    told = owner.post(FORECAST, {"max_messages": 1000, "ttl": 86_400 * 365}).json()
    rate = told["messages_per_second"]
    assert rate == pytest.approx(10 / told["over"], rel=0.01)
    assert told["bytes_per_second"] == pytest.approx(2 * rate, rel=0.01)
    (limit,) = told["limits"]
    assert limit == {"limit": "max_messages", "reached_in": pytest.approx(990 / rate, rel=0.01)}
    assert (told["messages"], told["bytes"]) == (1000, 2000)
    assert told["oldest_age"] == pytest.approx(1000 / rate, rel=0.01)
    (group,) = told["groups"]
    assert group["limit"] == "max_messages"
    assert group["falls_off_in"] == pytest.approx(990 / rate, rel=0.01)
    assert owner.get("streams/orders").json()["max_messages"] is None


def test_without_a_limit_a_stream_grows_without_end(owner: Api, stream: Stream) -> None:
    told = owner.post(FORECAST).json()
    assert (told["limits"], told["messages"], told["oldest_age"]) == ([], None, None)


@pytest.fixture
def metrics(stream: Stream) -> Stream:
    Workspace.objects.get_or_create(name="default")
    made = internal_stream(METRICS_STREAM, archive=False)
    store.log().run(trim.purge(made.stream_id))  # samples of other tests
    return made


def sample(metrics: Stream, stream: Stream, *, ago_s: int, **figures: int) -> None:
    """What the worker would have sampled of a stream so long ago."""
    at_ms = int(time.time() * 1000) - ago_s * 1000
    held = {"messages": 1, "bytes": 1, "lag": 0, **figures}
    body = json.dumps({"at": at_ms, "streams": {stream.stream_id: held}}).encode()
    store.log().run(append(metrics.stream_id, [NewMessage(id=f"{at_ms}", body=body)]))


@pytest.mark.parametrize("limit", [{"max_messages": 3}, {"max_messages_per_key": 1}, {"max_bytes": 4}])
def test_the_rate_is_what_came_in_also_where_little_of_it_is_kept(
    owner: Api, stream: Stream, metrics: Stream, limit: dict[str, int]
) -> None:
    sample(metrics, stream, ago_s=100, offset=2, appended=4)
    sample(metrics, stream, ago_s=1, offset=10, appended=20)
    owner.patch("streams/orders", limit)
    told = owner.post(FORECAST, {"max_messages": 1000}).json()
    assert told["over"] == pytest.approx(100, abs=5)
    assert told["messages_per_second"] == pytest.approx(8 / told["over"], rel=0.01)
    assert told["bytes_per_second"] == pytest.approx(16 / told["over"], rel=0.01)


def test_the_rate_is_known_where_everything_went_as_it_came(
    owner: Api, stream: Stream, metrics: Stream
) -> None:
    sample(metrics, stream, ago_s=50, offset=0, appended=0)
    store.log().run(trim.purge(stream.stream_id))
    assert owner.get("streams/orders").json()["messages"] == 0
    assert owner.post(FORECAST).json()["messages_per_second"] == pytest.approx(10 / 50, rel=0.1)


def test_a_sample_that_does_not_tell_is_passed_over(owner: Api, stream: Stream, metrics: Stream) -> None:
    sample(metrics, stream, ago_s=100, offset=2)
    owner.patch("streams/orders", {"max_messages": 3})
    told = owner.post(FORECAST).json()
    assert told["messages_per_second"] == pytest.approx(3 / told["over"], rel=0.01), "of what is there"


def test_a_stream_that_holds_all_that_ever_came_needs_no_samples(
    owner: Api, stream: Stream, metrics: Stream
) -> None:
    sample(metrics, stream, ago_s=1000, offset=9, appended=18)
    told = owner.post(FORECAST).json()
    assert told["messages_per_second"] == pytest.approx(10 / told["over"], rel=0.01)


def test_nothing_is_foreseen_of_an_empty_stream(owner: Api) -> None:
    owner.post("streams/", {"name": "orders", "max_messages": 5})
    assert owner.post(FORECAST).json() == {
        "messages_per_second": 0.0,
        "bytes_per_second": 0.0,
        "over": 3600.0,
        "limits": [],
        "messages": None,
        "bytes": None,
        "oldest_age": None,
        "groups": [],
    }


def test_a_forecast_refuses_what_saving_refuses(owner: Api, stranger: Api, stream: Stream) -> None:
    assert fields(owner.post(FORECAST, {"max_bytes": 0})) == ["max_bytes"]
    assert code(stranger.post(FORECAST)) == "stream_not_found"


@pytest.mark.parametrize("listed", [False, True])
def test_counts_leave_out_all_that_is_over_however_many_are(owner: Api, stream: Stream, listed: bool) -> None:
    def counted() -> tuple[int, int]:
        told = owner.get("streams/?name=orders").json()[0] if listed else owner.get("streams/orders").json()
        return told["messages"], told["bytes"]

    over, left_ms = 6000, 4000
    began = time.monotonic()
    for first in range(0, over, 1000):
        left_s = max(1, round(left_ms / 1000 - (time.monotonic() - began)))
        batch = [NewMessage(id=f"t{n}", body=b"123", ttl_s=left_s) for n in range(first, first + 1000)]
        store.log().run(append(stream.stream_id, batch))
    end = f"({int(time.time() * 1000) + 4000}"
    until(lambda: store.log().client.zcount(keys.expiry(stream.stream_id), _now_ms(), end) == 0, within_s=10)
    assert counted() == (10, 20)


def _now_ms() -> int:
    return int(time.time() * 1000)
