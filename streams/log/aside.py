"""What was set aside, for who reads on the history's behalf: it gets what limits took, and nothing that people did."""

from collections.abc import Sequence

from streams.log import entries, keys, read
from streams.log.client import Op, Pipeline, Script, Scripts
from streams.log.entries import Entry

ALONE = b":a"
MARKS = (ALONE, b":o")
"""How runs end of what somebody had set aside, alone or by a purge, before it went (``lua/lib/gone.lua``)."""


def lowest_above_archived(stream_ids: Sequence[str]) -> Op[dict[str, int]]:
    """Stream id → the lowest offset above what the history has that was set aside; streams without one are left out.

    It may come back, so the history goes no further until it has, or has gone for good.
    """
    if not stream_ids:
        return {}
    replies = yield Scripts(
        [
            Script("aside_above", [make(stream_id) for make in (keys.meta, keys.aside, keys.removals)])
            for stream_id in stream_ids
        ]
    )
    found = zip(stream_ids, replies, strict=True)
    return {stream_id: reply for stream_id, reply in found if isinstance(reply, int) and reply > 0}


def set_aside(stream_id: str, first: int, last: int) -> Op[read.Wanted]:
    """Tells which stored entries between two offsets (both included) were set aside; one round trip."""
    flat, held, runs = yield Pipeline(
        [
            ("HGETALL", keys.removals(stream_id)),
            ("ZRANGEBYSCORE", keys.hidden(stream_id), first, last),
            ("ZRANGEBYSCORE", keys.gone(stream_id), first - first % read.GONE_BLOCK, last),
        ]
    )
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    purged = [
        range(
            int(fields[name.replace(b"upto", b"first")]),
            int(fields.get(name.replace(b"upto", b"stop")) or upto),
        )
        for name, upto in fields.items()
        if name.endswith(b":upto")
    ]
    hidden = set(map(int, held)) - _marked(runs, *MARKS)
    single = _marked(runs, ALONE)

    def is_aside(entry: entries.Entry) -> bool:
        offset = entries.position(entry)[0]
        return offset in single or (offset not in hidden and any(offset in each for each in purged))

    return is_aside


def hidden_range(stream_id: str, start: int, end: int, count: int) -> Op[tuple[list[Entry], int]]:
    """Entries that a limit took from between others, and nobody set aside before, from ``start`` to and with ``end``.

    Returns:
        At most ``count`` of them, and the offset up to which these are all.
    """
    offsets = yield ("ZRANGEBYSCORE", keys.hidden(stream_id), start, end, "LIMIT", 0, count)
    if not offsets:
        return [], end
    runs, *replies = yield Pipeline(
        [
            ("ZRANGEBYSCORE", keys.gone(stream_id), offsets[0], offsets[-1]),
            *(("XRANGE", keys.log(stream_id), offset, offset) for offset in offsets),
        ]
    )
    aside = _marked(runs, *MARKS)
    found = [
        entry
        for offset, reply in zip(map(int, offsets), replies, strict=True)
        for entry in reply
        if offset not in aside
    ]
    return found, end if len(offsets) < count else int(offsets[-1])


def _marked(runs: Sequence[bytes], *marks: bytes) -> set[int]:
    """The offsets of runs that end with one of these."""
    return {int(run.partition(b":")[0]) for run in runs if run.endswith(marks)}
