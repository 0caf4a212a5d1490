"""A stream and its consumer groups in plain Python: what the contract says, with dictionaries and no clock.

Time is an event here: the test says that a delivery has come due (``GroupModel.ripe``), the model never looks.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

RIPE_AT_ONCE = 100
"""So many due deliveries are looked at in one fetch, or as many as it asks for."""


@dataclass(frozen=True)
class Held:
    """A stored message."""

    id: str
    body: str
    key: str | None
    timestamp: str

    @property
    def size(self) -> int:
        return len(f'"{self.body}"')


@dataclass
class Flight:
    """A message that is out: how often it was delivered, to whom, under which lease (none yet after a replay)."""

    deliveries: int
    consumer: str = ""
    lease: str | None = None

    def is_with(self, consumer: str) -> bool:
        return self.lease is not None and self.consumer == consumer


@dataclass(frozen=True)
class Letter:
    """A dead letter."""

    held: Held
    reason: str
    deliveries: int


@dataclass
class StreamModel:
    """The stored messages by offset."""

    held: dict[int, Held] = field(default_factory=dict)
    ever: dict[int, Held] = field(default_factory=dict)
    """Also what has gone."""
    ids: dict[str, int] = field(default_factory=dict)
    last: int = 0
    floor: int = 1
    max_messages: int | None = None
    max_bytes: int | None = None
    max_of_key: int | None = None
    by_interest: bool = False

    @property
    def first(self) -> int:
        """The first stored offset, or the next one."""
        return min(self.held, default=self.last + 1)

    def append(self, held: Held) -> int:
        """The offset that it got, or had."""
        if held.id not in self.ids:
            self.last += 1
            self.ids[held.id] = self.last
            self.held[self.last] = self.ever[self.last] = held
        return self.ids[held.id]

    def evict(self) -> None:
        """Let the oldest go until the limits are kept."""
        while self.held and (
            (self.max_messages is not None and len(self.held) > self.max_messages)
            or (self.max_bytes is not None and sum(each.size for each in self.held.values()) > self.max_bytes)
        ):
            oldest = min(self.held)
            del self.held[oldest]
            self.floor = oldest + 1

    def keep_newest_of_keys(self) -> None:
        of_key: dict[str, list[int]] = {}
        for offset, held in sorted(self.held.items()):
            if held.key is not None:
                of_key.setdefault(held.key, []).append(offset)
        for offsets in of_key.values():
            for offset in offsets[: -self.max_of_key] if self.max_of_key else []:
                del self.held[offset]

    def purge(self, *, below: int | None = None, keep: int = 0) -> int:
        before = len(self.held)
        if below is not None:
            self.floor = max(self.floor, min(below, self.last + 1))
            self.held = {offset: held for offset, held in self.held.items() if offset >= below}
        elif len(self.held) > keep:
            gone = sorted(self.held)[: len(self.held) - keep]
            self.floor = gone[-1] + 1
            for offset in gone:
                del self.held[offset]
        return before - len(self.held)

    def delete(self, offsets: Iterable[int]) -> int:
        gone = [self.held.pop(offset) for offset in offsets if offset in self.held]
        self.floor = max(self.floor, min(self.held, default=self.last + 1))
        return len(gone)

    def release(self, groups: Iterable["GroupModel"]) -> None:
        """What no group wants any more goes, where messages are kept by interest."""
        if self.by_interest:
            wanted = {offset for group in groups for offset in (*group.out, *group.ahead)}
            self.delete([offset for offset in self.held if offset not in wanted])


@dataclass
class GroupModel:
    """What one group has delivered, what is out, what came due, what died."""

    stream: StreamModel
    ack: str = "explicit"
    max_deliver: int = -1
    max_ack_pending: int = 1000
    prefix: str | None = None
    delivered: int = 0
    out: dict[int, Flight] = field(default_factory=dict)
    ripe: set[int] = field(default_factory=set)
    dead: dict[int, Letter] = field(default_factory=dict)
    replayed: dict[int, Letter] = field(default_factory=dict)
    paused: bool = False
    redelivered: int = 0
    lost: int = 0
    """What went before it was delivered."""
    leases: dict[str, int] = field(default_factory=dict)
    """Every lease, also those that are over and those of before a seek: lease → offset."""

    def wants(self, held: Held) -> bool:
        return self.prefix is None or (held.key is not None and held.key.startswith(self.prefix))

    @property
    def ahead(self) -> list[int]:
        """What is stored, wanted and not yet delivered."""
        return [
            offset
            for offset in sorted(self.stream.held)
            if offset > self.delivered and self.wants(self.stream.held[offset])
        ]

    def content(self, offset: int) -> Held | None:
        letter = self.replayed.get(offset)
        return self.stream.held.get(offset) or (letter.held if letter else None)

    def fetch(self, *, limit: int, max_bytes: int, consumer: str) -> list[tuple[int, Held, int]]:
        """What a fetch gets: offset, message, deliveries."""
        if self.paused:
            return []
        given: list[tuple[int, Held, int]] = []
        room_bytes = max_bytes

        def give(offset: int, held: Held, deliveries: int) -> None:
            nonlocal room_bytes
            room_bytes -= held.size
            given.append((offset, held, deliveries))
            if self.ack != "none":
                self.out[offset] = Flight(deliveries, consumer)

        for offset in sorted(self.ripe):
            held, deliveries = self.content(offset), self.out[offset].deliveries
            assert held is not None, "what went is out no more"
            if len(given) < limit and (not given or held.size <= room_bytes):
                self.redelivered += deliveries > 0
                self.ripe.discard(offset)
                if self.ack == "none":
                    self._settle([offset])
                give(offset, held, deliveries + 1)
        for offset in self.ahead:
            if len(given) == limit or (self.ack != "none" and len(self.out) >= self.max_ack_pending):
                break
            held = self.stream.held[offset]
            if given and held.size > room_bytes:
                break
            self.delivered = offset
            give(offset, held, 1)
        return given

    def leased(self, offset: int, lease: str) -> None:
        """A delivery came with this lease."""
        assert lease not in self.leases
        self.leases[lease] = offset
        if offset in self.out:
            self.out[offset].lease = lease

    def targets(
        self,
        offsets: Iterable[int],
        *,
        covers: bool = False,
        holder: str | None = None,
        also_undelivered: bool = False,
    ) -> set[int]:
        """Which deliveries an answer is about; with ``covers`` also everything before the highest.

        With a holder only what is with this consumer, or was last and with nobody since, is meant. What was replayed
        and did not go out since is only meant with ``also_undelivered``.
        """
        named = set(offsets)
        if holder is not None:
            named = {n for n in named if n in self.out and self.out[n].is_with(holder)}
        if covers:
            named = {offset for offset in self.out if offset <= max(named, default=0)}
        return {n for n in named if n in self.out and (also_undelivered or self.out[n].deliveries)}

    def targets_of_leases(self, leases: Iterable[str], *, covers: bool = False) -> set[int] | None:
        """The same by lease; None when one has passed to another delivery."""
        delivered = {offset for offset, flight in self.out.items() if flight.deliveries}
        live = {lease: self.leases[lease] for lease in leases if self.leases.get(lease) in delivered}
        if any(self.out[offset].lease != lease for lease, offset in live.items()):
            return None
        found = set(live.values())
        return self.targets(found, covers=covers) if found else found

    def settle(self, targets: set[int]) -> None:
        self._settle(targets)

    def due(self, targets: set[int]) -> None:
        """They come again with the next fetch; what was delivered often enough dies now."""
        self.ripe |= targets
        self.retire()

    def retire(self) -> None:
        """What is due and was delivered as often as it may be is a dead letter, whether or not anybody fetches."""
        for offset in sorted(self.ripe):
            held, deliveries = self.content(offset), self.out[offset].deliveries
            assert held is not None, "what went is out no more"
            if 0 < self.max_deliver <= deliveries:
                self._bury(offset, held, "max_deliver")

    def wait(self, targets: set[int]) -> None:
        """They come again much later."""
        self.ripe -= targets

    def term(self, targets: set[int], reason: str) -> None:
        for offset in targets:
            held = self.content(offset)
            assert held is not None, "what went is out no more"
            self._bury(offset, held, reason)

    def replay(self, offsets: Iterable[int]) -> int:
        found = [offset for offset in dict.fromkeys(offsets) if offset in self.dead]
        for offset in found:
            letter = self.dead.pop(offset)
            if offset in self.ahead:
                continue  # after a seek the group comes to it by itself
            self.replayed[offset] = letter
            if offset not in self.out:
                self.out[offset] = Flight(0)
                self.ripe.add(offset)
        return len(found)

    def seek(self, next_offset: int) -> None:
        self.delivered = next_offset - 1
        self.dead |= self.replayed
        self.out, self.ripe, self.replayed = {}, set(), {}

    def loses(self, before: Iterable[int], *, last: int) -> None:
        """The stream changed: what was ahead before, and its last offset then.

        What went without a delivery is lost, also what is pushed out by the batch that brought it; what went while it
        was out is out no more.
        """
        fresh = (n for n in range(last + 1, self.stream.last + 1) if self.wants(self.stream.ever[n]))
        self.lost += len({*before, *fresh} - set(self.ahead))
        self._settle([offset for offset in self.out if self.content(offset) is None])

    def _bury(self, offset: int, held: Held, reason: str) -> None:
        self.dead[offset] = Letter(held, reason, self.out[offset].deliveries)
        self._settle([offset])

    def _settle(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            self.out.pop(offset, None)
            self.replayed.pop(offset, None)
            self.ripe.discard(offset)


@dataclass
class OrderedModel(GroupModel):
    """A group with ``ordered_by_key``.

    Which keys a fetch goes through first is not promised, so what it got is judged instead of foretold.
    """

    passed: set[int] = field(default_factory=set)
    """What was delivered since the last seek."""

    @property
    def ahead(self) -> list[int]:
        return [offset for offset in super().ahead if offset not in self.passed]

    def seek(self, next_offset: int) -> None:
        super().seek(next_offset)
        self.passed = set()

    def judge(
        self, got: list[int], *, limit: int, consumer: str, is_in_order: bool = True
    ) -> list[tuple[int, Held, int]]:
        """Whether a fetch may have got these offsets, and in this order; answers as ``fetch``.

        Args:
            is_in_order: the offsets are of one fetch, as it got them.
        """
        if self.paused:
            assert not got
            return []
        again = {offset for offset in self.ripe if self.out[offset].deliveries}
        assert len(got) == limit or again <= set(got), "something due did not come"
        came_again = sorted(again & set(got))
        assert came_again == sorted(again)[: len(came_again)], "something due earlier was passed over"
        if is_in_order:
            replayed = {offset for offset in got if offset in self.out and offset not in again}
            assert is_as_documented(got, again=again, replayed=replayed), (
                f"{got}: due {again}, replayed {replayed}"
            )
        given = []
        for offset in got:
            held = self.content(offset)
            assert held is not None
            if offset not in again:
                assert not self._is_busy(held.key), f"{offset}: another message of {held.key} is out"
                assert offset in self.out or offset == self._first(held.key), f"{offset} is out of turn"
            before = self.out[offset].deliveries if offset in self.out else 0
            self.redelivered += before > 0
            self.out[offset] = Flight(before + 1, consumer)
            self.ripe.discard(offset)
            self.passed.add(offset)
            given.append((offset, held, before + 1))
        assert got or not self._can_go(), "nothing came, though something could"
        return given

    def can_get(self) -> bool:
        """Whether a fetch would get anything now."""
        return not self.paused and (
            any(self.out[offset].deliveries for offset in self.ripe) or self._can_go()
        )

    def _is_busy(self, key: str | None) -> bool:
        """Whether a message of the key is with a member, or will be again."""
        out = [offset for offset, flight in self.out.items() if flight.deliveries]
        return key is not None and any(held.key == key for held in map(self._known, out) if held)

    def _known(self, offset: int) -> Held | None:
        return self.stream.ever.get(offset)

    def _first(self, key: str | None) -> int | None:
        """What is next of a key; without one everything is, in order."""
        return next((offset for offset in self.ahead if self.stream.held[offset].key == key), None)

    def _can_go(self) -> bool:
        waiting = [offset for offset, flight in self.out.items() if not flight.deliveries]
        fresh = self.ahead if len(self.out) < self.max_ack_pending else []
        return any(not self._is_busy(self.stream.ever[offset].key) for offset in [*waiting, *fresh])


def is_as_documented(got: list[int], *, again: set[int], replayed: set[int]) -> bool:
    """Whether a fetch that takes turns by key came in order.

    What is due again comes first, in the order of offsets. A replayed dead letter is due at once, too, or waits for its
    key's turn. In which order the keys come after that is not promised.
    """
    return any(
        got[:split] == sorted(got[:split])
        and set(got[:split]) <= again | replayed
        and not again & set(got[split:])
        for split in range(len(got) + 1)
    )
