"""How the groups of a stream stand to one message."""

from collections.abc import Sequence
from dataclasses import dataclass

from streams import store
from streams.log import message_groups
from streams.log.entries import Message
from streams.log.errors import GroupNotFound
from streams.log.message_groups import Standing, State
from streams.log.together import together
from streams.models import Group, Stream
from streams.selectors.groups import AT_ONCE

ORDER: Sequence[State] = ("dead_letter", "in_flight", "held_back", "to_come", "passed", "filtered")
"""What somebody may have to do something about comes first."""


@dataclass(frozen=True, slots=True)
class MessageInGroup:
    """A group's row and how it stands to the message."""

    group: Group
    standing: Standing


def groups_of_message(stream: Stream, message: Message) -> list[MessageInGroup]:
    """How every group of a stream stands to a message of it, by state as ``ORDER`` says, then by name.

    It costs some round trips for each hundred groups, whatever the message holds.

    Raises:
        StoreUnavailable: the server does not answer.
    """
    groups = list(Group.objects.filter(stream=stream).order_by("name"))
    found = []
    for first in range(0, len(groups), AT_ONCE):
        part = groups[first : first + AT_ONCE]
        asked = [message_groups.standing(stream.stream_id, group.name, message) for group in part]
        for group, told in zip(part, store.log().run(together(asked)), strict=True):
            if isinstance(told, Standing):
                found.append(MessageInGroup(group, told))
            elif not isinstance(told, GroupNotFound):
                raise told
    return sorted(found, key=lambda each: ORDER.index(each.standing.state))
