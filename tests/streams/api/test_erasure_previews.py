"""What an erasure would do, told over HTTP before it is asked for. Spark is not here: a test answers for it."""

import hashlib
from typing import Any

import pytest

from streams import store
from streams.log import config, dead_letters, groups
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Erasure, Event, Query, QueryState, Replay, Stream
from streams.services import erasures, queries
from tests.streams.api.conftest import Api, caller, code, fields

PATH = "analytics/erasures"
OF_ANN: dict[str, Any] = {"stream": "a", "key": "ann.1", "dry_run": True}
OF_TWO: dict[str, Any] = {"stream": "a", "offset": 2, "dry_run": True}


@pytest.fixture(autouse=True)
def nothing_asked(database: None) -> None:
    Erasure.objects.all().delete()
    Query.objects.all().delete()


@pytest.fixture
def stream(owner: Api) -> Stream:
    """Four messages, of which the second and the fourth have the key ``ann.1``."""
    assert owner.post("streams", {"name": "a"}).status_code == 201
    stream = Stream.objects.get(workspace=owner.workspace, name="a")
    publish(stream, "bob", "ann.1", "bob", "ann.1")
    return stream


def publish(stream: Stream, *keys: str) -> None:
    messages = [NewMessage(id=f"{len(keys)}-{n}", body=b"1", key=key) for n, key in enumerate(keys)]
    store.log().run(append(stream.stream_id, messages))


def told(api: Api, asked: dict[str, Any]) -> dict[str, Any]:
    answer = api.post(PATH, asked)
    assert answer.status_code == 200, answer.content
    shown: dict[str, Any] = answer.json()
    return shown


def spark_answers(messages: int) -> Query:
    query = queries.query_take()
    assert query is not None
    queries.query_answer(query, columns=[("messages", "bigint")], rows=[f"[{messages}]"], truncated=False)
    return query


def test_it_says_what_would_go_once_spark_has_counted_and_changes_nothing(owner: Api, stream: Stream) -> None:
    shown = told(owner, OF_ANN)
    digest = hashlib.sha256(b"ann.1").hexdigest()
    assert (shown["state"], shown["messages"], shown["key_sha256"]) == ("counting", None, digest)
    assert (shown["in_stream"], shown["dead_letters"], shown["complete"]) == (2, 0, True)
    assert told(owner, OF_ANN)["state"] == "counting"
    query = spark_answers(5)
    assert (query.streams, digest in query.sql, "ann" in query.sql) == (["a"], True, False)
    counted = told(owner, OF_ANN)
    assert (counted["state"], counted["messages"], counted["error"]) == ("counted", 5, None)
    assert Query.objects.count() == 1
    assert not Erasure.objects.exists()
    assert not Event.objects.filter(workspace=owner.workspace.name, kind__startswith="history.").exists()


def test_what_comes_after_the_count_is_added_to_it(owner: Api, stream: Stream) -> None:
    told(owner, OF_ANN)
    spark_answers(5)
    publish(stream, "ann.1", "ann.1", "ann.12")
    shown = told(owner, OF_ANN)
    assert (shown["messages"], shown["in_stream"], shown["up_to"]) == (7, 4, 7)
    later = {**OF_TWO, "offset": 8}
    assert told(owner, later)["in_stream"] == 0
    spark_answers(0)
    publish(stream, "eve")
    assert (told(owner, later)["messages"], told(owner, later)["in_stream"]) == (1, 1)


def test_no_more_is_told_than_up_to_an_offset_that_is_sent(owner: Api, stream: Stream) -> None:
    upto_three = {**OF_ANN, "up_to": 3}
    assert owner.post("streams/a/groups", {"name": "g"}).status_code == 201
    store.log().run(groups.fetch(stream.stream_id, "g", limit=10))
    store.log().run(groups.term(stream.stream_id, "g", "offsets", [2, 4], reason="bad"))
    replayed = {"source": "a", "source_id": stream.stream_id, "target": "b", "target_id": "x", "stored": 1}
    early, late = (
        Replay.objects.create(workspace=owner.workspace, **replayed, first=first, last=4) for first in (3, 4)
    )
    shown = told(owner, upto_three)
    assert (shown["in_stream"], shown["dead_letters"], shown["up_to"]) == (1, 1, 3)
    assert [each["replay"] for each in shown["copies"]] == [early.pk]
    assert "AND offset <= 3 AND" in spark_answers(1).sql
    publish(stream, "ann.1")
    shown = told(owner, upto_three)
    assert (shown["state"], shown["messages"], shown["in_stream"], shown["up_to"]) == ("counted", 1, 1, 3)
    everything = told(owner, OF_ANN)
    assert (everything["state"], everything["in_stream"], everything["up_to"]) == ("counting", 3, 5)
    assert [each["replay"] for each in everything["copies"]] == [late.pk, early.pk]
    spark_answers(3)
    assert told(owner, OF_ANN)["messages"] == 3
    assert told(owner, {**OF_ANN, "up_to": 99})["up_to"] == 5
    assert told(owner, {**OF_ANN, "up_to": 0})["in_stream"] == 0
    assert owner.patch("streams/a", {"max_messages": 1}).status_code == 200
    publish(stream, "bob", "bob", "bob")
    shown = told(owner, upto_three)
    assert (shown["messages"], shown["in_stream"], shown["complete"]) == (1, 0, True)


def test_what_a_limit_took_since_the_count_makes_it_incomplete(owner: Api, stream: Stream) -> None:
    told(owner, OF_ANN)
    spark_answers(2)
    assert owner.patch("streams/a", {"max_messages": 2}).status_code == 200
    assert told(owner, OF_ANN)["complete"]
    publish(stream, "ann.1", "ann.1", "ann.1")
    shown = told(owner, OF_ANN)
    assert (shown["messages"], shown["complete"]) == (4, False)
    Query.objects.all().delete()
    told(owner, OF_ANN)
    spark_answers(5)
    assert (told(owner, OF_ANN)["messages"], told(owner, OF_ANN)["complete"]) == (5, True)


def test_what_a_stream_keeps_out_of_the_history_is_not_counted(owner: Api, stream: Stream) -> None:
    store.log().run(config.archived_set(stream.stream_id, 3))
    assert owner.patch("streams/a", {"archive": False}).status_code == 200
    told(owner, OF_ANN)
    assert spark_answers(1).sql.endswith("offset <= 3")
    assert (told(owner, OF_ANN)["messages"], told(owner, OF_ANN)["in_stream"]) == (1, 2)


def test_dead_letters_are_told_by_group(owner: Api, stream: Stream) -> None:
    for name, dead in (("g", [1, 2, 4]), ("h", [2]), ("i", [3])):
        assert owner.post("streams/a/groups", {"name": name}).status_code == 201
        store.log().run(groups.fetch(stream.stream_id, name, limit=10))
        store.log().run(groups.term(stream.stream_id, name, "offsets", dead, reason="bad"))
    store.log().run(dead_letters.replay(stream.stream_id, "g", [4]))
    kept = [{"group": "g", "dead_letters": 2}, {"group": "h", "dead_letters": 1}]
    assert (told(owner, OF_ANN)["dead_letters"], told(owner, OF_ANN)["groups"]) == (3, kept)
    assert [each["dead_letters"] for each in told(owner, OF_TWO)["groups"]] == [1, 1]


def test_replays_that_may_have_made_copies_are_named(owner: Api, stream: Stream) -> None:
    def replay(**chosen: Any) -> int:
        made = {"source": "a", "source_id": stream.stream_id, "target": "b", "target_id": "x", "stored": 3}
        return Replay.objects.create(
            workspace=owner.workspace, **{**made, "first": 1, "last": 4, **chosen}
        ).pk

    everything = replay()
    of_ann = replay(key="ann.*", first=3)
    replay(key="bob")
    replay(stored=0)
    replay(source_id="another")
    assert [each["replay"] for each in told(owner, OF_ANN)["copies"]] == [of_ann, everything]
    early = [each["replay"] for each in told(owner, OF_TWO)["copies"]]
    assert early[-1] == everything
    assert of_ann not in early
    assert told(owner, OF_ANN)["copies"][1] == {"replay": everything, "target": "b", "messages": 3}
    narrowed = caller(owner.workspace, scopes=["erase"], streams=["a"])
    assert told(narrowed, OF_ANN)["copies"] == []


def test_a_count_that_failed_says_why_and_is_tried_again_later(owner: Api, stream: Stream) -> None:
    told(owner, OF_ANN)
    assert queries.queries_refuse(reason="Java is missing.") == 1
    for _ in range(2):
        shown = told(owner, OF_ANN)
        assert (shown["state"], shown["messages"], shown["error"]) == ("failed", None, "Java is missing.")
    Query.objects.update(finished_at="2026-01-01T00:00:00Z")
    assert told(owner, OF_ANN)["state"] == "counting"


def test_a_count_is_told_as_long_as_it_may_be_true(owner: Api, stream: Stream) -> None:
    told(owner, OF_ANN)
    spark_answers(5)
    assert told(owner, OF_ANN)["messages"] == 5
    owner.post(PATH, {"stream": "a", "key": "ann.1"})
    (taken,) = erasures.erasures_take()
    assert told(owner, OF_ANN)["waiting"] == [taken.pk]
    erasures.erasure_done(taken, messages=5, through=4)
    assert told(owner, OF_ANN)["waiting"] == []
    assert told(owner, OF_ANN)["state"] == "counting", "what was erased is not counted any more"
    spark_answers(0)
    assert told(owner, OF_ANN)["messages"] == 0
    Query.objects.update(finished_at="2026-01-01T00:00:00Z")
    assert told(owner, OF_ANN)["state"] == "counting"
    for name in ("A", "ab"):
        owner.post("streams", {"name": name})
        assert told(owner, {**OF_ANN, "stream": name})["state"] == "counting"
    assert Query.objects.filter(state=QueryState.QUEUED).count() == 3


HEAD_OF_ANN = (
    "SELECT count(*) AS messages FROM messages WHERE stream = 'a' "
    f"AND sha2(key, 256) = '{hashlib.sha256(b'ann.1').hexdigest()}' AND offset <= "
)


@pytest.mark.parametrize("rest", ["4", "999999999", "5 OR 1 = 1", "-1", " 4"])
@pytest.mark.parametrize("streams", [[], ["other*"], ["a"]])
def test_what_anybody_asks_in_sql_is_no_count_of_a_preview(
    owner: Api, stream: Stream, streams: list[str], rest: str
) -> None:
    told(owner, OF_ANN)
    assert spark_answers(5).sql == f"{HEAD_OF_ANN}4"
    reader = caller(owner.workspace, scopes=["read"], streams=streams)
    assert reader.post("analytics/query", {"sql": f"{HEAD_OF_ANN}{rest}"}).status_code == 202
    assert spark_answers(0).counts_to is None
    shown = told(owner, OF_ANN)
    assert (shown["state"], shown["messages"]) == ("counted", 5)
    assert Query.objects.filter(counts_to__isnull=False).delete()[0] == 1
    assert told(owner, OF_ANN)["state"] == "counting"


def test_another_count_is_begun_where_that_is_asked_for(owner: Api, stream: Stream) -> None:
    told(owner, OF_ANN)
    spark_answers(7)
    assert told(owner, OF_ANN)["messages"] == 7
    assert told(owner, {**OF_ANN, "anew": True})["state"] == "counting"
    spark_answers(5)
    assert told(owner, OF_ANN)["messages"] == 5
    refused = owner.post(PATH, {"stream": "a", "key": "ann.1", "anew": True})
    assert (code(refused), fields(refused)) == ("validation_error", ["anew"])


def test_the_mark_of_a_preview_cannot_be_asked_for(owner: Api, stream: Stream) -> None:
    answer = owner.post("analytics/query", {"sql": f"{HEAD_OF_ANN}4", "counts_to": 4})
    assert (code(answer), fields(answer)) == ("validation_error", ["counts_to"])
    assert not Query.objects.exists()


def test_who_may_not_erase_is_not_told(owner: Api, stream: Stream) -> None:
    manager = caller(owner.workspace, scopes=["read", "publish", "consume", "manage"])
    assert code(manager.post(PATH, OF_ANN)) == "forbidden"
    assert told(caller(owner.workspace, scopes=["erase"], streams=["a"]), OF_ANN)["in_stream"] == 2
    assert code(owner.post(PATH, {**OF_ANN, "stream": "nope"})) == "stream_not_found"
    owner.patch("streams/a", {"deny_delete": True})
    assert code(owner.post(PATH, OF_ANN)) == "operation_denied"


def test_of_deleted_streams_there_is_no_preview(owner: Api, stream: Stream) -> None:
    answer = owner.post(PATH, {"stream": "a", "deleted": True, "dry_run": True})
    assert (code(answer), fields(answer)) == ("validation_error", ["dry_run"])
    assert not Query.objects.exists()
