"""Configuration as a file: what is written out makes the same again; what is wrong is named by its line."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from streams import store
from streams.access import SYSTEM
from streams.api.declared.applying import apply
from streams.api.declared.checking import check
from streams.api.declared.reading import Faulty, read
from streams.api.declared.state import exported, state_of
from streams.log import census, groups, stats
from streams.log.append import append
from streams.models import Event, Group, Policy, Stream, Workspace
from streams.selectors import events_prove
from streams.services.groups import group_create
from streams.services.policies import policy_create
from streams.services.streams import stream_create
from tests.costs import cost_of
from tests.streams.log.messages import message

pytestmark = pytest.mark.django_db(transaction=True)

FILE = """\
okmq: 1
policies:
  week: {ttl: 604800, description: a week}
streams:
  invoices:
    policy: week
    labels: {team: billing, on: "yes"}
  orders:
    max_messages: 1000
    keys: [orders.>]
    deny_delete: true
    groups:
      billing:
        ack_wait: 0.5
        backoff: [1, 2.5]
        filter_keys: [orders.eu.*]
      late:
        start_from: timestamp
        timestamp: 2026-01-01T00:00:00Z
"""


@pytest.fixture
def workspace(unique: str) -> Workspace:
    return Workspace.objects.create(name=unique)


def applied(workspace: Workspace, text: str, **options: Any) -> Any:
    return apply(check(read(text)), workspace, actor=SYSTEM, **options)


def faults(workspace: Workspace, text: str, **options: Any) -> list[str]:
    with pytest.raises(Faulty) as refused:
        applied(workspace, text, **options)
    return [str(fault) for fault in refused.value.faults]


def test_a_file_is_made_so_and_a_second_time_changes_nothing(workspace: Workspace) -> None:
    made = applied(workspace, FILE)
    assert [change.path for change in made.changes] == [
        ("policy", "week"),
        ("stream", "invoices"),
        ("stream", "orders"),
        ("group", "orders", "billing"),
        ("group", "orders", "late"),
    ]
    stream = Stream.objects.get(workspace=workspace, name="invoices")
    assert (stream.policy, stream.ttl, stream.labels["on"]) == ("week", 604_800, "yes")
    assert store.log().run(stats.inspect(stream.stream_id)).messages == 0, "the log knows it"
    events = Event.objects.count()
    assert applied(workspace, FILE).changes == []
    assert Event.objects.count() == events
    assert events_prove().faults == []


def test_what_is_exported_makes_the_same_elsewhere(workspace: Workspace, unique: str) -> None:
    applied(workspace, FILE)
    text = exported(workspace)
    other = Workspace.objects.create(name=f"{unique}-other")
    applied(other, text)
    assert exported(other).replace(other.name, workspace.name) == text
    assert state_of(other) == state_of(workspace)


def test_what_the_services_make_is_exported_whole(workspace: Workspace, unique: str) -> None:
    policy_create(workspace, name="p", settings={"max_bytes": 5, "discard": "new"}, actor=SYSTEM)
    stream, _ = stream_create(
        workspace,
        name="s",
        settings={"ttl": 5, "archive": False, "sealed": True, "description": "ü: #", "labels": {"a": "1"}},
        actor=SYSTEM,
    )
    stream_create(workspace, name="t", settings={"policy": "p", "dedup_window": 5}, actor=SYSTEM)
    group_create(stream, name="g", settings={"ack": "none", "inactive_after": 5.5}, actor=SYSTEM)
    other = Workspace.objects.create(name=f"{unique}-other")
    applied(other, exported(workspace))
    assert state_of(other) == state_of(workspace)


def test_a_sealed_stream_is_exported_with_the_limits_that_its_policy_had(
    workspace: Workspace, unique: str
) -> None:
    limits = "{max_messages: 1000, max_bytes: 5, discard: new}"
    sealed = "s: {policy: p, sealed: true}"
    applied(workspace, f"okmq: 1\npolicies:\n  p: {limits}\nstreams:\n  {sealed}\n  t: {{policy: p}}")
    applied(workspace, "okmq: 1\npolicies:\n  p: {ttl: 60, max_messages: 5}")
    text = exported(workspace)
    assert applied(workspace, text).changes == []
    other = Workspace.objects.create(name=f"{unique}-other")
    applied(other, text)
    assert state_of(other) == state_of(workspace)
    stream = Stream.objects.get(workspace=other, name="s")
    assert (stream.max_messages, stream.max_bytes, stream.ttl) == (1000, 5, None)
    assert applied(other, text).changes == []


def test_the_defaults_of_a_plan_are_not_written(unique: str) -> None:
    workspace = Workspace.objects.create(name=unique, plan="free")
    applied(workspace, "okmq: 1\nstreams: {orders: }")
    assert Stream.objects.get(workspace=workspace).ttl == 86_400
    assert "orders: {}" in exported(workspace)
    assert applied(workspace, exported(workspace)).changes == []


def test_a_dry_run_says_exactly_what_would_happen(workspace: Workspace) -> None:
    applied(workspace, FILE)
    stream = Stream.objects.get(workspace=workspace, name="orders")
    store.log().run(append(stream.stream_id, [message(n, key="orders.eu.1") for n in range(10)]))
    changed = FILE.replace("max_messages: 1000", "max_messages: 4").replace("ack_wait: 0.5", "ack_wait: 60")
    before = state_of(workspace)
    wanted = applied(workspace, changed, dry_run=True)
    assert state_of(workspace) == before
    assert [(change.path, change.before, change.after, change.messages) for change in wanted.changes] == [
        (("stream", "orders"), {"max_messages": 1000}, {"max_messages": 4}, 6),
        (("group", "orders", "billing"), {"ack_wait": 0.5}, {"ack_wait": 60.0}, 0),
    ]
    assert applied(workspace, changed).changes == wanted.changes
    assert store.log().run(stats.inspect(stream.stream_id)).messages == 4


def test_a_changed_policy_changes_its_streams(workspace: Workspace) -> None:
    applied(workspace, FILE)
    changes = applied(workspace, FILE.replace("604800", "3600")).changes
    assert [(change.path, change.after) for change in changes] == [
        (("policy", "week"), {"ttl": 3600}),
        (("stream", "invoices"), {"ttl": 3600}),
    ]


def test_what_is_left_out_is_as_by_default(workspace: Workspace) -> None:
    applied(workspace, FILE)
    (change,) = applied(workspace, FILE.replace("    max_messages: 1000\n", "")).changes
    assert change.after == {"max_messages": None}


def test_what_is_not_declared_stays_unless_it_is_pruned(workspace: Workspace) -> None:
    applied(workspace, FILE)
    shorter = "okmq: 1\npolicies: {}\nstreams:\n  orders: {max_messages: 1000, keys: [orders.>], deny_delete: true}\n"
    kept = applied(workspace, shorter)
    assert kept.changes == []
    assert kept.left == [
        ("policy", "week"),
        ("stream", "invoices"),
        ("group", "orders", "billing"),
        ("group", "orders", "late"),
    ]
    assert applied(workspace, shorter, prune=True, dry_run=True).changes != []
    assert Stream.objects.filter(workspace=workspace).count() == 2
    pruned = applied(workspace, shorter, prune=True)
    assert {change.path for change in pruned.changes} == set(kept.left)
    assert not Policy.objects.filter(workspace=workspace).exists()
    assert not Group.objects.filter(stream__workspace=workspace).exists()


def test_what_goes_with_what_is_pruned_is_counted(workspace: Workspace, tmp_path: Path) -> None:
    applied(workspace, FILE)
    orders = Stream.objects.get(workspace=workspace, name="orders")
    invoices = Stream.objects.get(workspace=workspace, name="invoices")
    group_create(invoices, name="audit", settings={}, actor=SYSTEM)
    group_create(invoices, name="done", settings={}, actor=SYSTEM)
    for stream in (orders, invoices):
        store.log().run(append(stream.stream_id, [message(n, body=b"12345") for n in range(3)]))
    store.log().run(groups.fetch(invoices.stream_id, "audit", limit=2))
    store.log().run(groups.ack(invoices.stream_id, "audit", "up_to", [1]))
    store.log().run(groups.fetch(invoices.stream_id, "done", limit=3))
    store.log().run(groups.ack(invoices.stream_id, "done", "up_to", [3]))
    file = tmp_path / "streams.yaml"
    file.write_text(
        f"okmq: 1\nworkspace: {workspace.name}\npolicies: {{}}\n"
        "streams:\n  orders: {max_messages: 1000, keys: [orders.>], deny_delete: true}\n"
    )
    code, said = run("okmq_diff", str(file), "--prune")
    assert code == 1
    assert "- stream invoices\n    with everything in it\n    3 messages are removed, 15 bytes\n" in said
    assert "    group audit has not acknowledged 2 messages\n" in said
    assert "done has not" not in said
    assert said.endswith(
        "3 messages are removed, 15 bytes of them with deleted streams, 2 of the deleted groups have unread messages.\n"
    )
    code, said = run("okmq_diff", str(file), "--prune", "--json")
    told = json.loads(said)
    assert (code, told["messages"], told["left"]) == (1, 3, [])
    (stream,) = (each for each in told["changes"] if each["what"] == "stream invoices")
    assert (stream["change"], stream["messages"], stream["bytes"]) == ("deleted", 3, 15)
    assert (stream["unread"], stream["after"]) == ({"audit": 2}, None)
    (group,) = (each for each in told["changes"] if each["what"] == "group billing of orders")
    assert (group["change"], group["messages"]) == ("deleted", 0)
    done = json.loads(run("okmq_apply", str(file), "--prune", "--json")[1])
    assert done == told, "what was said is what was done"
    assert not Stream.objects.filter(workspace=workspace, name="invoices").exists()


@pytest.mark.parametrize(
    ("most_keys", "reason", "said"),
    [
        (1, "too_many_keys", "at least 1 message is removed: a stream has more keys than can be counted"),
        (10, None, "1 message is removed"),
    ],
)
def test_where_not_everything_is_counted_the_reason_is_said(
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most_keys: int,
    reason: str | None,
    said: str,
) -> None:
    applied(workspace, "okmq: 1\nstreams:\n  orders: {}\n")
    stream = Stream.objects.get(workspace=workspace, name="orders")
    store.log().run(append(stream.stream_id, [message(n, key=key) for n, key in enumerate("abcc")]))
    monkeypatch.setattr(census, "MOST_KEYS", most_keys)
    file = tmp_path / "streams.yaml"
    file.write_text("okmq: 1\nstreams:\n  orders: {max_messages_per_key: 1}\n")
    assert said in run("okmq_diff", str(file), "--workspace", workspace.name)[1]
    told = json.loads(run("okmq_diff", str(file), "--workspace", workspace.name, "--json")[1])
    assert (told["complete"], told["changes"][0]["reason"]) == (reason is None, reason)


def test_thousands_are_separated(workspace: Workspace, tmp_path: Path) -> None:
    applied(workspace, "okmq: 1\nstreams:\n  orders: {}\n  invoices: {}\n")
    for name in ("orders", "invoices"):
        stream_id = Stream.objects.get(workspace=workspace, name=name).stream_id
        for first in (0, 700):
            store.log().run(append(stream_id, [message(n) for n in range(first, first + 700)]))
    invoices = Stream.objects.get(workspace=workspace, name="invoices")
    group_create(invoices, name="audit", settings={"start_from": "earliest"}, actor=SYSTEM)
    file = tmp_path / "streams.yaml"
    file.write_text("okmq: 1\nstreams:\n  orders: {max_messages: 100}\n")
    said = run("okmq_diff", str(file), "--workspace", workspace.name, "--prune")[1]
    size = sum(len(message(n).body) for n in range(1400))
    assert "    1,300 messages are removed\n" in said
    assert f"    1,400 messages are removed, {size:,} bytes\n" in said
    assert "    group audit has not acknowledged 1,400 messages\n" in said
    assert f"2,700 messages are removed, {size:,} bytes of them with deleted streams" in said


def test_a_section_that_is_not_there_is_not_spoken_of(workspace: Workspace) -> None:
    applied(workspace, FILE)
    outcome = applied(workspace, "okmq: 1\n", prune=True)
    assert (outcome.changes, outcome.left) == ([], [])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("streams: {}", "1:1: okmq: Expected the version of this format, okmq: 1."),
        ("okmq: 2", "1:1: okmq: Expected the version of this format, okmq: 1."),
        ("okmq: 1\nstream: {}", "2:1: stream: Unknown here; expected okmq"),
        ("okmq: 1\nstreams:\n  a:\n    tttl: 5", "4:5: streams.a.tttl: Unknown field."),
        ("okmq: 1\nstreams:\n  a: {ttl: 0}", "3:7: streams.a.ttl: Expected a whole number from 1"),
        ("okmq: 1\nstreams:\n  a b: {}", "3:3: streams.a b: Expected 1 to 50 characters"),
        ("okmq: 1\nstreams:\n  a: 5", "3:3: streams.a: Expected a mapping of settings."),
        ("okmq: 1\nstreams: [a]", "2:1: streams: Expected a mapping of names."),
        ("okmq: 1\nstreams:\n  a: {}\n  a: {}", "4:3: streams.a: Duplicate."),
        ("okmq: 1\nstreams:\n  a: {name: b}", "3:7: streams.a.name: The name goes before the colon."),
        ("okmq: 1\nstreams:\n  a: {policy: x}", "3:7: streams.a.policy: There is no policy 'x'."),
        (
            "okmq: 1\nstreams:\n  a:\n    groups:\n      g: {ack: maybe}",
            "5:11: streams.a.groups.g.ack: Expected one of explicit, all, none.",
        ),
        (
            "okmq: 1\nstreams:\n  a:\n    groups:\n      g: {start_from: offset}",
            "5:7: streams.a.groups.g.offset: start_from 'offset' needs offset.",
        ),
        ("okmq: 1\nstreams: {a: &x {}, b: *x}", "2:24: aliases are not accepted."),
        ("okmq: 1\nstreams: {a: !!python/object:os.system {}}", "2:14: streams.a: Tags are not accepted."),
        ("okmq: 1\nstreams: {a: !mine {}}", "2:14: streams.a: Tags are not accepted."),
        ("a: [", "1:5: expected the node content"),
        ("- 1", "1:1: Expected a mapping."),
        ("[" * 500, "1:1: Nested too deeply: at most 20 levels are accepted."),
        ("[" * 500 + "]" * 500, "1:1: Nested too deeply: at most 20 levels are accepted."),
        ("a: " + "[" * 50 + "]" * 50, "1:24: a.0.0.0: Nested too deeply: at most 20 levels are accepted."),
    ],
)
def test_what_is_wrong_is_named_by_line_and_column(workspace: Workspace, text: str, fault: str) -> None:
    (found,) = faults(workspace, text)
    assert found.startswith(fault)
    assert not Stream.objects.filter(workspace=workspace).exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"okmq: 1\n\0", "2:1: The character U+0000 is not accepted."),
        (b"okmq: 1\nstreams: {a\x07: {}}", "2:12: The character U+0007 is not accepted."),
        (b"okmq: 1\nstreams: {\xff: {}}", "cannot be read"),
        (b"okmq: 1\nstreams: {\xed\xa0\x80: {}}", "cannot be read"),
        (b'okmq: 1\nworkspace: "a\\0"', "2:12: workspace: NUL and lone surrogates are not accepted"),
        (b'okmq: 1\nworkspace: "\\uD800"', "2:12: workspace: NUL and lone surrogates are not accepted"),
        (b'okmq: 1\nstreams: {"\\0": {}}', "2:11: streams: NUL and lone surrogates are not accepted"),
        (b'okmq: 1\nstreams: {"\\uDFFF": {}}', "2:11: streams: NUL and lone surrogates are not accepted"),
        (b'okmq: 1\nstreams: {a: {description: "\\0"}}', "streams.a.description: NUL and lone"),
        (b'okmq: 1\nstreams: {a: {labels: {x: "\\uD800"}}}', "streams.a.labels.x: NUL and lone"),
        (b'"\\uD800": 1', "1:1: NUL and lone"),
    ],
)
@pytest.mark.parametrize("command", ["okmq_diff", "okmq_apply"])
def test_what_yaml_or_the_database_does_not_take_is_one_sentence(
    command: str, content: bytes, sentence: str, tmp_path: Path
) -> None:
    file = tmp_path / "streams.yaml"
    file.write_bytes(content)
    with pytest.raises(CommandError) as refused:
        call_command(command, str(file))
    assert refused.value.returncode == 2
    assert sentence in str(refused.value)


def test_a_byte_that_the_locale_escapes_is_named_by_its_place(workspace: Workspace) -> None:
    text = b"okmq: 1\nstreams: {\xff: {}}".decode(errors="surrogateescape")
    assert faults(workspace, text) == ["2:11: The character U+DCFF is not accepted."]


def test_a_workspace_of_no_name_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "streams.yaml"
    file.write_text("okmq: 1")
    for name in ("\0", "\udcff"):
        with pytest.raises(CommandError, match="There is no workspace") as refused:
            call_command("okmq_diff", str(file), workspace=name)
        assert refused.value.returncode == 2


def test_everything_that_is_wrong_is_told_at_once_and_nothing_is_done(workspace: Workspace) -> None:
    applied(workspace, FILE)
    before = state_of(workspace)
    wrong = (
        FILE.replace("deny_delete: true", "deny_delete: false")
        .replace("timestamp: 2026-01", "timestamp: 2025-01")
        .replace("policy: week", "policy: week\n    ttl: 5")
        .replace("a week", "another")
    )
    assert faults(workspace, wrong) == [
        "7:5: streams.invoices.ttl: Set by policy 'week'; change the policy, or send policy: null as well.",
        "12:5: streams.orders.deny_delete: deny_delete cannot be switched off again.",
        "19:9: streams.orders.groups.late.start_from: Where a group starts is fixed when it is created; seek moves it.",
    ]
    assert state_of(workspace) == before


def run(command: str, *arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command(command, *arguments, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_the_commands_compare_apply_and_export(workspace: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "streams.yaml"
    file.write_text(f"workspace: {workspace.name}\n{FILE}")
    code, said = run("okmq_diff", str(file))
    assert code == 1
    assert '+ policy week\n    ttl: 604800\n    description: "a week"\n' in said
    assert said.endswith("5 created.\n")
    assert run("okmq_apply", str(file), "--dry-run")[1].endswith("Dry run, nothing was changed: 5 created.\n")
    assert run("okmq_apply", str(file))[1].endswith("5 created.\n")
    assert run("okmq_diff", str(file)) == (0, "Nothing to change.\n")
    assert run("okmq_export", "--workspace", workspace.name)[1] == exported(workspace)
    file.write_text(file.read_text().replace("max_messages: 1000", "max_messages: 7"))
    assert run("okmq_diff", str(file))[1] == "~ stream orders\n    max_messages: 1000 → 7\n1 changed.\n"
    file.write_text("okmq: 1\nstreams: {a: {ttl: x}}\n")
    with pytest.raises(CommandError, match=r"streams\.yaml:2:15: streams\.a\.ttl: Expected") as refused:
        run("okmq_apply", str(file), "--workspace", workspace.name)
    assert refused.value.returncode == 2


def test_the_log_is_told_of_many_streams_together(workspace: Workspace) -> None:
    def trips(count: int, *, limit: int) -> int:
        rows = "".join(f"  s{n}: {{max_messages: {limit}}}\n" for n in range(count))

        def act() -> SimpleNamespace:
            return SimpleNamespace(status_code=200, content=applied(workspace, f"okmq: 1\nstreams:\n{rows}"))

        return cost_of(act).trips

    made = trips(60, limit=9)
    assert made < 20
    assert trips(60, limit=9) <= made, "nothing changes"
    previews = trips(60, limit=8) - trips(2, limit=7)
    assert previews < 5 * 60, "each stream is previewed, and not told of alone"
    assert {each.max_messages for each in Stream.objects.filter(workspace=workspace)} == {7, 8}
