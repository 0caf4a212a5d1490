"""Connections to the servers of streams, for callers that wait and for coroutines: to one, or to a cluster's nodes.

The memory server and each node of a cluster stand behind a breaker; everything needs the one durable server.
"""

from typing import Any

from streams import addresses
from streams.log.blocking import connected
from streams.log.breaker import ASKED_WITHIN_S, GuardedClient, GuardedWire, breaker_of
from streams.log.cluster import Nodes, Wires
from streams.log.wire import Wire

CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 10.0


def client_of(url: str) -> Any:
    """A client of the durable store."""
    return Nodes(url, connect=guarded_client) if addresses.is_cluster(url) else _client_of_one(url)


def guarded_client(url: str) -> GuardedClient:
    """A client of one server, behind a breaker."""
    asking = connected(url, connect_timeout_s=ASKED_WITHIN_S, answer_timeout_s=ASKED_WITHIN_S)
    return GuardedClient(_client_of_one(url), asking=asking, breaker=breaker_of(url))


def wire_of(url: str) -> Wire | Wires:
    """The connection of coroutines to the durable store."""
    return wires(url) if addresses.is_cluster(url) else _wire_of_one(url)


def wires(url: str) -> Wires:
    """The nodes of a cluster, for coroutines."""
    return Wires(url, connect=guarded_wire)


def guarded_wire(url: str) -> GuardedWire:
    """The connection of coroutines to one server, behind a breaker."""
    return GuardedWire(_wire_of_one(url), breaker=breaker_of(url))


def _client_of_one(url: str) -> Any:
    return connected(url, connect_timeout_s=CONNECT_TIMEOUT_S, answer_timeout_s=ANSWER_TIMEOUT_S)


def _wire_of_one(url: str) -> Wire:
    return Wire(url, connect_timeout_s=CONNECT_TIMEOUT_S, answer_timeout_s=ANSWER_TIMEOUT_S)
