"""Whether another server has taken the store's place: it may lack what was acknowledged last, and goes on from there.

A replica that is promoted begins a replication id of its own and keeps the one of the server that it followed (Valkey
docs, replication: "Replication ID explained"). A server that starts again alone keeps none, and is no other one.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from streams.log import keys
from streams.log.client import Op, Pipeline, Reachable, Servers, small
from streams.log.errors import StoreUnavailable

KEPT = 50
"""Promotions in a cluster that are remembered by their servers."""

_NONE, _REPLICA = "0" * 40, "slave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where the durable store stands in its line of servers.

    Attributes:
        is_replica: it follows another server and takes nothing.
        noted: how many promotions were noted.
        fresh: the replication id of a server whose promotion was not noted yet; empty where it was. Of the nodes of a
            cluster one after the other has its turn.
        known: of the nodes of a cluster, the replication ids whose promotions were noted last.
    """

    is_replica: bool
    noted: int
    fresh: str
    known: tuple[str, ...] = ()

    @property
    def epoch(self) -> int:
        """How many promotions there were: an offset names one message within one epoch."""
        return self.noted + bool(self.fresh)


def look() -> Op[Lineage]:
    """Where the store stands.

    Raises:
        StoreUnavailable: it does not answer.
    """
    (number, server), told = yield Pipeline(
        [("HMGET", keys.EPOCH, "number", "server"), ("INFO", "replication")]
    )
    known = tuple((server or b"").decode().split())
    info = _facts(told)
    promoted = [_promoted(info)]
    others = (yield Servers())[1:]
    for stream_id in (yield Reachable(others)):
        with suppress(StoreUnavailable):
            _, told = yield Pipeline([("EXISTS", keys.meta(stream_id)), ("INFO", "replication")])
            promoted.append(_promoted(_facts(told)))
    return Lineage(
        is_replica=info.get("role") == _REPLICA,
        noted=int(number or 0),
        fresh=next((own for own in promoted if own and own not in known), ""),
        known=known if others else (),
    )


def note(lineage: Lineage, *, epoch: int) -> Op[None]:
    """Note that an epoch has begun, and with it the promotion that was found, where one was."""
    known = ("server", " ".join((lineage.fresh, *lineage.known)[:KEPT])) if lineage.fresh else ()
    yield small("HSET", keys.EPOCH, "number", epoch, *known)


def raise_above(epoch: int) -> Op[int]:
    """Let an epoch begin that is above this one and above the present one; answers it.

    For a store that lost what it held: it does not know any more how many promotions it had noted.
    """
    lineage = yield from look()
    fresh = max(lineage.epoch, epoch) + 1
    yield small("HSET", keys.EPOCH, "number", fresh - bool(lineage.fresh))
    return fresh


def _facts(told: bytes) -> dict[str, str]:
    return dict(line.partition(":")[::2] for line in told.decode().splitlines())


def _promoted(info: Mapping[str, str]) -> str:
    """The replication id of a server that was promoted; empty of one that was not, or is none that takes anything."""
    if info.get("role") == _REPLICA or info.get("master_replid2", _NONE) == _NONE:
        return ""
    return info.get("master_replid", "")
