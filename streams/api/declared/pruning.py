"""What goes with streams and groups that are deleted because a file does not declare them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams import store
from streams.log import standing, stats
from streams.log.standing import GroupState
from streams.models import Group, Stream, Workspace

GROUPS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Lost:
    """What goes with something that is deleted.

    Attributes:
        messages, bytes: that a stream holds.
        unread: group → messages that it wants and has not acknowledged; groups that are done with all are left out.
        letters: group → its dead letters; groups without are left out.
    """

    messages: int = 0
    bytes: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    letters: Mapping[str, int] = field(default_factory=dict)


def losses_of(paths: Sequence[tuple[str, ...]], workspace: Workspace) -> dict[tuple[str, ...], Lost]:
    """What would go with these streams (with their groups) and groups, as long as they are there.

    Raises:
        LogError: the message store does not answer.
    """
    names = {path[1] for path in paths if path[0] in ("stream", "group")}
    rows = {each.name: each for each in Stream.objects.filter(workspace=workspace, name__in=names)}
    whole = [path[1] for path in paths if path[0] == "stream" and path[1] in rows]
    states = store.log().run(stats.inspect_many([rows[name].stream_id for name in whole], strict=True))
    stand = _standing([rows[path[1]] for path in paths if path[0] in ("stream", "group") and path[1] in rows])
    lost: dict[tuple[str, ...], Lost] = {}
    for name in whole:
        state = states.get(rows[name].stream_id, stats.EMPTY)
        lost["stream", name] = _lost(stand.get(name, {}), messages=state.messages, size_bytes=state.bytes)
    for path in paths:
        if path[0] == "group" and path[2] in stand.get(path[1], {}):
            lost[path] = _lost({path[2]: stand[path[1]][path[2]]})
    return lost


def _lost(groups: Mapping[str, GroupState], *, messages: int = 0, size_bytes: int = 0) -> Lost:
    unread = {name: state.lag + state.ack_pending for name, state in groups.items()}
    letters = {name: state.dead_letters for name, state in groups.items()}
    return Lost(
        messages, size_bytes, *({name: n for name, n in each.items() if n} for each in (unread, letters))
    )


def _standing(streams: Sequence[Stream]) -> dict[str, dict[str, GroupState]]:
    """Stream → group → how it stands, of those that have something left."""
    names = {each.stream_id: each.name for each in streams}
    groups = Group.objects.filter(stream__in=streams).order_by("stream__name", "name")
    named = list(groups.values_list("stream__stream_id", "name"))
    found: dict[str, dict[str, GroupState]] = {}
    for first in range(0, len(named), GROUPS_AT_ONCE):
        states = store.log().run(standing.inspect_these(named[first : first + GROUPS_AT_ONCE]))
        for (stream_id, name), state in states.items():
            if state.lag + state.ack_pending + state.dead_letters:
                found.setdefault(names[stream_id], {})[name] = state
    return found
