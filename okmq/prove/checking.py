"""The checker: what in a history contradicts the promises. It knows no server, only what clients saw.

The counts follow Jepsen's checkers for logs (``tests.kafka``: lost writes, aborted reads, inconsistent offsets, skips)
and for sets, with those of leases and batches added. Each finding is a sentence that names its messages.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from okmq.prove.ages import over_early
from okmq.prove.history import Commit, Fetch, History, Publish, Read, Remains, Seen, Sent, Settle, Taken

WEAKER = {"window", "memory"}
"""Labels that promise less than a flush. An answer without a label promises all of it: nobody was told otherwise."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was found, by the name of its count; a name without findings is there with none."""

    found: dict[str, list[str]]
    lost_in_window: int = 0
    """Acknowledged with a weaker promise than ``fsync``, and gone: allowed, and told."""

    @property
    def holds(self) -> bool:
        """Whether every count is 0."""
        return not any(self.found.values())

    def count(self, name: str) -> int:
        return len(self.found[name])


def check(history: History) -> Verdict:
    """Every contradiction in a history."""
    found: dict[str, list[str]] = {name: [] for name in COUNTS}
    in_window = 0
    for stream in history.streams():
        evidence = Evidence(history, stream)
        for name, look in (LOOKS_AT_AGES if evidence.lives_s else LOOKS).items():
            found[name] += [f"{stream}: {sentence}" for sentence in look(evidence)]
        in_window += len(evidence.missing(promised=False))
    return Verdict(found=found, lost_in_window=in_window)


class Evidence:
    """What is known of one stream, put in order once for all looks."""

    def __init__(self, history: History, stream: str) -> None:
        operations = history.of(stream)
        self.ack_wait_s, self.ack_waits_s = history.ack_wait_s, history.ack_waits_s
        self.by_key, self.lives_s = history.by_key, history.lives_s.get(stream)
        self.publishes = [each for each in operations if isinstance(each, Publish)]
        self.acknowledged = [each for each in self.publishes if each.outcome == "ok"]
        self.reads = [each for each in operations if isinstance(each, Read) and each.outcome == "ok"]
        self.fetches = [each for each in operations if isinstance(each, Fetch) and each.outcome == "ok"]
        self.settles = [each for each in operations if isinstance(each, Settle)]
        self.commits = [each for each in operations if isinstance(each, Commit)]
        self.remains: Remains | None = history.remains.get(stream)
        self.final: tuple[Seen, ...] = self.remains.messages if self.remains else ()
        self.sent = {id_ for each in self.publishes for id_ in each.ids}

    def seen(self) -> Iterator[Seen]:
        """Every message that anybody was given."""
        for read in self.reads:
            yield from read.messages
        for fetch in self.fetches:
            yield from fetch.taken
        yield from self.final

    def missing(self, *, promised: bool) -> list[str]:
        """Acknowledged messages that are not there in the end, those with the full promise or the others."""
        if self.remains is None:
            return []
        there = {each.offset: each.id for each in self.final}
        return [
            f"{id_} was acknowledged at {offset} and is not there"
            for each in self.acknowledged
            if (each.durability not in WEAKER) is promised
            for id_, offset in zip(each.ids, each.offsets, strict=True)
            if there.get(offset) != id_
        ]

    def groups(self) -> list[str]:
        """The names of the groups that fetched."""
        return sorted({each.group for each in self.fetches})


def _lost(evidence: Evidence) -> Iterator[str]:
    yield from evidence.missing(promised=True)
    if evidence.remains is None:
        if evidence.acknowledged:
            yield "nobody looked what it holds in the end"
        return
    answered: dict[str, set[int]] = defaultdict(set)
    for settle in evidence.settles:
        if settle.kind == "ack" and settle.outcome != "fail":
            answered[settle.group].update(offset for offset, _ in settle.about)
    for group in evidence.remains.groups:
        if group.lag == group.pending == 0:
            for each in evidence.final:
                if each.offset not in answered[group.name]:
                    yield f"{each.id} at {each.offset} never came to the group {group.name}, which has nothing left"
        else:
            yield f"{group.lag + group.pending} messages do not come to the group {group.name}"


def _doubled(evidence: Evidence) -> Iterator[str]:
    offsets: dict[str, set[int]] = defaultdict(set)
    for each in evidence.seen():
        offsets[each.id].add(each.offset)
    for publish in evidence.acknowledged:
        for id_, offset in zip(publish.ids, publish.offsets, strict=True):
            offsets[id_].add(offset)
    for id_, found in offsets.items():
        if len(found) > 1:
            yield f"{id_} stands at {sorted(found)}"
    may_be_stored: set[str] = set()
    for publish in evidence.publishes:  # as they were sent
        for id_, known in zip(publish.ids, publish.known or (False,) * len(publish.ids), strict=True):
            if known and id_ not in may_be_stored:
                yield f"{id_} was called a duplicate when it was sent for the first time"
        if publish.outcome != "fail":
            may_be_stored.update(publish.ids)


def _reordered(evidence: Evidence) -> Iterator[str]:
    for read in evidence.reads:
        yield from _not_ascending(read.messages)
    yield from _not_ascending(evidence.final)
    yield from _against_time(_stays(evidence.publishes))
    for group in evidence.groups():
        if group in evidence.by_key:
            yield from _keys_out_of_turn(evidence, group)


def _keys_out_of_turn(evidence: Evidence, group: str) -> Iterator[str]:
    """With order by key a message is out only when all before it of its key were acknowledged."""
    passed: dict[int, float] = {}
    for settle in evidence.settles:
        if (settle.group, settle.kind) == (group, "ack") and settle.outcome != "fail":
            for offset, _ in settle.about:
                passed[offset] = min(settle.began, passed.get(offset, settle.began))
    out: dict[int, float] = {}
    keys: dict[int, str] = {each.offset: each.key for each in evidence.seen()}
    for fetch in evidence.fetches:
        if fetch.group == group:
            for each in fetch.taken:
                out[each.offset] = min(fetch.ended, out.get(each.offset, fetch.ended))
    before: dict[str, tuple[float, int]] = {}
    for offset in sorted(keys):
        if not (key := keys[offset]):
            continue
        at, of = before.get(key, (float("-inf"), 0))
        if out.get(offset, float("inf")) < at:
            yield f"{offset} of the key {key} was out in {group} before {of} was acknowledged"
        before[key] = max((at, of), (passed.get(offset, float("inf")), offset))


def _not_ascending(messages: Sequence[Seen]) -> Iterator[str]:
    for before, after in pairwise(messages):
        if after.offset <= before.offset:
            yield f"{after.offset} was read after {before.offset}"
        elif after.content[0] < before.content[0]:
            yield f"time runs backwards from {before.offset} to {after.offset}"


@dataclass(frozen=True, slots=True)
class _Stay:
    """When a batch was stored at the earliest and at the latest, and where."""

    began: float
    ended: float
    lowest: int
    highest: int


def _stays(publishes: Iterable[Publish]) -> list[_Stay]:
    began: dict[str, float] = {}
    stored: dict[str, Publish] = {}
    for each in publishes:
        name = each.ids[0]
        began[name] = min(each.began, began.get(name, each.began))
        if each.outcome == "ok" and (name not in stored or each.ended < stored[name].ended):
            stored[name] = each
    return [
        _Stay(began[name], each.ended, min(each.offsets), max(each.offsets)) for name, each in stored.items()
    ]


def _against_time(stays: Sequence[_Stay]) -> Iterator[str]:
    """What was published after something else had been acknowledged stands above it."""
    by_end = sorted(stays, key=lambda stay: stay.ended)
    ends = [stay.ended for stay in by_end]
    highest = list(accumulate((stay.highest for stay in by_end), max))
    for stay in stays:
        before = bisect_left(ends, stay.began)
        if before and stay.lowest < highest[before - 1]:
            yield f"{stay.lowest} was published after {highest[before - 1]} had been acknowledged"


def _torn(evidence: Evidence) -> Iterator[str]:
    there = {each.id: each.offset for each in evidence.final}
    looked: set[str] = set()
    for each in evidence.publishes:
        if each.ids[0] not in looked:
            looked.add(each.ids[0])
            offsets = [there[id_] for id_ in each.ids if id_ in there]
            if evidence.remains and 0 < len(offsets) < len(each.ids):
                yield f"{len(offsets)} of the {len(each.ids)} messages of the batch of {each.ids[0]} are there"
            elif offsets and offsets != list(range(offsets[0], offsets[0] + len(offsets))):
                yield f"the batch of {each.ids[0]} is scattered over {offsets}"
        fresh = [offset for offset, known in zip(each.offsets, each.known, strict=True) if not known]
        if fresh and fresh != list(range(fresh[0], fresh[0] + len(fresh))):
            yield f"the receipts of the batch of {each.ids[0]} are {fresh}"


def _two_contents(evidence: Evidence) -> Iterator[str]:
    held: dict[int, Seen] = {}
    sent: dict[str, Sent] = {}
    for publish in evidence.publishes:
        told_of = zip(publish.bodies, publish.keys, publish.headers, strict=True)
        sent.update(zip(publish.ids, told_of, strict=True))
    told: set[int] = set()
    for each in evidence.seen():
        before = held.setdefault(each.offset, each)
        if each.offset in told:
            continue
        if before.id != each.id:
            told.add(each.offset)
            yield f"{each.offset} was {before.id} and is {each.id}"
        elif (before.content, before.as_sent) != (each.content, each.as_sent):
            told.add(each.offset)
            yield f"{each.offset} was told in two ways, as {each.id} both times"
        elif sent.get(each.id, each.as_sent) != each.as_sent:
            told.add(each.offset)
            yield f"{each.offset} does not hold what was sent as {each.id}"
    for publish in evidence.acknowledged:
        for id_, offset in zip(publish.ids, publish.offsets, strict=True):
            if offset in held and held[offset].id != id_ and offset not in told:
                told.add(offset)
                yield f"{offset} was acknowledged for {id_} and is {held[offset].id}"


def _refused(evidence: Evidence) -> Iterator[str]:
    outcomes: dict[str, set[str]] = defaultdict(set)
    for publish in evidence.publishes:
        for id_ in publish.ids:
            outcomes[id_].add(publish.outcome)
    for id_ in {each.id for each in evidence.seen()}:
        if outcomes.get(id_) == {"fail"}:
            yield f"{id_} was refused and can be read"


def _came_back(evidence: Evidence) -> Iterator[str]:
    acked: dict[tuple[str, int], float] = {}
    for settle in evidence.settles:
        if settle.kind == "ack" and settle.outcome == "ok":
            for offset, _ in settle.about:
                before = acked.setdefault((settle.group, offset), settle.ended)
                acked[settle.group, offset] = min(before, settle.ended)
    for fetch in evidence.fetches:
        for each in fetch.taken:
            if fetch.began > acked.get((fetch.group, each.offset), float("inf")):
                yield f"{each.offset} came to {fetch.member} of {fetch.group} after it was acknowledged"


def _overlapping(evidence: Evidence) -> Iterator[str]:
    given_back: dict[tuple[str, tuple[int, int]], float] = {}
    for settle in evidence.settles:
        if settle.kind == "nack" and settle.outcome != "fail":
            for about in settle.about:
                given_back.setdefault((settle.group, about), settle.began)
    deliveries: dict[tuple[str, int], list[tuple[Taken, Fetch]]] = defaultdict(list)
    for fetch in evidence.fetches:
        for each in fetch.taken:
            deliveries[fetch.group, each.offset].append((each, fetch))
    for (group, offset), of_one in deliveries.items():
        ack_wait_s = evidence.ack_waits_s.get(group, evidence.ack_wait_s)
        of_one.sort(key=lambda delivery: (delivery[0].number, delivery[1].ended))
        for (first, held), (second, taken) in pairwise(of_one):
            if first.number == second.number:
                yield f"{offset}: {held.member} and {taken.member} of {group} have delivery {first.number}"
            elif (
                taken.ended < held.began + ack_wait_s
                and given_back.get((group, (offset, first.number)), float("inf")) > taken.ended
            ):
                early_ms = 1000 * (held.began + ack_wait_s - taken.ended)
                members = f"{held.member} and {taken.member}"
                yield f"{offset}: the leases of {members} of {group} overlap by {early_ms:.0f} ms"

    for settle in evidence.settles:
        for offset, number in settle.about if settle.outcome == "ok" else ():
            for later, fetch in deliveries.get((settle.group, offset), ()):
                if later.number > number and fetch.ended < settle.began:
                    what = f"the {settle.kind} of delivery {number} was taken"
                    yield f"{offset}: {what} in {settle.group} when {later.number} was out"
                    break


def _commits_back(evidence: Evidence) -> Iterator[str]:
    moved = sorted((each for each in evidence.commits if each.outcome == "ok"), key=lambda each: each.ended)
    ends = [each.ended for each in moved]
    highest = list(accumulate((each.offset for each in moved), max))
    for each in moved:
        before = bisect_left(ends, each.began)
        if before and each.previous < highest[before - 1]:
            yield f"the committed offset went from {highest[before - 1]} to {each.previous} by itself"
    if evidence.remains and highest and evidence.remains.committed < highest[-1]:
        yield f"the committed offset was {highest[-1]} and is {evidence.remains.committed}"


def _commits_by_nobody(evidence: Evidence) -> Iterator[str]:
    """Where the committed offset stood at an offset that nobody had asked for until then."""
    began: dict[int, float] = {0: float("-inf")}
    for each in evidence.commits:
        if each.outcome != "fail":
            began[each.offset] = min(each.began, began.get(each.offset, each.began))
    for each in evidence.commits:
        if each.outcome == "ok" and began.get(each.previous, float("inf")) > each.ended:
            yield f"the committed offset was {each.previous}, which nobody had committed"
    if evidence.remains and evidence.remains.committed not in began:
        yield f"the committed offset is {evidence.remains.committed}, which nobody has committed"


def _too_many(evidence: Evidence) -> Iterator[str]:
    for read in evidence.reads:
        if 0 < read.limit < len(read.messages):
            yield f"a read from {read.start} brought {len(read.messages)} messages where {read.limit} were asked for"
    for fetch in evidence.fetches:
        if 0 < fetch.limit < len(fetch.taken):
            brought = f"{len(fetch.taken)} messages where {fetch.limit} were asked for"
            yield f"{fetch.member} of {fetch.group} was brought {brought}"


def _skipped(evidence: Evidence) -> Iterator[str]:
    by_end = sorted(evidence.acknowledged, key=lambda each: each.ended)
    ends = [each.ended for each in by_end]
    highest = list(accumulate((max(each.offsets) for each in by_end), max))
    for read in evidence.reads:
        if read.messages and read.messages[0].offset < read.start:
            yield f"a read from {read.start} began at {read.messages[0].offset}"
        expected = read.start
        for each in read.messages:
            if each.offset > expected:
                yield f"a read from {read.start} went from {expected - 1} to {each.offset}"
            expected = max(expected, each.offset + 1)
        before = bisect_left(ends, read.began)
        if not read.messages and before and highest[before - 1] >= read.start:
            yield f"a read from {read.start} was empty though {highest[before - 1]} had been acknowledged"
        elif 0 < len(read.messages) < read.limit and before and highest[before - 1] >= expected:
            yield f"a read from {read.start} ended at {expected - 1} though {highest[before - 1]} had been acknowledged"


def _invented(evidence: Evidence) -> Iterator[str]:
    for id_ in sorted({each.id for each in evidence.seen()} - evidence.sent):
        yield f"{id_} was never sent"


def _miscounted(evidence: Evidence) -> Iterator[str]:
    remains = evidence.remains
    if remains is None:
        return
    last = max((each.offset for each in remains.messages), default=0)
    if (remains.offset, remains.count) != (last, len(remains.messages)):
        yield (
            f"it says {remains.count} messages up to {remains.offset}, "
            f"and there are {len(remains.messages)} up to {last}"
        )
    if remains.size_bytes != remains.bodies_bytes:
        yield f"it says {remains.size_bytes} bytes, and there are {remains.bodies_bytes}"


LOOKS: dict[str, Callable[[Evidence], Iterable[str]]] = {
    "lost": _lost,
    "doubled": _doubled,
    "reordered": _reordered,
    "torn batches": _torn,
    "one offset, two contents": _two_contents,
    "refused, yet read": _refused,
    "acknowledged, yet came back": _came_back,
    "overlapping leases": _overlapping,
    "commits backwards": _commits_back,
    "commits by nobody": _commits_by_nobody,
    "skipped by a read": _skipped,
    "more than asked for": _too_many,
    "never sent": _invented,
    "miscounted": _miscounted,
}

LOOKS_AT_AGES: dict[str, Callable[[Evidence], Iterable[str]]] = {
    "over early": lambda evidence: over_early(evidence.acknowledged, evidence.reads, evidence.lives_s or 0.0)
}

COUNTS = (*LOOKS, *LOOKS_AT_AGES)
"""The names of what is counted, in the order in which they are told."""
