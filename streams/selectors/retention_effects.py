"""What other limits would do to streams: which of their settings change, how many messages would go, and which groups
would lose unread ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from streams.models import Stream
from streams.selectors.retention import retention_preview

MOST_GROUPS = 20
"""Groups of a stream that are told one by one."""

LOOK_S = 4.0
"""How long the messages of one stream are looked at, where arithmetic does not do."""


class Losing:
    """Groups of a stream that would lose unread messages.

    Attributes:
        losing: name → how many, most first.
    """

    __slots__ = ()
    losing: Mapping[str, int]

    @property
    def first_losing(self) -> dict[str, int]:
        """Those that are told one by one."""
        return dict(islice(self.losing.items(), MOST_GROUPS))

    @property
    def groups_losing(self) -> int:
        """How many groups would lose any."""
        return len(self.losing)

    @property
    def unread(self) -> int:
        """What all of them would lose together."""
        return sum(self.losing.values())


@dataclass(frozen=True, slots=True)
class Effect(Losing):
    """A stream whose limits would change.

    Attributes:
        before, after: the settings that change.
        messages: how many of the stored ones would go at once.
        reason: why not all were looked at and more may go, as of ``Preview.reason``; None where they were.
    """

    stream: Stream
    before: dict[str, Any]
    after: dict[str, Any]
    messages: int
    losing: Mapping[str, int] = field(default_factory=dict)
    reason: str | None = None

    @property
    def is_complete(self) -> bool:
        return self.reason is None


def effects_of(wanted: Sequence[tuple[Stream, Mapping[str, Any]]]) -> list[Effect]:
    """The effects of giving each stream these settings; streams that would stay as they are are left out."""
    return [effect_of(stream, settings) for stream, settings in wanted if _differs(stream, settings)]


def effect_of(stream: Stream, settings: Mapping[str, Any]) -> Effect:
    """The effect of giving a stream these settings, with its groups as the database holds them."""
    after = _differs(stream, settings)
    before = {name: getattr(stream, name) for name in after}
    told = retention_preview(stream, after, within_s=LOOK_S)
    return Effect(stream, before, after, told.messages, most_first(told.unread), told.reason)


def most_first(unread: Mapping[str, int]) -> dict[str, int]:
    """The groups that lose any: name → how many, most first."""
    return {
        name: unread[name] for name in sorted(unread, key=lambda name: (-unread[name], name)) if unread[name]
    }


def _differs(stream: Stream, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if getattr(stream, name) != value}
