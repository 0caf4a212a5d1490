"""A stream's entries held against everything that is derived from them: counters, ids seen, keys, expiries.

A look takes no lock: counters are read before the entries, and what was appended meanwhile is left out. What changed
otherwise is seen by a second look; only what both found is a finding (``streams.services.fsck``).
"""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import msgspec

from streams.log import config, entries, fsck_indexes, keys, meta, ranges
from streams.log.client import Op, Pipeline, Script
from streams.log.entries import Message
from streams.log.fsck_parts import Part
from streams.log.ranges import Range

PAGE = 1000
BLOCK = 256
"""No run of what went reaches over a multiple of it (``lua/lib/gone.lua``)."""

NEVER_NEGATIVE = ("duplicates", "removals", "returns", "missed")
MENDED_AT_ONCE = 1000


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that contradicts something else.

    Attributes:
        stream_id: of the stream, or "".
        what: the same for the same finding in a later look.
        sentence: for a person.
        derivable: whether what is right follows from what is there.
        part: what cannot be read and has to be taken away first; None: everything can.
    """

    stream_id: str
    what: str
    sentence: str
    derivable: bool = False
    part: Part | None = None


@dataclass(kw_only=True)
class Right:
    """What follows from the entries, where it is not what is held.

    ``ids``, ``by_key``, ``expiry``: message id → offset, key → offset, offset → unix ms. ``gone``: runs that went
    without a trace, first and last offset and bytes. ``hidden``: offsets of what went and is still there. ``ids_gone``:
    bucket and id of what is remembered of no message. An offset or time of -1 stands for what has to go, too.
    """

    counters: meta.Counters
    ids: dict[str, int] = field(default_factory=dict)
    by_key: dict[str, int] = field(default_factory=dict)
    expiry: dict[int, int] = field(default_factory=dict)
    gone: list[tuple[int, int, int]] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)
    ids_gone: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Looked:
    """One look at a stream: what was held, what is right, and the difference in words."""

    held: bytes
    right: Right
    findings: tuple[Finding, ...]
    messages: int


def look(stream_id: str, *, anew: Set[str] = frozenset()) -> Op[Looked | None]:
    """Look at one stream; None when there is none.

    Args:
        anew: kinds of keys, as ``keys.OF_STREAM`` names them, of which something was taken away that could not be read:
            what they hold is made again where it follows from the entries.

    Raises:
        StoreUnavailable: its server does not answer.
        Damaged: something of it cannot be read; ``fsck_parts`` says what.
    """
    # The newest entry first: it cannot be above counters that are read after it.
    newest, reply = yield Pipeline(
        [
            ("XREVRANGE", keys.log(stream_id), "+", "-", "COUNT", 1),
            ("HMGET", keys.meta(stream_id), *meta.FIELDS),
        ]
    )
    found = meta.read(reply)
    if found is None:
        return None
    look_at = _Look(stream_id, found[1], newest=entries.position(newest[0])[0] if newest else 0, anew=anew)
    start = "-"
    while True:
        page = yield ("XRANGE", keys.log(stream_id), start, "+", "COUNT", PAGE)
        messages = [each for each in map(entries.parse, page) if each.offset <= look_at.upto]
        look_at.take(messages)
        if messages:
            yield from _indexes(stream_id, look_at, messages)
        if len(page) < PAGE:
            break
        start = f"({page[-1][0].decode()}"
    runs = yield ("ZRANGEBYSCORE", keys.gone(stream_id), 0, "+inf")
    look_at.end([_run(run) for run in runs])
    if "hidden" in anew:
        look_at.hide([_run(run) for run in runs if run.count(b":") == 2])
    look_at.beyond((yield from fsck_indexes.look(stream_id, look_at.entries)))
    return Looked(
        held=reply[1] or b"",
        right=look_at.right,
        findings=tuple(look_at.findings),
        messages=look_at.count,
    )


def _run(member: bytes) -> tuple[int, int, int]:
    first, last, size, *_ = member.split(b":")
    return int(first), int(last), int(size)


def _indexes(stream_id: str, look_at: "_Look", messages: Sequence[Message]) -> Op[None]:
    """Compare a page with the ids seen, the keys and the expiries."""
    ids = [each.id for each in messages]
    keyed = sorted({each.key for each in messages if each.key is not None})
    timed = [each.offset for each in messages if each.expires_ms is not None]
    commands: list[Sequence[Any]] = [("HMGET", keys.ids(stream_id, bucket), *ids) for bucket in (0, 1)]
    commands += [("HMGET", keys.by_key(stream_id), *keyed)] if keyed else []
    commands += [("ZMSCORE", keys.expiry(stream_id), *timed)] if timed else []
    replies = yield Pipeline(commands)
    look_at.compare_ids(messages, [a or b for a, b in zip(replies[0], replies[1], strict=True)])
    if keyed:
        look_at.held_keys.update(zip(keyed, replies[2], strict=True))
    if timed:
        look_at.held_times.update(zip(timed, replies[-1], strict=True))


class _Look:
    """What one pass over the entries gathers."""

    def __init__(
        self, stream_id: str, counters: meta.Counters, *, newest: int, anew: Set[str] = frozenset()
    ) -> None:
        self.stream_id, self.held, self._anew = stream_id, counters, anew
        self.findings: list[Finding] = []
        self.count = 0
        # What was appended after the counters were read is left out; what was there before is below them.
        self.upto = max(counters.last, newest)
        if self.upto > counters.last:
            self._told("last", f"last is {counters.last}, and {newest} is there", derivable=True)
            counters = msgspec.structs.replace(counters, last=self.upto, loose=self.upto)
        self.counters = counters
        self.right = Right(counters=self.counters)
        self.held_keys: dict[str, bytes | None] = {}
        self.held_times: dict[int, bytes | None] = {}
        self._sizes: dict[int, int] = {}
        self._newest_of_key: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._went: list[Range] = []
        self._ends: dict[int, int] = {}
        self._before: Message | None = None
        self._first: Message | None = None
        self._widest = 0
        # Between which offsets nothing is, and how many bytes there were.
        self._gaps: list[tuple[int, int, int]] = []

    def take(self, messages: Sequence[Message]) -> None:
        """The next entries in their order."""
        for each in messages:
            before, self._before = self._before, each
            self._sizes[each.offset] = len(each.body)
            wide = len(each.body) + len((each.key or "").encode()) + len(each.headers or b"")
            self._widest = max(self._widest, wide)
            if self._first is None and each.offset >= self.counters.floor:
                self._first = each
            if each.key is not None:
                self._newest_of_key[each.key] = each.offset
            if each.expires_ms is not None:
                self._ends[each.offset] = each.expires_ms
            if before is None:
                continue
            if each.timestamp_ms < before.timestamp_ms:
                self._told("time", f"time runs backwards from {before.offset} to {each.offset}")
            if each.offset > before.offset + 1:
                between = each.cumulative_bytes - len(each.body) - before.cumulative_bytes
                self._gaps.append((before.offset, each.offset, between))
            else:
                expected = before.cumulative_bytes + len(each.body)
                if each.cumulative_bytes != expected:
                    self._told(
                        "sum", f"{each.offset} says {each.cumulative_bytes} bytes up to it, not {expected}"
                    )

    def compare_ids(self, messages: Sequence[Message], held: Sequence[bytes | None]) -> None:
        """What was stored since the present bucket was begun is in it or in the one before."""
        for each, offset in zip(messages, held, strict=True):
            if offset is not None and int(offset) == each.offset:
                self._ids[each.offset] = each.id
            if each.timestamp_ms >= self.counters.ids_since > 0 and (
                offset is None or int(offset) != each.offset
            ):
                if offset is None:
                    self.right.ids[each.id] = each.offset
                    self._told(f"id {each.id}", f"the id of {each.offset} is not remembered", derivable=True)
                elif int(offset) < each.offset:
                    self._told(f"id {each.id}", f"the id of {each.offset} stood at {int(offset)} before")

    def end(self, runs: Sequence[tuple[int, int, int]]) -> None:
        """After the last entry: ``runs`` of what went from between others, with their bytes."""
        counters = self.counters
        bounds = counters.floor, counters.last
        self._went = _spans(runs, *bounds)
        stored = zip(self._sizes, self._sizes, strict=True)
        known = ranges.joined(heapq.merge(self._went, stored), *bounds)
        missing = list(ranges.between(known, *bounds))
        number = ranges.count(missing)
        if missing:
            more = f" and {number - 1} more" if number > 1 else ""
            self._told("missing", f"the message at {missing[0][0]}{more} is not there")
        there = [offset for offset in self._sizes if self._is_there(offset)]
        self.count = len(there)
        floor = counters.floor
        if missing and missing[0][0] == floor:
            floor = there[0] if there else counters.last + 1
        self.right.gone = self._untraced(ranges.joined(missing, floor + 1, counters.last), runs)
        self._counters(there, floor=floor, missing=number)
        self._keys()
        for offset, ends_ms in self._ends.items():
            held = self.held_times[offset]
            if self._is_there(offset) and (held is None or int(held) != ends_ms):
                self.right.expiry[offset] = ends_ms
                self._told(f"expiry {offset}", f"the end of {offset} is not noted", derivable=True)

    def _untraced(
        self, missing: Sequence[Range], runs: Sequence[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Runs of what is not there and not noted as gone, with the bytes that it had by the sums of its neighbours."""
        gaps = list(self._gaps)
        if self._before is not None:
            gaps.append(
                (
                    self._before.offset,
                    self.counters.last + 1,
                    self.counters.cum - self._before.cumulative_bytes,
                )
            )
        found: list[tuple[int, int, int]] = []
        left = deque(missing)
        for below, above, between in gaps:
            if not left or left[0][0] >= above:
                continue
            size = max(0, between - sum(each for first, _, each in runs if below < first < above))
            while left and left[0][0] < above:
                for part in ranges.in_blocks(*left.popleft(), BLOCK):
                    found.append((*part, size))
                    size = 0
        return found

    def _counters(self, there: Sequence[int], *, floor: int, missing: int) -> None:
        counters, last = self.counters, self._before
        right: dict[str, Any] = {"messages": len(there), "floor": floor}
        right["bytes"] = sum(self._sizes[offset] for offset in there)
        first = self._first
        if first is not None and there and there[0] == first.offset == floor:
            right["floor_cum"] = first.cumulative_bytes - len(first.body)
        elif not there and floor > counters.last:
            right["floor_cum"] = counters.cum
        for name in ("committed", "archived"):
            right[name] = min(getattr(counters, name), counters.last)
        right |= {name: max(0, getattr(counters, name)) for name in NEVER_NEGATIVE}
        if self._widest > counters.widest or counters.widest == config.WIDEST:
            right["widest"] = self._widest
        if last is not None and last.offset == counters.last:
            right |= {"last_id": last.id, "cum": last.cumulative_bytes}
            right["last_ms"] = max(counters.last_ms, last.timestamp_ms)
        for name, value in right.items():
            if getattr(self.held, name) != value:
                self._told(name, f"{name} is {getattr(self.held, name)}, not {value}", derivable=True)
        # Nobody knows who took what went without a trace; it is not put down to retention.
        right["by_hand"] = counters.by_hand + missing
        right["by_hand_bytes"] = counters.by_hand_bytes + sum(size for _, _, size in self.right.gone)
        if "latest" in self._anew:
            right["indexed"] = 0  # the worker makes the index again
        if "kept" in self._anew:
            right["passed"] = 0  # and looks again at what groups want
        self.right.counters = msgspec.structs.replace(counters, **right)

    def _keys(self) -> None:
        """A key whose newest message went by itself is forgotten; else it knows its newest."""
        for key, offset in self._newest_of_key.items():
            held = self.held_keys[key]
            if not self._is_there(offset):
                continue
            absent = held is None and (self.counters.removals == 0 or "by_key" in self._anew)
            if absent or (held is not None and int(held) < offset):
                self.right.by_key[key] = offset
                self._told(f"key {key}", f"the key {key} does not know {offset}, its newest", derivable=True)

    @property
    def entries(self) -> fsck_indexes.Entries:
        """What was gathered, to hold the indexes against; after ``end``."""
        return fsck_indexes.Entries(
            last=self.counters.last,
            is_there=self._is_there,
            ids=self._ids,
            newest=self._newest_of_key,
            ends=self._ends,
        )

    def _is_there(self, offset: int) -> bool:
        is_stored = offset >= self.counters.floor and offset in self._sizes
        return is_stored and not ranges.holds(self._went, offset)

    def beyond(self, extra: fsck_indexes.Extra) -> None:
        """What indexes hold of messages that are not there, or have other ids, keys or none."""
        for bucket, id_, offset in extra.ids:
            self.right.ids_gone.append((bucket, id_))
            self._told(
                f"id {id_}", f"the id {id_} is remembered for {offset}, which has not it", derivable=True
            )
        for key, offset, newest in extra.by_key:
            self.right.by_key[key] = newest
            self._told(f"key {key}", f"the key {key} knows {offset}, which has not it", derivable=True)
        for offset in extra.expiry:
            self.right.expiry[offset] = -1
            self._told(f"expiry {offset}", f"an end of {offset} is noted, which has none", derivable=True)

    def hide(self, runs: Sequence[tuple[int, int, int]]) -> None:
        """What went from between others, by these runs, and is still there waits for the history."""
        went = _spans(runs, self.counters.floor, self.counters.last)
        self.right.hidden = [offset for offset in self._sizes if ranges.holds(went, offset)]
        hidden = int(bool(self.right.hidden)) or self.right.counters.hidden
        self.right.counters = msgspec.structs.replace(self.right.counters, hidden=hidden)

    def _told(self, what: str, sentence: str, *, derivable: bool = False) -> None:
        self.findings.append(
            Finding(stream_id=self.stream_id, what=what, sentence=sentence, derivable=derivable)
        )


def _spans(runs: Sequence[tuple[int, int, int]], floor: int, last: int) -> list[Range]:
    return ranges.joined(sorted((first, end) for first, end, _ in runs), floor, last)


def first_between(stream_id: str, after: int, upto: int) -> Op[int | None]:
    """The first offset above one and up to another whose message is there; None: none is.

    Raises:
        StoreUnavailable: its server does not answer.
    """
    found = yield ("XRANGE", keys.log(stream_id), after + 1, upto, "COUNT", 1)
    return entries.position(found[0])[0] if found else None


def mend(stream_id: str, looked: Looked) -> Op[bool]:
    """Put right what follows from the entries; False when the stream changed since it was looked at.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    right = looked.right
    packed = meta.pack(right.counters)
    pairs = [
        *((f"ids:{bucket}", id_, -1) for bucket, id_ in right.ids_gone),
        *((f"ids:{right.counters.ids_now}", id_, offset) for id_, offset in right.ids.items()),
        *(("by_key", key, offset) for key, offset in right.by_key.items()),
        *(("expiry", offset, ends_ms) for offset, ends_ms in right.expiry.items()),
        *(("gone", f"{first}:{last}", size) for first, last, size in right.gone),
        *(("hidden", offset, offset) for offset in right.hidden),
    ]
    held = looked.held
    for part in _parts(pairs):
        flat = [text for pair in part for text in pair]
        mended = yield Script("mend", _mended_keys(stream_id), [held, packed, *flat])
        if not mended:
            return False
        held = packed
    return True


def _mended_keys(stream_id: str) -> list[str]:
    return [
        keys.meta(stream_id),
        keys.ids(stream_id, 0),
        keys.ids(stream_id, 1),
        keys.by_key(stream_id),
        keys.expiry(stream_id),
        keys.gone(stream_id),
        keys.hidden(stream_id),
    ]


def _parts(pairs: Sequence[tuple[str, Any, Any]]) -> Iterator[Sequence[tuple[str, Any, Any]]]:
    """Slices; one without pairs where there are none, for the counters."""
    for first in range(0, max(1, len(pairs)), MENDED_AT_ONCE):
        yield pairs[first : first + MENDED_AT_ONCE]
