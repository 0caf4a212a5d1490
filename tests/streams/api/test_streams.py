"""Streams: created once, listed by name, changed, deleted."""

from typing import Any
from urllib.parse import quote

import pytest

from streams import store
from streams.log import config, stats
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Event, Stream
from tests.streams.api.conftest import Api, code, fields

DEFAULTS: dict[str, Any] = {
    "policy": None,
    "ttl": None,
    "max_messages": None,
    "max_bytes": None,
    "max_messages_per_key": None,
    "retention": "limits",
    "discard": "old",
    "max_message_bytes": 1_048_576,
    "dedup_window": 86_400,
    "archive": True,
    "deny_delete": False,
    "deny_purge": False,
    "sealed": False,
    "storage": "durable",
    "description": "",
    "labels": {},
    "keys": [],
}
FRESH: dict[str, Any] = {
    "offset": 0,
    "first_offset": 1,
    "messages": 0,
    "bytes": 0,
    "committed_offset": 0,
    "lag": 0,
    "first_timestamp": None,
    "last_timestamp": None,
    "groups": 0,
    "keys_count": 0,
    "duplicates": 0,
    "limit_pending": 0,
}


def make(api: Api, *names: str, **settings: Any) -> None:
    answer = api.post("streams/", [{"name": name, **settings} for name in names])
    assert answer.status_code == 201, answer.content


def names(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["name"] for row in answer.json()]


def publish(api: Api, name: str, *bodies: bytes) -> Stream:
    stream = Stream.objects.get(workspace=api.workspace, name=name)
    store.log().run(append(stream.stream_id, [NewMessage(id=f"m{n}", body=b) for n, b in enumerate(bodies)]))
    return stream


def test_a_stream_has_every_default(owner: Api) -> None:
    made = owner.post("streams/", {"name": "orders"})
    assert made.status_code == 201
    times = {"created_at": made.json()["created_at"], "updated_at": made.json()["updated_at"]}
    assert made.json() == {"name": "orders", **DEFAULTS, **FRESH, **times}
    assert owner.get("streams/orders").json() == made.json()


def test_times_are_utc_with_milliseconds(owner: Api) -> None:
    made = owner.post("streams/", {"name": "orders"}).json()
    assert len(made["created_at"]) == len("2026-11-21T06:00:00.123Z")
    assert made["created_at"].endswith("Z")


def test_settings_are_kept(owner: Api) -> None:
    wanted = {
        "name": "Orders-1.x_y",
        "ttl": 60,
        "max_messages": 10,
        "max_bytes": 2**53 - 1,
        "max_messages_per_key": 3,
        "retention": "interest",
        "discard": "new",
        "max_message_bytes": 16 * 1024 * 1024,
        "dedup_window": 604_800,
        "archive": False,
        "deny_delete": True,
        "description": "ü" * 2048,
        "labels": {"team": "billing", "größe": ""},
        "keys": ["orders.*.>", "x"],
    }
    made = owner.post("streams/", wanted)
    assert made.status_code == 201, made.content
    assert wanted.items() <= made.json().items()


def test_counts_come_from_the_log(owner: Api) -> None:
    make(owner, "orders")
    publish(owner, "orders", b'"a"', b'{"b":1.0}')
    seen = owner.get("streams/orders").json()
    assert (seen["offset"], seen["first_offset"], seen["messages"], seen["bytes"]) == (2, 1, 2, 12)
    assert seen["lag"] == 2
    assert seen["last_timestamp"].endswith("Z")


def test_the_same_again_is_200_and_touches_nothing(owner: Api) -> None:
    make(owner, "orders", ttl=60)
    publish(owner, "orders", b"1")
    again = owner.post("streams/", {"ttl": 60, "name": "orders"})
    assert again.status_code == 200
    assert again.json()["messages"] == 1
    assert Event.objects.filter(workspace=owner.workspace, kind="stream.created").count() == 1


def test_the_same_name_with_other_settings_is_refused(owner: Api) -> None:
    make(owner, "orders", ttl=60)
    again = owner.post("streams/", {"name": "orders", "ttl": 61})
    assert (again.status_code, code(again)) == (409, "stream_exists")
    assert again.json()["error"]["details"]["err_code"] == 10058
    assert again.json()["error"]["details"]["differs"] == ["ttl"]
    assert owner.get("streams/orders").json()["ttl"] == 60


def test_names_differ_by_case(owner: Api) -> None:
    make(owner, "orders", "Orders")
    assert names(owner.get("streams/")) == ["Orders", "orders"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "a" * 51),
        ("name", "-a"),
        ("name", ".a"),
        ("name", "_a"),
        ("name", "a b"),
        ("name", "a/b"),
        ("name", "é"),
        ("name", "a\n"),
        ("name", "a\x00"),
        ("name", "١"),
        ("name", "find"),
        ("name", 5),
        ("name", None),
        ("ttl", 0),
        ("ttl", -1),
        ("ttl", 1.5),
        ("ttl", 1.0),
        ("ttl", "5"),
        ("ttl", True),
        ("ttl", 10**30),
        ("ttl", []),
        ("max_messages", 0),
        ("max_messages", 2**53),
        ("max_bytes", False),
        ("max_message_bytes", None),
        ("max_message_bytes", 16 * 1024 * 1024 + 1),
        ("dedup_window", 0),
        ("dedup_window", 604_801),
        ("dedup_window", None),
        ("discard", "oldest"),
        ("discard", ["old"]),
        ("discard", None),
        ("archive", 1),
        ("archive", "true"),
        ("archive", None),
        ("sealed", 0),
        ("description", "ü" * 2049),
        ("description", None),
        ("description", "\x00"),
        ("labels", []),
        ("labels", {"a": 1}),
        ("labels", {"a": {"b": "c"}}),
        ("labels", {"a:b": "c"}),
        ("labels", {"": "c"}),
        ("labels", {"0": "c"}),
        ("labels", {'a"': "c"}),
        ("labels", {"a": "x" * 256}),
        ("labels", {f"l{n}": "" for n in range(65)}),
        ("keys", "orders.>"),
        ("keys", [1]),
        ("keys", [""]),
        ("keys", ["a..b"]),
        ("keys", [">.a"]),
        ("keys", ["a.>b"]),
        ("keys", ["a*"]),
        ("keys", ["a b"]),
        ("keys", ["a" * 256]),
        ("keys", ["a"] * 101),
        ("retention", "none"),
        ("retention", None),
        ("storage", "disk"),
        ("storage", None),
        ("max_messages_per_key", 0),
        ("max_messages_per_key", 1.5),
        ("offset", 5),
        ("created_at", "2026-11-21T06:00:00Z"),
        ("bogus", 1),
        ("__class__", 1),
    ],
)
def test_a_wrong_field_is_named_and_nothing_is_stored(owner: Api, field: str, value: Any) -> None:
    answer = owner.post("streams/", {"name": "orders", field: value})
    assert (answer.status_code, code(answer)) == (400, "validation_error")
    assert fields(answer) == [field]
    assert list(answer.json()["error"]["details"]["errors"]) == [field]
    assert not Stream.objects.filter(workspace=owner.workspace).exists()


def test_every_wrong_field_is_named(owner: Api) -> None:
    answer = owner.post("streams/", {"ttl": "5", "bogus": 1, "archive": 0})
    assert fields(answer) == ["archive", "bogus", "name", "ttl"]


def test_what_is_not_offered_yet_is_taken_where_it_says_so(owner: Api) -> None:
    made = owner.post(
        "streams/",
        {"name": "orders", "retention": "limits", "storage": "durable"},
    )
    assert made.status_code == 201


@pytest.mark.parametrize("body", [5, "orders", None, True, 1.5])
def test_something_else_than_an_object_is_refused(owner: Api, body: Any) -> None:
    answer = owner.call("POST", "streams/", b"null" if body is None else body)
    assert (answer.status_code, code(answer)) == (400, "validation_error")


def test_many_are_made_at_once_in_their_order(owner: Api) -> None:
    answer = owner.post("streams", [{"name": "b"}, {"name": "a", "ttl": 5}])
    assert answer.status_code == 201
    assert [(row["name"], row["ttl"]) for row in answer.json()] == [("b", None), ("a", 5)]


def test_many_again_are_200_and_some_new_are_201(owner: Api) -> None:
    make(owner, "a", "b")
    assert owner.post("streams/", [{"name": "a"}, {"name": "b"}]).status_code == 200
    assert owner.post("streams/", [{"name": "a"}, {"name": "c"}]).status_code == 201
    assert owner.post("streams/", []).status_code == 200


def test_one_wrong_of_many_refuses_all_and_names_every_fault(owner: Api) -> None:
    answer = owner.post("streams/", [{"name": "a"}, {"name": "b", "ttl": 0, "x": 1}, 5, {"name": "a"}])
    assert (answer.status_code, code(answer)) == (400, "validation_error")
    errors = answer.json()["error"]["details"]["errors"]
    assert [(error["index"], error["field"]) for error in errors] == [
        (1, "x"),
        (1, "ttl"),
        (2, "body"),
        (3, "name"),
    ]
    assert all(error["message"] for error in errors)
    assert names(owner.get("streams/")) == []


def test_a_conflict_in_many_refuses_all(owner: Api) -> None:
    make(owner, "b", ttl=60)
    answer = owner.post("streams/", [{"name": "a"}, {"name": "b"}])
    assert (answer.status_code, code(answer)) == (409, "stream_exists")
    assert answer.json()["error"]["details"]["errors"][0]["index"] == 1
    assert names(owner.get("streams/")) == ["b"]


def test_more_than_a_thousand_at_once_are_refused(owner: Api) -> None:
    answer = owner.post("streams/", [{"name": f"s{n}"} for n in range(1001)])
    assert (answer.status_code, code(answer)) == (400, "batch_too_large")
    assert names(owner.get("streams/")) == []


def test_a_list_goes_page_by_page(owner: Api) -> None:
    make(owner, *(f"s{n:03}" for n in range(150)))
    first = owner.get("streams/")
    assert len(first.json()) == 100
    link = first.headers["Link"]
    assert link.startswith("<http://testserver/api/v1/streams/?")
    assert link.endswith('>; rel="next"')
    rest = owner.client.get(link[1 : link.index(">")], headers={"authorization": owner.secret})
    assert names(rest) == [f"s{n:03}" for n in range(100, 150)]
    assert "Link" not in rest.headers


def test_a_link_keeps_the_filters(owner: Api) -> None:
    make(owner, "a1", "a2", "a3", "b1", labels={"team": "x:y"})
    pages = []
    path = "/api/v1/streams?name=a&label=team:x:y&limit=2"
    while path:
        page = owner.client.get(path, headers={"authorization": owner.secret})
        pages.append(names(page))
        link = page.headers.get("Link", "")
        path = link[1 : link.index(">")] if link else ""
    assert pages == [["a1", "a2"], ["a3"]]


def test_name_filters_by_a_part_as_written(owner: Api) -> None:
    make(owner, "orders", "Orders", "re-orders", "other", "a_b", "axb")
    assert names(owner.get("streams/?name=orders")) == ["orders", "re-orders"]
    assert names(owner.get("streams/?name=a_b")) == ["a_b"]
    assert names(owner.get("streams/?name=%25")) == []
    assert names(owner.get("streams/?name_regex=^(re-)%3Forders$")) == ["orders", "re-orders"]
    assert names(owner.get("streams/?name_regex=orders&name=re")) == ["re-orders"]
    assert fields(owner.get("streams/?name_regex=(")) == ["name_regex"]


def test_all_labels_must_hold(owner: Api) -> None:
    owner.post("streams/", {"name": "a", "labels": {"team": "x", "env": "prod"}})
    owner.post("streams/", {"name": "b", "labels": {"team": "x"}})
    assert names(owner.get("streams/?label=team:x")) == ["a", "b"]
    assert names(owner.get("streams/?label=team:x&label=env:prod")) == ["a"]
    assert names(owner.get("streams/?label=team:y")) == []


@pytest.mark.parametrize("name", ["team__contains", "te__x", "a.b", "a b", "$", "größe", "[0]", "%", "x'"])
def test_a_label_is_a_name_never_a_look_up(owner: Api, name: str) -> None:
    make(owner, "other", labels={"team": "x"})
    make(owner, "labelled", labels={name: "v'%"})
    assert names(owner.get(f"streams/?label={quote(name + ':v%', safe='')}")) == []
    assert names(owner.get(f"streams/?label={quote(name, safe='')}:v'%25")) == ["labelled"]


@pytest.mark.parametrize(
    "name", ["-1", "0", "7", "+1", "1_0", " 1", "9" * 30, "٣", '"', '"a', "\\", "a\\:b", "__", "-", "a.b"]
)
def test_a_label_that_no_stream_has_finds_none(owner: Api, name: str) -> None:
    make(owner, "labelled", labels={"team": "x"})
    answer = owner.get(f"streams/?label={quote(name + ':x', safe='')}")
    assert (answer.status_code, names(answer)) == (200, [])


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=",
        "limit=-1",
        "limit=1.0",
        "limit=99999999999999999999999999",
        "limit=٣",
        "limit=1&limit=2",
        "label=",
        "label=team",
        "label=:x",
        "name=%00",
        "after=%00",
        "ofset=4",
        "x",
        "name=a&NAME=b",
        "&".join(f"label=a:{n}" for n in range(21)),
        "&".join(f"p{n}=1" for n in range(2000)),
    ],
)
def test_a_wrong_query_is_refused(owner: Api, query: str) -> None:
    answer = owner.get(f"streams/?{query}")
    assert (answer.status_code, code(answer)) == (400, "validation_error")


def test_find_tells_the_streams_that_take_a_key(owner: Api) -> None:
    make(owner, "eu", keys=["orders.eu.*"])
    make(owner, "all", keys=["x", "orders.>"])
    make(owner, "any")
    assert names(owner.get("streams/find?key=orders.eu.7")) == ["all", "eu"]
    assert names(owner.get("streams/find/?key=orders.us.7")) == ["all"]
    assert names(owner.get("streams/find?key=orders")) == []


def test_find_is_for_one_key(owner: Api) -> None:
    answer = owner.get("streams/find?key=a&key=b")
    assert answer.json()["error"]["message"] == "key: This parameter may be sent only once."


@pytest.mark.parametrize(
    "query", ["", "?key=", "?key=a..b", "?key=a.*", "?key=>", "?key=a%20b", "?key=" + "a" * 256]
)
def test_find_needs_a_key(owner: Api, query: str) -> None:
    answer = owner.get(f"streams/find{query}")
    assert (answer.status_code, fields(answer)) == (400, ["key"])


def test_a_change_keeps_what_is_not_sent(owner: Api) -> None:
    made = owner.post("streams/", {"name": "orders", "ttl": 60, "labels": {"a": "b"}}).json()
    changed = owner.patch("streams/orders", {"max_messages": 5}).json()
    assert changed == {**made, "max_messages": 5, "updated_at": changed["updated_at"]}
    assert changed["updated_at"] > made["updated_at"]


def test_a_limit_can_be_taken_back(owner: Api) -> None:
    make(owner, "orders", ttl=60)
    assert owner.patch("streams/orders", {"ttl": None}).json()["ttl"] is None


def test_a_tighter_limit_is_published(owner: Api) -> None:
    make(owner, "orders")
    stream = publish(owner, "orders", b"1", b"2", b"3")
    owner.patch("streams/orders/", {"max_messages": 1})
    settings = store.log().run(config.stream_settings(stream.stream_id))
    assert settings is not None
    assert settings["max_messages"] == 1
    assert store.log().run(stats.inspect(stream.stream_id)).messages in {1, 3}


@pytest.mark.parametrize(
    "field", ["name", "storage", "offset", "messages", "created_at", "groups", "lag", "bogus", "id"]
)
def test_what_cannot_change_is_refused_by_name(owner: Api, field: str) -> None:
    make(owner, "orders")
    answer = owner.patch("streams/orders", {field: "orders", "ttl": 5})
    assert (answer.status_code, fields(answer)) == (400, [field])
    assert owner.get("streams/orders").json()["ttl"] is None


def test_a_one_way_switch_stays(owner: Api) -> None:
    make(owner, "orders", deny_purge=True)
    answer = owner.patch("streams/orders", {"deny_purge": False})
    assert (answer.status_code, code(answer)) == (403, "operation_denied")


def test_a_sealed_stream_changes_only_how_it_is_described(owner: Api) -> None:
    make(owner, "orders", sealed=True)
    assert owner.patch("streams/orders", {"description": "x", "labels": {"a": "b"}}).status_code == 200
    answer = owner.patch("streams/orders", {"ttl": 5})
    assert (answer.status_code, code(answer)) == (403, "operation_denied")
    assert owner.delete("streams/orders").status_code == 204


def test_an_empty_change_changes_nothing(owner: Api) -> None:
    made = owner.post("streams/", {"name": "orders"}).json()
    assert owner.patch("streams/orders", {}).json() == made


def test_a_stream_that_took_the_name_of_another_is_not_deleted_for_it(owner: Api) -> None:
    old = owner.post("streams/", {"name": "orders"}).json()
    assert owner.delete("streams/orders").status_code == 204
    new = owner.post("streams/", {"name": "orders"}).json()
    assert code(owner.delete(f"streams/orders?created_at={old['created_at']}")) == "stream_not_found"
    assert code(owner.delete("streams/orders?created_at=then")) == "validation_error"
    assert owner.get("streams/orders").status_code == 200
    assert owner.delete(f"streams/orders?created_at={new['created_at']}").status_code == 204


def test_a_deleted_stream_comes_back_empty(owner: Api) -> None:
    make(owner, "orders")
    old = publish(owner, "orders", b"1")
    assert owner.delete("streams/orders/").status_code == 204
    assert code(owner.get("streams/orders")) == "stream_not_found"
    assert code(owner.delete("streams/orders")) == "stream_not_found"
    assert owner.post("streams/", {"name": "orders"}).json()["offset"] == 0
    assert Stream.objects.get(workspace=owner.workspace, name="orders").stream_id != old.stream_id


def test_a_plan_bounds_the_age(owner: Api) -> None:
    type(owner.workspace).objects.filter(pk=owner.workspace.pk).update(plan="free")
    assert owner.post("streams/", {"name": "a"}).json()["ttl"] == 86_400
    assert owner.post("streams/", {"name": "b", "ttl": None}).json()["ttl"] == 7 * 86_400
    answer = owner.post("streams/", {"name": "c", "ttl": 7 * 86_400 + 1})
    assert (answer.status_code, code(answer)) == (403, "quota_exceeded")
    assert answer.json()["error"]["details"]["allowed"] == 7 * 86_400
    assert code(owner.patch("streams/a", {"ttl": 10**9})) == "quota_exceeded"
    many = owner.post("streams/", [{"name": "d"}, {"name": "e", "ttl": 10**9}])
    assert many.json()["error"]["details"]["errors"][0]["field"] == "ttl"


def test_a_limit_a_key_acts_on_what_is_there_before_the_answer(owner: Api) -> None:
    make(owner, "orders")
    stream = Stream.objects.get(workspace=owner.workspace, name="orders")
    messages = [NewMessage(id=f"m{n}", body=b"1", key=f"k{n % 3}") for n in range(30)]
    store.log().run(append(stream.stream_id, messages))
    changed = owner.patch("streams/orders", {"max_messages_per_key": 2}).json()
    assert (changed["max_messages_per_key"], changed["messages"], changed["first_offset"]) == (2, 6, 25)
