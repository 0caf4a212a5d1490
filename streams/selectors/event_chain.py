"""Proving the chain of events, and reading it out whole."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from streams import chain, store
from streams.log import anchors
from streams.models import Event, EventHead

SLICE = 1000
MOST_FAULTS = 20


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that breaks the chain: the event's id and a sentence."""

    event_id: int
    sentence: str


@dataclass(slots=True)
class Proof:
    """What a walk over the whole chain found.

    Attributes:
        events: how many were looked at.
        last, hash: the end of the chain: what to keep in another place.
        anchors: how many anchors the message store had to compare with.
        faults: in order of their ids, at most ``MOST_FAULTS``; empty when the chain holds.
    """

    events: int = 0
    last: int = 0
    hash: str = ""
    anchors: int = 0
    faults: list[Fault] = field(default_factory=list)

    def fault(self, event_id: int, sentence: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(event_id, sentence))


def events_prove(*, expected: tuple[int, str] | None = None) -> Proof:
    """Walk the chain from its first event and compare it with its head and with what other places know of it.

    Altered, removed, inserted and reordered rows break a link or a hash; a tail that was cut off is missed by the
    head, by the anchors in the message store, and by what was kept elsewhere.

    Args:
        expected: id and hash of an event, as an earlier proof printed them.

    Raises:
        LogError: the message store, which keeps the anchors, does not answer.
    """
    proof = Proof()
    start = EventHead.objects.first()
    known = [] if start is None else store.log().run(anchors.known(start.chain))
    proof.anchors = len(known)
    outside = [(event_id, digest, "the message store") for event_id, digest in known]
    if expected is not None:
        outside.append((*expected, "what was kept elsewhere"))
    wanted: dict[int, list[tuple[str, str]]] = {}
    for event_id, digest, place in outside:
        wanted.setdefault(event_id, []).append((digest, place))
    proof.hash = "" if start is None else start.chain

    _walk(proof, wanted)
    with transaction.atomic():
        head = EventHead.objects.select_for_update().first()
        _walk(proof, wanted)  # what was written meanwhile; nothing more comes while the head is held
        _compare_head(proof, head)
    for event_id in sorted(wanted):
        if event_id > proof.last:
            places = " and ".join(sorted({place for _, place in wanted[event_id]}))
            proof.fault(event_id, f"It is missing, and {places} knows it: the end of the chain was cut off.")
            break
    if proof.events and not known:
        proof.fault(proof.last, "The message store knows nothing of this chain.")
    return proof


def _walk(proof: Proof, wanted: dict[int, list[tuple[str, str]]]) -> None:
    while rows := list(Event.objects.filter(id__gt=proof.last).order_by("id")[:SLICE]):
        for row in rows:
            for sentence in _faults(row, previous=proof.hash):
                proof.fault(row.id, sentence)
            for digest, place in wanted.get(row.id, ()):
                if digest != row.hash:
                    proof.fault(row.id, f"{place} knows another hash of it.".capitalize())
            proof.events, proof.last, proof.hash = proof.events + 1, row.id, row.hash


def _faults(row: Event, *, previous: str) -> Iterator[str]:
    if row.previous != previous:
        yield "It does not follow the event before it: one was removed, inserted, moved or changed."
    if row.digest() != row.hash:
        yield "Its content is not what was hashed: it was changed."


def first_fault(rows: Sequence[Event], *, previous: str) -> str:
    """What is wrong with the first of these events that does not hold, as a sentence that names it; empty for none."""
    for row in rows:
        for sentence in _faults(row, previous=previous):
            return f"Event {row.id}: {sentence}"
        previous = row.hash
    return ""


def _compare_head(proof: Proof, head: EventHead | None) -> None:
    if head is None:
        if proof.events:
            proof.fault(proof.last, "The head of the chain is missing.")
    elif head.last > proof.last:
        proof.fault(head.last, f"It is missing: the chain ends at {proof.last}.")
    elif (head.last, head.hash) != (proof.last, proof.hash):
        proof.fault(proof.last, f"The chain should end at {head.last}: what follows was inserted or changed.")


def events_exported(*, after: int = 0, workspace: str = "") -> Iterator[dict[str, Any]]:
    """Events in order, as they are hashed, with ``previous`` and ``hash``; in slices, whatever their number."""
    found = Event.objects.order_by("id")
    if workspace:
        found = found.filter(workspace=workspace)
    while rows := list(found.filter(id__gt=after)[:SLICE]):
        for row in rows:
            content = {name: getattr(row, name) for name in (*chain.FIELDS, "previous", "hash")}
            content["time"] = row.time.isoformat(timespec="microseconds")
            yield content
        after = rows[-1].id
