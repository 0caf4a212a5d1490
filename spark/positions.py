"""Which streams a reader means, and where they stand: operations on the log, run by the source and the jobs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from spark.options import OptionError, Options
from streams.log import aside, config, meta
from streams.log.client import Op
from streams.log.config import Registered

CHECKPOINT = "checkpoints/archive"
"""The folder, in Spark's own, in which the archive's query notes how far it has come."""

ROUND_TRIP = 1000
"""Most streams asked about in one round trip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a stream stands.

    Attributes:
        last: last assigned offset, 0 if none ever was.
        floor: lowest visible offset.
        archived: the history holds everything up to it.
        taken: the offsets below the floor that people took away before the history had them, in order; they may still
            be there for a moment, and some may be in it by now.
        ready: the history may take everything up to it; what comes after was removed and can come back.
        hides: whether something may be hidden from between others, by a limit or for a while.
        has_aside: whether something was removed for a while only.
        widest: bytes of the largest body ever appended.
    """

    last: int
    floor: int
    archived: int
    taken: Sequence[range]
    ready: int
    hides: bool
    has_aside: bool
    widest: int

    def next_offset(self, *, archive: bool) -> int:
        """The first offset that a reader who starts at the earliest gets."""
        if not archive:
            return self.floor
        return self.archived + 1 if self.hides else self.after_taken(self.archived + 1)

    def last_offset(self, *, archive: bool) -> int:
        """The last offset that a reader gets; it may be below the first."""
        return self.ready if archive else self.last

    def after_taken(self, offset: int) -> int:
        """The next offset that nobody took away, from one on."""
        for each in self.taken:
            offset = each.stop if offset in each else offset
        return offset

    def before_taken(self, offset: int) -> int | None:
        """The last offset before the next range that people took away, from one outside of them on; None: no more."""
        return next((each.start - 1 for each in self.taken if each.start > offset), None)


def positions(stream_ids: Iterable[str], *, strict: bool = False) -> Op[dict[str, Position]]:
    """Where streams stand; those that are gone are left out.

    So are those in memory while their server does not answer; with ``strict`` that is an error.
    """
    wanted = list(stream_ids)
    found: dict[str, Position] = {}
    for at in range(0, len(wanted), ROUND_TRIP):
        some = wanted[at : at + ROUND_TRIP]
        counters_of = yield from meta.counters_of(some, strict=strict)
        waits = yield from aside.lowest_above_archived(
            [stream_id for stream_id, counters in counters_of.items() if counters.kept > 0]
        )
        taken = yield from meta.taken_of(counters_of)
        for stream_id, counters in counters_of.items():
            found[stream_id] = Position(
                last=counters.last,
                floor=counters.floor,
                archived=counters.archived,
                taken=taken.get(stream_id, ()),
                ready=min(counters.last, waits.get(stream_id, counters.last + 1) - 1),
                hides=counters.hidden == 1,
                has_aside=counters.kept > 0,
                widest=counters.widest,
            )
    return found


def streams_meant(options: Options, *, strict: bool) -> Op[list[Registered]]:
    """The streams that the options name, by name; a pattern never means the system's own streams.

    Args:
        strict: refuse a plain name that no stream has (a running query must survive a deletion).

    Raises:
        OptionError: a name stands for no stream.
    """
    registered = yield from config.streams()
    here = [each for each in registered if options.workspace in {"*", each.workspace}]
    if options.archive:
        here = [each for each in here if each.archive]
    meant = [each for each in here if any(_means(wanted, each, options) for wanted in options.streams)]
    names = {each.name for each in meant}
    for wanted in options.streams:
        if strict and "*" not in wanted and wanted not in names:
            raise OptionError(f"There is no stream {wanted!r} in workspace {options.workspace!r}.")
    return sorted(meant, key=lambda each: (each.workspace_id, each.name))


def archive_backlog() -> Op[int]:
    """How many offsets, over all archived streams, are not in the history yet and may go there now.

    Streams in memory whose server does not answer wait for nothing: they are archived when it is back.
    """
    registered = yield from config.streams()
    found = yield from positions(each.stream_id for each in registered if each.archive)
    return sum(max(0, at.ready + 1 - at.next_offset(archive=True)) for at in found.values())


def archived_offsets() -> Op[dict[str, int]]:
    """Stream id → offset up to which the history holds it, for all streams that it holds something of."""
    registered = yield from config.streams()
    found = yield from positions(each.stream_id for each in registered)
    return {stream_id: at.archived for stream_id, at in found.items() if at.archived > 0}


def _means(wanted: str, stream: Registered, options: Options) -> bool:
    if "*" not in wanted:
        return wanted == stream.name
    return fnmatchcase(stream.name, wanted) and (options.archive or not stream.internal)


def by_id(streams: Sequence[Registered]) -> dict[str, Registered]:
    """Internal id → stream."""
    return {each.stream_id: each for each in streams}
