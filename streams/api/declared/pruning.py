"""What goes with streams and groups that are deleted because a file does not declare them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams import store
from streams.log import standing, stats
from streams.models import Group, Stream, Workspace

GROUPS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Lost:
    """What goes with something that is deleted.

    Attributes:
        messages, bytes: that a stream holds.
        unread: group → messages that it wants and has not acknowledged; groups that are done with all are left out.
    """

    messages: int = 0
    bytes: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)


def losses_of(paths: Sequence[tuple[str, ...]], workspace: Workspace) -> dict[tuple[str, ...], Lost]:
    """What would go with these streams (with their groups) and groups, as long as they are there.

    Raises:
        LogError: the message store does not answer.
    """
    names = {path[1] for path in paths if path[0] in ("stream", "group")}
    rows = {each.name: each for each in Stream.objects.filter(workspace=workspace, name__in=names)}
    whole = [path[1] for path in paths if path[0] == "stream" and path[1] in rows]
    states = store.log().run(stats.inspect_many([rows[name].stream_id for name in whole], strict=True))
    unread = _unread([rows[path[1]] for path in paths if path[0] in ("stream", "group") and path[1] in rows])
    lost: dict[tuple[str, ...], Lost] = {}
    for name in whole:
        state = states.get(rows[name].stream_id, stats.EMPTY)
        lost["stream", name] = Lost(state.messages, state.bytes, unread.get(name, {}))
    for path in paths:
        if path[0] == "group" and path[2] in unread.get(path[1], {}):
            lost[path] = Lost(unread={path[2]: unread[path[1]][path[2]]})
    return lost


def _unread(streams: Sequence[Stream]) -> dict[str, dict[str, int]]:
    """Stream → group → what it has not acknowledged."""
    names = {each.stream_id: each.name for each in streams}
    groups = Group.objects.filter(stream__in=streams).order_by("stream__name", "name")
    named = list(groups.values_list("stream__stream_id", "name"))
    found: dict[str, dict[str, int]] = {}
    for first in range(0, len(named), GROUPS_AT_ONCE):
        states = store.log().run(standing.inspect_these(named[first : first + GROUPS_AT_ONCE]))
        for (stream_id, name), state in states.items():
            if state.lag + state.ack_pending:
                found.setdefault(names[stream_id], {})[name] = state.lag + state.ack_pending
    return found
