"""Streams in memory: begun on their server, again when it has lost them, and then the loss is put on record."""

from collections.abc import Mapping
from typing import Any

from streams import store
from streams.access import SYSTEM
from streams.log import config, memory, stats
from streams.models import Group, Stream
from streams.services.events import event_record
from streams.services.history import history_missed
from streams.services.removals import removals_begin_anew
from streams.services.summaries import counted


def memory_begin(stream: Stream, *, told: config.Registered, settings: Mapping[str, Any]) -> None:
    """Tell the memory server of a stream and its groups; one that it does not hold is begun, empty.

    Raises:
        StoreUnavailable: the memory server does not answer.
    """
    groups = {group.name: group.log_settings for group in Group.objects.filter(stream=stream)}
    last = store.log().run(memory.begin(told, settings, groups))
    if last is None:
        return
    removals_begin_anew(stream, store.log().run(stats.inspect(stream.stream_id)))
    lost = store.log().run(memory.held_take(stream.stream_id))
    if last:
        # Whether something came after the last count nobody knows, so a loss of nothing that was counted is told, too.
        event_record(
            stream.workspace,
            kind="stream.memory_lost",
            actor=SYSTEM,
            stream=stream.name,
            after={"messages": lost.messages, "offset": last},
            summary=f"Stream {stream.name} is kept in memory, and its server restarted: it lost "
            f"{counted(lost.messages)}, as last counted, and continues above offset {last:,}.",
        )
    if lost.unarchived and stream.archive:
        history_missed(stream, messages=lost.unarchived, why="lost with the memory of the server")
