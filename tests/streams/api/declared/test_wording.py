"""What a file changes is said whole in the language that is active, of one and of several of everything."""

import re
from typing import Any

import pytest
from django.utils import translation

from streams.api.declared import wording
from streams.api.declared.applying import Change, Outcome
from streams.api.declared.pruning import Lost
from streams.models import Workspace
from streams.selectors import MANY_IN_FLIGHT, MOST_GROUPS, Ending, GroupEffect

STREAM, OTHER = ("stream", "s"), ("stream", "t")
GROUP = ("group", "s", "g")
ENGLISH = re.compile(
    r"\b(a|an|and|are|as|at|be|by|can|for|from|has|have|idle|is|it|its|more|no|not|of|once|that|the|their|then|they|"
    r"unless|when|with|within|group|groups|message|messages|policy|rule|removed|created|changed|key|keys)\b"
)
"""Words that no German sentence here has; names of streams and groups are letters."""


def outcome(count: int) -> Outcome:
    """One in which so many of everything go, for every reason that there is."""
    ends: dict[str, Any] = {"in_flight": count, "dead_letters": count, "messages": count}
    changes = [
        Change(("policy", "p"), {"ttl": 1}, None),
        Change(
            STREAM,
            {"ttl": 1},
            {"ttl": 2},
            messages=count,
            losing={f"g{each}": count for each in range(MOST_GROUPS + count)},
            reason="counting",
        ),
        Change(
            GROUP,
            {"max_deliver": 2},
            {"max_deliver": 1},
            reason="too_many_keys",
            of_group=GroupEffect(
                dying=count, all_looked_at=False, ending=Ending(2_592_000, 1, **ends, reason=MANY_IN_FLIGHT)
            ),
        ),
        *(
            Change(
                ("group", "s", f"h{each}"),
                {"inactive_after": None},
                {"inactive_after": 60},
                of_group=GroupEffect(ending=Ending(60, 61, **ends)),
            )
            for each in range(count - 1)
        ),
        Change(OTHER, {"ttl": 1}, None),
        Change(("alert rule", "r"), {"limit": 1}, None),
    ]
    lost = Lost(count, count, {f"g{each}": count for each in range(count)}, {"g": count})
    return Outcome(changes, [("policy", "q")], {OTHER: lost})


def said(wanted: Outcome) -> list[str]:
    """All that a page says of an outcome."""
    workspace = Workspace(name="w")
    told = [wording.summary(wanted)]
    for change in wanted.changes:
        told += [wording.thing(change.path), wording.kind_said(change)]
        told += [*wording.fields(change, workspace), *wording.going(change, wanted)]
    return told


@pytest.mark.parametrize("count", [1, 2])
def test_no_english_is_left_in_german(count: int) -> None:
    with translation.override("de"):
        german = said(outcome(count))
    english = said(outcome(count))
    assert len(german) == len(english)
    assert [line for line in german if ENGLISH.search(line)] == []
    assert sum(bool(ENGLISH.search(line)) for line in english) > 20, "it would be found"


def test_one_and_several_are_said_as_one_and_as_several() -> None:
    change = outcome(1).changes[2]
    assert list(wording.going(change, outcome(1))) == [
        "at least 0 messages are removed: a stream has more keys than can be counted",
        "at least 1 message in flight becomes a dead letter when its ack wait is over, "
        "unless it is acknowledged before: more are in flight than are looked at",
        "is deleted once nobody has fetched from it for 2592000 s",
        "its position, 1 message in flight and 1 dead letter go with it",
        "then at least 1 message that no other group wants is removed: more are in flight than are looked at",
    ]
    with translation.override("de"):
        assert list(wording.going(outcome(2).changes[2], outcome(2)))[1:] == [
            "mindestens 2 Nachrichten in Zustellung werden nach ihrer Bestätigungsfrist Dead Letters, "
            "wenn sie nicht vorher bestätigt werden: mehr sind in Zustellung, als durchgesehen werden",
            "wird gelöscht, sobald 2592000 s lang niemand von ihr abgerufen hat",
            "ihre Position, 2 Nachrichten in Zustellung und 2 Dead Letters gehen mit ihr",
            "danach: mindestens 2 Nachrichten, die keine andere Gruppe braucht, werden entfernt: "
            "mehr sind in Zustellung, als durchgesehen werden",
        ]


def test_the_whole_summary_is_a_sentence() -> None:
    groups = MOST_GROUPS + 1
    assert wording.summary(outcome(1)) == (
        "2 changed, 3 deleted, at least 2 messages are removed: not all could be scanned in time, "
        f"1 byte of them with deleted streams, {groups} groups lose {groups} unread messages, "
        "1 message in flight becomes a dead letter, 1 group is deleted when idle, with 1 dead letter and 1 message, "
        "1 of the deleted groups has unread messages, 1 dead letter goes with deleted groups."
    )
    with translation.override("de"):
        assert wording.summary(outcome(1)) == (
            "2 geändert, 3 gelöscht, mindestens 2 Nachrichten werden entfernt: "
            "nicht alles konnte rechtzeitig durchgesehen werden, davon 1 Byte mit gelöschten Streams, "
            f"{groups} Gruppen verlieren {groups} ungelesene Nachrichten, "
            "1 Nachricht in Zustellung wird ein Dead Letter, "
            "1 Gruppe wird gelöscht, wenn sie untätig ist, mit 1 Dead Letter und 1 Nachricht, "
            "1 der gelöschten Gruppen hat ungelesene Nachrichten, 1 Dead Letter geht mit gelöschten Gruppen."
        )
        assert wording.summary(Outcome()) == "Nichts zu ändern."


def test_what_programs_are_told_names_kinds_and_reasons_by_their_codes() -> None:
    told = wording.as_json(outcome(1), Workspace(name="w"))["changes"]
    assert [each["change"] for each in told] == ["deleted", "changed", "changed", "deleted", "deleted"]
    assert [each["reason"] for each in told] == [None, "counting", "too_many_keys", None, None]
