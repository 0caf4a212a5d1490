"""Rate limits in the data plane: off unless the grant has one, counted once a request, told in headers."""

import itertools
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.streams.dataplane.conftest import Server, Stream, refusal

LimitedClient = Callable[..., httpx.Client]
_ids = itertools.count(1_000_000)


@pytest.fixture
def limited(server: Server, token_for: Callable[..., str]) -> Iterator[LimitedClient]:
    """Makes a client whose token may make one request a second, and so many at once."""
    clients = []

    def make(*, burst: int) -> httpx.Client:
        secret = token_for("admin", id=next(_ids), rate_limit=1, rate_burst=burst)
        clients.append(
            httpx.Client(
                base_url=f"http://127.0.0.1:{server.port}/api/v1/streams",
                headers={"authorization": f"Bearer {secret}"},
            )
        )
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def rate_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("x-ratelimit")}


def test_a_token_without_a_limit_hears_nothing_of_one(client: httpx.Client, stream: Stream) -> None:
    assert rate_headers(client.get(stream.messages, params={"wait": 0})) == {}


def test_a_limited_token_is_told_how_it_stands(limited: LimitedClient, stream: Stream) -> None:
    answer = limited(burst=3).get(stream.messages, params={"wait": 0})
    assert answer.status_code == 200
    assert rate_headers(answer) == {
        "x-ratelimit-limit": "3",
        "x-ratelimit-remaining": "2",
        "x-ratelimit-reset": "1",
    }


def test_above_the_limit_nothing_is_stored(
    limited: LimitedClient, client: httpx.Client, stream: Stream
) -> None:
    slow = limited(burst=1)
    assert slow.post(stream.messages, json={"id": "a", "body": 1}).status_code == 201
    answer = slow.post(stream.messages, json={"id": "b", "body": 2})
    assert refusal(answer) == (429, "rate_limited")
    assert (answer.headers["retry-after"], answer.headers["x-ratelimit-remaining"]) == ("1", "0")
    assert answer.json()["error"]["details"].keys() == {"limit", "burst", "retry_after"}
    stored = client.get(stream.messages, params={"offset": 0}).json()
    assert [message["id"] for message in stored] == ["a"]


def test_a_refusal_of_another_kind_tells_it_too(limited: LimitedClient) -> None:
    answer = limited(burst=3).get("/nothing/messages")
    assert refusal(answer) == (404, "stream_not_found")
    assert answer.headers["x-ratelimit-remaining"] == "2"


def test_a_parked_poll_counts_once(limited: LimitedClient, stream: Stream) -> None:
    slow = limited(burst=10)
    assert slow.get(stream.messages, params={"wait": 0.3}).headers["x-ratelimit-remaining"] == "9"
    assert slow.get(stream.messages, params={"wait": 0}).headers["x-ratelimit-remaining"] == "8"


def test_a_method_that_is_not_there_costs_nothing(limited: LimitedClient, stream: Stream) -> None:
    slow = limited(burst=2)
    assert refusal(slow.put(stream.messages)) == (405, "method_not_allowed")
    assert slow.get(stream.messages, params={"wait": 0}).headers["x-ratelimit-remaining"] == "1"
