"""A search for a key or an id looks for a bounded time, and its answer names where to go on."""

import re
import time

import httpx
import pytest

from streams.dataplane import reading
from tests.streams.dataplane.conftest import Stream
from tests.streams.dataplane.test_reading import offsets

MESSAGES = 3500
RARE = (7, 2100, 3499)


@pytest.fixture
def searched(client: httpx.Client, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Stream:
    """A stream in which one request looks at a page and no more."""
    for first in range(1, MESSAGES + 1, 500):
        batch = [
            {"id": f"id-{n}", "body": n, "key": "rare" if n in RARE else "often"}
            for n in range(first, first + 500)
        ]
        assert client.post(stream.messages, json=batch).status_code == 201
    monkeypatch.setattr(reading, "SEARCH_WITHIN_S", 0.0)
    return stream


def following(answer: httpx.Response) -> str | None:
    found = re.fullmatch(r'</api/v1/streams(/[^>]+)>; rel="next"', answer.headers.get("Link", ""))
    return found[1] if found else None


def followed(client: httpx.Client, path: str) -> list[list[int]]:
    """The offsets of each answer until one names no next."""
    pages, url = [], str(path)
    while True:
        answer = client.get(url)
        pages.append(offsets(answer))
        link = following(answer)
        if link is None:
            return pages
        url = link


def test_a_search_that_stops_names_where_it_goes_on_also_when_nothing_was_found(
    client: httpx.Client, searched: Stream
) -> None:
    assert followed(client, f"{searched.messages}?key=rare") == [[7], [], [2100], [3499]]
    assert followed(client, f"{searched.messages}?key=none") == [[], [], [], []]


def test_a_search_backwards_goes_on_below(client: httpx.Client, searched: Stream) -> None:
    pages = followed(client, f"{searched.messages}?key=rare&before={MESSAGES + 1}")
    assert pages == [[3499], [2100], [], [7]]


def test_the_limit_counts_over_all_answers(client: httpx.Client, searched: Stream) -> None:
    assert followed(client, f"{searched.messages}?key=rare&limit=2") == [[7], [], [2100]]


def test_a_search_that_stopped_waits_for_nothing(client: httpx.Client, searched: Stream) -> None:
    began = time.monotonic()
    answer = client.get(f"{searched.messages}?key=none&wait=20")
    assert time.monotonic() - began < 10
    assert following(answer)
    assert "wait=20" in answer.headers["Link"]


def test_what_looks_for_nothing_special_names_no_next(client: httpx.Client, searched: Stream) -> None:
    for query in ("?offset=1&limit=10", "?limit=5", f"?before={MESSAGES}", "?offset=1&limit=10000"):
        assert "Link" not in client.get(searched.messages + query).headers


def test_a_whole_search_that_has_time_answers_at_once(
    client: httpx.Client, searched: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SEARCH_WITHIN_S", 60.0)
    assert followed(client, f"{searched.messages}?key=rare") == [[*RARE]]
    assert followed(client, f"{searched.messages}?id=id-2100") == [[2100]]
