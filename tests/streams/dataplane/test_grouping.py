import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import httpx
import pytest

from streams.log import groups, keys, standing
from streams.log.client import Log
from streams.log.groups import Settings
from tests.streams.dataplane.conftest import Server, Stream, refusal
from tests.streams.dataplane.test_reading import fill
from tests.waiting import until


class Group:
    """A group of one stream, over HTTP."""

    def __init__(self, client: httpx.Client, log: Log, stream: Stream, **settings: Any) -> None:
        self.client, self.stream, self.log = client, stream, log
        self.path = f"/{stream.name}/groups/g"
        log.run(groups.group_publish(stream.stream_id, "g", Settings(**settings)))

    def post(self, verb: str, **fields: Any) -> httpx.Response:
        return self.client.post(f"{self.path}/{verb}", json=fields)

    def fetch(self, **fields: Any) -> list[dict[str, Any]]:
        answer = self.post("fetch", **{"wait": 0, **fields})
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()
        return found

    def offsets(self, **fields: Any) -> list[int]:
        return [message["offset"] for message in self.fetch(**fields)]


@pytest.fixture
def group(client: httpx.Client, log: Log, stream: Stream) -> Group:
    return Group(client, log, stream)


def test_a_delivery_says_how_often_what_is_left_and_its_lease(
    client: httpx.Client, stream: Stream, group: Group
) -> None:
    fill(client, stream, 3)
    first, second = group.fetch(limit=2)
    assert (first["offset"], first["body"], first["deliveries"], first["pending"]) == (1, 1, 1, 2)
    assert (second["pending"], first["lease"] != second["lease"]) == (1, True)


def test_the_four_answers(client: httpx.Client, stream: Stream, group: Group) -> None:
    fill(client, stream, 6)
    leases = [message["lease"] for message in group.fetch()]
    assert group.post("ack", offsets=[1]).json() == {"acked": 1}
    assert group.post("ack", up_to=2).json() == {"acked": 1}
    assert group.post("ack", leases=leases[2:3]).json() == {"acked": 1}
    assert group.post("nack", offsets=[4]).json() == {"count": 1}
    assert group.post("working", offsets=[5, 99]).json() == {"count": 1}
    assert group.post("term", offsets=[6], reason="no").json() == {"count": 1}
    assert [(m["offset"], m["deliveries"]) for m in group.fetch()] == [(4, 2)]
    assert refusal(group.post("ack", leases=[leases[4], leases[3]])) == (409, "lease_lost")
    assert group.post("ack", leases=[leases[4], leases[5]]).json() == {"acked": 1}


@pytest.mark.parametrize("verb", ["ack", "nack", "working", "term"])
def test_by_offset_what_somebody_else_has_by_now_is_left_alone_when_a_consumer_is_named(
    client: httpx.Client, stream: Stream, group: Group, verb: str
) -> None:
    fill(client, stream, 3)
    assert len(group.fetch(consumer="slow")) == 3
    group.post("nack", offsets=[1])
    assert len(group.fetch(consumer="quick")) == 1
    counted = "acked" if verb == "ack" else "count"
    assert group.post(verb, offsets=[1, 2], consumer="slow").json() == {counted: 1}
    assert group.post(verb, offsets=[1], consumer="nobody").json() == {counted: 0}
    assert group.post(verb, offsets=[1], consumer="quick").json() == {counted: 1}
    assert group.post(verb, offsets=[3], consumer=None).json() == {counted: 1}


@pytest.mark.parametrize(
    ("verb", "fields"),
    [
        ("fetch", {"limit": 0}),
        ("fetch", {"limit": 10_001}),
        ("fetch", {"wait": 31}),
        ("fetch", {"wait": "1"}),
        ("fetch", {"max_bytes": 0}),
        ("fetch", {"batch": 1}),
        ("fetch", {"consumer": "x" * 256}),
        ("fetch", {"consumer": "a\x00b"}),
        ("ack", {}),
        ("ack", {"offsets": [1], "up_to": 1}),
        ("ack", {"offsets": ["1"]}),
        ("ack", {"offsets": [0]}),
        ("ack", {"offsets": 1}),
        ("ack", {"up_to": -1}),
        ("ack", {"up_to": 1, "consumer": "a"}),
        ("ack", {"leases": [], "consumer": "a"}),
        ("ack", {"offsets": [1], "consumer": "x" * 256}),
        ("nack", {"offsets": [1], "consumer": 7}),
        ("working", {"offsets": [1], "consumer": "a\nb"}),
        ("term", {"leases": [], "consumer": "a"}),
        ("ack", {"leases": ["x"]}),
        ("ack", {"leases": [1]}),
        ("nack", {"offsets": [1], "delay": -1}),
        ("nack", {"up_to": 1}),
        ("working", {"offsets": [1], "delay": 1}),
        ("term", {"offsets": [1], "reason": 7}),
    ],
)
def test_a_wrong_request_is_refused(group: Group, verb: str, fields: dict[str, Any]) -> None:
    assert refusal(group.post(verb, **fields)) == (400, "validation_error")


def test_a_group_that_is_not_there_is_named(client: httpx.Client, stream: Stream) -> None:
    for verb, fields in (("fetch", {"wait": 0}), ("ack", {"offsets": [1]}), ("nack", {"offsets": [1]})):
        answer = client.post(f"/{stream.name}/groups/nobody/{verb}", json=fields)
        assert "'nobody'" in answer.json()["error"]["message"]


def test_no_such_group_and_no_such_stream(client: httpx.Client, stream: Stream) -> None:
    for verb in ("fetch", "ack", "nack", "working", "term"):
        fields = {"wait": 0} if verb == "fetch" else {"offsets": [1]}
        assert refusal(client.post(f"/{stream.name}/groups/x/{verb}", json=fields)) == (
            404,
            "group_not_found",
        )
        assert refusal(client.post(f"/nowhere/groups/x/{verb}", json=fields)) == (404, "stream_not_found")


def test_max_bytes_still_gives_one_message(client: httpx.Client, stream: Stream, group: Group) -> None:
    fill(client, stream, 30)
    assert group.offsets(max_bytes=1) == [1]
    assert group.offsets(max_bytes=3) == [2, 3, 4]


def test_a_poll_wakes_for_a_message_and_for_a_redelivery(
    client: httpx.Client, stream: Stream, log: Log
) -> None:
    group = Group(client, log, stream, ack_wait_ms=700)
    threading.Timer(0.2, fill, (client, stream, 1)).start()
    assert group.offsets(wait=10) == [1]
    (second,) = group.fetch(wait=10)
    assert (second["offset"], second["deliveries"]) == (1, 2)


def test_members_that_poll_share_the_work(client: httpx.Client, stream: Stream, group: Group) -> None:
    taken: list[list[int]] = []
    members = [
        threading.Thread(target=lambda: taken.append(group.offsets(wait=10, limit=2))) for _ in range(3)
    ]
    for member in members:
        member.start()
    fill(client, stream, 6)
    for member in members:
        member.join()
    assert sorted(offset for offsets in taken for offset in offsets) == [1, 2, 3, 4, 5, 6]


def test_a_client_that_went_away_gets_nothing(
    server: Server,
    client: httpx.Client,
    stream: Stream,
    group: Group,
    token_for: Callable[..., str],
    log: Log,
) -> None:
    body = b'{"wait":20}'
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(
            b"POST /api/v1/streams%b/fetch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n"
            b"Authorization: %b\r\n\r\n%b"
            % (group.path.encode(), len(body), token_for("consume").encode(), body)
        )
        wake = keys.wake(stream.stream_id)
        until(lambda: log.client.execute_command("PUBSUB", "NUMSUB", wake)[1])
    fill(client, stream, 1)
    until(lambda: group.offsets() == [1])


def test_who_slept_past_the_wait_may_answer_until_the_redelivery(
    client: httpx.Client, stream: Stream, log: Log
) -> None:
    group = Group(client, log, stream, ack_wait_ms=100)
    fill(client, stream, 3)
    leases = [message["lease"] for message in group.fetch()]
    due_ms = log.run(standing.inspect(stream.stream_id, "g")).now_ms + 100
    until(lambda: log.run(standing.inspect(stream.stream_id, "g")).now_ms > due_ms)
    assert group.post("ack", offsets=[1]).json() == {"acked": 1}
    assert group.post("ack", leases=leases[1:2]).json() == {"acked": 1}
    (again,) = group.fetch(consumer="another")
    assert refusal(group.post("ack", leases=leases[2:])) == (409, "lease_lost")
    assert group.post("ack", leases=[again["lease"]]).json() == {"acked": 1}


def test_a_group_that_goes_ends_its_polls(
    client: httpx.Client, stream: Stream, group: Group, log: Log
) -> None:
    answers: list[httpx.Response] = []
    poll = threading.Thread(target=lambda: answers.append(group.post("fetch", wait=20)))
    poll.start()
    until(lambda: log.client.execute_command("PUBSUB", "NUMSUB", keys.wake(stream.stream_id))[1])
    log.run(groups.group_remove(stream.stream_id, "g"))
    poll.join()
    assert refusal(answers[0]) == (404, "group_not_found")


def waiting_fetch(group: Group, log: Log, **fields: Any) -> "Future[list[dict[str, Any]]]":
    """A fetch that is seen to wait."""
    answer: Future[list[dict[str, Any]]] = Future()
    threading.Thread(target=lambda: answer.set_result(group.fetch(wait=20, **fields))).start()
    wake = keys.wake(group.stream.stream_id)
    until(lambda: log.client.execute_command("PUBSUB", "NUMSUB", wake)[1])
    return answer


def test_a_seek_ends_open_polls_empty(client: httpx.Client, stream: Stream, group: Group, log: Log) -> None:
    fill(client, stream, 3)
    assert group.offsets() == [1, 2, 3]
    answer = waiting_fetch(group, log)
    log.run(groups.seek(stream.stream_id, "g", next_offset=2))
    assert answer.result(5) == []
    assert group.offsets() == [2, 3]


@pytest.mark.parametrize("verb", ["ack", "term"])
def test_a_poll_goes_on_when_an_answer_makes_room(
    client: httpx.Client, stream: Stream, log: Log, verb: str
) -> None:
    group = Group(client, log, stream, max_ack_pending=1)
    fill(client, stream, 2)
    assert group.offsets() == [1]
    answer = waiting_fetch(group, log)
    group.post(verb, offsets=[1])
    assert [message["offset"] for message in answer.result(5)] == [2]


def test_a_poll_goes_on_when_a_setting_makes_room(client: httpx.Client, stream: Stream, log: Log) -> None:
    group = Group(client, log, stream, max_ack_pending=1)
    fill(client, stream, 2)
    assert group.offsets() == [1]
    answer = waiting_fetch(group, log)
    log.run(groups.group_publish(stream.stream_id, "g", Settings(max_ack_pending=2)))
    assert [message["offset"] for message in answer.result(5)] == [2]


def test_a_poll_that_outlasts_a_pause_is_served(
    client: httpx.Client, stream: Stream, group: Group, log: Log
) -> None:
    fill(client, stream, 1)
    log.run(groups.pause(stream.stream_id, "g", until_ms=None))
    answer = waiting_fetch(group, log)
    now_ms = log.run(standing.inspect(stream.stream_id, "g")).now_ms
    log.run(groups.pause(stream.stream_id, "g", until_ms=now_ms + 300))
    assert [message["offset"] for message in answer.result(5)] == [1]
    assert log.run(standing.inspect(stream.stream_id, "g")).now_ms >= now_ms + 300


def test_the_end_of_a_poll_is_the_last_sign_of_life(client: httpx.Client, group: Group, log: Log) -> None:
    assert group.fetch(wait=0.3) == []
    assert (log.run(standing.inspect(group.stream.stream_id, "g")).quiet_ms or 0) < 300


def test_consume_is_the_scope(
    client: httpx.Client, stream: Stream, group: Group, token_for: Callable[..., str]
) -> None:
    reader = {"authorization": token_for("read", "publish", "manage")}
    answer = client.post(f"{group.path}/fetch", json={"wait": 0}, headers=reader)
    assert refusal(answer) == (403, "forbidden")


@pytest.mark.parametrize("settings", [{"max_ack_pending": 1}, {"ordered_by_key": True}], ids=str)
@pytest.mark.parametrize("is_purged", [False, True])
def test_an_open_poll_gets_the_place_of_what_went(
    client: httpx.Client, log: Log, stream: Stream, settings: dict[str, Any], is_purged: bool
) -> None:
    """As soon as somebody looks at the group, which the worker does every second."""
    group = Group(client, log, stream, ack_wait_ms=600_000, **settings)
    sent = [{"id": f"m-{n}", "body": n, "key": "k"} for n in range(1, 4)]
    assert client.post(stream.messages, json=sent).status_code == 201
    assert group.offsets(limit=1) == [1]
    answer: Future[list[int]] = Future()
    threading.Thread(target=lambda: answer.set_result(group.offsets(wait=25, limit=1))).start()
    until(lambda: log.client.pubsub_numsub(keys.wake(stream.stream_id))[0][1] > 0)
    path = f"{stream.messages}?offset=2" if is_purged else f"{stream.messages}/1"
    assert client.delete(path).status_code == 200
    log.run(standing.inspect(stream.stream_id, "g"))
    assert answer.result(timeout=10) == [2]
