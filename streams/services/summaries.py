"""The words that summaries of events share: whole plain sentences, names as they are."""

from collections.abc import Iterable, Mapping
from typing import Any

from streams.models import Group

UNSURE = ", and perhaps more: the outcome is unknown"
"""Ends the summary of what was done in part at least, where the rest is not known."""

ASKED = {
    "stream.purged": "Messages of {whose} were to be purged",
    "stream.removal_undone": "A removal of {whose} was to be undone",
    "stream.removal_ended": "A removal of {whose} was to be made final",
    "message.deleted": "Messages of {whose} were to be deleted",
    "group.sought": "The position of {whose} was to be moved",
    "group.paused": "Deliveries to {whose} were to be paused",
    "group.resumed": "Deliveries to {whose} were to be resumed",
    "group.dead_letters_replayed": "Dead letters of {whose} were to be replayed",
    "group.dead_letters_deleted": "Dead letters of {whose} were to be deleted",
    "group.acknowledged": "Messages in flight of {whose} were to be acknowledged by hand",
    "group.released": "Messages in flight of {whose} were to be nacked by hand",
    "group.terminated": "Messages in flight of {whose} were to be made dead letters",
}
"""What was asked for, by the kind of event."""


def counted(count: int, what: str = "message") -> str:
    """``1 message``, ``1,200 messages``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def was(count: int) -> str:
    """``was`` of one, ``were`` of any other number."""
    return "was" if count == 1 else "were"


def listed(names: Iterable[str]) -> str:
    """``ttl``, ``max_bytes and ttl``, ``a, b and c``: in the order of the alphabet."""
    *most, last = sorted(names)
    return f"{', '.join(most)} and {last}" if most else last


def group_named(group: Group) -> str:
    """``group billing of orders``."""
    return f"group {group.name} of {group.stream.name}"


def not_known(kind: str, stream: str, group: str = "") -> str:
    """The sentence on something that was asked for and has no known end."""
    whose = f"group {group} of {stream}" if group else f"stream {stream}"
    asked = ASKED[kind].format(whose=whose) if kind in ASKED else f"{kind} of {whose} was requested"
    return f"{asked}; whether it happened is unknown."


def outcome_said(kind: str, stream: str, messages: int, done: str, *, is_unsure: bool) -> str:
    """The sentence on what was done to messages of a stream, as far as its outcome is known."""
    if is_unsure and not messages:
        return not_known(kind, stream)
    return f"{counted(messages)} of {stream} {was(messages)} {done}{UNSURE if is_unsure else ''}."


def went(state: str) -> str:
    """``was requested``, ``was paused``, but ``has failed``: of something that is done beside."""
    return f"{'has' if state in {'succeeded', 'failed'} else 'was'} {state}"


def finals_said(after: Mapping[str, Any]) -> str:
    """The sentence on ``finals`` of what ``removals.told`` says; nothing where there are none."""
    numbers = after.get("finals", [])
    if not numbers:
        return ""
    which = f"removal {numbers[0]}" if len(numbers) == 1 else f"removals {', '.join(map(str, numbers))}"
    return f" What it reached of {which} can no longer be undone."
