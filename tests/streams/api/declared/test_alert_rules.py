"""Alert rules in a configuration file: as the rest of it, but for webhooks and mutes."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from streams.access import SYSTEM
from streams.api.declared import wording
from streams.api.declared.applying import Outcome, apply
from streams.api.declared.checking import check
from streams.api.declared.reading import Faulty, read
from streams.api.declared.state import exported, state_of
from streams.models import Alert, AlertRule, Event, Workspace
from streams.services.alerts import MOST_RULES, alert_begin, rule_create
from tests.findings import over

pytestmark = pytest.mark.django_db(transaction=True)

FILE = """\
okmq: 1
alert_rules:
  late: {stream: orders, group: billing, watch: lag, limit: 1000, clear: 200.5, for_seconds: 0}
  stands: {stream: '*', watch: status, statuses: [stopped, stalled], enabled: false}
  quiet: {stream: orders.*, watch: rate_below, limit: 0.5, most_messages: 3, most_minutes: 1}
"""
HOOK = "https://example.org/hook/T0PSECRET?key=T0PSECRET"


@pytest.fixture
def workspace(unique: str) -> Workspace:
    return Workspace.objects.create(name=unique)


def applied(workspace: Workspace, text: str, **options: Any) -> Outcome:
    return apply(check(read(text)), workspace, actor=SYSTEM, **options)


def rule(workspace: Workspace, name: str = "late") -> AlertRule:
    return AlertRule.objects.get(workspace=workspace, name=name)


def said(workspace: Workspace, text: str, **options: Any) -> list[str]:
    return list(wording.lines(applied(workspace, text, **options), workspace))


def test_they_are_made_and_a_second_time_changes_nothing(workspace: Workspace) -> None:
    made = applied(workspace, FILE)
    assert [change.path for change in made.changes] == [
        ("alert rule", "late"),
        ("alert rule", "quiet"),
        ("alert rule", "stands"),
    ]
    late = rule(workspace)
    assert (late.stream, late.group, late.watch, late.limit, late.clear) == (
        "orders",
        "billing",
        "lag",
        1000,
        200.5,
    )
    assert (late.for_seconds, late.most_minutes, late.enabled) == (0, 10, True)
    events, updated_at = Event.objects.count(), late.updated_at
    assert applied(workspace, FILE).changes == []
    assert (Event.objects.count(), rule(workspace).updated_at) == (events, updated_at)


def test_what_is_written_out_makes_the_same_elsewhere(workspace: Workspace, unique: str) -> None:
    applied(workspace, FILE)
    text = exported(workspace)
    assert "late: {stream" not in text
    other = Workspace.objects.create(name=f"{unique}-other")
    applied(other, text)
    assert exported(other).replace(other.name, workspace.name) == text
    assert state_of(other) == state_of(workspace)
    assert AlertRule.objects.filter(workspace=other).count() == 3


def test_what_changes_is_said_and_what_is_left_out_is_as_by_default(workspace: Workspace) -> None:
    applied(workspace, FILE)
    text = "okmq: 1\nalert_rules:\n  late: {stream: orders, watch: lag, limit: 5}\n"
    lines = [
        "~ alert rule late",
        '    group: "billing" → ""',
        "    limit: 1000 → 5",
        "    clear: 200.5 → null",
        "    for_seconds: 0 → 60",
        "  alert rule quiet is not in the file and stays (--prune deletes it)",
        "  alert rule stands is not in the file and stays (--prune deletes it)",
    ]
    assert said(workspace, text, dry_run=True) == lines
    assert rule(workspace).limit == 1000
    assert said(workspace, text) == lines
    assert (rule(workspace).limit, rule(workspace).for_seconds) == (5, 60)
    assert Event.objects.latest("pk").kind == "alert_rule.changed"


def test_what_is_not_declared_goes_with_its_alerts_where_it_is_pruned(workspace: Workspace) -> None:
    applied(workspace, FILE)
    alert_begin(rule(workspace), value=1001, finding=over("lag", 1001, limit=1000))
    pruned = applied(workspace, "okmq: 1\nstreams: {late: }", prune=True)
    assert [change.path for change in pruned.changes] == [("stream", "late")], "of rules nothing is said"
    lines = said(workspace, "okmq: 1\nalert_rules:\n", prune=True)
    assert lines[:2] == ["- alert rule late", "    with its alerts"]
    assert not AlertRule.objects.filter(workspace=workspace).exists()
    assert not Alert.objects.exists()
    assert "alert.ended" in Event.objects.values_list("kind", flat=True)


def test_a_webhook_and_a_mute_are_neither_written_nor_taken_nor_touched(workspace: Workspace) -> None:
    settings = {"stream": "orders", "watch": "lag", "limit": 5.0, "webhook_url": HOOK}
    muted = {"muted_until": timezone.now() + timedelta(hours=1), "mute_reason": "moving"}
    before = rule_create(workspace, name="late", settings=settings | muted, actor=SYSTEM)
    text = exported(workspace)
    assert text.startswith("# The webhooks of these alert rules are not in this file: late.\n")
    assert "T0PSECRET" not in text
    assert before.webhook_secret not in text
    assert applied(workspace, text).changes == []
    assert "T0PSECRET" not in "".join(said(workspace, text.replace("limit: 5", "limit: 6")))
    after = rule(workspace)
    assert after.limit == 6
    for held in ("webhook_url", "webhook_secret", "muted_until", "mute_reason"):
        assert getattr(after, held) == getattr(before, held)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "late: {stream: a, watch: lag, limit: 1, webhook_url: x}",
            "3:43: alert_rules.late.webhook_url: Its",
        ),
        (
            "late: {stream: a, watch: lag, limit: 1, mute_reason: x}",
            "3:43: alert_rules.late.mute_reason: A mu",
        ),
        ("late: {stream: a, watch: lag, limit: 1, limt: 1}", "3:43: alert_rules.late.limt: Unknown field."),
        (
            "late: {stream: a, watch: lag}",
            "3:3: alert_rules.late.limit: The watch 'lag' needs a limit.",
        ),
        ("late: {stream: a, limit: 1}", "3:3: alert_rules.late.watch: This field is required."),
        ("late: {stream: a, watch: lag, limit: -1}", "3:33: alert_rules.late.limit: Expected a number"),
        ("a b: {stream: a, watch: lag, limit: 1}", "3:3: alert_rules.a b: "),
        (
            "late: {name: b, stream: a, watch: lag, limit: 1}",
            "3:10: alert_rules.late.name: The name goes before",
        ),
        ("late: 5", "3:3: alert_rules.late: Expected a mapping of settings."),
    ],
)
def test_what_is_wrong_is_named_by_line_and_column(workspace: Workspace, text: str, fault: str) -> None:
    with pytest.raises(Faulty) as refused:
        applied(workspace, f"okmq: 1\nalert_rules:\n  {text}\n")
    assert str(refused.value.faults[0]).startswith(fault)
    assert not AlertRule.objects.filter(workspace=workspace).exists()


def test_more_rules_than_a_workspace_may_have_are_refused_and_none_is_made(workspace: Workspace) -> None:
    rules = "".join(f"  r{n}: {{stream: a, watch: lag, limit: 1}}\n" for n in range(MOST_RULES + 1))
    with pytest.raises(Faulty) as refused:
        applied(workspace, f"okmq: 1\nalert_rules:\n{rules}")
    assert [fault.about for fault in refused.value.faults] == [f"alert_rules.r{MOST_RULES}"]
    assert not AlertRule.objects.filter(workspace=workspace).exists()


def test_a_rule_and_a_stream_of_one_name_are_two_things(workspace: Workspace) -> None:
    text = "okmq: 1\nstreams:\n  late: {max_messages: 5}\nalert_rules:\n  late: {stream: late, watch: lag, limit: 1}\n"
    applied(workspace, text)
    changed = applied(workspace, text.replace("limit: 1", "limit: 2"))
    assert [(change.path, change.messages) for change in changed.changes] == [(("alert rule", "late"), 0)]
