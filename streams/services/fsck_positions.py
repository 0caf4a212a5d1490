"""A group's position held against what the worker saw of it last: nothing else tells that one was moved back."""

from collections.abc import Iterator

from streams import health, store
from streams.log import healths, standing
from streams.log.errors import GroupNotFound
from streams.log.fsck import Finding
from streams.models import Group, Stream


def position_findings(stream: Stream) -> Iterator[Finding]:
    """Groups of a stream that stand before what they were done with when the worker looked last.

    A seek begins another generation, and an undo takes back what a group lost: after these it is none. What is right
    nobody knows for sure, since messages may have been left out on purpose: it is told, with what would put it right.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    log = store.log()
    for group in Group.objects.filter(stream=stream):
        seen = health.read(log.run(healths.one(stream.stream_id, group.name)))
        try:
            now = log.run(standing.inspect(stream.stream_id, group.name))
        except GroupNotFound:
            continue
        last = seen.samples[-1] if seen and seen.samples else None
        if last is None or last.generation != now.generation or last.removed != now.lost + now.unfinished:
            continue
        if now.delivered_offset < last.floor <= (now.offset or 0):
            yield Finding(
                stream_id=stream.stream_id,
                what=f"group {group.name}: moved back",
                sentence=f"group {group.name}: it has delivered up to {now.delivered_offset}, and it was done with "
                f"everything up to {last.floor}: what lies between comes again, unless it is sought to "
                f"{last.floor + 1}",
            )
