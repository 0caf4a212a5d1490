"""What goes by settings of groups that a file changes: in flight to the dead letters, and with groups that end."""

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from streams import selectors
from streams.models import Group, Stream, Workspace
from streams.models.stream import Retention
from streams.selectors import GroupEffect

Path = tuple[str, ...]

TAKING = ("max_deliver", "inactive_after")
"""Settings of a group that may take something of its own; what another filter lets go is told with the stream."""


def group_effects(
    changed: Mapping[Path, Mapping[str, Any]], workspace: Workspace, *, at_once: Mapping[str, int]
) -> dict[Path, GroupEffect]:
    """What these groups lose by their settings, by path.

    Args:
        changed: of each group that was there and stays, the settings that change, as they were. The database holds
            what they are to be.
        at_once: stream → how many of its messages go at once, as the file leaves it.

    Raises:
        LogError: the message store does not answer.
    """
    wanted = {path: was for path, was in changed.items() if any(name in was for name in TAKING)}
    if not wanted:
        return {}
    rows = Group.objects.filter(stream__workspace=workspace, stream__name__in={path[1] for path in wanted})
    now = {(row.stream.name, row.name): row for row in rows.select_related("stream")}
    views = selectors.group_views(_as_it_was(now[path[1], path[2]], was) for path, was in wanted.items())
    found: dict[Path, GroupEffect] = {}
    for view in views:
        names = view.group.stream.name, view.group.name
        effect = selectors.group_effect_at_hand(view, now[names], within_s=selectors.LOOK_S)
        if effect.takes_something:
            found["group", *names] = effect
    return found | _by_interest(found, now, at_once)


def _by_interest(
    effects: Mapping[Path, GroupEffect], rows: Mapping[tuple[str, str], Group], at_once: Mapping[str, int]
) -> dict[Path, GroupEffect]:
    """What goes with all groups of a stream that end, where it is kept by interest: told with the last of them."""
    of_streams: dict[Stream, list[Path]] = {}
    for path, effect in effects.items():
        stream = rows[path[1], path[2]].stream
        if effect.ending and stream.retention == Retention.INTEREST:
            of_streams.setdefault(stream, []).append(path)
    found = {}
    for stream, paths in of_streams.items():
        last, groups = max(paths), [rows[path[1], path[2]] for path in paths]
        found[last] = _with_messages(effects[last], stream, groups, at_once.get(stream.name, 0))
    return found


def _with_messages(
    effect: GroupEffect, stream: Stream, groups: Collection[Group], at_once: int
) -> GroupEffect:
    assert effect.ending is not None
    ending = selectors.ending_by_interest(
        effect.ending, stream, groups, at_once=at_once, within_s=selectors.LOOK_S
    )
    return replace(effect, ending=ending)


def _as_it_was(group: Group, settings: Mapping[str, Any]) -> Group:
    was = copy(group)
    for name in TAKING:
        if name in settings:
            setattr(was, name, settings[name])
    return was
