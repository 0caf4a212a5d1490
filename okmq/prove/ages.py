"""Whether a message was over before its time, by the clock of who proves it."""

from collections.abc import Iterable, Iterator

from okmq.prove.history import Publish, Read

KNOWN_TO_S = 0.25
"""So exactly is the time known in the product: a clock that is set by less is followed."""


def over_early(publishes: Iterable[Publish], reads: Iterable[Read], lives_s: float) -> Iterator[str]:
    """What a read did not bring though it had been acknowledged before, and was young enough when the read ended.

    A message that was sent several times is as old as its first.
    """
    sent: dict[str, float] = {}
    stored: dict[int, tuple[str, float]] = {}
    for publish in sorted(publishes, key=lambda each: each.began):
        for id_, offset in zip(publish.ids, publish.offsets, strict=False):
            sent.setdefault(id_, publish.began)
            stored[offset] = id_, min(publish.ended, stored.get(offset, ("", publish.ended))[1])
    told: set[int] = set()
    for read in reads:
        there = {each.offset for each in read.messages}
        last = max(there) if read.limit and len(there) >= read.limit else None
        for offset, (id_, ended) in stored.items():
            age_s = read.ended - sent[id_]
            is_asked = offset >= read.start and (last is None or offset <= last) and ended < read.began
            if is_asked and age_s < lives_s - KNOWN_TO_S and offset not in there and offset not in told:
                told.add(offset)
                yield f"{id_} at {offset} was over {age_s:.1f} s after it was sent, and lives for {lives_s:g} s"
