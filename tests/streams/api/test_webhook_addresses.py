"""What of a webhook's address those see who may not change its rule: it may be a secret as a whole."""

import json

import pytest

from streams import webhooks
from streams.models import Event
from streams.webhooks import url_fault
from tests.streams.api.conftest import Api, caller

SLACK = "https://hooks.slack.com/services/T000/B000/SECRETSECRET?also=SECRETSECRET"
SHORT = "https://hooks.slack.com/…"
RULE = {"name": "slk", "stream": "orders", "watch": "lag", "limit": 2, "webhook_url": SLACK}


@pytest.mark.parametrize(
    ("url", "short"),
    [
        ("", ""),
        (SLACK, SHORT),
        ("https://example.org", "https://example.org"),
        ("https://example.org/", "https://example.org/"),
        ("http://example.org:8443/hook", "http://example.org:8443/…"),
        ("https://[2606:4700::1111]/?key=x", "https://[2606:4700::1111]/…"),
        ("https://example.org?key=x", "https://example.org/…"),
    ],
)
def test_an_address_is_shortened_to_its_host(url: str, short: str) -> None:
    assert webhooks.shortened(url) == short
    assert bool(url_fault(short)) is (short != url or not url), "nothing that is shortened can be sent to"


def test_who_may_not_change_a_rule_sees_the_host_of_its_webhook(owner: Api) -> None:
    owner.post("streams/", {"name": "orders"})
    made = owner.post("alerts/rules/", RULE).json()
    changed = owner.patch("alerts/rules/slk", {"limit": 3}).json()
    assert [each["webhook_url"] for each in (made, changed)] == [SLACK, SLACK]
    manager = caller(owner.workspace, scopes=["read", "manage"])
    reader = caller(owner.workspace, scopes=["read", "publish", "consume"])
    narrowed = caller(owner.workspace, streams=["orders"])
    for who, seen in (manager, SLACK), (reader, SHORT), (narrowed, SHORT):
        found = [who.get("alerts/rules/slk").json(), *who.get("alerts/rules/").json()]
        assert [each["webhook_url"] for each in found] == [seen, seen]
    refused = owner.patch("alerts/rules/slk", {"webhook_url": SHORT})
    assert refused.json()["error"]["details"]["fields"] == ["webhook_url"]
    assert owner.get("alerts/rules/slk").json()["webhook_url"] == SLACK


def test_no_event_holds_more_of_an_address_than_its_host(owner: Api) -> None:
    owner.post("alerts/rules/", RULE)
    owner.patch("alerts/rules/slk", {"webhook_url": f"{SLACK}2"})
    owner.post("alerts/rules/slk/test")
    owner.patch("alerts/rules/slk", {"webhook_url": ""})
    owner.patch("alerts/rules/slk", {"webhook_url": SLACK})
    owner.delete("alerts/rules/slk")
    events = Event.objects.filter(workspace_id=owner.workspace.pk, kind__startswith="alert_rule.").order_by(
        "id"
    )
    told = [
        (
            each.kind.partition(".")[2],
            *((side or {}).get("webhook_url") for side in (each.before, each.after)),
        )
        for each in events
    ]
    assert told == [
        ("created", None, SHORT),
        ("changed", SHORT, SHORT),
        ("tested", None, None),
        ("changed", SHORT, ""),
        ("changed", "", SHORT),
        ("deleted", SHORT, None),
    ]
    assert "SECRET" not in json.dumps([[each.summary, each.before, each.after] for each in events])
    assert "SECRET" not in owner.get("events?kind=alert_rule.").content.decode()
