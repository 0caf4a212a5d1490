"""What the log and the figures say of the history, held against what the history has."""

from collections.abc import Iterable, Mapping

from streams import store
from streams.log import config, fsck, meta
from streams.log.fsck import Finding
from streams.models import RollupPosition, Stream
from streams.models.stream import Storage

ARCHIVED = "history: archived"


def history_findings(ends: Mapping[str, int]) -> list[Finding]:
    """What contradicts a history that has each of these streams, internal id → last offset, and no other.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    log = store.log()
    rows = Stream.objects.filter(storage=Storage.DURABLE, archive=True)
    counters = log.run(meta.counters_of(rows.values_list("stream_id", flat=True)))
    counted_to = dict(RollupPosition.objects.values_list("stream_id", "offset"))
    found = []
    for stream_id, held in counters.items():
        end = ends.get(stream_id, 0)
        if held.archived > end:
            lacks = log.run(fsck.first_between(stream_id, end, held.archived))
            if lacks is not None:
                sentence = (
                    f"{held.archived} is said to be archived, and the history ends at {end}, without {lacks}"
                )
                found.append(Finding(stream_id=stream_id, what=ARCHIVED, sentence=sentence, derivable=True))
        if end > held.last:
            sentence = f"the history has {end}, and {held.last} is the last that was given"
            found.append(Finding(stream_id=stream_id, what="history: last", sentence=sentence))
        if counted_to.get(stream_id, 0) > end:
            sentence = (
                f"the figures of the past count up to {counted_to[stream_id]}, and the history ends at {end}"
            )
            found.append(Finding(stream_id=stream_id, what="history: figures", sentence=sentence))
    return found


def history_mend(findings: Iterable[Finding], ends: Mapping[str, int]) -> None:
    """Have what the history lacks wait for it again.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    for each in findings:
        if each.what == ARCHIVED:
            store.log().run(config.archived_only(each.stream_id, ends.get(each.stream_id, 0)))
