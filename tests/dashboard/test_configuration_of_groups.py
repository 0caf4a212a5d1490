"""Configuration as a file in the console: what its groups' settings take is shown, and no more is taken than that."""

from typing import Any

import pytest
from django.test import Client

from streams import store
from streams.access import SYSTEM
from streams.log import groups
from streams.models import Group
from streams.services.groups import group_create
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import bury, fetched
from tests.dashboard.test_configuration import applied, looked_at, publish, shown

FEWER = "okmq: 1\nstreams:\n  orders: {groups: {billing: {max_deliver: 1}}}\n"
ENDS = "okmq: 1\nstreams:\n  orders: {groups: {billing: {inactive_after: 3600}}}\n"
GROWN = "The effect has changed since the preview; nothing was applied."


def billing(make_stream: MakeStream, *, bodies: int = 40, **settings: Any) -> Group:
    stream = make_stream("orders", bodies=[b"1"] * bodies, **settings)
    return group_create(stream, name="billing", settings={}, actor=SYSTEM)[0]


def held(group: Group) -> tuple[int, float | None]:
    group.refresh_from_db()
    return group.max_deliver, group.inactive_after


def test_what_becomes_a_dead_letter_is_shown_and_no_more_does(owner: Client, make_stream: MakeStream) -> None:
    group = billing(make_stream)
    fetched(group, limit=4)
    seen = looked_at(owner, FEWER)
    assert "4 messages in flight become dead letters when their ack wait is over" in shown(seen)
    assert 'name="confirm"' not in shown(seen)
    assert "Apply and remove" not in shown(seen), "dead letters can be replayed"
    fetched(group, limit=1)
    again = applied(owner, seen)
    assert GROWN in shown(again)
    assert "5 messages in flight become dead letters" in shown(again)
    assert held(group) == (5, None)
    fetched(group, limit=1)
    applied(owner, again)
    assert held(group) == (1, None), "it goes on as it did"


def test_what_another_group_has_less_lends_nothing(owner: Client, make_stream: MakeStream) -> None:
    group = billing(make_stream)
    other, _ = group_create(group.stream, name="other", settings={}, actor=SYSTEM)
    fetched(group, limit=2)
    leases = fetched(other, limit=4)
    both = FEWER.replace("{billing", "{other: {max_deliver: 1}, billing")
    seen = looked_at(owner, both)
    store.log().run(groups.ack(group.stream.stream_id, "other", "leases", leases))
    fetched(group, limit=1)
    assert GROWN in shown(applied(owner, seen))
    assert held(group) == held(other) == (5, None)


def test_a_group_that_would_be_deleted_when_idle_asks_for_the_workspace_s_name(
    owner: Client, make_stream: MakeStream
) -> None:
    group = billing(make_stream)
    bury(group, count=2)
    seen = looked_at(owner, ENDS)
    for said in (
        "is deleted once nobody has fetched from it for 3600 s",
        "its position, 0 messages in flight and 2 dead letters go with it",
        "1 changed, 1 group is deleted when idle, with 2 dead letters.",
    ):
        assert said in shown(seen)
    assert "That does not match. Nothing was done." in shown(applied(owner, seen, confirm="billing"))
    assert held(group) == (5, None)
    bury(group, count=1)
    again = applied(owner, seen, confirm="default")
    assert GROWN in shown(again)
    assert "3 dead letters go with it" in shown(again)
    applied(owner, again, confirm="default")
    assert held(group) == (5, 3600)


def test_no_more_messages_go_with_a_group_than_was_shown(owner: Client, make_stream: MakeStream) -> None:
    group = billing(make_stream, retention="interest")
    group_create(group.stream, name="none", settings={"filter_keys": ["none"]}, actor=SYSTEM)
    text = "okmq: 1\nstreams:\n  orders: {retention: interest, groups: {billing: {inactive_after: 60}}}\n"
    seen = looked_at(owner, text)
    assert "then 40 messages that no other group wants are removed" in shown(seen)
    publish(group.stream, 1)
    again = applied(owner, seen, confirm="default")
    assert GROWN in shown(again)
    assert held(group) == (5, None)
    applied(owner, again, confirm="default")
    assert held(group) == (5, 60)


def test_no_more_dead_letters_go_with_a_deleted_group_than_was_shown(
    owner: Client, make_stream: MakeStream
) -> None:
    group = billing(make_stream, bodies=3)
    bury(group, count=1)
    seen = looked_at(owner, "okmq: 1\nstreams: {orders: {}}\n", prune="on")
    assert "1 dead letter of group billing goes with it" in shown(seen)
    bury(group, count=1)
    again = applied(owner, seen, confirm="default")
    assert GROWN in shown(again)
    assert Group.objects.exists()
    applied(owner, again, confirm="default")
    assert not Group.objects.exists()


@pytest.mark.parametrize(
    ("before", "after"), [("production", "production"), ("production", "test"), ("test", "production")]
)
def test_a_dead_letter_of_a_production_stream_asks_for_the_workspace_s_name(
    owner: Client, make_stream: MakeStream, before: str, after: str
) -> None:
    group = billing(make_stream, labels={"env": before})
    fetched(group, limit=1)
    seen = looked_at(owner, FEWER.replace("orders: {", f"orders: {{labels: {{env: {after}}}, "))
    assert "That does not match. Nothing was done." in shown(applied(owner, seen))
    assert held(group) == (5, None)
    applied(owner, seen, confirm="default")
    assert held(group) == (1, None)


def test_settings_that_take_nothing_are_applied_at_once(owner: Client, make_stream: MakeStream) -> None:
    group = billing(make_stream)
    seen = looked_at(owner, FEWER)
    assert 'name="confirm"' not in shown(seen)
    assert "btn-danger" not in shown(seen)
    applied(owner, seen)
    assert held(group) == (1, None)
