"""People who are narrowed to some streams, over the API: set, told, recorded, and what is left to them."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from streams import selectors
from streams.access import SYSTEM, Caller, caller_for_user
from streams.models import Alert, AlertRule, Event, Membership, Notification, Role, Workspace
from streams.selectors.alerts import alerts_page
from streams.services.events import event_record
from tests.streams.api.conftest import Api, caller, code, fields

PATTERNS = ["shop-*", "orders"]


def add(api: Api, name: str, **more: Any) -> Any:
    return api.post("users/", {"name": name, "role": "viewer", **more})


def caller_of(name: str) -> Caller:
    return caller_for_user(get_user_model().objects.get(username=name))


def test_a_person_is_taken_in_for_some_streams(owner: Api, unique: str) -> None:
    answer = add(owner, unique, streams=PATTERNS)
    assert (answer.status_code, answer.json()["streams"]) == (201, PATTERNS)
    assert [each["streams"] for each in owner.get("users/").json() if each["name"] == unique] == [PATTERNS]
    assert caller_of(unique).streams == tuple(PATTERNS)
    assert add(owner, f"{unique}-2").json()["streams"] == []


def test_the_streams_change_and_the_event_tells_before_and_after(owner: Api, unique: str) -> None:
    add(owner, unique)
    assert owner.patch(f"users/{unique}", {"streams": PATTERNS}).json()["streams"] == PATTERNS
    found = Event.objects.filter(kind="user.changed", workspace=owner.workspace.name)
    event = found.latest("id")
    assert (event.before, event.after) == (
        {"name": unique, "streams": []},
        {"name": unique, "streams": PATTERNS},
    )
    before = found.count()
    assert owner.patch(f"users/{unique}", {"streams": PATTERNS}).status_code == 200
    assert found.count() == before, "nothing changed"
    both = owner.patch(f"users/{unique}", {"role": "operator", "streams": []}).json()
    assert (both["role"], both["streams"]) == ("operator", [])
    event = found.latest("id")
    assert event.after == {"name": unique, "role": "operator", "streams": []}
    assert event.summary == (
        f"{unique} is operator now, and was viewer. {unique} is no longer restricted to streams."
    )


@pytest.mark.parametrize(
    "wrong", ["orders", None, [""], ["a b"], ["x" * 51], [1], ["a"] * 101, {"a": 1}, [["a"]], ["a?"]]
)
def test_what_is_no_list_of_patterns_is_refused_as_of_a_token(owner: Api, unique: str, wrong: Any) -> None:
    add(owner, unique)
    for answer in (
        add(owner, f"{unique}-2", streams=wrong),
        owner.patch(f"users/{unique}", {"streams": wrong}),
        owner.post("tokens/", {"name": "x", "scopes": ["read"], "streams": wrong}),
    ):
        assert (answer.status_code, code(answer)) == (400, "validation_error")
        assert fields(answer) == ["streams"]
    assert caller_of(unique).streams == ()


def test_the_last_admin_of_all_streams_is_not_narrowed(owner: Api, unique: str) -> None:
    add(owner, unique, role="admin")
    assert code(owner.patch(f"users/{unique}", {"streams": ["a"]})) == "operation_denied"
    add(owner, f"{unique}-2", role="admin", streams=["a"])
    assert code(owner.delete(f"users/{unique}")) == "operation_denied", "the other has no say about people"
    assert owner.patch(f"users/{unique}-2", {"streams": []}).status_code == 200
    assert owner.patch(f"users/{unique}", {"streams": ["a"]}).status_code == 200


def test_who_is_narrowed_rules_no_other_workspace(ruler: Api, unique: str) -> None:
    add(ruler, unique, role="admin", streams=["a*"])
    found = caller_of(unique)
    assert (found.may("admin"), found.rules_all, found.sees_inside_runs) == (True, False, False)


def test_metrics_of_who_is_narrowed_name_the_streams_inside(owner: Api, unique: str) -> None:
    owner.post("streams/", [{"name": "shop-eu"}, {"name": "canary"}])
    for stream in ("shop-eu", "canary"):
        owner.post(f"streams/{stream}/groups/", {"name": "billing"})
    user = get_user_model().objects.create_user(unique)
    Membership.objects.create(user=user, workspace=owner.workspace, role=Role.VIEWER, streams=PATTERNS)
    browser = Client()
    browser.force_login(user)
    told = browser.get("/metrics").content.decode()
    assert 'stream="shop-eu"' in told
    assert "canary" not in told
    assert browser.get("/api/v1/schema").status_code == 200


def replayed(workspace: Workspace, *, source: str, target: str) -> None:
    event_record(
        workspace,
        kind="history.replay_requested",
        actor=SYSTEM,
        stream=target,
        after={"replay": 1, "source": source},
        summary=f"Replay 1 of {source} into {target} was requested.",
    )


def test_an_event_of_a_replay_out_of_another_stream_is_not_told(owner: Api) -> None:
    owner.post("streams/", [{"name": "shop-eu"}, {"name": "shop-us"}, {"name": "canary"}])
    for source, target in (("canary", "shop-eu"), ("shop-eu", "canary"), ("shop-us", "shop-eu")):
        replayed(owner.workspace, source=source, target=target)
    shop = caller(owner.workspace, streams=["shop-*"])
    found = shop.get("events?limit=100").json()
    assert "canary" not in str(found)
    assert [each["after"]["source"] for each in found if each["kind"].startswith("history.")] == ["shop-us"]
    assert (
        len([each for each in owner.get("events?limit=100").json() if each["kind"].startswith("history.")])
        == 3
    )


def test_how_many_alerts_went_in_one_message_is_not_told(owner: Api) -> None:
    owner.post("streams/", [{"name": "shop-eu"}, {"name": "canary"}])
    owner.post(
        "alerts/rules/", {"name": "all", "stream": "*", "watch": "lag", "limit": 2, "email": "a@b.example"}
    )
    rule = AlertRule.objects.get(workspace=owner.workspace, name="all")
    alerts = [
        Alert.objects.create(rule=rule, stream=stream, began_at="2026-01-01T00:00Z", value=3, sentence=stream)
        for stream in ("shop-eu", "canary")
    ]
    first, second = [
        Notification.objects.create(alert=alert, channel="email", body="{}", tried_at="2026-01-01T00:00Z")
        for alert in alerts
    ]
    Notification.objects.filter(pk=second.pk).update(told_with=first)
    shop = caller(owner.workspace, streams=["shop-*"])
    assert _together(owner)["shop-eu"] == 2
    assert _together(shop) == {"shop-eu": 1}
    narrowed = Caller(owner.workspace, frozenset({"read"}), SYSTEM, ("shop-*",))
    (view,) = alerts_page(narrowed, firing=True, size=9).alerts
    assert [each.together for each in view.deliveries] == [1]  # type: ignore[attr-defined]
    assert selectors.firing_for(narrowed).loud == 1


def _together(api: Api) -> dict[str, int]:
    return {
        each["stream"]: each["deliveries"][0]["together"]
        for each in api.get("alerts").json()
        if each["deliveries"]
    }
