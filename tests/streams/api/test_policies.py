"""Retention policies: one place for the limits of many streams."""

from typing import Any

import pytest

from streams import store
from streams.log import census
from streams.log import groups as log_groups
from streams.log.append import append
from streams.models import Event, Stream
from streams.selectors import events_prove
from tests.streams.api.conftest import Api, caller, code, fields
from tests.streams.log.messages import message

DAY_S = 86_400
LIMITS = ("ttl", "max_messages", "max_bytes", "max_messages_per_key", "retention", "discard")


def week(owner: Api, **limits: Any) -> None:
    assert owner.post("policies/", {"name": "week", "ttl": 7 * DAY_S, **limits}).status_code == 201


def limits(owner: Api, name: str) -> dict[str, Any]:
    stream = owner.get(f"streams/{name}").json()
    return {field: stream[field] for field in ("policy", *LIMITS)}


def publish(owner: Api, name: str, count: int) -> None:
    stream = Stream.objects.get(workspace=owner.workspace, name=name)
    store.log().run(append(stream.stream_id, [message(n) for n in range(count)]))


WEEK = {
    "policy": "week",
    "ttl": 7 * DAY_S,
    "max_messages": None,
    "max_bytes": None,
    "max_messages_per_key": None,
    "retention": "limits",
    "discard": "old",
}


def test_a_policy_is_made_seen_changed_and_deleted(owner: Api) -> None:
    made = owner.post("policies/", {"name": "week", "ttl": 7 * DAY_S, "description": "a week"})
    assert made.status_code == 201
    assert made.json() == {
        "name": "week",
        "ttl": 7 * DAY_S,
        "max_messages": None,
        "max_bytes": None,
        "max_messages_per_key": None,
        "retention": "limits",
        "discard": "old",
        "description": "a week",
        "streams": 0,
        "created_at": made.json()["created_at"],
        "updated_at": made.json()["updated_at"],
    }
    assert (
        owner.post("policies/", {"name": "week", "ttl": 7 * DAY_S, "description": "a week"}).status_code
        == 200
    )
    assert code(owner.post("policies/", {"name": "week"})) == "policy_exists"
    assert owner.patch("policies/week", {"max_messages": 5}).json()["max_messages"] == 5
    assert [row["name"] for row in owner.get("policies").json()] == ["week"]
    assert owner.delete("policies/week").status_code == 204
    assert code(owner.get("policies/week")) == "policy_not_found"
    kinds = Event.objects.filter(workspace=owner.workspace.name, kind__startswith="policy").order_by("id")
    assert [event.kind for event in kinds] == ["policy.created", "policy.changed", "policy.deleted"]


def test_a_stream_takes_its_limits_from_its_policy(owner: Api) -> None:
    week(owner)
    assert owner.post("streams/", {"name": "made", "policy": "week"}).json()["ttl"] == 7 * DAY_S
    owner.post("streams/", {"name": "changed", "ttl": 60, "discard": "new"})
    owner.patch("streams/changed", {"policy": "week"})
    assert limits(owner, "made") == limits(owner, "changed") == WEEK
    assert owner.get("policies/week").json()["streams"] == 2


@pytest.mark.parametrize(
    "limit",
    [
        {"ttl": 60},
        {"max_messages": 1},
        {"max_bytes": 1},
        {"max_messages_per_key": 1},
        {"retention": "interest"},
        {"discard": "new"},
    ],
)
def test_what_the_policy_decides_a_stream_cannot(owner: Api, limit: dict[str, Any]) -> None:
    week(owner)
    owner.post("streams/", {"name": "a", "policy": "week"})
    assert fields(owner.patch("streams/a", limit)) == list(limit)
    assert fields(owner.post("streams/", {"name": "b", "policy": "week", **limit})) == list(limit)
    assert owner.patch("streams/a", {"ttl": 7 * DAY_S}).status_code == 200, "the same is no contradiction"
    assert owner.patch("streams/a", {"policy": None, **limit}).status_code == 200
    assert limits(owner, "a") == {**WEEK, "policy": None, **limit}


def test_a_stream_that_is_made_sealed_may_have_other_limits_than_its_policy(owner: Api) -> None:
    week(owner)
    wanted = {"name": "a", "policy": "week", "sealed": True, "ttl": 5}
    assert owner.post("streams/", wanted).status_code == 201
    assert limits(owner, "a") == {**WEEK, "ttl": 5}
    assert owner.post("streams/", wanted).status_code == 200
    assert fields(owner.post("streams/", {**wanted, "sealed": False})) == ["ttl"]


def test_a_policy_says_that_messages_go_by_interest(owner: Api) -> None:
    week(owner)
    owner.post("streams/", [{"name": "a", "policy": "week"}, {"name": "b"}])
    (told,) = owner.post("policies/week/preview", {"retention": "interest"}).json()["streams"]
    assert (told["before"], told["after"]) == ({"retention": "limits"}, {"retention": "interest"})
    owner.patch("policies/week", {"retention": "interest"})
    assert [owner.get(f"streams/{name}").json()["retention"] for name in "ab"] == ["interest", "limits"]


def test_an_effect_says_where_not_all_was_looked_at(owner: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.selectors.retention_effects.LOOK_S", 0.0)
    owner.post("streams/", {"name": "a"})
    stream = Stream.objects.get(workspace=owner.workspace, name="a")
    for first in range(0, 20_000, 1000):
        batch = [message(n, key=f"k{n}" if n < 10_000 else "k") for n in range(first, first + 1000)]
        store.log().run(append(stream.stream_id, batch))
    owner.post("policies/", {"name": "newest", "max_messages_per_key": 1})
    told = owner.post("policies/newest/apply", {"streams": ["a"], "dry_run": True}).json()
    assert (told["messages"], told["complete"], told["streams"][0]["complete"]) == (0, False, False)
    assert told["streams"][0]["reason"] == "counting"
    monkeypatch.setattr("streams.selectors.retention_effects.LOOK_S", 30.0)
    told = owner.post("policies/newest/apply", {"streams": ["a"], "dry_run": True}).json()
    assert (told["messages"], told["complete"]) == (9999, True)
    monkeypatch.setattr(census, "MOST_KEYS", 1)
    told = owner.post("policies/newest/apply", {"streams": ["a"], "dry_run": True}).json()
    assert (told["complete"], told["streams"][0]["reason"]) == (False, "too_many_keys")


def test_a_policy_is_changed_once_for_all_that_use_it(owner: Api) -> None:
    week(owner)
    owner.post("streams/", [{"name": "a", "policy": "week"}, {"name": "b", "policy": "week"}, {"name": "c"}])
    publish(owner, "a", 5)
    publish(owner, "c", 5)
    expected = {
        "streams": [
            {
                "name": "a",
                "before": {"max_messages": None},
                "after": {"max_messages": 2},
                "messages": 3,
                "groups": [],
                "groups_losing": 0,
                "unread": 0,
                "complete": True,
                "reason": None,
            },
            {
                "name": "b",
                "before": {"max_messages": None},
                "after": {"max_messages": 2},
                "messages": 0,
                "groups": [],
                "groups_losing": 0,
                "unread": 0,
                "complete": True,
                "reason": None,
            },
        ],
        "messages": 3,
        "groups_losing": 0,
        "unread": 0,
        "complete": True,
        "sealed": [],
    }
    assert owner.post("policies/week/preview", {"max_messages": 2}).json() == expected
    assert owner.get("streams/a").json()["messages"] == 5
    owner.patch("policies/week", {"max_messages": 2})
    assert [owner.get(f"streams/{name}").json()["max_messages"] for name in "abc"] == [2, 2, None]
    assert owner.get("streams/a").json()["messages"] == 2, "it acts at once"
    newest = Event.objects.filter(workspace=owner.workspace.name).order_by("id")
    assert [event.summary for event in newest][-3:] == [
        "Policy week was changed, and 2 streams with it: max_messages.",
        "Stream a was changed by policy week: max_messages.",
        "Stream b was changed by policy week: max_messages.",
    ]
    assert events_prove().faults == []


def test_effects_name_the_groups_that_lose_unread_messages_and_how_many_those_lose(
    owner: Api, ruler: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    week(owner)
    owner.post("streams/", [{"name": "a", "policy": "week"}, {"name": "b", "policy": "week"}])
    for stream, groups in (("a", ("all", "done", "most")), ("b", ("late",))):
        publish(owner, stream, 10)
        for group in groups:
            owner.post(f"streams/{stream}/groups/", {"name": group})
    at = Stream.objects.get(workspace=owner.workspace, name="a").stream_id
    for group, up_to in (("done", 10), ("all", 3)):
        store.log().run(log_groups.fetch(at, group, limit=10))
        store.log().run(log_groups.ack(at, group, "up_to", [up_to]))
    told = owner.post("policies/week/preview", {"max_messages": 2}).json()
    a, b = told["streams"]
    assert a["groups"] == [{"group": "most", "unread": 8}, {"group": "all", "unread": 5}]
    assert (a["groups_losing"], a["unread"]) == (2, 13)
    assert b["groups"] == [{"group": "late", "unread": 8}]
    assert (told["groups_losing"], told["unread"]) == (3, 21)
    alone = owner.post("streams/a/retention/preview", {"max_messages": 2, "policy": None}).json()["groups"]
    assert [each for each in alone if each["unread"]] == sorted(a["groups"], key=lambda each: each["group"])
    monkeypatch.setattr("streams.selectors.retention_effects.MOST_GROUPS", 1)
    a, _ = owner.post("policies/week/preview", {"max_messages": 2}).json()["streams"]
    assert (a["groups"], a["groups_losing"], a["unread"]) == ([{"group": "most", "unread": 8}], 2, 13)
    told = ruler.post(f"workspaces/{owner.workspace.name}/plan/preview", {"plan": "free"}).json()
    assert (told["groups_losing"], told["unread"]) == (0, 0), "nothing is that old or large"


def test_a_sealed_stream_keeps_what_it_has(owner: Api) -> None:
    week(owner)
    owner.post("streams/", {"name": "a", "policy": "week", "sealed": True})
    assert owner.post("policies/week/preview", {"ttl": 60}).json() == {
        "streams": [],
        "messages": 0,
        "groups_losing": 0,
        "unread": 0,
        "complete": True,
        "sealed": ["a"],
    }
    owner.patch("policies/week", {"ttl": 60})
    assert limits(owner, "a") == WEEK


def test_labels_and_names_say_which_streams_get_a_policy(owner: Api) -> None:
    week(owner)
    owner.post(
        "streams/",
        [
            {"name": "a", "labels": {"team": "x", "env": "prod"}},
            {"name": "b", "labels": {"team": "x"}},
            {"name": "c"},
            {"name": "d", "labels": {"team": "x", "env": "prod"}, "sealed": True},
        ],
    )
    wanted = {"labels": {"team": "x", "env": "prod"}, "streams": ["c"]}
    told = owner.post("policies/week/apply", {**wanted, "dry_run": True}).json()
    assert [row["name"] for row in told["streams"]] == ["a", "c"]
    assert told["streams"][0]["after"] == {"policy": "week", "ttl": 7 * DAY_S}
    assert told["streams"][0]["before"] == {"policy": None, "ttl": None}
    assert told["sealed"] == ["d"]
    assert limits(owner, "a")["policy"] is None
    assert owner.post("policies/week/apply", wanted).json() == told
    assert limits(owner, "a") == limits(owner, "c") == WEEK
    assert limits(owner, "b")["policy"] is limits(owner, "d")["policy"] is None


def test_a_policy_in_use_stays(owner: Api) -> None:
    week(owner)
    owner.post("streams/", {"name": "a", "policy": "week"})
    assert (owner.delete("policies/week").status_code, code(owner.delete("policies/week"))) == (
        409,
        "policy_in_use",
    )
    owner.delete("streams/a")
    assert owner.delete("policies/week").status_code == 204


def test_a_plan_bounds_policies(ruler: Api, owner: Api) -> None:
    week(owner, max_bytes=2**40)
    owner.post("streams/", {"name": "a", "policy": "week"})
    ruler.patch(f"workspaces/{owner.workspace.name}", {"plan": "free"})
    assert owner.get("policies/week").json()["max_bytes"] == 2**30
    assert limits(owner, "a")["max_bytes"] == 2**30
    assert fields(owner.patch("policies/week", {"ttl": 30 * DAY_S})) == ["ttl"]
    assert code(owner.post("policies/week/preview", {"ttl": 30 * DAY_S})) == "quota_exceeded"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "policies", {"name": "a b"}),
        ("POST", "policies", {"name": "x", "ttl": 0}),
        ("POST", "policies", {"name": "x", "keys": []}),
        ("PATCH", "policies/week", {"name": "y"}),
        ("PATCH", "policies/week", {"ttl": "60"}),
        ("POST", "policies/week/preview", {"description": ""}),
        ("POST", "policies/week/apply", {}),
        ("POST", "policies/week/apply", {"labels": {}}),
        ("POST", "policies/week/apply", {"labels": {"a": 1}}),
        ("POST", "policies/week/apply", {"streams": ["a"], "all": True}),
        ("POST", "streams", {"name": "x", "policy": "none"}),
        ("POST", "streams", {"name": "x", "policy": ""}),
    ],
)
def test_what_is_wrong_is_refused(owner: Api, method: str, path: str, body: dict[str, Any]) -> None:
    week(owner)
    assert code(owner.call(method, path, body)) == "validation_error"


def test_access(owner: Api, stranger: Api) -> None:
    week(owner)
    owner.post("streams/", {"name": "orders"})
    assert code(stranger.get("policies/week")) == "policy_not_found"
    reader = caller(owner.workspace, scopes=["read"])
    assert reader.get("policies/week").status_code == 200
    assert code(reader.patch("policies/week", {"ttl": 5})) == "forbidden"
    narrowed = caller(owner.workspace, streams=["orders*"])
    assert code(narrowed.patch("policies/week", {"ttl": 5})) == "forbidden"
    assert code(narrowed.post("policies/week/preview", {"ttl": 5})) == "forbidden"
    assert code(owner.post("policies/week/apply", {"streams": ["nothing"]})) == "stream_not_found"
