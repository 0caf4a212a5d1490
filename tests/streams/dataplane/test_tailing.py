import itertools
import json
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from streams import bearer
from streams.log import config, read
from streams.log.client import Log
from tests.streams.dataplane.conftest import WORKSPACE_ID, Stream, refusal
from tests.streams.dataplane.test_reading import fill
from tests.waiting import until


class Tail(threading.Thread):
    """A tail in a thread of its own; ``ids`` are the offsets that it was told, ``ended`` when the server ended it."""

    def __init__(self, client: httpx.Client, stream: Stream, query: str = "", **headers: str) -> None:
        super().__init__()
        self.client, self.path, self.headers = client, f"/{stream.name}/tail{query}", headers
        self.ids: list[int] = []
        self.open = self.ended = self.stopping = False
        self.start()
        until(lambda: self.open)

    def run(self) -> None:
        with self.client.stream("GET", self.path, headers=self.headers) as response:
            self.open = response.headers["content-type"] == "text/event-stream"
            for line in response.iter_lines():
                if line.startswith("id: "):
                    self.ids.append(int(line[4:]))
                if self.stopping:
                    return
        self.ended = True


@pytest.fixture
def tail(client: httpx.Client, stream: Stream) -> Iterator[Callable[..., Tail]]:
    tails: list[Tail] = []

    def start(query: str = "", **headers: str) -> Tail:
        tails.append(Tail(client, stream, query, **headers))
        return tails[-1]

    yield start
    for each in tails:
        each.stopping = True
    client.post(stream.messages, json=[{"id": "last", "body": 0, "key": "k.1"}])
    for each in tails:
        each.join(10)
        assert not each.is_alive()


def test_a_tail_tells_what_comes_next(
    client: httpx.Client, stream: Stream, tail: Callable[..., Tail]
) -> None:
    fill(client, stream, 3)
    following = tail()
    fill(client, stream, 2, first=4)
    until(lambda: following.ids == [4, 5])


def test_a_tail_from_an_offset_begins_with_what_is_there(
    client: httpx.Client, stream: Stream, tail: Callable[..., Tail]
) -> None:
    fill(client, stream, 3)
    following = tail("?offset=2")
    until(lambda: following.ids == [2, 3])
    fill(client, stream, 1, first=4)
    until(lambda: following.ids == [2, 3, 4])


def test_last_event_id_resumes_and_wins_over_offset(
    client: httpx.Client, stream: Stream, tail: Callable[..., Tail]
) -> None:
    fill(client, stream, 4)
    following = tail("?offset=1", **{"last-event-id": "3"})
    until(lambda: following.ids == [4])


def test_a_key_pattern_filters(client: httpx.Client, stream: Stream, tail: Callable[..., Tail]) -> None:
    following = tail("?offset=0&key=k.1")
    fill(client, stream, 5)
    until(lambda: following.ids == [1, 3, 5])
    fill(client, stream, 3, first=7)
    until(lambda: following.ids == [1, 3, 5, 6, 8])


def test_a_long_stream_is_told_whole(client: httpx.Client, stream: Stream, tail: Callable[..., Tail]) -> None:
    for first in range(1, 2001, 1000):
        fill(client, stream, 1000, first=first)
    following = tail("?offset=1")
    until(lambda: following.ids == list(range(1, 2001)))


@pytest.mark.parametrize("query", ["?offset=1", "?offset=1&key=k.1"])
def test_more_than_an_answer_holds_is_told_whole(
    client: httpx.Client, stream: Stream, tail: Callable[..., Tail], query: str
) -> None:
    body = "x" * 1_000_000
    assert 20 * len(body) > read.ANSWER_LIMIT_BYTES
    for n in range(20):
        sent = client.post(stream.messages, json={"id": str(n), "body": body, "key": "k.1"})
        assert sent.status_code == 201
    following = tail(query)
    until(lambda: following.ids == list(range(1, 21)))


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\n\n"])
def test_a_body_with_line_breaks_arrives_whole(client: httpx.Client, stream: Stream, line_break: str) -> None:
    sent = line_break.join(['{"id": "a", "body": {', '  "lines": [1,', "  2]", "}}"])
    assert client.post(stream.messages, content=sent).status_code == 201
    with client.stream("GET", f"/{stream.name}/tail?offset=1") as answer:
        event = list(itertools.takewhile(bool, answer.iter_lines()))
    assert event[0] == "id: 1"
    assert all(line.startswith("data: ") for line in event[1:])
    message = json.loads("\n".join(line.removeprefix("data: ") for line in event[1:]))
    assert message["body"] == {"lines": [1, 2]}


@pytest.mark.parametrize("value", ["x", "-1", "9" * 40])
def test_a_malformed_last_event_id_is_400(client: httpx.Client, stream: Stream, value: str) -> None:
    answer = client.get(f"/{stream.name}/tail", headers={"last-event-id": value})
    assert refusal(answer) == (400, "validation_error")


def test_an_empty_last_event_id_is_none(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 1)
    headers = {"last-event-id": ""}
    with client.stream("GET", f"/{stream.name}/tail?offset=1", headers=headers) as answer:
        assert next(answer.iter_lines()) == "id: 1"


def test_a_tail_ends_with_its_stream(client: httpx.Client, stream: Stream, log: Log) -> None:
    following = Tail(client, stream)
    log.run(config.stream_remove(stream.stream_id, workspace_id=WORKSPACE_ID, name=stream.name))
    until(lambda: following.ended)


def test_a_tail_ends_when_its_token_is_revoked(
    client: httpx.Client, stream: Stream, log: Log, token_for: Callable[..., str]
) -> None:
    secret = token_for("read")
    following = Tail(client, stream, authorization=secret)
    log.run(config.token_remove(bearer.digest(secret)))
    until(lambda: following.ended, within_s=2)


def test_a_tail_that_never_rests_ends_with_its_token_too(
    client: httpx.Client, stream: Stream, log: Log, token_for: Callable[..., str]
) -> None:
    secret = token_for("read")
    following = Tail(client, stream, authorization=secret)
    log.run(config.token_remove(bearer.digest(secret)))
    ids = itertools.count()

    def ended_while_busy() -> bool:
        client.post(stream.messages, json=[{"id": str(next(ids)), "body": 1}])
        return following.ended

    until(ended_while_busy, within_s=3)
