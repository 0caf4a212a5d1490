"""A real cluster of three Valkey nodes on loopback."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from okmq.supervision import resp
from okmq.supervision.children import Child, Plan
from okmq.supervision.valkey import binary
from streams.log import keys
from streams.log.client import Log
from streams.log.commands import one
from streams.log.topology import HOME
from tests.product import free_port
from tests.waiting import until

NODES = 3
OPTIONS = (
    *("--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always"),
    *("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no", "--cluster-node-timeout", "1000"),
)


@dataclass(kw_only=True)
class Node:
    """One server of the cluster: the share of the slots that it has, and its process."""

    slots: range
    folder: Path
    port: int = field(default_factory=free_port)
    bus_port: int = field(default_factory=free_port)
    child: Child = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        ports = ("--port", str(self.port), "--cluster-port", str(self.bus_port))
        command = (str(binary()), *ports, *OPTIONS, "--dir", str(self.folder))
        plan = Plan(name="node", command=command, environ=dict(os.environ), log=self.folder / "log")
        self.child = Child(plan=plan)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def has(self, key: str) -> bool:
        """Whether a key lies there."""
        return key_slot(key.encode()) in self.slots

    def start(self) -> None:
        """Run it (again) and wait until it answers."""
        self.child.start()
        until(self._answers, within_s=20, what=f"{self.url} answers")

    def kill(self) -> None:
        """End it as a crash would."""
        self.child.kill()
        self.child.gone(within_s=10)

    def send(self, signum: signal.Signals) -> None:
        """A signal to its process."""
        assert self.child.pid
        os.kill(self.child.pid, signum)

    def tell(self, *words: object) -> None:
        """A command to this node."""
        with closing(Log(self.url)) as log:
            log.run(one(words))

    def sees_all(self) -> bool:
        """Whether it knows where all slots are, and serves."""
        told = resp.facts(resp.ask(self.url, "CLUSTER", "INFO"))
        return (told["cluster_state"], told["cluster_slots_ok"]) == ("ok", str(REDIS_CLUSTER_HASH_SLOTS))

    def is_up_to_date(self) -> bool:
        """Whether it follows another node and has what that has."""
        told = resp.facts(resp.ask(self.url, "INFO", "replication"))
        return (told["role"], told.get("master_link_status")) == ("slave", "up")

    def _answers(self) -> bool:
        assert self.child.lives(), self.child.last_words()
        try:
            resp.ping(self.url)
        except resp.StoreError:
            return False
        return True


@dataclass(kw_only=True)
class Cluster:
    """The nodes, and the address of all of them."""

    nodes: list[Node]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    @property
    def home(self) -> Node:
        """The node of the installation's keys."""
        (home,) = [node for node in self.nodes if node.has(HOME)]
        return home

    @property
    def others(self) -> list[Node]:
        return [node for node in self.nodes if node is not self.home]

    def node_of(self, stream_id: str) -> Node:
        """The node that has a stream."""
        (found,) = [node for node in self.nodes if node.has(keys.meta(stream_id))]
        return found

    def with_replica(self, node: Node, folder: Path) -> Node:
        """A further node that follows one, and has all that it has."""
        replica = Node(slots=range(0), folder=folder)
        self.nodes.append(replica)
        replica.start()
        replica.tell("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus_port)
        until(self.is_whole, within_s=30, what="the nodes have met")
        replica.tell("CLUSTER", "REPLICATE", resp.ask(node.url, "CLUSTER", "MYID"))
        until(replica.is_up_to_date, within_s=30, what="the replica follows")
        return replica

    def is_whole(self) -> bool:
        """Whether every node answers and knows all others."""
        return all(node.sees_all() for node in self.nodes)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Three nodes that have met, each with a third of the slots."""
    bounds = [REDIS_CLUSTER_HASH_SLOTS * at // NODES for at in range(NODES + 1)]
    nodes = [Node(slots=range(*bounds[at : at + 2]), folder=folder / f"node-{at}") for at in range(NODES)]
    found = Cluster(nodes=nodes)
    try:
        for node in nodes:
            node.start()
            node.tell("CLUSTER", "ADDSLOTSRANGE", node.slots.start, node.slots.stop - 1)
            node.tell("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, nodes[0].bus_port)
        until(found.is_whole, within_s=30, what="the nodes have met")
        yield found
    finally:
        for node in found.nodes:
            if node.child.lives():
                node.kill()
