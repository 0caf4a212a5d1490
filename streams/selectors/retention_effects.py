"""What other limits would do to streams: which of their settings change, and how many messages would go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streams.models import Stream
from streams.selectors.retention import retention_preview

LOOK_S = 4.0
"""How long the messages of one stream are looked at, where arithmetic does not do."""


@dataclass(frozen=True, slots=True)
class Effect:
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
    return Effect(stream, before, after, told.messages, told.reason)


def _differs(stream: Stream, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if getattr(stream, name) != value}
