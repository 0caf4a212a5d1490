"""What a configuration file changes, in lines for a person, in the language that is active; for programs as codes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from streams.api.declared.applying import Change, Outcome
from streams.api.declared.pruning import Lost
from streams.api.declared.state import default_of, told
from streams.api.group_effects import GroupDeletion
from streams.models import Workspace
from streams.selectors import MANY_IN_FLIGHT, MOST_GROUPS, Ending, GroupEffect

WITH = {"stream": gettext_lazy("with everything in it"), "alert rule": gettext_lazy("with its alerts")}
SIGNS = {"made": "+", "changed": "~", "deleted": "-"}
SAID = {
    "made": gettext_lazy("created"),
    "changed": gettext_lazy("changed"),
    "deleted": gettext_lazy("deleted"),
}
COUNTED = {
    "made": gettext_lazy("%(count)s created"),
    "changed": gettext_lazy("%(count)s changed"),
    "deleted": gettext_lazy("%(count)s deleted"),
}
"""What a person is told in place of the word that programs get; and of how many."""

THINGS = {
    "stream": gettext_lazy("stream %(name)s"),
    "policy": gettext_lazy("policy %(name)s"),
    "alert rule": gettext_lazy("alert rule %(name)s"),
}
WHY = {
    "counting": gettext_lazy("not all could be scanned in time"),
    "too_many_keys": gettext_lazy("a stream has more keys than can be counted"),
    MANY_IN_FLIGHT: gettext_lazy("more are in flight than are looked at"),
}


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
        return _("Nothing to change.")
    kinds = [kind(change) for change in outcome.changes]
    said = [COUNTED[each] % {"count": f"{kinds.count(each):,}"} for each in SIGNS if each in kinds]
    return f"{', '.join([*said, *_summary_of_messages(outcome), *_summary_of_groups(outcome)])}."


def _summary_of_messages(outcome: Outcome) -> Iterator[str]:
    if outcome.messages or outcome.reason:
        yield _at_least(_removed(outcome.messages), outcome.reason)
    size = sum(each.bytes for each in outcome.lost.values())
    if size:
        yield _("%(size)s of them with deleted streams") % {"size": _bytes(size)}


def _summary_of_groups(outcome: Outcome) -> Iterator[str]:
    losing = [unread for change in outcome.changes for unread in change.losing.values()]
    if losing:
        said = ngettext("%(count)s group loses %(unread)s", "%(count)s groups lose %(unread)s", len(losing))
        yield said % {"count": f"{len(losing):,}", "unread": _unread(sum(losing))}
    if outcome.dying:
        said = ngettext(
            "%(count)s message in flight becomes a dead letter",
            "%(count)s messages in flight become dead letters",
            outcome.dying,
        )
        yield said % {"count": f"{outcome.dying:,}"}
    if outcome.endings:
        yield _summary_of_endings(outcome.endings)
    behind = sum(len(each.unread) for each in outcome.lost.values())
    if behind:
        said = ngettext(
            "%(count)s of the deleted groups has unread messages",
            "%(count)s of the deleted groups have unread messages",
            behind,
        )
        yield said % {"count": f"{behind:,}"}
    letters = sum(sum(each.letters.values()) for each in outcome.lost.values())
    if letters:
        said = ngettext(
            "%(count)s dead letter goes with deleted groups",
            "%(count)s dead letters go with deleted groups",
            letters,
        )
        yield said % {"count": f"{letters:,}"}


def _summary_of_endings(endings: Sequence[Ending]) -> str:
    letters = sum(each.dead_letters for each in endings)
    messages = sum(each.messages for each in endings)
    groups = ngettext(
        "%(count)s group is deleted when idle", "%(count)s groups are deleted when idle", len(endings)
    ) % {"count": f"{len(endings):,}"}
    if letters and messages:
        with_both = _("%(groups)s, with %(letters)s and %(messages)s")
        return with_both % {"groups": groups, "letters": _letters(letters), "messages": _messages(messages)}
    if letters or messages:
        more = _letters(letters) if letters else _messages(messages)
        return _("%(groups)s, with %(more)s") % {"groups": groups, "more": more}
    return groups


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
        yield _at_least(_removed(change.messages), change.reason)
    yield from _losing(change.losing)
    yield from _of_group(change.of_group)
    lost = outcome.lost.get(change.path)
    if lost is None:
        return
    if lost.messages:
        yield _("%(removed)s, %(size)s") % {"removed": _removed(lost.messages), "size": _bytes(lost.bytes)}
    for group, unread in lost.unread.items():
        said = _("group %(group)s has not acknowledged %(messages)s")
        yield said % {"group": group, "messages": _messages(unread)}
    for group, letters in lost.letters.items():
        said = ngettext(
            "%(count)s dead letter of group %(group)s goes with it",
            "%(count)s dead letters of group %(group)s go with it",
            letters,
        )
        yield said % {"count": f"{letters:,}", "group": group}


def _losing(losing: Mapping[str, int]) -> Iterator[str]:
    """The groups that lose most, and the others in one line."""
    for group, unread in islice(losing.items(), MOST_GROUPS):
        yield _("group %(group)s loses %(unread)s") % {"group": group, "unread": _unread(unread)}
    others = list(losing.values())[MOST_GROUPS:]
    if others:
        said = ngettext(
            "%(count)s more group loses %(unread)s", "%(count)s more groups lose %(unread)s", len(others)
        )
        yield said % {"count": f"{len(others):,}", "unread": _unread(sum(others))}


def _of_group(effect: GroupEffect) -> Iterator[str]:
    """What becomes dead letters, and what goes with the group once nobody fetches from it."""
    if effect.dying or not effect.all_looked_at:
        said = ngettext(
            "%(count)s message in flight becomes a dead letter when its ack wait is over, "
            "unless it is acknowledged before",
            "%(count)s messages in flight become dead letters when their ack wait is over, "
            "unless they are acknowledged before",
            effect.dying,
        ) % {"count": f"{effect.dying:,}"}
        yield _at_least(said, None if effect.all_looked_at else MANY_IN_FLIGHT)
    if effect.ending:
        yield from _ending(effect.ending)


def _ending(ending: Ending) -> Iterator[str]:
    if ending.is_due:
        when = _("is deleted within seconds: nobody has fetched from it for %(seconds)s s")
    else:
        when = _("is deleted once nobody has fetched from it for %(seconds)s s")
    yield when % {"seconds": f"{ending.after_s:.12g}"}
    in_flight = ngettext("%(count)s message in flight", "%(count)s messages in flight", ending.in_flight) % {
        "count": f"{ending.in_flight:,}"
    }
    goes_with = _("its position, %(in_flight)s and %(letters)s go with it")
    yield goes_with % {"in_flight": in_flight, "letters": _letters(ending.dead_letters)}
    if ending.messages or ending.reason:
        removed = ngettext(
            "%(count)s message that no other group wants is removed",
            "%(count)s messages that no other group wants are removed",
            ending.messages,
        ) % {"count": f"{ending.messages:,}"}
        yield _("then %(removed)s") % {"removed": _at_least(removed, ending.reason)}


def _at_least(said: str, reason: str | None) -> str:
    """What goes, and why more may where not all was counted."""
    return _("at least %(what)s: %(why)s") % {"what": said, "why": WHY[reason]} if reason else said


def _removed(count: int) -> str:
    said = ngettext("%(count)s message is removed", "%(count)s messages are removed", count)
    return said % {"count": f"{count:,}"}


def _messages(count: int) -> str:
    return ngettext("%(count)s message", "%(count)s messages", count) % {"count": f"{count:,}"}


def _unread(count: int) -> str:
    said = ngettext("%(count)s unread message", "%(count)s unread messages", count)
    return said % {"count": f"{count:,}"}


def _letters(count: int) -> str:
    return ngettext("%(count)s dead letter", "%(count)s dead letters", count) % {"count": f"{count:,}"}


def _bytes(count: int) -> str:
    return ngettext("%(count)s byte", "%(count)s bytes", count) % {"count": f"{count:,}"}


def thing(path: tuple[str, ...]) -> str:
    """``stream orders``, ``group billing of orders``, ``policy week``, ``alert rule late``."""
    if path[0] == "group":
        return _("group %(name)s of %(stream)s") % {"name": path[2], "stream": path[1]}
    return THINGS[path[0]] % {"name": path[1]}


def kind(change: Change) -> str:
    """``made``, ``changed`` or ``deleted``."""
    return "made" if change.before is None else "deleted" if change.after is None else "changed"


def kind_said(change: Change) -> str:
    """``created``, ``changed`` or ``deleted``, as a person is told it."""
    return str(SAID[kind(change)])


def fields(change: Change, workspace: Workspace) -> Iterator[str]:
    """The settings that a change makes others, in lines; of what is made those that are not as by default."""
    if change.after is None:
        if change.path[0] in WITH:
            yield str(WITH[change.path[0]])
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
