"""What a configuration file lets go: what its dry run says is what then goes, whatever the file changes together."""

import random
from typing import Any

import pytest

from streams import store
from streams.access import SYSTEM
from streams.api.declared import wording
from streams.api.declared.applying import Outcome, apply
from streams.api.declared.checking import check
from streams.api.declared.reading import read
from streams.log import config, groups, standing, stats, trim
from streams.log.append import append
from streams.models import Stream, Workspace
from tests.streams.log.messages import message

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = ("k0", "k1", "k2", "k3", "k4")


@pytest.fixture
def workspace(unique: str) -> Workspace:
    return Workspace.objects.create(name=unique)


def applied(workspace: Workspace, text: str, **options: Any) -> Outcome:
    outcome = apply(check(read(f"okmq: 1\n{text}")), workspace, actor=SYSTEM, **options)
    for stream in Stream.objects.filter(workspace=workspace):
        store.log().run(trim.release(stream.stream_id))
    return outcome


def stream_id(workspace: Workspace) -> str:
    return Stream.objects.get(workspace=workspace, name="s").stream_id


def fill(workspace: Workspace, count: int) -> None:
    batch = [message(n, key=KEYS[n % len(KEYS)]) for n in range(count)]
    store.log().run(append(stream_id(workspace), batch))


def acknowledge(workspace: Workspace, group: str, up_to: int) -> None:
    at = stream_id(workspace)
    store.log().run(groups.fetch(at, group, limit=1000))
    store.log().run(groups.ack(at, group, "up_to", [up_to]))
    store.log().run(trim.release(at))


def left(workspace: Workspace) -> int:
    return store.log().run(stats.inspect(stream_id(workspace))).messages


def told(outcome: Outcome) -> dict[tuple[str, ...], int]:
    return {change.path: change.messages for change in outcome.changes}


def said_and_gone(workspace: Workspace, text: str, **options: Any) -> tuple[dict[tuple[str, ...], int], int]:
    """What the dry run says of each change, and how many messages then go."""
    before = left(workspace)
    said = applied(workspace, text, dry_run=True, **options)
    assert left(workspace) == before, "a dry run takes nothing"
    done = applied(workspace, text, **options)
    assert told(done) == told(said)
    return told(said), before - left(workspace)


def listening(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """Of which streams the log is told from now on, and with which limit."""
    heard: list[tuple[str, int | None]] = []
    publish = config.streams_publish

    def telling(streams: Any) -> Any:
        heard.extend((registered.name, settings["max_messages"]) for registered, settings in streams)
        return publish(streams)

    monkeypatch.setattr(config, "streams_publish", telling)
    return heard


@pytest.mark.parametrize("after", ["max_messages: 100", "policy: wide", "policy: wide, max_messages: 100"])
def test_a_stream_that_leaves_a_policy_in_the_file_that_tightens_it_loses_nothing(
    workspace: Workspace, after: str
) -> None:
    policies = "  wide: {max_messages: 100}\n"
    applied(workspace, f"policies:\n  p: {{max_messages: 100}}\n{policies}streams:\n  s: {{policy: p}}")
    fill(workspace, 50)
    text = f"policies:\n  p: {{max_messages: 5}}\n{policies}streams:\n  s: {{{after}}}"
    said, gone = said_and_gone(workspace, text)
    assert (sum(said.values()), gone) == (0, 0)
    assert Stream.objects.get(workspace=workspace).max_messages == 100


def test_a_limit_a_key_that_a_stream_leaves_with_its_policy_takes_nothing(workspace: Workspace) -> None:
    limit = "{max_messages_per_key: 10}"
    applied(workspace, f"policies:\n  p: {limit}\nstreams:\n  s: {{policy: p}}")
    fill(workspace, 50)
    text = f"policies:\n  p: {{max_messages_per_key: 1}}\nstreams:\n  s: {limit}"
    said, gone = said_and_gone(workspace, text)
    assert (sum(said.values()), gone) == (0, 0)


def test_the_log_is_told_of_a_stream_once_however_often_the_file_changes_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(workspace, "policies:\n  p: {max_messages: 100}\nstreams:\n  s: {policy: p}\n  t: {policy: p}")
    heard = listening(monkeypatch)
    applied(
        workspace, "policies:\n  p: {max_messages: 5}\nstreams:\n  s: {max_messages: 70}\n  t: {policy: p}"
    )
    assert sorted(heard) == [("s", 70), ("t", 5)]


def test_a_pruned_stream_is_not_told_of_once_more(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(workspace, "policies:\n  p: {max_messages: 100}\nstreams:\n  s: {policy: p}")
    heard = listening(monkeypatch)
    applied(workspace, "policies:\n  p: {max_messages: 5}\nstreams: {}", prune=True)
    assert heard == []
    assert not Stream.objects.filter(workspace=workspace).exists()


def test_the_groups_that_lose_unread_messages_are_said(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(workspace, "streams:\n  s: {groups: {a: {}, b: {}, c: {}, done: {}, gone: {}}}")
    fill(workspace, 20)
    for group, up_to in (("done", 20), ("b", 5)):
        acknowledge(workspace, group, up_to)
    text = "streams:\n  s: {max_messages: 10, groups: {a: {}, b: {}, c: {}, done: {}, new: {}}}"
    said = applied(workspace, text, prune=True, dry_run=True)
    (change,) = [each for each in said.changes if each.path == ("stream", "s")]
    assert list(change.losing.items()) == [("a", 10), ("c", 10), ("b", 5)]
    assert list(wording.going(change, said)) == [
        "10 messages are removed",
        "group a loses 10 unread messages",
        "group c loses 10 unread messages",
        "group b loses 5 unread messages",
    ]
    assert "3 groups lose 25 unread messages" in wording.summary(said)
    monkeypatch.setattr(wording, "MOST_GROUPS", 1)
    assert list(wording.going(change, said))[1:] == [
        "group a loses 10 unread messages",
        "2 more groups lose 15 unread messages",
    ]
    (told,) = [each for each in wording.as_json(said, workspace)["changes"] if each["what"] == "stream s"]
    assert (told["unread"], told["groups_losing"], told["unread_messages"]) == ({"a": 10}, 3, 25)
    applied(workspace, text, prune=True)
    lost = store.log().run(standing.inspect_these([(stream_id(workspace), name) for name in "abc"]))
    states = [lost[stream_id(workspace), name] for name in "abc"]
    assert [each.lost + each.unfinished for each in states] == [10, 5, 10]


def test_what_a_narrower_filter_lets_go_is_said(workspace: Workspace) -> None:
    text = "streams:\n  s: {retention: interest, groups: {x: {filter_keys: [k0, k1]}}}"
    applied(workspace, text)
    fill(workspace, 100)
    applied(workspace, text)
    assert left(workspace) == 40
    said, gone = said_and_gone(workspace, text.replace("k0, k1", "k0"))
    assert said == {("group", "s", "x"): 20}
    assert gone == 20


def test_what_a_narrower_filter_lets_go_that_is_out_is_said(workspace: Workspace) -> None:
    text = "streams:\n  s: {retention: interest, groups: {x: {}}}"
    applied(workspace, text)
    fill(workspace, 100)
    acknowledge(workspace, "x", 30)
    assert left(workspace) == 70
    said, gone = said_and_gone(workspace, text.replace("{}", "{filter_keys: [k0]}"))
    assert said == {("group", "s", "x"): 56}
    assert gone == 56


def test_what_goes_with_a_pruned_group_by_interest_is_said(workspace: Workspace) -> None:
    text = "streams:\n  s: {retention: interest, groups: {x: {}, y: {}}}"
    applied(workspace, text)
    fill(workspace, 100)
    acknowledge(workspace, "x", 100)
    said, gone = said_and_gone(workspace, text.replace(", y: {}", ""), prune=True)
    assert said == {("group", "s", "y"): 100}
    assert gone == 100


def test_what_several_groups_let_go_together_is_said_once(workspace: Workspace) -> None:
    text = "streams:\n  s: {retention: interest, groups: {x: {filter_keys: [k0, k1]}, y: {filter_keys: [k1, k2]}}}"
    applied(workspace, text)
    fill(workspace, 100)
    narrower = text.replace("[k0, k1]", "[k0]").replace("[k1, k2]", "[k2]")
    applied(workspace, text)
    assert left(workspace) == 60
    said, gone = said_and_gone(workspace, narrower)
    assert said == {("group", "s", "x"): 0, ("group", "s", "y"): 20}
    assert gone == 20
    said, gone = said_and_gone(
        workspace, narrower.replace("interest", "interest, description: a").replace("[k0]", "[k3]")
    )
    assert said == {("stream", "s"): 20, ("group", "s", "x"): 0}, (
        "with the stream's own change, if there is one"
    )
    assert gone == 20


def test_a_group_that_is_made_keeps_what_it_wants_of_a_stream_that_comes_to_interest(
    workspace: Workspace,
) -> None:
    applied(workspace, "streams:\n  s: {groups: {x: {}}}")
    fill(workspace, 100)
    acknowledge(workspace, "x", 60)
    text = "streams:\n  s: {retention: interest, groups: {x: {}, y: {filter_keys: [k0]}}}"
    said, gone = said_and_gone(workspace, text)
    assert said == {("stream", "s"): 48, ("group", "s", "y"): 0}
    assert gone == 48


def test_the_first_group_of_a_stream_by_interest_lets_go_what_it_does_not_want(workspace: Workspace) -> None:
    applied(workspace, "streams:\n  s: {retention: interest}")
    fill(workspace, 100)
    said, gone = said_and_gone(
        workspace, "streams:\n  s: {retention: interest, groups: {x: {start_from: latest}}}"
    )
    assert said == {("group", "s", "x"): 100}
    assert gone == 100


def test_a_stream_that_leaves_interest_keeps_what_its_groups_want_no_more(workspace: Workspace) -> None:
    applied(workspace, "streams:\n  s: {retention: interest, groups: {x: {}, y: {}}}")
    fill(workspace, 100)
    acknowledge(workspace, "x", 100)
    said, gone = said_and_gone(workspace, "streams:\n  s: {groups: {x: {filter_keys: [k0]}}}", prune=True)
    assert (sum(said.values()), gone) == (0, 0)


@pytest.mark.parametrize("groups", ["x: {filter_keys: [none]}", "x: {}", "x: {}, y: {filter_keys: [none]}"])
def test_a_stream_that_comes_to_interest_without_its_pruned_groups_keeps_everything(
    workspace: Workspace, groups: str
) -> None:
    applied(workspace, f"streams:\n  s: {{groups: {{{groups}}}}}")
    fill(workspace, 100)
    acknowledge(workspace, "x", 60)
    said, gone = said_and_gone(workspace, "streams:\n  s: {retention: interest}", prune=True)
    assert (sum(said.values()), gone) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_said_goes_whatever_a_file_changes(workspace: Workspace, seed: int) -> None:
    chance = random.Random(seed)

    def file() -> str:
        limits = (
            "policy: p",
            "policy: q",
            "max_messages: 70, retention: interest",
            "retention: interest",
            "",
        )
        wanted = {
            name: chance.sample(KEYS, chance.randint(0, 3))
            for name in chance.sample("abc", chance.choice((0, 1, 2, 2)))
        }
        lines = ", ".join(f"{name}: {{filter_keys: [{', '.join(keys)}]}}" for name, keys in wanted.items())
        return (
            f"policies:\n  p: {{max_messages: {chance.randint(1, 100)}, retention: interest}}\n"
            f"  q: {{max_bytes: {chance.randint(1, 300)}}}\n"
            f"streams:\n  s: {{{chance.choice(limits)}, groups: {{{lines}}}}}".replace("{, ", "{")
        )

    text = file()
    applied(workspace, text)
    fill(workspace, 100)
    for name in "abc":
        if f" {name}: " in text.replace("{", " ") and chance.random() < 0.7:
            acknowledge(workspace, name, chance.randint(1, 100))
    applied(workspace, text)
    said, gone = said_and_gone(workspace, file(), prune=True)
    assert sum(said.values()) == gone
