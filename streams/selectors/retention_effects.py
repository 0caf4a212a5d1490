"""What other limits would do to streams: which of their settings change, and how many messages would go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from streams import store
from streams.log import read, stats
from streams.log.client import Op
from streams.log.stats import State
from streams.models import Stream


@dataclass(frozen=True, slots=True)
class Effect:
    """A stream whose limits would change.

    Attributes:
        before, after: the settings that change.
        messages: how many of the stored ones would go at once; exact where none was deleted from between others
            and no limit on bytes decides, else about so many.
    """

    stream: Stream
    before: dict[str, Any]
    after: dict[str, Any]
    messages: int


def effects_of(wanted: Sequence[tuple[Stream, Mapping[str, Any]]]) -> list[Effect]:
    """The effects of giving each stream these settings; streams that would stay as they are are left out."""
    changed = []
    for stream, settings in wanted:
        after = {name: value for name, value in settings.items() if getattr(stream, name) != value}
        if after:
            changed.append((stream, {name: getattr(stream, name) for name in after}, after))
    states = store.log().run(stats.inspect_many([stream.stream_id for stream, _, _ in changed]))
    now_ms = int(timezone.now().timestamp() * 1000)
    found = []
    for stream, before, after in changed:
        state = states.get(stream.stream_id, stats.EMPTY)
        going = store.log().run(_going(stream, after, state, now_ms=now_ms)) if state.messages else 0
        found.append(Effect(stream, before, after, going))
    return found


def _going(stream: Stream, limits: Mapping[str, Any], state: State, *, now_ms: int) -> Op[int]:
    going = 0
    if limits.get("ttl") is not None:
        kept_from = yield from read.offset_at(stream.stream_id, now_ms - limits["ttl"] * 1000)
        going = max(going, kept_from - state.first_offset)
    if limits.get("max_messages") is not None:
        going = max(going, state.messages - limits["max_messages"])
    if limits.get("max_bytes") is not None and state.bytes > limits["max_bytes"]:
        going = max(going, -(-(state.bytes - limits["max_bytes"]) * state.messages // state.bytes))
    return min(going, state.messages)
