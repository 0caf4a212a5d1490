"""A history without a fault, and what another one is made of it with."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from okmq.prove.history import (
    Commit,
    Fetch,
    GroupAtRest,
    History,
    Operation,
    Publish,
    Read,
    Remains,
    Seen,
    Settle,
    Taken,
)

STREAM, GROUP = "s", "g"
AGED, LIVES_S = "t", 20.0
ACK_WAIT_S = 2.0
Kind = TypeVar("Kind", bound=Operation)


def key(offset: int) -> str:
    return "k" if offset in {2, 4} else ""


def headers(offset: int) -> int:
    return 7 if offset in {1, 4} else 0


def message(offset: int) -> Seen:
    content = (f"2026-01-01T00:00:{offset:02d}.000Z", offset)
    return Seen(offset=offset, id=f"m{offset}", content=content, key=key(offset), headers=headers(offset))


def taken(offset: int, number: int = 1) -> Taken:
    seen = message(offset)
    return Taken(
        offset=offset, id=seen.id, content=seen.content, key=seen.key, headers=seen.headers, number=number
    )


def publish(began: float, *offsets: int) -> Publish:
    return Publish(
        began=began,
        ended=began + 0.5,
        outcome="ok",
        stream=STREAM,
        ids=tuple(f"m{offset}" for offset in offsets),
        bodies=offsets,
        keys=tuple(map(key, offsets)),
        headers=tuple(map(headers, offsets)),
        offsets=offsets,
        known=(False,) * len(offsets),
        durability="fsync",
    )


def fetch(began: float, member: str, *deliveries: Taken) -> Fetch:
    return Fetch(
        began=began,
        ended=began + 0.1,
        outcome="ok",
        stream=STREAM,
        group=GROUP,
        member=member,
        limit=4,
        taken=deliveries,
    )


def ack(began: float, *offsets: int, number: int = 1) -> Settle:
    about = tuple((offset, number) for offset in offsets)
    return Settle(
        began=began,
        ended=began + 0.1,
        outcome="ok",
        stream=STREAM,
        group=GROUP,
        kind="ack",
        about=about,
    )


def read(began: float, *offsets: int) -> Read:
    return Read(
        began=began,
        ended=began + 0.1,
        outcome="ok",
        stream=STREAM,
        start=offsets[0],
        limit=len(offsets),
        messages=tuple(map(message, offsets)),
    )


def commit(began: float, offset: int, previous: int) -> Commit:
    return Commit(
        began=began, ended=began + 0.1, outcome="ok", stream=STREAM, offset=offset, previous=previous
    )


def clean() -> History:
    """Six messages in three batches, of which one was sent twice, read, delivered, committed, all of it as promised.

    And two in another stream, which are over when they are.
    """
    lost_answer = replace(publish(1, 3, 4), outcome="info", offsets=(), known=())
    again = replace(publish(2, 3, 4), known=(True, True))
    refused = replace(publish(2.6, 90), outcome="fail", offsets=(), known=(), code="message_too_large")
    history = History(ack_wait_s=ACK_WAIT_S, by_key=frozenset({GROUP}))
    history.operations = [
        *(publish(0, 1, 2), lost_answer, again, refused, publish(3, 5, 6)),
        *(read(4, 1, 2, 3), read(5, 4, 5, 6)),
        fetch(4, "a", taken(1), taken(2), taken(3)),
        ack(4.2, 1, 2),
        fetch(7, "b", taken(3, 2), taken(4), taken(5), taken(6)),
        replace(ack(7.2, 3, 4), kind="nack", about=((3, 2), (4, 1))),
        fetch(7.4, "a", taken(3, 3), taken(4, 2)),
        *(ack(7.6, 3, number=3), ack(7.6, 4, number=2), ack(7.6, 5, 6)),
        *(commit(5, 2, 0), commit(6, 4, 2)),
        replace(publish(50, 1, 2), stream=AGED),
        *(replace(each, stream=AGED) for each in (read(69, 1, 2), replace(read(71, 1), messages=()))),
    ]
    history.lives_s = {AGED: LIVES_S}
    history.remains[STREAM] = Remains(
        messages=tuple(map(message, range(1, 7))),
        offset=6,
        count=6,
        committed=4,
        groups=(GroupAtRest(name=GROUP, lag=0, pending=0),),
    )
    return history


def keep(history: History, *offsets: int) -> None:
    """Leave only these in the stream, and let it count them rightly."""
    left = tuple(each for each in history.remains[STREAM].messages if each.offset in offsets)
    history.remains[STREAM] = replace(
        history.remains[STREAM], messages=left, offset=max(offsets), count=len(left)
    )


def change(history: History, kind: type[Kind], number: int, make: Callable[[Kind], Operation]) -> None:
    """Put another in the place of the n-th operation of a kind."""
    places = [at for at, each in enumerate(history.operations) if isinstance(each, kind)]
    found = history.operations[places[number]]
    assert isinstance(found, kind)
    history.operations[places[number]] = make(found)


def end_with(history: History, offset: int, make: Callable[[Seen], Seen]) -> None:
    """Let a message be another in the end."""
    held = history.remains[STREAM].messages
    changed = tuple(make(each) if each.offset == offset else each for each in held)
    history.remains[STREAM] = replace(history.remains[STREAM], messages=changed)
