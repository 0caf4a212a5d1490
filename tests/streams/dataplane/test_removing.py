import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

import httpx
import pytest

from streams.dataplane.removing import NOTED
from streams.log import config, notes, removals, stats, undo
from streams.log.client import Log
from streams.log.errors import LogError
from streams.log.notes import UNKNOWN
from tests.streams.dataplane.conftest import WORKSPACE_ID, Server, Stream, configure, refusal
from tests.streams.dataplane.test_reading import fill, offsets


@pytest.fixture
def brief(valkey: str, token_for: Callable[..., str]) -> Iterator[httpx.Client]:
    """A client of a process where a removal can be undone for a second."""
    server = Server(valkey, undo_s=1)
    headers = {"authorization": f"Bearer {token_for('admin')}"}
    with httpx.Client(
        base_url=f"http://127.0.0.1:{server.port}/api/v1/streams", headers=headers, timeout=60
    ) as client:
        yield client
    server.stop()


def left(client: httpx.Client, stream: Stream) -> list[int]:
    return offsets(client.get(stream.messages, params={"offset": 0, "limit": 100}))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "invalid_json"),
        ("", "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        ("[]", "validation_error"),
        ("{}", "validation_error"),
        ('{"offset":-1}', "validation_error"),
        ('{"offset":1.5}', "validation_error"),
        ('{"offset":"1"}', "validation_error"),
        ('{"offset":true}', "validation_error"),
        ('{"offset":null}', "validation_error"),
        ('{"offset":' + "9" * 400 + "}", "validation_error"),
        ('{"offset":1e400}', "validation_error"),
        ('{"offset":1,"force":true}', "validation_error"),
        ('{"offset":4}', "offset_out_of_range"),
    ],
)
def test_a_wrong_commit_is_refused_and_moves_nothing(
    client: httpx.Client, stream: Stream, body: str, code: str
) -> None:
    fill(client, stream, 3)
    assert refusal(client.post(f"/{stream.name}/commit", content=body)) == (400, code)
    assert offsets(client.get(stream.messages)) == [1, 2, 3]


def test_a_large_body_is_read_and_refused_as_a_small_one(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 3)
    path, blank = f"/{stream.name}/commit", " " * 1_000_000
    assert client.post(path, content='{"offset":2' + blank + "}").json() == {"offset": 2, "previous": 0}
    assert refusal(client.post(path, content='{"offset":3' + blank)) == (400, "invalid_json")


def test_a_commit_may_rewind(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 3)
    client.post(f"/{stream.name}/commit", json={"offset": 3})
    assert client.post(f"/{stream.name}/commit", json={"offset": 0}).json() == {"offset": 0, "previous": 3}


@pytest.mark.parametrize(
    ("query", "deleted", "remaining"),
    [
        ("", 5, []),
        ("?offset=0", 0, [1, 2, 3, 4, 5]),
        ("?offset=1", 0, [1, 2, 3, 4, 5]),
        ("?offset=3", 2, [3, 4, 5]),
        ("?offset=999", 5, []),
        ("?keep=2", 3, [4, 5]),
        ("?keep=0", 5, []),
        ("?keep=99", 0, [1, 2, 3, 4, 5]),
        ("?key=k.1", 3, [2, 4]),
        ("?key=k.1&offset=4", 2, [2, 4, 5]),
        ("?key=k.1&keep=1", 2, [2, 4, 5]),
        ("?key=k.1&keep=0", 3, [2, 4]),
    ],
)
def test_a_purge_takes_what_it_names_and_never_moves_the_next_offset(
    client: httpx.Client, stream: Stream, query: str, deleted: int, remaining: list[int]
) -> None:
    fill(client, stream, 5)
    client.post(f"/{stream.name}/commit", json={"offset": 1})
    assert client.delete(stream.messages + query).json() == {"deleted": deleted}
    assert left(client, stream) == remaining
    assert client.post(stream.messages, json={"id": "next", "body": 1}).json()[0]["offset"] == 6
    assert client.post(f"/{stream.name}/commit", json={"offset": 0}).json()["previous"] == 1


@pytest.mark.parametrize(
    "query",
    [
        "?offset=",
        "?offset=x",
        "?offset=-1",
        "?keep=",
        "?keep=1.5",
        "?key=",
        "?ofset=4",
        "?offset=2&keep=1",
        "?offset",
    ],
)
def test_a_malformed_purge_deletes_nothing(client: httpx.Client, stream: Stream, query: str) -> None:
    fill(client, stream, 3)
    assert refusal(client.delete(stream.messages + query)) == (400, "validation_error")
    assert left(client, stream) == [1, 2, 3]


def test_one_message_is_deleted_once(client: httpx.Client, stream: Stream) -> None:
    fill(client, stream, 3)
    assert client.delete(f"{stream.messages}/2").json() == {"deleted": 1}
    assert refusal(client.delete(f"{stream.messages}/2")) == (404, "message_not_found")
    assert refusal(client.get(f"{stream.messages}/2")) == (404, "message_not_found")
    assert left(client, stream) == [1, 3]


@pytest.mark.parametrize("switch", ["deny_purge", "sealed"])
def test_a_forbidden_purge_is_named(
    client: httpx.Client, make_stream: Callable[..., Stream], switch: str
) -> None:
    stream = make_stream(**{switch: True})
    for query in ("", "?key=a"):
        assert refusal(client.delete(stream.messages + query)) == (403, "operation_denied")


def test_a_forbidden_delete_is_named(client: httpx.Client, make_stream: Callable[..., Stream]) -> None:
    stream = make_stream(deny_delete=True)
    fill(client, stream, 1)
    assert refusal(client.delete(f"{stream.messages}/1")) == (403, "operation_denied")
    assert left(client, stream) == [1]


def test_a_purge_for_a_while_says_its_number_and_one_for_good_does_not(
    client: httpx.Client, stream: Stream
) -> None:
    fill(client, stream, 5)
    told = client.delete(stream.messages, params={"offset": 3, "undo": "true"}).json()
    assert told == {"deleted": 2, "removal": 1}
    assert client.delete(f"{stream.messages}/3", params={"undo": "true"}).json() == {
        "deleted": 1,
        "removal": 2,
    }
    assert client.delete(stream.messages).json() == {"deleted": 2, "finals": [1, 2]}


@pytest.mark.parametrize("undo", ["true", "false"])
def test_a_long_purge_by_key_is_noted_as_it_goes(
    client: httpx.Client, log: Log, stream: Stream, undo: str
) -> None:
    fill(client, stream, 1000)
    fill(client, stream, 1000, first=1001)
    fill(client, stream, 300, first=2001)
    told = client.delete(stream.messages, params={"key": "k.1", "undo": undo}).json()
    assert told == {"deleted": 1150} | ({"removal": 1} if undo == "true" else {})
    noted = [note for _, note in log.run(notes.take()) if note.stream_id == stream.stream_id]
    assert [note.messages for note in noted] == [NOTED, 150]
    assert len({note.deed for note in noted}) == 1
    assert {note.after.get("removal") for note in noted} == {told.get("removal")}
    standing = log.run(stats.inspect(stream.stream_id))
    assert (standing.by_hand_messages, standing.by_hand_bytes) == (
        1150,
        sum(note.bytes for note in noted),
    )


def purged_beside(
    client: httpx.Client,
    stream: Stream,
    beside: Callable[[], object],
    *,
    count: int,
    undo: str = "true",
    query: Mapping[str, str] = MappingProxyType({"key": "k.*"}),
) -> httpx.Response:
    """The answer to a purge of so many messages, all of them, and what is done again and again meanwhile."""
    for first in range(1, count + 1, 1000):
        fill(client, stream, 1000, first=first)
    with ThreadPoolExecutor(1) as threads:
        purging = threads.submit(client.delete, stream.messages, params={**query, "undo": undo})
        while not purging.done():
            beside()
        return purging.result()


def test_a_purge_for_good_says_what_can_be_undone_no_more(
    client: httpx.Client, log: Log, stream: Stream
) -> None:
    fill(client, stream, 10)
    for below in (4, 8):
        client.delete(stream.messages, params={"offset": below, "undo": "true"}).raise_for_status()
    told = client.delete(stream.messages, params={"offset": 6, "undo": "false"}).json()
    assert told == {"deleted": 0, "finals": [1, 2]}
    (left,) = log.run(removals.removals(stream.stream_id))
    assert (left.number, left.first) == (2, 6)
    *_, (_, note) = log.run(notes.take())
    assert note.after["finals"] == [1, 2]


def test_an_undo_ends_a_purge_that_is_going_on(client: httpx.Client, log: Log, stream: Stream) -> None:
    def bring_back() -> None:
        for each in log.run(removals.removals(stream.stream_id)):
            with contextlib.suppress(LogError):
                log.run(undo.undo(stream.stream_id, each.number))

    assert refusal(purged_beside(client, stream, bring_back, count=20_000)) == (409, "removal_over")
    bring_back()
    standing = log.run(stats.inspect(stream.stream_id))
    assert (standing.messages, standing.by_hand_messages) == (20_000, 0)
    assert left(client, stream) == list(range(1, 101))
    noted = [note for _, note in log.run(notes.take()) if note.stream_id == stream.stream_id]
    assert 0 < sum(note.messages for note in noted) < 20_000


@pytest.mark.parametrize("undo", ["true", "false"])
@pytest.mark.parametrize("switch", ["sealed", "deny_purge"])
def test_a_purge_that_is_forbidden_while_it_goes_on_tells_what_it_took(
    client: httpx.Client, log: Log, stream: Stream, switch: str, undo: str
) -> None:
    def forbid() -> None:
        if log.run(stats.inspect(stream.stream_id)).messages < 20_000:
            configure(log, stream, **{switch: True})

    answer = purged_beside(client, stream, forbid, count=20_000, undo=undo)
    assert refusal(answer) == (403, "operation_denied")
    gone = 20_000 - log.run(stats.inspect(stream.stream_id)).messages
    assert answer.json()["error"]["message"].endswith(f". {gone:,} messages of it had already been done.")
    noted = [note for _, note in log.run(notes.take()) if note.stream_id == stream.stream_id]
    assert sum(note.messages for note in noted) == gone > 0
    assert not any(UNKNOWN.items() <= note.after.items() for note in noted)


@pytest.mark.parametrize("query", [{"key": "k.*"}, {"offset": "19000"}, {"keep": "1"}])
def test_a_purge_of_a_stream_that_is_deleted_meanwhile_tells_what_it_took(
    client: httpx.Client, log: Log, stream: Stream, query: dict[str, str]
) -> None:
    left: list[int] = []

    def delete() -> None:
        found = log.run(stats.inspect_many([stream.stream_id])).get(stream.stream_id)
        if found is not None and found.messages < 20_000:
            left.append(log.run(stats.inspect(stream.stream_id)).messages)
            log.run(config.stream_remove(stream.stream_id, workspace_id=WORKSPACE_ID, name=stream.name))

    answer = purged_beside(client, stream, delete, count=20_000, undo="false", query=query)
    delete()  # where it was over before
    assert answer.status_code in {200, 404}
    noted = [note for _, note in log.run(notes.take()) if note.stream_id == stream.stream_id]
    gone = sum(note.messages for note in noted)
    assert gone >= 20_000 - left[0] > 0
    if answer.status_code == 200:
        assert answer.json()["deleted"] == gone
    else:
        assert answer.json()["error"]["message"].endswith(f" {gone:,} messages of it had already been done.")


def test_a_purge_that_takes_longer_than_it_is_kept_takes_everything(
    brief: httpx.Client, log: Log, stream: Stream
) -> None:
    def end() -> None:
        log.run(undo.end(stream.stream_id))

    assert purged_beside(brief, stream, end, count=15_000).json()["deleted"] == 15_000
    standing = log.run(stats.inspect(stream.stream_id))
    assert (standing.messages, standing.by_hand_messages) == (0, 15_000)


def test_a_removal_says_which_one_it_has_made_final_before_its_time(
    client: httpx.Client, stream: Stream
) -> None:
    fill(client, stream, 102)
    for offset in range(1, 101):
        assert "ended" not in client.delete(f"{stream.messages}/{offset}", params={"undo": "true"}).json()
    told = client.delete(f"{stream.messages}/101", params={"undo": "true"}).json()
    assert told == {"deleted": 1, "removal": 101, "ended": 1}


@pytest.mark.parametrize(("undo_s", "unasked"), [(3600, 200), (0, 403)])
def test_where_only_an_admin_removes_for_good_the_removals_of_others_can_be_undone(
    valkey: str, token_for: Callable[..., str], stream: Stream, undo_s: int, unasked: int
) -> None:
    server = Server(valkey, purge_for_good="admin", undo_s=undo_s)
    path = f"http://127.0.0.1:{server.port}/api/v1/streams{stream.messages}"
    manager, admin = (
        httpx.Client(base_url=path, headers={"authorization": f"Bearer {token_for(*scopes)}"})
        for scopes in (("publish", "read", "manage"), ("admin",))
    )
    with manager, admin:
        manager.post("", json=[{"id": f"{n}", "body": n} for n in range(4)])
        assert refusal(manager.delete("", params={"undo": "false"})) == (403, "forbidden")
        for answer in (manager.delete("/1"), manager.delete("", params={"keep": 1})):
            assert answer.status_code == unasked
            assert ("removal" in answer.json()) == (unasked == 200)
        assert "removal" not in admin.delete("").json()
        assert manager.get("", params={"wait": 0}).json() == []
    server.stop()


@pytest.mark.parametrize("undo", ["", "1", "True", "yes"])
def test_undo_is_true_or_false(client: httpx.Client, stream: Stream, undo: str) -> None:
    fill(client, stream, 2)
    answer = client.delete(stream.messages, params={"undo": undo})
    assert refusal(answer) == (400, "validation_error")
    assert left(client, stream) == [1, 2]


@pytest.mark.parametrize("path", ["", "/2"])
def test_a_delete_with_a_body_deletes_nothing(client: httpx.Client, stream: Stream, path: str) -> None:
    fill(client, stream, 3)
    answer = client.request("DELETE", f"{stream.messages}{path}", json={"offset": 2})
    assert refusal(answer) == (400, "validation_error")
    assert left(client, stream) == [1, 2, 3]
