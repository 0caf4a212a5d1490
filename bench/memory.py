"""Bytes that the store needs for a message beside its body, by what the message has, as the server counts them."""

from collections.abc import Callable
from typing import Any

import redis

from bench.group_load import make_group
from bench.measure import BODY, Figure
from bench.product import Product
from streams.log import groups, keys
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage

MESSAGES = 100_000
TTL_S = 86_400

KINDS: dict[str, Callable[[int], NewMessage]] = {
    "with deduplication": lambda n: NewMessage(id=f"{n:015d}", body=BODY),
    "with ids of 36 characters": lambda n: NewMessage(id=f"{n:036d}", body=BODY),
    "with one of 100 keys": lambda n: NewMessage(id=f"{n:015d}", body=BODY, key=f"sensor.{n % 100}"),
    "with a key of its own": lambda n: NewMessage(id=f"{n:015d}", body=BODY, key=f"customer.{n:011d}"),
    "with a ttl": lambda n: NewMessage(id=f"{n:015d}", body=BODY, ttl_s=TTL_S),
}
AT_MOST = {"with deduplication": 200}


def memory(ours: Product) -> list[Figure]:
    """Each kind in a stream of its own; the plain one also in flight at a group."""
    return [figure for what in KINDS for figure in _of_kind(ours, what)]


def _of_kind(ours: Product, what: str) -> list[Figure]:
    name, stream_id = ours.stream()
    log, client = Log(ours.keeper_url), redis.Redis.from_url(ours.keeper_url)
    for first in range(0, MESSAGES, 1000):
        log.run(append(stream_id, [KINDS[what](n) for n in range(first, first + 1000)]))
    held = _bytes_a_message(client, f"okmq:{{{stream_id}}}:*") - len(BODY)
    found = [_figure(what, held)]
    if what == "with deduplication":
        alone = _bytes_a_message(client, keys.log(stream_id)) - len(BODY)
        found.insert(0, _figure("the log alone", alone, at_most=130))
        group = make_group(ours, name)
        while log.run(groups.fetch(stream_id, group, limit=1000)).deliveries:
            pass
        leased = _bytes_a_message(client, f"okmq:{{{stream_id}}}:*") - len(BODY)
        found.append(_figure("with deduplication and in flight at a group", leased))
    log.close()
    client.close()
    ours.drop(name)
    return found


def _bytes_a_message(client: Any, pattern: str) -> float:
    return sum(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter(pattern)) / MESSAGES


def _figure(what: str, reached: float, *, at_most: int | None = None) -> Figure:
    at_most = at_most or AT_MOST.get(what)
    return Figure(
        name=f"memory a message beside its body, {what}", reached=reached, unit="bytes", at_most=at_most
    )
