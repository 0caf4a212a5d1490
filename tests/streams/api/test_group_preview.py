"""What other settings of a group, or a new one, take away: asked first, it is what saving then takes."""

import random
from typing import Any

import pytest

from streams import selectors, store
from streams.log import answers, dead_letters, groups, spent, stats, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Event, Group, Stream
from tests.streams.api.conftest import Api, caller, code, fields
from tests.waiting import until

PATH = "streams/orders/groups"
NOTHING = {
    "before": {},
    "after": {},
    "messages": 0,
    "bytes": 0,
    "dead_letters": 0,
    "deletion": None,
    "complete": True,
    "reason": None,
}


@pytest.fixture
def stream(owner: Api) -> Stream:
    """It retains by interest, and holds 20 messages of one key and 5 of another."""
    assert owner.post("streams/", {"name": "orders", "retention": "interest"}).status_code == 201
    made = Stream.objects.get(workspace=owner.workspace, name="orders")
    keys = ["eu.1"] * 20 + ["us.1"] * 5
    sent = [NewMessage(id=f"{n}", body=b"11", key=key) for n, key in enumerate(keys)]
    store.log().run(append(made.stream_id, sent))
    return made


def left(stream: Stream) -> int:
    """What is there once interest has let go of what nobody wants."""
    store.log().run(trim.release(stream.stream_id))
    return store.log().run(stats.inspect(stream.stream_id)).messages


def make(owner: Api, name: str = "g", **settings: Any) -> Group:
    assert owner.post(PATH, {"name": name, **settings}).status_code == 201
    return Group.objects.get(stream__workspace=owner.workspace, name=name)


def fetch(stream: Stream, limit: int) -> list[str]:
    fetched = store.log().run(groups.fetch(stream.stream_id, "g", limit=limit))
    return [delivery.lease for delivery in fetched.deliveries]


def in_the_end(owner: Api, stream: Stream) -> tuple[int, int]:
    """What group g has in flight and dead once all that it has out was nacked, and is due."""
    store.log().run(groups.nack(stream.stream_id, "g", "offsets", range(1, 26)))
    store.log().run(spent.retire(stream.stream_id, "g"))
    found = owner.get(f"{PATH}/g").json()
    return found["ack_pending"], found["dead_letters"]


def asked(owner: Api, settings: dict[str, Any], name: str = "g") -> dict[str, Any]:
    """The preview; it changes nothing."""
    before = owner.get(PATH).json(), Event.objects.count()
    answer = owner.post(f"{PATH}/{name}/preview", settings)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    names = ("name", "filter_keys", "max_deliver", "inactive_after")
    shown = [
        [[each[name] for name in names] for each in rows] for rows in (before[0], owner.get(PATH).json())
    ]
    assert (shown[0], before[1]) == (shown[1], Event.objects.count())
    return found


def test_what_another_filter_lets_go_by_interest_is_said_and_goes(owner: Api, stream: Stream) -> None:
    make(owner)
    wanted = {"filter_keys": ["us.>"], "max_deliver": 5}
    told = {"before": {"filter_keys": []}, "after": {"filter_keys": ["us.>"]}, "messages": 20, "bytes": 40}
    assert asked(owner, wanted) == NOTHING | told
    assert left(stream) == 25
    assert owner.patch(f"{PATH}/g", wanted).status_code == 200
    assert left(stream) == 5


def test_what_another_group_still_wants_does_not_go(owner: Api, stream: Stream) -> None:
    make(owner)
    make(owner, "other")
    assert asked(owner, {"filter_keys": ["us.>"]})["messages"] == 0


def test_where_limits_alone_retain_another_filter_takes_nothing(owner: Api, stream: Stream) -> None:
    make(owner)
    assert owner.patch("streams/orders", {"retention": "limits"}).status_code == 200
    assert asked(owner, {"filter_keys": ["us.>"]})["messages"] == 0


@pytest.mark.parametrize(
    ("settings", "goes"),
    [
        ({}, 0),
        ({"filter_keys": ["us.>"]}, 20),
        ({"start_from": "latest"}, 25),
        ({"start_from": "offset", "offset": 11}, 10),
    ],
    ids=str,
)
def test_what_a_new_group_lets_go_by_interest_is_said_and_goes(
    owner: Api, stream: Stream, settings: dict[str, Any], goes: int
) -> None:
    told = asked(owner, settings)
    assert (told["before"], told["messages"]) == (None, goes)
    assert {name: told["after"][name] for name in settings} == settings
    assert set(told["after"]) <= set(owner.post(PATH, {"name": "g", **settings}).json())
    assert left(stream) == 25 - goes


def test_a_start_at_a_time_is_told_as_it_was_sent(owner: Api, stream: Stream) -> None:
    start = {"start_from": "timestamp", "timestamp": "2026-01-01T00:00:00.000Z"}
    assert {name: asked(owner, start)["after"][name] for name in start} == start


def test_what_becomes_a_dead_letter_under_fewer_deliveries_is_said_and_does(
    owner: Api, stream: Stream
) -> None:
    make(owner, max_deliver=-1, ack_wait=0.1)
    fetch(stream, 7)
    wanted = {"max_deliver": 1}
    told = asked(owner, wanted)
    assert told == NOTHING | {"before": {"max_deliver": -1}, "after": wanted, "dead_letters": 7}
    assert asked(owner, {"max_deliver": 2}) == NOTHING | {
        "before": {"max_deliver": -1},
        "after": {"max_deliver": 2},
    }
    assert owner.patch(f"{PATH}/g", wanted).status_code == 200

    def died() -> bool:
        store.log().run(spent.retire(stream.stream_id, "g"))
        return bool(owner.get(f"{PATH}/g").json()["dead_letters"] == 7)

    until(died)


@pytest.mark.parametrize(("out", "dies"), [(10, 0), (22, 2)], ids=str)
def test_what_another_filter_removes_while_it_is_in_flight_becomes_no_dead_letter(
    owner: Api, stream: Stream, out: int, dies: int
) -> None:
    make(owner, max_deliver=-1)
    fetch(stream, out)
    wanted = {"filter_keys": ["us.>"], "max_deliver": 1}
    told = asked(owner, wanted)
    assert (told["messages"], told["dead_letters"], told["complete"]) == (20, dies, True)
    assert owner.patch(f"{PATH}/g", wanted).status_code == 200
    assert left(stream) == 5
    assert in_the_end(owner, stream) == (0, dies)


@pytest.mark.parametrize("retention", ["interest", "limits"])
def test_what_another_filter_leaves_in_the_stream_becomes_a_dead_letter(
    owner: Api, stream: Stream, retention: str
) -> None:
    make(owner, max_deliver=-1)
    if retention == "interest":
        make(owner, "other")
    assert owner.patch("streams/orders", {"retention": retention}).status_code == 200
    fetch(stream, 10)
    wanted = {"filter_keys": ["us.>"], "max_deliver": 1}
    told = asked(owner, wanted)
    assert (told["messages"], told["dead_letters"], told["complete"]) == (0, 10, True)
    assert owner.patch(f"{PATH}/g", wanted).status_code == 200
    assert left(stream) == 25
    assert in_the_end(owner, stream) == (0, 10)


def test_what_was_replayed_becomes_a_dead_letter_though_another_filter_removes_it_from_the_stream(
    owner: Api, stream: Stream
) -> None:
    make(owner, max_deliver=-1)
    make(owner, "other")
    store.log().run(answers.term(stream.stream_id, "g", "leases", fetch(stream, 3), reason="no"))
    store.log().run(dead_letters.replay(stream.stream_id, "g", [1, 2, 3]))
    fetch(stream, 5)
    store.log().run(groups.fetch(stream.stream_id, "other", limit=25))
    store.log().run(groups.ack(stream.stream_id, "other", "up_to", [25]))
    wanted = {"filter_keys": ["us.>"], "max_deliver": 1}
    told = asked(owner, wanted)
    assert told["dead_letters"] == 3
    assert owner.patch(f"{PATH}/g", wanted).status_code == 200
    assert left(stream) == 25 - told["messages"]
    assert in_the_end(owner, stream) == (0, 3)


@pytest.mark.parametrize("seed", range(12))
def test_as_many_die_as_are_said_whatever_the_groups_want(owner: Api, stream: Stream, seed: int) -> None:
    chance = random.Random(seed)
    patterns: list[list[str]] = [[], ["eu.>"], ["us.>"], ["none"]]
    for name in ("g", "a")[: chance.choice((1, 2, 2))]:
        make(owner, name, filter_keys=chance.choice(patterns))
        fetched = store.log().run(groups.fetch(stream.stream_id, name, limit=chance.randint(1, 25)))
        done = [each.lease for each in fetched.deliveries if chance.random() < 0.5]
        store.log().run(groups.ack(stream.stream_id, name, "leases", done))
    wanted = {"filter_keys": chance.choice(patterns), "max_deliver": 1}
    said = asked(owner, wanted)["dead_letters"]
    assert owner.patch(f"{PATH}/g", wanted).status_code == 200
    left(stream)
    assert in_the_end(owner, stream) == (0, said)


def test_more_in_flight_than_is_looked_at_is_said(
    owner: Api, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(owner, max_deliver=-1)
    fetch(stream, 7)
    monkeypatch.setattr(selectors.groups, "SPENT_LOOKED_AT", 0)
    told = asked(owner, {"max_deliver": 1})
    assert (told["dead_letters"], told["complete"], told["reason"]) == (0, False, "too_many_in_flight")


def test_what_goes_with_a_group_that_is_deleted_when_idle_is_said(owner: Api, stream: Stream) -> None:
    make(owner)
    make(owner, "narrow", filter_keys=["us.>"])
    leases = fetch(stream, 3)
    store.log().run(answers.term(stream.stream_id, "g", "leases", leases[:2], reason="no"))
    assert left(stream) == 23
    told = asked(owner, {"inactive_after": 3600})
    deletion = told.pop("deletion")
    assert 0 <= deletion.pop("idle") < 3600
    assert deletion == {"after": 3600, "in_flight": 1, "dead_letters": 2, "messages": 18}
    assert told.pop("after") == {"inactive_after": 3600}
    make(owner, "all")
    assert asked(owner, {"inactive_after": 3600})["deletion"]["messages"] == 0
    assert owner.patch(f"{PATH}/g", {"inactive_after": 3600}).status_code == 200
    assert asked(owner, {"inactive_after": 7200})["deletion"] is None, "it goes no sooner"
    assert asked(owner, {"inactive_after": None})["deletion"] is None


def test_what_goes_at_once_does_not_go_with_the_group_once_more(owner: Api, stream: Stream) -> None:
    make(owner)
    make(owner, "narrow", filter_keys=["none"])
    told = asked(owner, {"inactive_after": 3600, "filter_keys": ["us.>"]})
    assert (told["messages"], told["deletion"]["messages"]) == (20, 5)


def test_the_last_group_of_a_stream_takes_no_message_with_it(owner: Api, stream: Stream) -> None:
    make(owner)
    assert asked(owner, {"inactive_after": 3600})["deletion"]["messages"] == 0


@pytest.mark.parametrize("seed", range(12))
def test_what_is_said_goes_whatever_the_groups_want(owner: Api, stream: Stream, seed: int) -> None:
    chance = random.Random(seed)
    patterns: list[list[str]] = [[], ["eu.>"], ["us.>"], ["none"]]
    for name in chance.sample(["g", "a", "b"], chance.choice((2, 3, 3))):
        make(owner, name, filter_keys=chance.choice(patterns))
        fetched = store.log().run(groups.fetch(stream.stream_id, name, limit=chance.randint(1, 25)))
        done = [each.lease for each in fetched.deliveries if chance.random() < 0.7]
        store.log().run(groups.ack(stream.stream_id, name, "leases", done))
    before = left(stream)
    wanted = {"filter_keys": chance.choice(patterns)}
    is_new = owner.get(f"{PATH}/g").status_code == 404
    said = asked(owner, wanted)["messages"]
    answer = owner.post(PATH, {"name": "g", **wanted}) if is_new else owner.patch(f"{PATH}/g", wanted)
    assert answer.status_code == (201 if is_new else 200)
    assert before - left(stream) == said
    before = left(stream)
    deletion = asked(owner, {"inactive_after": 60})["deletion"]
    assert owner.delete(f"{PATH}/g").status_code == 204
    assert before - left(stream) == deletion["messages"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"colour": "red"}, ["colour"]),
        ({"max_deliver": 0}, ["max_deliver"]),
        ({"max_deliver": 1, "backoff": [1, 2]}, ["backoff"]),
        ({"start_from": "latest"}, ["start_from"]),
        ({"name": "h"}, ["name"]),
    ],
    ids=str,
)
def test_what_saving_refuses_is_refused_in_the_same_way(
    owner: Api, stream: Stream, settings: dict[str, Any], named: list[str]
) -> None:
    make(owner)
    for answer in (owner.post(f"{PATH}/g/preview", settings), owner.patch(f"{PATH}/g", settings)):
        assert (answer.status_code, code(answer), fields(answer)) == (400, "validation_error", named)


@pytest.mark.parametrize(
    ("name", "settings", "named"),
    [
        ("new", {"start_from": "offset"}, ["offset"]),
        ("new", {"max_deliver": 1, "backoff": [1, 2]}, ["backoff"]),
        ("-new", {}, ["name"]),
    ],
    ids=str,
)
def test_what_creating_refuses_is_refused_in_the_same_way(
    owner: Api, stream: Stream, name: str, settings: dict[str, Any], named: list[str]
) -> None:
    tries = (owner.post(f"{PATH}/{name}/preview", settings), owner.post(PATH, {"name": name, **settings}))
    for answer in tries:
        assert (answer.status_code, code(answer), fields(answer)) == (400, "validation_error", named)


def test_it_needs_the_right_to_change_the_group(owner: Api, stranger: Api, stream: Stream) -> None:
    """A key that may not would learn from a filter which keys there are."""
    make(owner)
    path = f"{PATH}/g/preview"
    assert caller(owner.workspace, scopes=["manage"]).post(path, {}).status_code == 200
    for scope in ("observe", "read", "publish", "consume"):
        assert code(caller(owner.workspace, scopes=[scope]).post(path, {})) == "forbidden"
    assert code(caller(owner.workspace, streams=["shop.*"]).post(path, {})) == "forbidden"
    assert code(stranger.post(path, {})) == "stream_not_found"
