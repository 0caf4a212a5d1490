"""What an event is about, alert rule, person or token, leads to its page, and once it is gone to its events."""

import re
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from streams.access import SYSTEM, Actor
from streams.models import AlertRule, Membership, Token, Workspace
from streams.services.alerts import rule_change, rule_create, rule_delete
from streams.services.events import event_record
from streams.services.people import (
    password_change,
    password_reset,
    person_add,
    person_change,
    person_remove,
)
from streams.services.tokens import token_create, token_revoke

ADA = Actor("ada")
RULE = {"watch": "lag", "limit": 5}


def links(client: Client, query: str = "?actor=ada") -> list[str]:
    """Where the subjects of the events of a page lead, newest first."""
    page = client.get(f"/events/{query}").content.decode()
    return [unescape(each) for each in re.findall(r'<a class="small" href="([^"]+)"[^>]*><bdi>', page)]


def shown(client: Client, page: str) -> list[str]:
    return [row.event.kind for row in client.get(page).context["rows"]]


@pytest.fixture
def rule(workspace: Workspace) -> AlertRule:
    return rule_create(workspace, name="lags", settings=RULE, actor=ADA)


@pytest.fixture
def person(workspace: Workspace) -> Membership:
    return person_add(workspace, name="ann@shop", role="viewer", actor=ADA, may_share=False)[0]


def token(workspace: Workspace, name: str = "shop api") -> Token:
    return token_create(workspace, name=name, scopes=["read"], streams=[], expires_at=None, actor=ADA)[0]


def test_the_rule_of_an_event_leads_to_its_page_and_once_it_is_gone_to_its_events(
    owner: Client, viewer: Client, rule: AlertRule
) -> None:
    rule_change(rule, changes={"limit": 7.0}, actor=ADA)
    for client in (owner, viewer):
        assert links(client) == ["/alerts/lags/"] * 2
    assert owner.get("/alerts/lags/").status_code == 200
    rule_delete(rule, actor=ADA)
    of_events = "/events/?about=lags&kind=alert.,alert_rule."
    assert links(owner) == [of_events] * 3
    kinds = ["alert_rule.deleted", "alert_rule.changed", "alert_rule.created"]
    assert shown(owner, "/events/?about=lags") == shown(owner, of_events) == kinds
    assert shown(owner, "/events/?about=lag") == []
    for query, is_there in (("?about=lags", True), ("", False)):
        assert ('name="about" value="lags"' in owner.get(f"/events/{query}").content.decode()) is is_there


def test_the_events_of_a_rule_that_is_gone_are_none_of_a_person_of_its_name(
    owner: Client, workspace: Workspace
) -> None:
    person_add(workspace, name="lags", role="viewer", actor=SYSTEM, may_share=False)
    rule = rule_create(workspace, name="lags", settings=RULE, actor=ADA)
    event_record(workspace, kind="alert.fired", actor=ADA, after={"rule": "lags"}, summary="Fired.")
    rule_delete(rule, actor=ADA)
    (address,) = set(links(owner))
    assert shown(owner, address) == ["alert_rule.deleted", "alert.fired", "alert_rule.created"]
    page = owner.get(address)
    assert page.context["form"].errors == {}
    assert '<option value="alert.,alert_rule." selected>' in page.content.decode()
    assert "user.added" in shown(owner, "/events/?about=lags")


def test_what_a_rule_found_is_about_it_too(owner: Client, workspace: Workspace, rule: AlertRule) -> None:
    event_record(workspace, kind="alert.fired", actor=ADA, after={"rule": "lags"}, summary="Fired.")
    assert links(owner) == ["/alerts/lags/"] * 2
    assert shown(owner, "/events/?about=lags") == ["alert.fired", "alert_rule.created"]


def test_the_person_of_an_event_leads_to_the_row_of_people_and_once_removed_to_the_events(
    owner: Client, viewer: Client, person: Membership
) -> None:
    person_change(person, changes={"role": "operator"}, actor=ADA, rules_all=True)
    password_reset(person, actor=ADA)
    assert links(owner) == ["/settings/people/#person-ann%40shop"] * 3
    assert 'id="person-ann@shop"' in owner.get("/settings/people/").content.decode()
    of_events = "/events/?about=ann%40shop&kind=user."
    assert links(viewer) == [of_events] * 3, "people are shown to admins alone"
    person_remove(person, actor=ADA, rules_all=True)
    assert links(owner) == [of_events] * 4
    kinds = ["user.removed", "user.password_reset", "user.changed", "user.added"]
    assert shown(owner, of_events) == kinds


def test_a_password_that_somebody_changed_is_about_them(owner: Client) -> None:
    user = get_user_model().objects.get(username="owner")
    password_change(user, password="a-long-new-word", session_key="", actor=ADA)
    owner.force_login(user)
    assert links(owner) == ["/settings/people/#person-owner"]
    assert shown(owner, "/events/?about=owner") == ["user.password_changed"]


def test_the_token_of_an_event_leads_to_its_row_whoever_has_its_name(
    owner: Client, viewer: Client, workspace: Workspace
) -> None:
    first, second = token(workspace), token(workspace)
    assert links(owner) == [f"/settings/tokens/#token-{each.pk}" for each in (second, first)]
    assert f'id="token-{first.pk}"' in owner.get("/settings/tokens/").content.decode()
    of_events = "/events/?about=shop+api&kind=token."
    assert links(viewer) == [of_events] * 2
    pk = second.pk
    token_revoke(first, actor=ADA)
    assert links(owner) == [of_events, f"/settings/tokens/#token-{pk}", of_events]
    assert shown(owner, of_events) == ["token.revoked", "token.created", "token.created"]


def test_what_has_the_name_elsewhere_is_not_this_one(
    owner: Client, workspace: Workspace, elsewhere: Workspace, rule: AlertRule
) -> None:
    rule_delete(rule, actor=ADA)
    rule_create(elsewhere, name="lags", settings=RULE, actor=SYSTEM)
    assert links(owner) == ["/events/?about=lags&kind=alert.,alert_rule."] * 2
    assert shown(owner, "/events/?about=lags") == ["alert_rule.deleted", "alert_rule.created"]


@pytest.mark.parametrize("held", [None, [], "x", {"rule": 7}, {"name": "lags"}])
def test_an_event_that_names_no_rule_has_no_subject(
    owner: Client, workspace: Workspace, held: object
) -> None:
    event_record(workspace, kind="alert_rule.changed", actor=ADA, after=held, summary="Odd.")  # type: ignore[arg-type]
    assert links(owner) == []


def test_a_page_asks_no_more_of_the_database_for_more_events(
    owner: Client, workspace: Workspace, rule: AlertRule
) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            owner.get("/events/")
        return len(queries)

    before = asked()
    for number in range(9):
        token(workspace, f"t{number}")
        rule_change(rule, changes={"limit": 10.0 + number}, actor=ADA)
    assert asked() == before
