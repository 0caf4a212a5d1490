"""What a file's settings of groups take: what its dry run says is what then becomes a dead letter, or goes."""

from types import SimpleNamespace
from typing import Any

import pytest

from streams import selectors, store
from streams.access import SYSTEM
from streams.api.declared import wording
from streams.api.declared.applying import Change, Outcome, apply
from streams.api.declared.checking import check
from streams.api.declared.reading import read
from streams.log import answers, groups, spent, stats, trim
from streams.log.append import append
from streams.models import Group, Stream, Workspace
from streams.services.groups import group_delete
from tests.costs import cost_of
from tests.streams.log.messages import message
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = ("k0", "k1")


@pytest.fixture
def workspace(unique: str) -> Workspace:
    return Workspace.objects.create(name=unique)


def applied(workspace: Workspace, text: str, **options: Any) -> Outcome:
    return apply(check(read(f"okmq: 1\nstreams:\n  s: {{{text}}}")), workspace, actor=SYSTEM, **options)


def looked_at(workspace: Workspace, text: str) -> Outcome:
    return applied(workspace, text, dry_run=True)


def stream_id(workspace: Workspace) -> str:
    return Stream.objects.get(workspace=workspace, name="s").stream_id


def fill(workspace: Workspace, count: int) -> None:
    store.log().run(append(stream_id(workspace), [message(n, key=KEYS[n % 2]) for n in range(count)]))


def fetch(workspace: Workspace, group: str, limit: int) -> list[str]:
    fetched = store.log().run(groups.fetch(stream_id(workspace), group, limit=limit))
    return [delivery.lease for delivery in fetched.deliveries]


def of(outcome: Outcome, group: str) -> Change:
    (found,) = [change for change in outcome.changes if change.path == ("group", "s", group)]
    return found


def told(outcome: Outcome, group: str, workspace: Workspace) -> dict[str, Any]:
    changes = wording.as_json(outcome, workspace)["changes"]
    (found,) = [change for change in changes if change["what"] == f"group {group} of s"]
    return dict(found)


def left(workspace: Workspace) -> int:
    store.log().run(trim.release(stream_id(workspace)))
    return store.log().run(stats.inspect(stream_id(workspace))).messages


def test_what_becomes_a_dead_letter_is_said_and_does(workspace: Workspace) -> None:
    applied(workspace, "groups: {g: {max_deliver: -1, ack_wait: 0.1}, other: {}}")
    fill(workspace, 9)
    fetch(workspace, "g", 7)
    fetch(workspace, "other", 3)
    text = "groups: {g: {max_deliver: 1, ack_wait: 0.1}, other: {description: a}}"
    said = looked_at(workspace, text)
    assert list(wording.going(of(said, "g"), said)) == [
        "7 messages in flight become dead letters when their ack wait is over, unless they are acknowledged before"
    ]
    assert list(wording.going(of(said, "other"), said)) == []
    assert wording.summary(said) == "2 changed, 7 messages in flight become dead letters."
    assert told(said, "g", workspace)["dead_letters"] == 7
    assert "dead_letters" not in told(said, "other", workspace)
    assert (wording.as_json(said, workspace)["dead_letters"], said.is_complete) == (7, True)
    applied(workspace, text)

    def died() -> bool:
        store.log().run(spent.retire(stream_id(workspace), "g"))
        return selectors.group_view(Group.objects.get(name="g")).state.dead_letters == 7

    until(died)


@pytest.mark.parametrize("before", ["interest", "limits"])
def test_what_goes_by_another_filter_while_it_is_in_flight_becomes_no_dead_letter(
    workspace: Workspace, before: str
) -> None:
    applied(workspace, f"retention: {before}, groups: {{g: {{max_deliver: -1}}}}")
    fill(workspace, 9)
    fetch(workspace, "g", 7)
    text = "retention: interest, groups: {g: {max_deliver: 1, filter_keys: [k1]}}"
    said = looked_at(workspace, text)
    assert told(said, "g", workspace)["dead_letters"] == 3
    assert wording.as_json(said, workspace)["messages"] == 5
    applied(workspace, text)
    assert left(workspace) == 4
    store.log().run(groups.nack(stream_id(workspace), "g", "offsets", range(1, 8)))
    store.log().run(spent.retire(stream_id(workspace), "g"))
    state = selectors.group_view(Group.objects.get(name="g")).state
    assert (state.dead_letters, state.ack_pending) == (3, 0)


def test_one_message_in_flight_is_said_as_one(workspace: Workspace) -> None:
    applied(workspace, "groups: {g: {max_deliver: 2}}")
    fill(workspace, 1)
    fetch(workspace, "g", 1)
    said = looked_at(workspace, "groups: {g: {max_deliver: 1}}")
    assert list(wording.going(of(said, "g"), said)) == [
        "1 message in flight becomes a dead letter when its ack wait is over, unless it is acknowledged before"
    ]
    assert wording.summary(said) == "1 changed, 1 message in flight becomes a dead letter."


def test_more_in_flight_than_is_looked_at_is_said(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(workspace, "groups: {g: {max_deliver: 2}}")
    fill(workspace, 4)
    fetch(workspace, "g", 4)
    monkeypatch.setattr(selectors.groups, "SPENT_LOOKED_AT", 0)
    said = looked_at(workspace, "groups: {g: {max_deliver: 1}}")
    (line,) = wording.going(of(said, "g"), said)
    assert line.startswith("at least 0 messages in flight become dead letters")
    assert line.endswith(": more are in flight than are looked at")
    assert not said.is_complete
    found = told(said, "g", workspace)
    assert (found["complete"], found["reason"]) == (False, "too_many_in_flight")


def test_what_goes_with_a_group_that_is_deleted_when_idle_is_said_and_goes(workspace: Workspace) -> None:
    applied(workspace, "retention: interest, groups: {g: {}, narrow: {filter_keys: [k1]}}")
    fill(workspace, 20)
    leases = fetch(workspace, "g", 4)
    store.log().run(answers.term(stream_id(workspace), "g", "leases", leases[:1], reason="no"))
    assert left(workspace) == 19
    text = "retention: interest, groups: {g: {inactive_after: 3600}, narrow: {filter_keys: [k1]}}"
    said = looked_at(workspace, text)
    assert list(wording.going(of(said, "g"), said)) == [
        "is deleted once nobody has fetched from it for 3600 s",
        "its position, 3 messages in flight and 1 dead letter go with it",
        "then 9 messages that no other group wants are removed",
    ]
    assert (
        wording.summary(said) == "1 changed, 1 group is deleted when idle, with 1 dead letter and 9 messages."
    )
    deletion = told(said, "g", workspace)["deletion"]
    assert 0 <= deletion.pop("idle") < 3600
    assert deletion == {"after": 3600, "in_flight": 3, "dead_letters": 1, "messages": 9}
    assert said.messages == 0, "nothing goes at once"
    applied(workspace, text)
    assert left(workspace) == 19
    group_delete(Group.objects.get(name="g"), actor=SYSTEM)
    assert left(workspace) == 10


def test_a_group_that_has_been_idle_for_longer_is_said_to_go_within_seconds(workspace: Workspace) -> None:
    applied(workspace, "groups: {g: {}}")
    until(lambda: selectors.group_view(Group.objects.get()).unfetched_ms > 100)
    said = looked_at(workspace, "groups: {g: {inactive_after: 0.1}}")
    assert "is deleted within seconds: nobody has fetched from it for 0.1 s" in wording.going(
        of(said, "g"), said
    )


@pytest.mark.parametrize("after", ["7200", "3600, description: other"])
def test_a_group_that_is_deleted_no_sooner_is_not_spoken_of(workspace: Workspace, after: str) -> None:
    applied(workspace, "groups: {g: {inactive_after: 3600}}")
    said = looked_at(workspace, f"groups: {{g: {{inactive_after: {after}}}}}")
    assert said.changes
    assert list(wording.going(of(said, "g"), said)) == []


def test_a_group_that_the_file_makes_loses_nothing_of_its_own(workspace: Workspace) -> None:
    applied(workspace, "description: a")
    fill(workspace, 4)
    said = looked_at(workspace, "description: a, groups: {g: {max_deliver: 1, inactive_after: 60}}")
    assert list(wording.going(of(said, "g"), said)) == []


def test_a_group_that_the_store_has_yet_to_hear_of_loses_nothing(workspace: Workspace) -> None:
    applied(workspace, "groups: {g: {}}")
    store.log().run(groups.group_remove(stream_id(workspace), "g"))
    said = looked_at(workspace, "groups: {g: {max_deliver: 1, inactive_after: 60}}")
    assert list(wording.going(of(said, "g"), said)) == []


def ended(workspace: Workspace, names: str) -> int:
    """Delete groups, in this order; how many messages go."""
    before = left(workspace)
    for name in names:
        group_delete(Group.objects.get(stream__workspace=workspace, name=name), actor=SYSTEM)
        left(workspace)
    return before - left(workspace)


@pytest.mark.parametrize(
    ("others", "order", "goes"),
    [
        ("c: {filter_keys: [k1]}, ", "ab", 10),
        ("c: {filter_keys: [k1]}, ", "ba", 10),
        ("", "ab", 0),
        ("", "ba", 15),
    ],
)
def test_what_several_groups_that_end_take_together_is_said_with_the_last(
    workspace: Workspace, others: str, order: str, goes: int
) -> None:
    """Each wants what the other wants, and of a stream without another group the last one takes nothing with it."""
    text = f"retention: interest, groups: {{{others}a: {{}}, b: {{}}}}"
    applied(workspace, text)
    fill(workspace, 20)
    if not others:
        fetch(workspace, "a", 15)
        store.log().run(groups.ack(stream_id(workspace), "a", "up_to", [15]))
    ends = text.replace("a: {}, b: {}", "a: {inactive_after: 60}, b: {inactive_after: 60}")
    said = looked_at(workspace, ends)
    told_of = {name: of(said, name).of_group.ending for name in "ab"}
    assert told_of["a"] is not None
    assert told_of["b"] is not None
    assert (told_of["a"].messages, told_of["b"].messages) == (0, 10 if others else 15)
    assert ended(workspace, order) == goes


def test_what_goes_at_once_by_the_file_does_not_go_with_the_group_once_more(workspace: Workspace) -> None:
    applied(workspace, "retention: interest, groups: {g: {}, narrow: {filter_keys: [none]}}")
    fill(workspace, 20)
    text = "retention: interest, max_messages: 12, groups: {g: {inactive_after: 60}, narrow: {filter_keys: [none]}}"
    said = looked_at(workspace, text)
    ending = of(said, "g").of_group.ending
    assert ending is not None
    assert (said.messages, ending.messages) == (8, 12)


@pytest.mark.parametrize("kind", ["stream", "group"])
def test_dead_letters_that_go_with_what_is_pruned_are_said(workspace: Workspace, kind: str) -> None:
    applied(workspace, "groups: {g: {}, other: {}}")
    fill(workspace, 4)
    leases = fetch(workspace, "g", 4)
    store.log().run(answers.term(stream_id(workspace), "g", "leases", leases[:3], reason="no"))
    text = "okmq: 1\nstreams: {s: {groups: {other: {}}}}" if kind == "group" else "okmq: 1\nstreams: {}"
    said = apply(check(read(text)), workspace, actor=SYSTEM, prune=True, dry_run=True)
    (change,) = [each for each in said.changes if each.path[0] == kind]
    assert "3 dead letters of group g go with it" in wording.going(change, said)
    assert wording.summary(said).endswith(", 3 dead letters go with deleted groups.")
    found = wording.as_json(said, workspace)["changes"]
    assert [each["dead_letters"] for each in found if each["what"].startswith(kind)] == [3]


def test_many_groups_are_looked_at_in_few_round_trips(workspace: Workspace) -> None:
    names = [f"g{n:02}" for n in range(40)]
    applied(workspace, f"groups: {{{', '.join(f'{name}: {{}}' for name in names)}}}")

    def trips(settings: str) -> int:
        def look() -> SimpleNamespace:
            groups_ = ", ".join(f"{name}: {{{settings}}}" for name in names)
            assert len(looked_at(workspace, f"groups: {{{groups_}}}").changes) == 40
            return SimpleNamespace(status_code=200)

        return cost_of(look).trips

    assert trips("inactive_after: 60, max_deliver: 2") < trips("description: a") + 20
