"""Everything that is wrong with a file is told in one run, by whoever notices it, and each thing once."""

import pytest

from streams.api.declared.state import state_of
from streams.models import Workspace
from tests.streams.api.declared.test_declared import applied, faults

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def workspace(unique: str) -> Workspace:
    return Workspace.objects.create(name=unique, plan="free")


def test_what_cannot_be_read_and_what_is_refused_is_told_together(workspace: Workspace) -> None:
    text = """\
okmq: 1
polices: {}
policies:
  week: {ttl: 99999999, max_bytes: 99999999999}
streams:
  s1:
    policy: nope
    max_messages: 0
    tttl: 5
    groups:
      g: {ack: maybe, start_from: offset, max_deliver: no, backoff: [1, 2, 3, 4, 5, 6]}
  s2: {ttl: 99999999, max_bytes: 99999999999, storage: tape}
alert_rules:
  late: {stream: s1, watch: lag, for_seconds: -1}
"""
    assert [each.split(": ", 2)[1] for each in faults(workspace, text)] == [
        "polices",
        "policies.week.ttl",
        "policies.week.max_bytes",
        "streams.s1.policy",
        "streams.s1.max_messages",
        "streams.s1.tttl",
        "streams.s1.groups.g.offset",
        "streams.s1.groups.g.ack",
        "streams.s1.groups.g.max_deliver",
        "streams.s2.ttl",
        "streams.s2.max_bytes",
        "streams.s2.storage",
        "alert_rules.late.limit",
        "alert_rules.late.for_seconds",
    ]
    assert state_of(workspace) == {}


HELD = """\
okmq: 1
policies: {week: {ttl: 604800}}
streams:
  a: {policy: week, groups: {g: {start_from: latest, max_deliver: 8, backoff: [1, 2, 3, 4, 5, 6]}}}
  b: {deny_delete: true, deny_purge: true}
alert_rules:
  late: {stream: a, watch: lag, limit: 5}
"""


@pytest.mark.parametrize(
    ("was", "wrong", "about"),
    [
        ("policy: week,", "policy: [],", ["streams.a.policy"]),
        ("policy: week,", "policy: gone,", ["streams.a.policy"]),
        ("{ttl: 604800}", "5", ["policies.week"]),
        ("{ttl: 604800}", "{ttl: -1}", ["policies.week.ttl"]),
        ("{week: {ttl: 604800}}", "[week]", ["policies"]),
        ("start_from: latest", "start_from: sometime", ["streams.a.groups.g.start_from"]),
        ("max_deliver: 8", "max_deliver: eight", ["streams.a.groups.g.max_deliver"]),
        ("groups: {g", "groups: [g], x: {g", ["streams.a.groups", "streams.a.x"]),
        ("{deny_delete: true, deny_purge: true}", "no", ["streams.b"]),
        (
            "{deny_delete: true, deny_purge: true}",
            "{storage: tape, deny_purge: 3}",
            ["streams.b.deny_delete", "streams.b.storage", "streams.b.deny_purge"],
        ),
        ("{deny_delete: true, deny_purge: true}", "{}", ["streams.b.deny_delete", "streams.b.deny_purge"]),
        ("watch: lag", "watch: moon", ["alert_rules.late.watch"]),
    ],
)
def test_what_is_wrong_makes_nothing_else_wrong(
    workspace: Workspace, was: str, wrong: str, about: list[str]
) -> None:
    applied(workspace, HELD)
    before = state_of(workspace)
    assert was in HELD
    told = faults(workspace, HELD.replace(was, wrong), prune=True)
    assert [each.split(": ", 2)[1] for each in told] == about
    assert state_of(workspace) == before
