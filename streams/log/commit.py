"""The committed offset: a stream's own reader position, as the streams guide has it."""

from streams.log import keys
from streams.log.client import Op, Script


def commit(stream_id: str, offset: int) -> Op[int]:
    """Move the committed offset, also backwards, which wakes its readers; 0 is the start. Returns the one of before.

    Raises:
        StreamNotFound: there is no such stream (any more).
        OffsetOutOfRange: ``offset`` is beyond the last assigned one.
    """
    previous: int = yield Script("commit", [keys.meta(stream_id)], [offset, keys.wake(stream_id)])
    return previous
