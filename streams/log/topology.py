"""Where in a cluster each command goes: which node has its key, and which nodes there are.

The keys of a stream lie together by their tag. Those of the installation (names, tokens, the worker's lease …) have
none on a single server; in a cluster each carries the same one, and so they lie together, too: on the node of ``HOME``.
"""

import time
from collections.abc import Sequence
from typing import Any

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import ClusterDownError, MovedError, RedisError, ResponseError
from redis.exceptions import ConnectionError as StoreConnectionError

from streams import addresses
from streams.log import keys

Command = Sequence[Any]

TAG = "{okmq}"
"""Ends the keys of the installation in a cluster. No stream has this id, and no key of a stream begins alike."""

HOME = f"okmq{TAG}"
"""A key that would lie where those of the installation lie."""

SLOTS = ("CLUSTER", "SLOTS")

LOOK_EVERY_S = 0.5
"""While nodes are away it is asked no more often where the slots are."""

KEYLESS = frozenset({"CONFIG", "FUNCTION", "INFO", "PING", "PUBSUB", "SCAN", "TIME"})
"""Commands whose first argument is no key: they go where the one before them goes, or the first one that has a key."""

CHANNELS = frozenset({"PUBLISH"})
"""Commands whose first argument is a channel, which keeps its name: every node tells all others what is said."""


class Topology:
    """Which node has which slot, as far as is known.

    Args:
        url: of the cluster.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._owners: list[str] = []
        self._is_stale = True
        self._looked_at = 0.0
        # The nodes that did not answer when they were asked last, and when to ask them again.
        self._away: dict[str, float] = {}
        self._servers: dict[str, str] = {}
        self._servers_of: list[str] | None = None

    @property
    def is_known(self) -> bool:
        """Whether it was ever told where the slots are."""
        return bool(self._owners)

    def servers(self) -> list[str]:
        """For each node that has slots an internal id that no stream has, and that lies there; ``HOME``'s first."""
        owners = self._owners
        if self._servers_of is not owners:
            found = dict.fromkeys(filter(None, [self.owner(HOME), *owners]), "")
            left = set(found)
            while left:
                stream_id = keys.stream_id()
                owner = owners[_slot(keys.meta(stream_id))]
                if owner in left:
                    found[owner] = stream_id
                    left.discard(owner)
            self._servers, self._servers_of = found, owners
        return list(self._servers.values())

    def asked(self) -> list[str]:
        """The nodes to ask for the slots, one after the other; those that are away last."""
        found = dict.fromkeys([*filter(None, self._owners), *addresses.nodes(self._url)])
        return sorted(found, key=lambda node: node in self._away)

    def is_due(self, *, now: float) -> bool:
        """Whether to ask for the slots (again), which is then taken for done."""
        if not self._is_stale or (self._owners and now - self._looked_at < LOOK_EVERY_S):
            return False
        self._looked_at = now
        return True

    def doubt(self) -> None:
        """A slot is not where it was: look again at once."""
        self._is_stale, self._looked_at = True, float("-inf")

    def heard(self, node: str, replies: Sequence[Any], *, asked_at: float) -> None:
        """What a node answered. Where it did not, or serves nothing: look where its slots are now, and leave it alone
        the longer the longer that took.
        """
        if any(map(is_away, replies)):
            now = time.monotonic()
            self._is_stale = True
            self._away[node] = now + max(LOOK_EVERY_S, 3 * (now - asked_at))
        elif self._away:
            self._away.pop(node, None)

    def to_ask_again(self) -> list[tuple[str, Command]]:
        """The nodes that were away and may be back, and what to ask each: for a key, since one that has just come back
        answers without serving any.
        """
        if not self._away:
            return []
        self.servers()
        now = time.monotonic()
        self._away = {node: at for node, at in self._away.items() if node in self._servers}
        return [
            (node, ("EXISTS", keys.meta(self._servers[node]))) for node, at in self._away.items() if at <= now
        ]

    def reachable(self, stream_ids: Sequence[str]) -> Sequence[str]:
        """The streams whose nodes are not known to be away; all of them while that of the installation is."""
        if not self._away or self.owner(HOME) in self._away:
            return stream_ids
        return [each for each in stream_ids if self.owner(keys.meta(each)) not in self._away]

    def learn(self, told: Sequence[Any], *, asked: str) -> bool:
        """Take over what a node says to ``SLOTS``; false where it knows of none."""
        owners = [""] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, primary, *_ in told:
            host, port = primary[0], int(primary[1])
            # A node that does not know its own address says nothing: it is the one that was asked.
            address = addresses.node(self._url, host.decode(), port) if host else asked
            owners[first : last + 1] = [address] * (last + 1 - first)
        if not any(owners):
            return False
        self._owners, self._is_stale = owners, False
        return True

    def node_of(self, key: str) -> str:
        """The address of the node that has a key.

        Raises:
            ConnectionError: none has its slot.
        """
        owner = self.owner(key)
        if not owner:
            self._is_stale = True
            raise StoreConnectionError("no node of the cluster has the slot of this key")
        return owner

    def shared_out(self, commands: Sequence[Command]) -> dict[str, list[int]]:
        """The places of commands by the address of the node that each is for; "" where no node has its slot."""
        names = [key_of(command) for command in commands]
        name = next((each for each in names if each is not None), HOME)
        found: dict[str, list[int]] = {}
        for place, own in enumerate(names):
            name = name if own is None else own
            found.setdefault(self.owner(name), []).append(place)
        return found

    def owner(self, key: str) -> str:
        """The address of the node that has a key; empty where none is known to."""
        return self._owners[_slot(key)] if self._owners else ""


def _slot(key: str) -> int:
    slot: int = key_slot(key.encode("utf-8", "surrogateescape"))
    return slot


def placed(key: str) -> str:
    """The name of a key in a cluster."""
    return key if "{" in key else key + TAG


def key_of(command: Command) -> str | None:
    """What a command goes by, a key or a channel; None where it has neither."""
    if command[0] == "FCALL":
        key: str = command[3]
    elif len(command) < 2 or command[0] in KEYLESS:
        return None
    else:
        key = command[1]
    return placed(key)


def told(command: Command) -> Command:
    """A command with the names that its keys have in a cluster."""
    if command[0] == "FCALL":
        end = 3 + command[2]
        if "{" in command[3]:
            return command  # all are of one stream, or of several
        return (*command[:3], *map(placed, command[3:end]), *command[end:])
    key = key_of(command)
    return command if key is None or command[0] in CHANNELS else (command[0], key, *command[2:])


def is_moved(reply: Any) -> bool:
    """Whether a node refused a command because another one has its key."""
    return isinstance(reply, MovedError) or (
        isinstance(reply, RedisError) and str(reply).startswith("MOVED ")
    )


def is_away(reply: Any) -> bool:
    """Whether a reply is none: the connection broke, or the node does not serve yet or for now."""
    return isinstance(reply, RedisError) and (
        not isinstance(reply, ResponseError)
        or isinstance(reply, ClusterDownError)
        or str(reply).startswith(("CLUSTERDOWN ", "LOADING "))
    )
