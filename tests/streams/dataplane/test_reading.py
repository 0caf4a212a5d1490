import asyncio
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from streams import bearer
from streams.log import config, groups, keys, lineage, stats
from streams.log.client import Log
from tests.streams.dataplane.conftest import (
    OTHER_WORKSPACE_ID,
    WORKSPACE_ID,
    LateLog,
    Server,
    Stream,
    configure,
    inside,
    refusal,
)
from tests.waiting import until


def fill(client: httpx.Client, stream: Stream, count: int, *, first: int = 1) -> None:
    batch = [{"id": f"id-{n}", "body": n, "key": f"k.{n % 2}"} for n in range(first, first + count)]
    assert client.post(stream.messages, json=batch).status_code == 201


def offsets(response: httpx.Response) -> list[int]:
    assert response.status_code == 200, response.text
    return [message["offset"] for message in response.json()]


class Poll(threading.Thread):
    """A long poll in a thread of its own; ``answer`` and ``took_s`` when it is joined."""

    def __init__(self, client: httpx.Client, stream: Stream, **params: object) -> None:
        super().__init__()
        self.client, self.stream, self.params = client, stream, params
        self.answer: httpx.Response
        self.took_s = 0.0
        self.start()

    def run(self) -> None:
        started = time.monotonic()
        self.answer = self.client.get(self.stream.messages, params=self.params)  # type: ignore[arg-type]
        self.took_s = time.monotonic() - started


def test_the_default_limit_is_10_from_the_committed_offset(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 15)
    assert offsets(client.get(stream.messages)) == list(range(1, 11))
    assert client.post(f"/{stream.name}/commit", json={"offset": 10}).json() == {"offset": 10, "previous": 0}
    assert offsets(client.get(stream.messages)) == list(range(11, 16))


def test_both_slash_forms_are_the_same(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 2)
    for path in (stream.messages, stream.messages + "/"):
        assert offsets(client.get(path)) == [1, 2]
    for path in (f"{stream.messages}/2", f"{stream.messages}/2/"):
        assert client.get(path).json()["offset"] == 2
    for path in (f"/{stream.name}/commit", f"/{stream.name}/commit/"):
        assert client.post(path, json={"offset": 1}).status_code == 200


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"offset": 0}, [1, 2, 3, 4, 5]),
        ({"offset": 4}, [4, 5]),
        ({"offset": 6}, []),
        ({"offset": 9007199254740991}, []),
        ({"before": 4}, [1, 2, 3]),
        ({"before": 4, "limit": 2}, [2, 3]),
        ({"before": 0}, []),
        ({"offset": 2, "before": 5}, [2, 3, 4]),
        ({"key": "k.*"}, [1, 2, 3, 4, 5]),
        ({"key": "k.1"}, [1, 3, 5]),
        ({"key": ">", "offset": 3}, [3, 4, 5]),
        ({"key": "other"}, []),
        ({"key": "k.0", "before": 5, "limit": 1}, [4]),
        ({"id": "id-3"}, [3]),
        ({"id": "id-3", "key": "k.0"}, []),
        ({"id": "id-3", "offset": 4}, []),
        ({"id": "id-3", "before": 3}, []),
        ({"id": "nobody"}, []),
        ({"from": "2001-01-01T00:00:00Z"}, [1, 2, 3, 4, 5]),
        ({"from": "2999-01-01T00:00:00+02:00"}, []),
    ],
)
def test_browsing(
    client: httpx.Client, stream: Stream, params: dict[str, str | int], expected: list[int]
) -> None:
    fill(client, stream, 5)
    started = time.monotonic()
    assert offsets(client.get(stream.messages, params=params)) == expected
    assert time.monotonic() - started < 5, "browsing does not wait"


def test_browsing_does_not_move_the_committed_offset(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 3)
    client.get(stream.messages, params={"offset": 3})
    assert offsets(client.get(stream.messages)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("limit", bad) for bad in ("0", "10001", "-1", "", "x", "1.5", "9" * 400, "１")],
        *[("wait", bad) for bad in ("31", "-1", "x", "", "1e3", "nan", "inf")],
        *[("offset", bad) for bad in ("-1", "", "x", "1.0", "9007199254740992", "9" * 400)],
        *[("before", bad) for bad in ("-1", "", "9" * 400)],
        *[("from", bad) for bad in ("", "yesterday", "2026-01-01", "2026-01-01T00:00:00", "1" * 400)],
        *[("key", bad) for bad in ("", "a..b", "a.>.b", "a*", ">.a", "a" * 256)],
        *[("id", bad) for bad in ("", "x" * 51)],
        ("ofset", "4"),
        ("offset", "%ff"),
    ],
)
def test_a_wrong_parameter_is_refused(client: httpx.Client, stream: Stream, name: str, value: str) -> None:
    query = f"?{name}={value}" if "%" in value else "?" + str(httpx.QueryParams({name: value}))
    assert refusal(client.get(stream.messages + query)) == (400, "validation_error")


def test_a_poll_on_nothing_returns_an_empty_array_after_its_wait(
    client: httpx.Client, stream: Stream
) -> None:
    poll = Poll(client, stream, wait=0.4)
    poll.join()
    assert offsets(poll.answer) == []
    assert 0.4 <= poll.took_s < 3


async def test_the_first_answer_tells_the_epoch(
    valkey: str, token_for: Callable[..., str], stream: Stream, log: Log
) -> None:
    async with inside(valkey, token_for("admin")) as (_, client):
        answer = await client.get(f"/{stream.name}/messages?offset=1")
    assert answer.headers["Okmq-Epoch"] == str(log.run(lineage.look()).epoch)


@pytest.mark.parametrize(("poll", "look"), [("messages", "select"), ("groups/g/fetch", "fetch")])
async def test_a_poll_whose_time_is_over_when_it_is_answered_does_not_look_again(
    valkey: str, token_for: Callable[..., str], stream: Stream, log: Log, poll: str, look: str
) -> None:
    log.run(groups.group_publish(stream.stream_id, "g", groups.Settings()))
    late = LateLog(valkey)
    wait_s = 0.05
    async with inside(valkey, token_for("admin")) as (context, client):
        await client.get(f"/{stream.name}/messages?wait=0")  # token and stream are known now
        before, context.log = context.log, late
        late.may_go.clear()
        asked = (
            client.get(f"/{stream.name}/{poll}?wait={wait_s}")
            if poll == "messages"
            else client.post(f"/{stream.name}/{poll}", json={"wait": wait_s})
        )
        polling = asyncio.create_task(asked)
        await asyncio.to_thread(until, lambda: look in late.asked)
        over = time.monotonic() + wait_s
        await asyncio.to_thread(until, lambda: time.monotonic() > over)
        late.may_go.set()
        assert (await polling).json() == []
        context.log = before
    assert late.asked.count(look) == 1
    await late.close()


def test_a_poll_wakes_at_once_and_returns_what_is_there(
    server: Server, client: httpx.Client, stream: Stream, log: Log
) -> None:
    poll = Poll(client, stream, wait=20, limit=100)
    _until_parked(log, stream)
    fill(client, stream, 3)
    poll.join()
    assert offsets(poll.answer) == [1, 2, 3]
    assert poll.took_s < 10


def xranges(log: Log) -> int:
    """How many pages of entries the store has been asked for."""
    told = re.search(
        r"cmdstat_xrange:calls=(\d+)", log.client.execute_command("INFO", "commandstats").decode()
    )
    return int(told[1]) if told else 0


def test_what_a_poll_has_looked_through_it_does_not_look_through_again(
    client: httpx.Client, stream: Stream, log: Log
) -> None:
    for first in range(1, 6001, 1000):
        fill(client, stream, 1000, first=first)
    poll = Poll(client, stream, wait=20, key="zz")
    _until_parked(log, stream)
    before = xranges(log)
    fill(client, stream, 3, first=6001)
    assert client.post(stream.messages, json=[{"id": "a", "body": 1, "key": "zz"}]).status_code == 201
    poll.join()
    assert offsets(poll.answer) == [6004]
    assert xranges(log) - before <= 5  # a look at all of it takes seven


def test_a_poll_from_an_offset_that_is_to_come_waits_for_it(
    client: httpx.Client, stream: Stream, log: Log
) -> None:
    fill(client, stream, 3)
    poll = Poll(client, stream, wait=20, offset=6)
    _until_parked(log, stream)
    fill(client, stream, 2, first=4)
    fill(client, stream, 1, first=6)
    poll.join()
    assert offsets(poll.answer) == [6]


def test_another_stream_does_not_end_a_poll(
    client: httpx.Client, make_stream: Callable[..., Stream], unique: str, log: Log
) -> None:
    waited, other = make_stream(), make_stream(name=f"{unique}-b")
    poll = Poll(client, waited, wait=1)
    _until_parked(log, waited)
    fill(client, other, 3)
    poll.join()
    assert offsets(poll.answer) == []
    assert poll.took_s >= 1


def test_a_poll_ends_with_404_when_the_stream_goes(client: httpx.Client, stream: Stream, log: Log) -> None:
    poll = Poll(client, stream, wait=20)
    _until_parked(log, stream)
    log.run(config.stream_remove(stream.stream_id, workspace_id=WORKSPACE_ID, name=stream.name))
    poll.join()
    assert refusal(poll.answer) == (404, "stream_not_found")
    assert poll.took_s < 5


def test_a_stream_made_again_never_serves_the_old_one(
    client: httpx.Client, make_stream: Callable[..., Stream], log: Log
) -> None:
    old = make_stream()
    fill(client, old, 3)
    log.run(config.stream_remove(old.stream_id, workspace_id=WORKSPACE_ID, name=old.name))
    new = make_stream()
    assert offsets(client.get(new.messages, params={"offset": 0})) == []
    fill(client, new, 1, first=9)
    assert [held["id"] for held in client.get(new.messages).json()] == ["id-9"]


def test_many_polls_on_one_stream_all_wake(
    server: Server, client: httpx.Client, stream: Stream, log: Log
) -> None:
    polls = [Poll(client, stream, wait=20) for _ in range(20)]
    _until_parked(log, stream)
    fill(client, stream, 1)
    for poll in polls:
        poll.join()
        assert offsets(poll.answer) == [1]


def test_a_token_without_the_scope_is_forbidden(
    server: Server, client: httpx.Client, stream: Stream, token_for: Callable[..., str]
) -> None:
    publisher = {"authorization": token_for("publish")}
    assert client.post(stream.messages, json=[{"id": "a", "body": 1}], headers=publisher).status_code == 201
    assert refusal(client.get(stream.messages, headers=publisher)) == (403, "forbidden")
    assert refusal(client.delete(stream.messages, headers=publisher)) == (403, "forbidden")
    assert refusal(client.post(f"/{stream.name}/commit", json={"offset": 0}, headers=publisher)) == (
        403,
        "forbidden",
    )


@pytest.mark.parametrize("form", ["{}", "Bearer {}", "bearer {}", "BEARER  {}"])
def test_bearer_and_bare_tokens_are_taken(
    client: httpx.Client, stream: Stream, token_for: Callable[..., str], form: str
) -> None:
    headers = {"Authorization": form.format(token_for("read"))}
    assert client.get(stream.messages, params={"offset": 0}, headers=headers).status_code == 200


@pytest.mark.parametrize("value", ["", "Bearer", "Basic abc", "okmq_unknown", "Bearer a b", "\xff"])
def test_no_or_an_unknown_token_is_401(server: Server, stream: Stream, value: str) -> None:
    answer = httpx.get(
        f"http://127.0.0.1:{server.port}/api/v1/streams{stream.messages}",
        headers=[(b"authorization", value.encode("latin-1"))] if value else [],
    )
    assert refusal(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_an_expired_token_is_401(client: httpx.Client, stream: Stream, token_for: Callable[..., str]) -> None:
    headers = {"authorization": token_for("read", expires_ms=1)}
    assert refusal(client.get(stream.messages, headers=headers)) == (401, "unauthorized")


def test_a_revoked_token_is_401_within_2_s(
    client: httpx.Client, stream: Stream, token_for: Callable[..., str], log: Log
) -> None:
    secret = token_for("read")
    ask = {"params": {"offset": "0"}, "headers": {"authorization": secret}}
    assert client.get(stream.messages, **ask).status_code == 200  # type: ignore[arg-type]
    log.run(config.token_remove(bearer.digest(secret)))
    until(lambda: client.get(stream.messages, **ask).status_code == 401, within_s=2)  # type: ignore[arg-type]


def test_a_stream_of_another_workspace_is_404(
    client: httpx.Client, stream: Stream, token_for: Callable[..., str]
) -> None:
    stranger = {"authorization": token_for("admin", workspace_id=OTHER_WORKSPACE_ID)}
    assert refusal(client.get(stream.messages, headers=stranger)) == (404, "stream_not_found")
    assert refusal(client.post(stream.messages, json=[], headers=stranger)) == (404, "stream_not_found")


@pytest.mark.parametrize(
    ("pattern", "inside"),
    [("t*", True), ("*", True), ("T*", False), ("t", False), ("x*", False), ("", False)],
)
def test_a_narrowed_token_is_kept_to_its_patterns(
    client: httpx.Client, stream: Stream, token_for: Callable[..., str], pattern: str, inside: bool
) -> None:
    headers = {"authorization": token_for("read", streams=(pattern,))}
    answer = client.get(stream.messages, params={"offset": 0}, headers=headers)
    assert answer.status_code == (200 if inside else 403)


@pytest.mark.parametrize(
    "name", ["..", "a%2Fb", "%00", "a%0d%0ab", "%ff", "x" * 51, "_metrics", "é", "{tag}", "*", "-"]
)
def test_no_name_can_be_anything_but_a_name(client: httpx.Client, name: str) -> None:
    assert client.get(f"/{name}/messages?offset=0").status_code == 404


def test_another_method_is_405_with_allow(client: httpx.Client, stream: Stream) -> None:
    answer = client.put(stream.messages)
    assert refusal(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, POST"


@pytest.mark.parametrize("host", ["evil.example", "localhost..:99", "localhost:99:99", "local host", ""])
def test_another_host_is_refused(client: httpx.Client, stream: Stream, host: str) -> None:
    assert refusal(client.get(stream.messages, headers={"host": host})) == (400, "invalid_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "localhost.:99"])
def test_a_host_is_the_same_in_capitals_with_a_port_and_with_the_dot_of_the_root(
    client: httpx.Client, stream: Stream, host: str
) -> None:
    assert client.get(f"{stream.messages}?wait=0", headers={"host": host}).status_code == 200


def test_every_answer_has_a_request_id(client: httpx.Client, stream: Stream) -> None:
    assert client.get(f"{stream.messages}/1").headers["x-request-id"]
    given = client.get(f"{stream.messages}/1", headers={"x-request-id": "abc-1"})
    assert given.headers["x-request-id"] == "abc-1"
    forged = client.get(f"{stream.messages}/1", headers={"x-request-id": "a b"})
    assert forged.headers["x-request-id"] != "a b"


def _until_parked(log: Log, stream: Stream) -> None:

    def listening() -> bool:
        _, count = log.client.execute_command("PUBSUB", "NUMSUB", keys.wake(stream.stream_id))
        return bool(count)

    until(listening)


def test_before_the_start_there_is_no_message_of_an_id(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 3)
    for before, found in ((0, []), (1, []), (2, []), (3, [2])):
        assert offsets(client.get(stream.messages, params={"id": "id-2", "before": before})) == found


def test_an_id_that_was_stored_again_is_found_twice(
    client: httpx.Client, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(dedup_window=1)
    fill(client, stream, 1)

    def stored_again() -> bool:
        message = {"id": "id-1", "body": 2, "key": "again"}
        return not client.post(stream.messages, json=[message]).json()[0]["duplicate"]

    until(stored_again)
    assert offsets(client.get(stream.messages, params={"id": "id-1"})) == [1, 2]
    for params, found in (
        ({"before": 2}, [1]),
        ({"before": 3, "limit": 1}, [2]),
        ({"limit": 1}, [1]),
        ({"offset": 2}, [2]),
        ({"key": "again"}, [2]),
        ({"key": "k.*"}, [1]),
    ):
        assert offsets(client.get(stream.messages, params={"id": "id-1", **params})) == found, params


def test_what_was_stored_again_is_found_twice_after_the_window_was_widened(
    client: httpx.Client, log: Log, make_stream: Callable[..., Stream]
) -> None:
    stream = make_stream(dedup_window=1)
    fill(client, stream, 1)

    def stored_again() -> bool:
        return not client.post(stream.messages, json=[{"id": "id-1", "body": 2}]).json()[0]["duplicate"]

    until(stored_again)
    configure(log, stream, dedup_window=86_400)
    fill(client, stream, 1, first=2)
    assert offsets(client.get(stream.messages, params={"id": "id-1"})) == [1, 2]
    assert offsets(client.get(stream.messages, params={"id": "id-2"})) == [3]


def test_a_rewind_wakes_a_poll(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 2)
    client.post(f"/{stream.name}/commit", json={"offset": 2})
    poll = Poll(client, stream, wait=20)
    until(poll.is_alive)
    until(lambda: client.post(f"/{stream.name}/commit", json={"offset": 1}) and not poll.is_alive())
    poll.join()
    assert offsets(poll.answer) == [2]
    assert poll.took_s < 10


@pytest.mark.parametrize(
    "time",
    [
        "20261121T060000Z",
        "2026-W47-6T06:00:00Z",
        "2026-11-21T06Z",
        "2026-11-21T06:00:00+01",
        "2026-11-21T06:00Z",
    ],
)
def test_a_time_that_is_not_as_rfc_3339_has_it_is_refused(
    client: httpx.Client, stream: Stream, time: str
) -> None:
    assert refusal(client.get(stream.messages, params={"from": time})) == (400, "validation_error")


def test_a_time_may_be_in_lower_case(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 1)
    assert offsets(client.get(stream.messages, params={"from": "2026-01-01t00:00:00z"})) == [1]


def test_head_answers_as_get_but_for_the_body(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 1)
    head = client.head(f"{stream.messages}/1")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == client.get(f"{stream.messages}/1").headers["content-length"]
    tail = client.head(f"/{stream.name}/tail")
    assert (tail.status_code, tail.headers["allow"]) == (405, "GET")


def test_who_is_unknown_is_told_so_before_the_method_is(server: Server, stream: Stream) -> None:
    url = f"http://127.0.0.1:{server.port}/api/v1/streams{stream.messages}"
    assert refusal(httpx.put(url)) == (401, "unauthorized")


def test_counts_leave_out_what_has_just_expired(client: httpx.Client, stream: Stream, log: Log) -> None:
    batch = [{"id": str(n), "body": n, "ttl": 1} for n in range(1, 4)] + [{"id": "stays", "body": 4}]
    client.post(stream.messages, json=[*batch[:2], batch[3], batch[2]])
    until(lambda: offsets(client.get(stream.messages, params={"offset": 0})) == [3])
    state = log.run(stats.inspect(stream.stream_id))
    assert (state.messages, state.bytes, state.lag, state.first_offset) == (1, 1, 1, 3)


@pytest.mark.parametrize("ends", ["revoked", "expired"])
def test_a_parked_poll_ends_with_its_token(
    server: Server, client: httpx.Client, stream: Stream, token_for: Callable[..., str], log: Log, ends: str
) -> None:
    expires = {"expires_ms": int(time.time() * 1000) + 2000} if ends == "expired" else {}
    secret = token_for("read", "consume", **expires)
    log.run(groups.group_publish(stream.stream_id, "g", groups.Settings()))
    url, headers = str(client.base_url).rstrip("/"), {"authorization": secret}

    def fetch() -> httpx.Response:
        return httpx.post(f"{url}/{stream.name}/groups/g/fetch", json={}, headers=headers, timeout=35)

    with ThreadPoolExecutor() as pool:
        polls = [pool.submit(httpx.get, f"{url}{stream.messages}", headers=headers, timeout=35) for _ in "ab"]
        polls.append(pool.submit(fetch))
        until(lambda: server.context.wakener.waiting(stream.stream_id) == len(polls))
        if ends == "revoked":
            log.run(config.token_remove(bearer.digest(secret)))
        until(lambda: all(poll.done() for poll in polls), within_s=4)
        assert [refusal(poll.result()) for poll in polls] == [(401, "unauthorized")] * 3
