"""What a configuration file changes, in lines for a person."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from streams.api.declared.applying import Change, Outcome
from streams.api.declared.pruning import Lost
from streams.api.declared.state import default_of, told
from streams.api.group_effects import GroupDeletion
from streams.models import Workspace
from streams.selectors import MANY_IN_FLIGHT, MOST_GROUPS, Ending, GroupEffect
from streams.services.summaries import counted

WITH = {"stream": "with everything in it", "alert rule": "with its alerts"}
SIGNS = {"made": "+", "changed": "~", "deleted": "-"}
SAID = {"made": "created"}
"""What a person is told in place of the word that programs get."""


def lines(outcome: Outcome, workspace: Workspace) -> Iterator[str]:
    """Each change with its fields before and after; then what the file does not declare and what stays."""
    for change in outcome.changes:
        yield f"{SIGNS[kind(change)]} {thing(change.path)}"
        for line in [*fields(change, workspace), *going(change, outcome)]:
            yield f"    {line}"
    for path in outcome.left:
        yield f"  {thing(path)} is not in the file and stays (--prune deletes it)"


def summary(outcome: Outcome) -> str:
    """How many of each kind."""
    if not outcome.changes:
        return "Nothing to change."
    kinds = [kind(change) for change in outcome.changes]
    counts = [f"{kinds.count(each)} {SAID.get(each, each)}" for each in SIGNS if each in kinds]
    size = sum(each.bytes for each in outcome.lost.values())
    behind = sum(len(each.unread) for each in outcome.lost.values())
    is_told = outcome.messages or outcome.reason
    said = [*counts, *([_going(outcome.messages, outcome.reason)] if is_told else [])]
    if size:
        said.append(f"{size:,} bytes of them with deleted streams")
    losing = [unread for change in outcome.changes for unread in change.losing.values()]
    if losing:
        lose = "group loses" if len(losing) == 1 else "groups lose"
        said.append(f"{len(losing)} {lose} {counted(sum(losing), 'unread message')}")
    if outcome.dying:
        said.append(f"{counted(outcome.dying, 'message')} in flight {_die(outcome.dying)}")
    if outcome.endings:
        said.append(_summary_of(outcome.endings))
    if behind:
        said.append(f"{behind} of the deleted groups {'has' if behind == 1 else 'have'} unread messages")
    letters = sum(sum(each.letters.values()) for each in outcome.lost.values())
    if letters:
        said.append(
            f"{counted(letters, 'dead letter')} {'goes' if letters == 1 else 'go'} with deleted groups"
        )
    return f"{', '.join(said)}."


def _summary_of(endings: Sequence[Ending]) -> str:
    letters = sum(each.dead_letters for each in endings)
    messages = sum(each.messages for each in endings)
    are = "group is" if len(endings) == 1 else "groups are"
    more = [counted(letters, "dead letter")] if letters else []
    more += [counted(messages)] if messages else []
    goes_with = f", with {' and '.join(more)}" if more else ""
    return f"{len(endings)} {are} deleted when idle{goes_with}"


def as_json(outcome: Outcome, workspace: Workspace) -> dict[str, Any]:
    """The same for a program."""
    return {
        "workspace": workspace.name,
        "changes": [_change_as_json(change, outcome.lost.get(change.path)) for change in outcome.changes],
        "left": [thing(path) for path in outcome.left],
        "messages": outcome.messages,
        "dead_letters": outcome.dying,
        "complete": outcome.is_complete,
    }


def _change_as_json(change: Change, lost: Lost | None) -> dict[str, Any]:
    told_of: dict[str, Any] = {
        "what": thing(change.path),
        "change": kind(change),
        "before": change.before and told(change.before),
        "after": change.after and told(change.after),
        "messages": change.messages + (lost.messages if lost else 0),
        "complete": change.why_incomplete is None,
        "reason": change.why_incomplete,
    }
    if change.losing:
        told_of["unread"] = dict(islice(change.losing.items(), MOST_GROUPS))
        told_of |= {"groups_losing": len(change.losing), "unread_messages": sum(change.losing.values())}
    if change.of_group.dying:
        told_of["dead_letters"] = change.of_group.dying
    if change.of_group.ending:
        told_of["deletion"] = GroupDeletion(change.of_group.ending).data
    if lost is None:
        return told_of
    if lost.letters:
        told_of["dead_letters"] = sum(lost.letters.values())
    return told_of | {"bytes": lost.bytes, "unread": dict(lost.unread)}


def going(change: Change, outcome: Outcome) -> Iterator[str]:
    """What goes for good with a change, in lines."""
    if change.messages or change.reason:
        yield _going(change.messages, change.reason)
    yield from _losing(change.losing)
    yield from _of_group(change.of_group)
    lost = outcome.lost.get(change.path)
    if lost is None:
        return
    if lost.messages:
        yield f"{_going(lost.messages, None)}, {lost.bytes:,} bytes"
    for group, unread in lost.unread.items():
        yield f"group {group} has not acknowledged {counted(unread)}"
    for group, letters in lost.letters.items():
        yield f"{counted(letters, 'dead letter')} of group {group} {'goes' if letters == 1 else 'go'} with it"


def _losing(losing: Mapping[str, int]) -> Iterator[str]:
    """The groups that lose most, and the others in one line."""
    for group, unread in islice(losing.items(), MOST_GROUPS):
        yield f"group {group} loses {counted(unread, 'unread message')}"
    others = list(losing.values())[MOST_GROUPS:]
    if others:
        lose = "group loses" if len(others) == 1 else "groups lose"
        yield f"{len(others)} more {lose} {counted(sum(others), 'unread message')}"


def _of_group(effect: GroupEffect) -> Iterator[str]:
    """What becomes dead letters, and what goes with the group once nobody fetches from it."""
    if effect.dying or not effect.all_looked_at:
        yield _dying(effect.dying, is_all=effect.all_looked_at)
    if effect.ending:
        yield from _ending(effect.ending)


def _dying(messages: int, *, is_all: bool) -> str:
    unless = (
        "its ack wait is over, unless it is acknowledged before"
        if messages == 1
        else "their ack wait is over, unless they are acknowledged before"
    )
    said = f"{counted(messages)} in flight {_die(messages)} when {unless}"
    return said if is_all else f"at least {said}: {WHY[MANY_IN_FLIGHT]}"


def _ending(ending: Ending) -> Iterator[str]:
    when = "within seconds:" if ending.is_due else "once"
    yield f"is deleted {when} nobody has fetched from it for {ending.after_s:g} s"
    letters = counted(ending.dead_letters, "dead letter")
    yield f"its position, {counted(ending.in_flight)} in flight and {letters} go with it"
    if ending.messages or ending.reason:
        yield f"then {_going(ending.messages, ending.reason, which=' that no other group wants')}"


def _die(messages: int) -> str:
    return "becomes a dead letter" if messages == 1 else "become dead letters"


WHY = {
    "counting": "not all could be scanned in time",
    "too_many_keys": "a stream has more keys than can be counted",
    MANY_IN_FLIGHT: "more are in flight than are looked at",
}


def _going(messages: int, reason: str | None, *, which: str = "") -> str:
    told = f"{counted(messages)}{which} {'is' if messages == 1 else 'are'} removed"
    return f"at least {told}: {WHY[reason]}" if reason else told


def thing(path: tuple[str, ...]) -> str:
    """``stream orders``, ``group billing of orders``, ``policy week``, ``alert rule late``."""
    return f"group {path[2]} of {path[1]}" if path[0] == "group" else f"{path[0]} {path[1]}"


def kind(change: Change) -> str:
    """``made``, ``changed`` or ``deleted``."""
    return "made" if change.before is None else "deleted" if change.after is None else "changed"


def kind_said(change: Change) -> str:
    """``created``, ``changed`` or ``deleted``, as a person is told it."""
    return SAID.get(kind(change), kind(change))


def fields(change: Change, workspace: Workspace) -> Iterator[str]:
    """The settings that a change makes others, in lines; of what is made those that are not as by default."""
    if change.after is None:
        if change.path[0] in WITH:
            yield WITH[change.path[0]]
    elif change.before is None:
        for name, value in told(change.after).items():
            if value != default_of(change.path, name, workspace):
                yield f"{name}: {_shown(value)}"
    else:
        before, after = told(change.before), told(change.after)
        for name in after:
            yield f"{name}: {_shown(before[name])} → {_shown(after[name])}"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
