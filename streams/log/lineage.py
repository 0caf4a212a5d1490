"""Whether another server has taken the store's place: it may lack what was acknowledged last, and goes on from there.

A replica that is promoted begins a replication id of its own and keeps the one of the server that it followed (Valkey
docs, replication: "Replication ID explained"). A server that starts again alone keeps none, and is no other one.
"""

from dataclasses import dataclass

from streams.log import keys
from streams.log.client import Op, Pipeline

_NONE = "0" * 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where the durable store stands in its line of servers.

    Attributes:
        is_replica: it follows another server and takes nothing.
        noted: how many promotions were noted.
        fresh: the replication id of a server whose promotion was not noted yet; empty where it was.
    """

    is_replica: bool
    noted: int
    fresh: str

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
    info = dict(line.partition(":")[::2] for line in told.decode().splitlines())
    is_replica = info.get("role") == "slave"
    was_promoted = not is_replica and info.get("master_replid2", _NONE) != _NONE
    own = info.get("master_replid", "")
    return Lineage(
        is_replica=is_replica,
        noted=int(number or 0),
        fresh=own if was_promoted and own != (server or b"").decode() else "",
    )


def note(lineage: Lineage) -> Op[None]:
    """Note the promotion that was found."""
    yield ("HSET", keys.EPOCH, "number", lineage.epoch, "server", lineage.fresh)
