"""Consumer groups over HTTP: settings, positions, dead letters, and who may."""

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from streams import health, store, verdicts
from streams.log import config, groups, healths, open_polls, removals, standing, trim
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.log.pending import Member
from streams.models import Event, Stream
from streams.selectors.groups import member_state
from streams.services.upkeep import groups_remove_inactive
from streams.upkeep import watching
from tests.streams.api.conftest import Api
from tests.waiting import until


@pytest.fixture
def path(owner: Api) -> str:
    """The groups of a stream with five messages."""
    assert owner.post("streams/", {"name": "orders"}).status_code == 201
    messages = [NewMessage(id=str(n), body=b"%d.0" % n, key=f"k.{n}") for n in range(1, 6)]
    store.log().run(append(stream_id(owner), messages))
    return "streams/orders/groups"


def stream_id(owner: Api) -> str:
    return Stream.objects.get(workspace=owner.workspace, name="orders").stream_id


def fetch(owner: Api, limit: int = 10) -> list[int]:
    fetched = store.log().run(groups.fetch(stream_id(owner), "g", limit=limit))
    return [int(delivery.entry[0].split(b"-")[0]) for delivery in fetched.deliveries]


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_group_is_made_with_every_default(owner: Api, path: str) -> None:
    answer = owner.post(path, {"name": "g"})
    assert answer.status_code == 201
    made = answer.json()
    for field, value in {
        "name": "g",
        "start_from": "earliest",
        "ack": "explicit",
        "ack_wait": 30.0,
        "max_deliver": 5,
        "backoff": [],
        "max_ack_pending": 1000,
        "filter_keys": [],
        "ordered_by_key": False,
        "inactive_after": None,
        "delivered_offset": 0,
        "ack_floor": 0,
        "lag": 5,
        "ack_pending": 0,
        "redelivered": 0,
        "waiting": 0,
        "dead_letters": 0,
        "consumers": [],
        "paused": False,
        "paused_until": None,
    }.items():
        assert made[field] == value, field
    assert owner.get("streams/orders").json()["groups"] == 1
    assert [group["name"] for group in owner.get(path + "/").json()] == ["g"]


def test_made_again_it_is_the_same_or_refused(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g", "ack_wait": 0.5})
    assert owner.post(path, {"name": "g", "ack_wait": 0.5}).status_code == 200
    assert refused(owner.post(path, {"name": "g"})) == (409, "group_exists")


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ({"start_from": "earliest"}, [1, 2, 3, 4, 5]),
        ({"start_from": "latest"}, []),
        ({"start_from": "last"}, [5]),
        ({"start_from": "offset", "offset": 3}, [3, 4, 5]),
        ({"start_from": "offset", "offset": 99}, []),
        ({"start_from": "timestamp", "timestamp": "2001-01-01T00:00:00Z"}, [1, 2, 3, 4, 5]),
        ({"start_from": "timestamp", "timestamp": "2999-01-01T00:00:00+01:00"}, []),
    ],
)
def test_where_it_starts(owner: Api, path: str, start: dict[str, Any], first: list[int]) -> None:
    assert owner.post(path, {"name": "g", **start}).status_code == 201
    assert fetch(owner) == first


@pytest.mark.parametrize(
    ("filter_keys", "first"),
    [([], [4]), (["k.*"], [4]), (["k.2", "k.5"], [2]), (["x.>"], []), (["k.3", "k.1"], [3])],
)
def test_the_last_is_the_last_that_is_there_and_that_the_group_wants(
    owner: Api, path: str, filter_keys: list[str], first: list[int]
) -> None:
    store.log().run(trim.delete(stream_id(owner), [5]))
    assert (
        owner.post(path, {"name": "g", "start_from": "last", "filter_keys": filter_keys}).status_code == 201
    )
    assert owner.get(f"{path}/g").json()["lag"] == len(first)
    assert fetch(owner) == first


def test_a_group_may_be_ordered_by_key_and_changed(owner: Api, path: str) -> None:
    assert owner.post(path, {"name": "g", "ordered_by_key": True}).json()["ordered_by_key"] is True
    assert owner.post(path, {"name": "g"}).status_code == 409
    changed = owner.patch(f"{path}/g", {"ordered_by_key": False})
    assert changed.json()["ordered_by_key"] is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a/b"},
        {"name": "g", "ack": "maybe"},
        {"name": "g", "ack_wait": 0.05},
        {"name": "g", "ack_wait": "1"},
        {"name": "g", "ack_wait": True},
        {"name": "g", "max_deliver": 0},
        {"name": "g", "max_deliver": -2},
        {"name": "g", "backoff": [0]},
        {"name": "g", "backoff": [1, 2], "max_deliver": 1},
        {"name": "g", "max_ack_pending": 0},
        {"name": "g", "filter_keys": ["a..b"]},
        {"name": "g", "start_from": "offset"},
        {"name": "g", "start_from": "latest", "offset": 3},
        {"name": "g", "offset": 3},
        {"name": "g", "start_from": "timestamp", "timestamp": "2026-01-01"},
        {"name": "g", "ackwait": 1},
        {"name": "g", "ordered_by_key": "yes"},
        {"name": "g", "inactive_after": 0.09},
        {},
        [],
    ],
)
def test_a_wrong_group_is_refused_and_not_made(owner: Api, path: str, wrong: Any) -> None:
    assert refused(owner.post(path, wrong)) == (400, "validation_error")
    assert owner.get(path).json() == []


def test_a_change_keeps_the_rest_and_the_position(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g", "ack_wait": 7})
    fetch(owner, 2)
    changed = owner.patch(f"{path}/g", {"max_deliver": -1}).json()
    assert (changed["ack_wait"], changed["max_deliver"], changed["delivered_offset"]) == (7.0, -1, 2)
    for wrong in ({"start_from": "latest"}, {"name": "h"}, {"offset": 1}):
        assert refused(owner.patch(f"{path}/g", wrong)) == (400, "validation_error")


def test_a_group_that_took_the_name_of_another_is_not_deleted_for_it(owner: Api, path: str) -> None:
    old = owner.post(path, {"name": "g"}).json()
    assert owner.delete(f"{path}/g").status_code == 204
    new = owner.post(path, {"name": "g"}).json()
    assert refused(owner.delete(f"{path}/g?created_at={old['created_at']}")) == (404, "group_not_found")
    assert owner.delete(f"{path}/g?created_at={new['created_at']}").status_code == 204


def test_a_deleted_group_is_gone(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    assert owner.delete(f"{path}/g/").status_code == 204
    assert refused(owner.get(f"{path}/g")) == (404, "group_not_found")
    assert refused(owner.delete(f"{path}/g")) == (404, "group_not_found")


@pytest.mark.parametrize(
    ("position", "told"),
    [
        ({"position": "earliest"}, {"from": 4, "to": 1, "messages": 3, "skipped": 0}),
        ({"position": "latest"}, {"from": 4, "to": 6, "messages": 2, "skipped": 2}),
        ({"position": "offset", "offset": 2}, {"from": 4, "to": 2, "messages": 2, "skipped": 0}),
        ({"position": "offset", "offset": 0}, {"from": 4, "to": 1, "messages": 3, "skipped": 0}),
        ({"position": "offset", "offset": 99}, {"from": 4, "to": 6, "messages": 2, "skipped": 2}),
        (
            {"position": "timestamp", "timestamp": "2001-01-01T00:00:00Z"},
            {"from": 4, "to": 1, "messages": 3, "skipped": 0},
        ),
    ],
)
def test_a_seek_does_what_its_dry_run_tells(
    owner: Api, path: str, position: dict[str, Any], told: dict[str, int]
) -> None:
    owner.post(path, {"name": "g"})
    fetch(owner, 3)
    assert owner.post(f"{path}/g/seek", {**position, "dry_run": True}).json() == told
    assert owner.get(f"{path}/g").json()["ack_pending"] == 3
    assert owner.post(f"{path}/g/seek", position).json() == told
    assert owner.get(f"{path}/g").json()["ack_pending"] == 0
    assert fetch(owner) == list(range(told["to"], 6))


@pytest.mark.parametrize(
    ("offset", "messages", "skipped"),
    [(10, 4, 4), (8, 4, 2), (1, 9, 0)],
    ids=["stays", "back", "begins anew"],
)
def test_a_seek_counts_what_waits_for_its_key(
    owner: Api, path: str, offset: int, messages: int, skipped: int
) -> None:
    more = [NewMessage(id=f"more-{n}", body=b"1", key="k.1") for n in range(4)]
    store.log().run(append(stream_id(owner), more))
    owner.post(path, {"name": "g", "ordered_by_key": True})
    assert fetch(owner) == [1, 2, 3, 4, 5]
    told = {"from": 10, "to": offset, "messages": messages, "skipped": skipped}
    wanted = {"position": "offset", "offset": offset}
    assert owner.post(f"{path}/g/seek", {**wanted, "dry_run": True}).json() == told
    assert owner.post(f"{path}/g/seek", wanted).json() == told
    assert owner.get(f"{path}/g").json()["lag"] == 10 - offset


def test_a_seek_counts_matching_messages_only(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g", "filter_keys": ["k.2", "k.5"]})
    assert owner.get(f"{path}/g").json()["lag"] == 2
    assert owner.post(f"{path}/g/seek", {"position": "latest", "dry_run": True}).json()["messages"] == 2


@pytest.mark.parametrize(
    ("position", "start", "at_most"),
    [
        ({"position": "offset", "offset": 2}, {"from_offset": 2}, 2),
        (
            {"position": "timestamp", "timestamp": "2001-01-01T00:00:00Z"},
            {"from": "2001-01-01T00:00:00.000Z"},
            3,
        ),
    ],
)
def test_a_seek_behind_what_the_stream_holds_names_the_replay(
    owner: Api, path: str, position: dict[str, Any], start: dict[str, Any], at_most: int
) -> None:
    owner.post(path, {"name": "g", "filter_keys": ["k.*"]})
    forgotten(owner, keep=2)
    unmoved = {**position, "dry_run": True}
    waiting = owner.post(f"{path}/g/seek", unmoved).json()["gone"]
    store.log().run(config.archived_set(stream_id(owner), 3))
    assert owner.post(f"{path}/g/seek", unmoved).json()["gone"] == waiting, (
        "the history reads what waits for it"
    )
    range_ = {"source": "orders", "group": "g", **start, "to_offset": 3, "start": False}
    told = owner.post(f"{path}/g/seek", position).json()
    nothing = {"messages": 0, "bytes": 0, "groups": [], "arriving": 0, "refused": 0, "reason": None}
    assert told["gone"] == {
        "to_offset": 3,
        "messages": at_most,
        "replay": range_,
        "pushes_out": nothing,
        "begun": None,
    }
    assert fetch(owner) == [told["to"], 5] == [4, 5]
    answer = owner.post("analytics/replays/", told["gone"]["replay"])
    assert answer.status_code == 202, answer.content


@pytest.mark.parametrize("archive", [True, False])
@pytest.mark.parametrize("taken", ["purged", "set_aside"])
def test_what_people_took_before_the_history_had_it_is_in_no_replay(
    owner: Api, path: str, taken: str, archive: bool
) -> None:
    owner.post(path, {"name": "g"})
    owner.patch("streams/orders", {"archive": archive})
    take: dict[str, Any] = {
        "purged": partial(trim.purge, keep=2),
        "set_aside": partial(removals.purge, below=4, keep_ms=60_000, facts={}),
    }
    store.log().run(take[taken](stream_id(owner)))
    told = owner.post(f"{path}/g/seek", {"position": "offset", "offset": 2}).json()
    nothing = {"replay": None, "pushes_out": None, "begun": None}
    assert told["gone"] == {"to_offset": 3, "messages": 2, **nothing}


def test_what_limits_took_of_a_stream_without_history_is_in_no_replay(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    owner.patch("streams/orders", {"archive": False})
    forgotten(owner, keep=2)
    told = owner.post(f"{path}/g/seek", {"position": "offset", "offset": 2}).json()
    assert told["gone"]["replay"] is None


def test_a_time_before_the_last_message_of_an_empty_stream_names_the_replay(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    forgotten(owner, keep=1)
    store.log().run(trim.delete(stream_id(owner), [5]))
    told = owner.post(f"{path}/g/seek", {"position": "timestamp", "timestamp": "2001-01-01T00:00:00Z"}).json()
    assert told["gone"]["replay"]["to_offset"] == told["gone"]["to_offset"] == 5
    later = datetime.now(UTC) + timedelta(minutes=1)
    after = owner.post(f"{path}/g/seek", {"position": "timestamp", "timestamp": later.isoformat()})
    assert "gone" not in after.json()


@pytest.mark.parametrize(
    "position", [{"position": "earliest"}, {"position": "latest"}, {"position": "offset", "offset": 4}]
)
def test_a_seek_within_what_the_stream_holds_names_nothing(
    owner: Api, path: str, position: dict[str, Any]
) -> None:
    owner.post(path, {"name": "g"})
    forgotten(owner, keep=2)
    now = datetime.now(UTC).isoformat()
    for wanted in (position, {"position": "timestamp", "timestamp": now}):
        answer = owner.post(f"{path}/g/seek", wanted)
        assert answer.status_code == 200
        assert "gone" not in answer.json()


def forgotten(owner: Api, *, keep: int) -> None:
    """Have a limit take all but the newest messages."""
    owner.patch("streams/orders", {"max_messages": keep})
    store.log().run(trim.apply_limits(stream_id(owner)))


@pytest.mark.parametrize("settings", [{"retention": "interest"}, {"max_messages_per_key": 1}])
def test_a_seek_counts_only_what_can_still_come_back(owner: Api, path: str, settings: dict[str, Any]) -> None:
    more = [NewMessage(id=f"again-{n}", body=b"1", key=f"k.{n}") for n in (1, 2)]
    store.log().run(append(stream_id(owner), more))
    owner.post(path, {"name": "g"})
    fetch(owner)
    store.log().run(groups.ack(stream_id(owner), "g", "offsets", [2, 4]))
    owner.patch("streams/orders", settings)
    store.log().run(trim.release(stream_id(owner)))
    position = {"position": "earliest"}
    told = owner.post(f"{path}/g/seek", {**position, "dry_run": True}).json()
    assert told["messages"] == 5
    nothing = {"messages": 0, "bytes": 0, "complete": True, "reason": None}
    removes = {"removes": nothing} if "retention" in settings else {}
    assert owner.post(f"{path}/g/seek", position).json() | removes == told
    assert len(fetch(owner)) == told["messages"]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"position": "end"}, {"position": "offset"}, {"position": "earliest", "offset": 1}, {"to": 3}],
)
def test_a_wrong_seek_moves_nothing(owner: Api, path: str, wrong: dict[str, Any]) -> None:
    owner.post(path, {"name": "g"})
    fetch(owner, 3)
    assert refused(owner.post(f"{path}/g/seek", wrong)) == (400, "validation_error")
    assert owner.get(f"{path}/g").json()["delivered_offset"] == 3


def test_pause_and_resume(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    paused = owner.post(f"{path}/g/pause").json()
    assert (paused["paused"], paused["paused_until"], paused["status"]) == (True, None, "paused")
    assert fetch(owner) == []
    until = owner.post(f"{path}/g/pause", {"until": "2999-01-01T00:00:00Z"}).json()
    assert until["paused_until"] == "2999-01-01T00:00:00.000Z"
    until = owner.post(f"{path}/g/pause", {"until": "9999-12-31T23:59:59.999999Z"}).json()
    assert until["paused_until"] == "9999-12-31T23:59:59.999Z"
    assert refused(owner.post(f"{path}/g/pause", {"until": "2001-01-01T00:00:00Z"})) == (
        400,
        "validation_error",
    )
    assert owner.post(f"{path}/g/resume").json()["paused"] is False
    assert fetch(owner, 1) == [1]


def test_dead_letters_are_listed_replayed_and_deleted(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    fetch(owner)
    store.log().run(groups.term(stream_id(owner), "g", "offsets", [2, 3, 4], reason="bad"))
    letters = owner.get(f"{path}/g/dead-letters/")
    assert '"body":2.0' in letters.content.decode()
    assert [(letter["offset"], letter["reason"]) for letter in letters.json()] == [
        (2, "bad"),
        (3, "bad"),
        (4, "bad"),
    ]
    assert [letter["offset"] for letter in owner.get(f"{path}/g/dead-letters?after=2&limit=1").json()] == [3]
    assert owner.post(f"{path}/g/dead-letters/replay", {"offsets": [2]}).json() == {"count": 1}
    assert fetch(owner) == [2]
    assert owner.delete(f"{path}/g/dead-letters/?offset=3").json() == {"deleted": 1}
    assert refused(owner.delete(f"{path}/g/dead-letters?offset=3")) == (404, "message_not_found")
    for wrong in ({}, {"all": True, "offsets": [4]}, {"offsets": ["4"]}, {"all": 1}):
        assert refused(owner.post(f"{path}/g/dead-letters/replay", wrong)) == (400, "validation_error")
    assert refused(owner.delete(f"{path}/g/dead-letters?ofset=4")) == (400, "validation_error")
    assert owner.post(f"{path}/g/dead-letters/replay", {"all": True}).json() == {"count": 1}
    assert owner.get(f"{path}/g").json()["dead_letters"] == 0


def test_what_is_lost_is_told_of_a_paused_group_too(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    owner.post(f"{path}/g/pause", {})
    assert owner.get(f"{path}/g").json()["health"]["status"] == "paused"
    state = store.log().run(standing.inspect(stream_id(owner), "g"))
    sample = watching.sample_of(state, held=0, polls=0)
    losing = health.Health(samples=[sample], verdict=verdicts.Verdict("losing", "2 went."), since_ms=1)
    store.log().run(healths.put(stream_id(owner), "g", health.written(losing)))
    assert owner.get(f"{path}/g").json()["health"]["status"] == "losing"


def test_a_lag_of_a_moment_is_not_called_lagging_where_the_worker_saw_the_group_keep_up(
    owner: Api, path: str
) -> None:
    owner.post(path, {"name": "g"})
    fetch(owner)
    store.log().run(groups.ack(stream_id(owner), "g", "offsets", range(1, 6)))
    state = store.log().run(standing.inspect(stream_id(owner), "g"))
    well = verdicts.Verdict("ok", "Everything was delivered and acknowledged.")
    sample = watching.sample_of(state, held=0, polls=0)
    store.log().run(append(stream_id(owner), [NewMessage(id="more", body=b"1")]))
    assert owner.get(f"{path}/g").json()["status"] == "lagging"
    for at_ms, status in ((state.steady_ms - 60_000, "lagging"), (state.steady_ms, "ok")):
        told = health.Health(
            samples=[msgspec.structs.replace(sample, at_ms=at_ms)], verdict=well, since_ms=at_ms
        )
        store.log().run(healths.put(stream_id(owner), "g", health.written(told)))
        assert owner.get(f"{path}/g").json()["status"] == status


def test_dead_letters_come_in_pages(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    fetch(owner)
    store.log().run(groups.term(stream_id(owner), "g", "offsets", [2, 3, 4], reason="bad"))
    first = owner.get(f"{path}/g/dead-letters/?limit=2")
    assert 'after=3>; rel="next"' in first.headers["Link"]
    assert "Link" not in owner.get(f"{path}/g/dead-letters/?limit=3").headers


def test_dead_letters_come_in_pages_from_the_newest_on(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    fetch(owner)
    store.log().run(groups.term(stream_id(owner), "g", "offsets", [2, 3, 4], reason="bad"))
    first = owner.get(f"{path}/g/dead-letters/?order=newest&limit=2")
    assert [letter["offset"] for letter in first.json()] == [4, 3]
    assert 'order=newest&limit=2&after=3>; rel="next"' in first.headers["Link"]
    following = owner.get(f"{path}/g/dead-letters/?order=newest&limit=2&after=3")
    assert [letter["offset"] for letter in following.json()] == [2]
    assert "Link" not in following.headers
    assert refused(owner.get(f"{path}/g/dead-letters/?order=random")) == (400, "validation_error")


def test_a_replay_of_none_is_not_found_and_not_an_event(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    answer = owner.post(f"{path}/g/dead-letters/replay", {"offsets": [2]})
    assert refused(answer) == (404, "message_not_found")
    assert owner.post(f"{path}/g/dead-letters/replay", {"all": True}).json() == {"count": 0}
    recorded = Event.objects.filter(workspace=owner.workspace.name, kind="group.dead_letters_replayed")
    assert not recorded.exists()


@pytest.mark.parametrize("body", [{"until": None}, {"x": 1}, [], b"{"])
def test_a_resume_takes_nothing(owner: Api, path: str, body: Any) -> None:
    owner.post(path, {"name": "g"})
    owner.post(f"{path}/g/pause", {})
    assert owner.post(f"{path}/g/resume", body).status_code == 400
    assert owner.get(f"{path}/g").json()["paused"] is True


def test_a_start_that_takes_no_offset_is_named_as_it_was_sent(owner: Api, path: str) -> None:
    answer = owner.post(path, {"name": "g", "start_from": "earliest", "offset": 3})
    assert "'earliest' takes no offset" in answer.json()["error"]["message"]


def test_members_with_messages_in_flight_are_told(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    store.log().run(groups.fetch(stream_id(owner), "g", limit=2, consumer="worker-1"))
    (member,) = owner.get(f"{path}/g").json()["consumers"]
    assert (member["name"], member["ack_pending"]) == ("worker-1", 2)
    assert member["last_active"].endswith("Z")
    assert (member["state"], member["ack_rate"]) == ("active", None)
    store.log().run(groups.ack(stream_id(owner), "g", "offsets", [1, 2]))
    (member,) = owner.get(f"{path}/g").json()["consumers"]
    assert (member["ack_pending"], member["state"]) == (0, "idle")
    assert 0 < member["ack_rate"] <= 0.2


@pytest.mark.parametrize(
    ("messages", "quiet_s", "longest_s", "state"),
    [
        (0, 59, 30, "idle"),
        (1, 59, 30, "active"),
        (1, 61, 30, "silent"),
        (1, 61, 300, "active"),
        (1, 301, 300, "silent"),
    ],
)
def test_who_holds_messages_for_longer_than_a_delivery_lasts_is_silent(
    messages: int, quiet_s: int, longest_s: float, state: str
) -> None:
    held = Member(messages=messages, active_ms=1_700_000_000_000)
    now_ms = held.active_ms + quiet_s * 1000
    assert member_state(held, now_ms=now_ms, longest_s=longest_s) == state


def test_what_is_done_to_a_group_is_on_record(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    owner.patch(f"{path}/g", {"ack_wait": 1})
    owner.post(f"{path}/g/seek", {"position": "latest"})
    owner.post(f"{path}/g/pause")
    owner.delete(f"{path}/g")
    kinds = list(
        Event.objects.filter(workspace=owner.workspace, group="g")
        .order_by("id")
        .values_list("kind", flat=True)
    )
    assert kinds == ["group.created", "group.changed", "group.sought", "group.paused", "group.deleted"]


def test_a_stranger_sees_no_group(owner: Api, stranger: Api, path: str) -> None:
    owner.post(path, {"name": "g"})
    for answer in (stranger.get(path), stranger.get(f"{path}/g"), stranger.delete(f"{path}/g")):
        assert refused(answer) == (404, "stream_not_found")


def test_a_group_that_nobody_fetches_from_goes(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g", "inactive_after": 0.1})
    owner.post(path, {"name": "h"})
    assert groups_remove_inactive() == []
    until(lambda: "g" in groups_remove_inactive(), within_s=5)
    assert [group["name"] for group in owner.get(path).json()] == ["h"]


def test_an_open_poll_is_activity(owner: Api, path: str) -> None:
    owner.post(path, {"name": "g", "inactive_after": 0.1})
    told_at = owner.get(f"{path}/g").json()["created_at"]
    store.log().run(open_polls.told("process", {(stream_id(owner), "g"): 1}))
    assert owner.get(f"{path}/g").json()["waiting"] == 1
    until(lambda: time.time() - datetime.fromisoformat(told_at).timestamp() > 1.3, within_s=5)
    assert "g" not in groups_remove_inactive()
    store.log().run(open_polls.told("process", {}))
    assert "g" in groups_remove_inactive()


def test_what_is_in_flight_is_listed_in_pages(owner: Api) -> None:
    owner.post("streams/", {"name": "inflight"})
    owner.post("streams/inflight/groups/", {"name": "g"})
    stream = Stream.objects.get(name="inflight")
    store.log().run(append(stream.stream_id, [NewMessage(id=str(n), body=b"1", key="a.b") for n in range(3)]))
    store.log().run(groups.fetch(stream.stream_id, "g", limit=3, consumer="one"))
    path = "streams/inflight/groups/g/pending"
    answer = owner.get(f"{path}?limit=2&consumer=one")
    rows = answer.json()
    assert [(row["offset"], row["id"], row["key"], row["deliveries"]) for row in rows] == [
        (1, "0", "a.b", 1),
        (2, "1", "a.b", 1),
    ]
    assert 0 < rows[0]["due_in"] <= 30
    assert "after=2" in answer["Link"]
    assert [row["offset"] for row in owner.get(f"{path}?after=2").json()] == [3]
    assert owner.get(f"{path}?age=3600").json() == []
    assert owner.get(f"{path}?deliverys=2").status_code == 400
