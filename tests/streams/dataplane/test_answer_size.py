"""An answer stops at 16 MiB, whatever its messages are made of."""

from collections.abc import Callable

import httpx
import pytest

from streams.log import groups
from streams.log.client import Log
from streams.log.groups import Settings
from streams.log.read import ANSWER_LIMIT_BYTES
from tests.streams.dataplane.conftest import Stream

MESSAGES = 340
HEADERS_BYTES = 60_000
BESIDE = 1.01
"""Beside what was sent stand offset, time and the names of the fields."""

Ask = Callable[[httpx.Client, Stream], httpx.Response]


@pytest.fixture
def with_large_headers(client: httpx.Client, log: Log, stream: Stream) -> Stream:
    """A stream of 20 MB, nearly all of which are headers, with a group."""
    assert MESSAGES * HEADERS_BYTES > ANSWER_LIMIT_BYTES
    headers = {"h": "x" * HEADERS_BYTES}
    for first in range(0, MESSAGES, 170):
        batch = [{"id": str(n), "body": 1, "headers": headers} for n in range(first, first + 170)]
        assert client.post(stream.messages, json=batch).status_code == 201
    log.run(groups.group_publish(stream.stream_id, "g", Settings()))
    return stream


def read(query: str) -> Ask:
    return lambda client, stream: client.get(f"{stream.messages}?limit=10000&wait=0{query}")


def fetch(client: httpx.Client, stream: Stream) -> httpx.Response:
    return client.post(f"/{stream.name}/groups/g/fetch", json={"limit": 10_000, "wait": 0})


@pytest.mark.parametrize("ask", [read(""), read("&offset=1"), read("&before=999")])
def test_headers_count(client: httpx.Client, with_large_headers: Stream, ask: Ask) -> None:
    answer = ask(client, with_large_headers)
    assert answer.status_code == 200
    assert 0.98 * ANSWER_LIMIT_BYTES < len(answer.content) <= ANSWER_LIMIT_BYTES


def test_headers_count_in_a_fetch(client: httpx.Client, with_large_headers: Stream) -> None:
    answer = fetch(client, with_large_headers)
    assert 0.98 * ANSWER_LIMIT_BYTES < len(answer.content) < BESIDE * ANSWER_LIMIT_BYTES


@pytest.mark.parametrize("query", ["", "&before=99999"])
def test_what_stands_beside_bodies_counts(client: httpx.Client, stream: Stream, query: str) -> None:
    """Characters of ids and keys that are more in JSON, offsets and times."""
    body, key, number = "x" * 1000, '"' * 250, 9900
    for first in range(0, number, 1000):
        ids = [f"{n:05d}" + "\x02" * 45 for n in range(first, min(number, first + 1000))]
        batch = [{"id": each, "key": key, "body": body} for each in ids]
        assert client.post(stream.messages, json=batch).status_code == 201
    assert number * len(body) < ANSWER_LIMIT_BYTES < number * (len(body) + 6 * 45 + 2 * 250)
    answer = read(query)(client, stream)
    assert 0.98 * ANSWER_LIMIT_BYTES < len(answer.content) <= ANSWER_LIMIT_BYTES
    offsets = [message["offset"] for message in answer.json()]
    first = 1 if not query else number + 1 - len(offsets)
    assert offsets == list(range(first, first + len(offsets)))


def test_what_one_fetch_leaves_the_next_one_brings(client: httpx.Client, with_large_headers: Stream) -> None:
    found: list[int] = []
    while part := [message["offset"] for message in fetch(client, with_large_headers).json()]:
        found += part
    assert found == list(range(1, MESSAGES + 1))
