"""What a configuration file changes, in lines for a person."""

import json
from collections.abc import Iterator
from typing import Any

from streams.declared.applying import Change, Outcome
from streams.declared.state import default_of, told
from streams.models import Workspace

SIGNS = {"made": "+", "changed": "~", "deleted": "-"}


def lines(outcome: Outcome, workspace: Workspace) -> Iterator[str]:
    """Each change with its fields before and after; then what the file does not declare and what stays."""
    for change in outcome.changes:
        yield f"{SIGNS[_kind(change)]} {thing(change.path)}"
        yield from _fields(change, workspace)
        if change.messages or not change.is_complete:
            yield f"    {_going(change.messages, is_complete=change.is_complete)}"
    for path in outcome.left:
        yield f"  {thing(path)} is not in the file and stays (--prune deletes it)"


def summary(outcome: Outcome) -> str:
    """How many of each kind."""
    if not outcome.changes:
        return "Nothing to change."
    kinds = [_kind(change) for change in outcome.changes]
    counts = [f"{kinds.count(kind)} {kind}" for kind in SIGNS if kind in kinds]
    going = sum(change.messages for change in outcome.changes)
    is_complete = all(change.is_complete for change in outcome.changes)
    told = f", {_going(going, is_complete=is_complete)}" if going or not is_complete else ""
    return f"{', '.join(counts)}{told}."


def _going(messages: int, *, is_complete: bool) -> str:
    told = "1 message goes" if messages == 1 else f"{messages} messages go"
    return told if is_complete else f"at least {told}: not all could be looked at in time"


def thing(path: tuple[str, ...]) -> str:
    """``stream orders``, ``group billing of orders``, ``policy week``."""
    return f"group {path[2]} of {path[1]}" if path[0] == "group" else f"{path[0]} {path[1]}"


def _kind(change: Change) -> str:
    return "made" if change.before is None else "deleted" if change.after is None else "changed"


def _fields(change: Change, workspace: Workspace) -> Iterator[str]:
    if change.after is None:
        if change.path[0] == "stream":
            yield "    with everything in it"
    elif change.before is None:
        for name, value in told(change.after).items():
            if value != default_of(change.path, name, workspace):
                yield f"    {name}: {_shown(value)}"
    else:
        before, after = told(change.before), told(change.after)
        for name in after:
            yield f"    {name}: {_shown(before[name])} → {_shown(after[name])}"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
