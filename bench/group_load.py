"""Working through a stream as the members of a consumer group: fetch, acknowledge, fetch the next."""

import asyncio
import re
import secrets
import time
from collections.abc import Sequence
from functools import partial

import uvloop

from bench.connection import Connection, connect
from bench.http_load import Target, compared, http_load, ours_target
from bench.measure import Figure, Measured, Stopwatch, Watched
from bench.product import Product
from bench.store_load import fill
from streams.log import entries, groups
from streams.log.client import Log

OFFSET = re.compile(rb'"offset":(\d+)')
IN_FLIGHT = 200_000
GROUPS_ON_ONE = 1_000
PENDING = 100_000


def make_group(ours: Product, stream: str) -> str:
    """A group of a stream that lets many messages be in flight."""
    name = f"g{secrets.token_hex(4)}"
    ours.ask("POST", f"/streams/{stream}/groups/", {"name": name, "max_ack_pending": IN_FLIGHT})
    return name


def over_http(
    ours: Product, stream: str, *, batch: int, members: int, seconds: float, watched: Watched
) -> Measured:
    """Members of one new group over a connection each, until the time is over or nothing is left."""
    group = make_group(ours, stream)
    target = ours_target(ours, f"/api/v1/streams/{stream}/groups/{group}", watched)
    try:
        return uvloop.run(_work(target, batch, members, seconds))
    finally:
        ours.ask("DELETE", f"/streams/{stream}/groups/{group}")


async def _work(target: Target, batch: int, members: int, seconds: float) -> Measured:
    fetch = target.at(f"{target.path}/fetch").post(b'{"limit":%d,"wait":0}' % batch)
    ack = target.at(f"{target.path}/ack")
    until = time.perf_counter() + seconds

    async def member(connection: Connection) -> int:
        done = 0
        while time.perf_counter() < until:
            offsets = OFFSET.findall(await connection.ask(fetch))
            if not offsets:
                break
            await connection.ask(ack.post(b'{"offsets":[%b]}' % b",".join(offsets)))
            done += len(offsets)
        return done

    connections = await connect(target.port, members)
    watch = Stopwatch(target.watched)
    with watch.running():
        done = sum(await asyncio.gather(*map(member, connections)))
    for connection in connections:
        connection.transport.close()
    return watch.measured(done)


def direct(
    ours: Product, stream: str, stream_id: str, *, batch: int, seconds: float, watched: Watched
) -> Measured:
    """The fetch and ack scripts from one blocking Python client."""
    group, log, watch, done = make_group(ours, stream), Log(ours.keeper_url), Stopwatch(watched), 0
    while watch.elapsed_s < seconds:
        with watch.running():
            fetched = log.run(groups.fetch(stream_id, group, limit=batch))
            offsets = [entries.position(delivery.entry)[0] for delivery in fetched.deliveries]
            if not offsets:
                break
            done += log.run(groups.ack(stream_id, group, "offsets", offsets))
    log.close()
    ours.ask("DELETE", f"/streams/{stream}/groups/{group}")
    return watch.measured(done)


def many_groups(ours: Product, *, seconds: float) -> list[Figure]:
    """What a thousand groups on a stream cost its publishers."""
    made = ours.streams(2)
    for _ in range(GROUPS_ON_ONE):
        make_group(ours, made[0][0])
    targets = [ours_target(ours, f"/api/v1/streams/{name}/messages") for name, _ in made]
    loads = [partial(http_load, target, target.publish(1), batch=1) for target in targets]
    ratio = compared(*loads, seconds=seconds)
    for name, _ in made:
        ours.drop(name)
    return [
        Figure(
            name=f"publish 1 with {GROUPS_ON_ONE:,} groups / without", reached=ratio, unit="", at_least=0.9
        )
    ]


def many_pending(ours: Product) -> list[Figure]:
    """How long a fetch takes while many messages are in flight: as fetches took them, and each on its own."""
    name, stream_id = ours.stream()
    fill(ours.keeper_url, stream_id, messages=PENDING + 10_000)
    baseline = _middle_and_p99_ms(ours, name, make_group(ours, name))
    found = []
    for how in ("pending", "pending one by one"):
        group, log, pending = make_group(ours, name), Log(ours.keeper_url), 0
        while pending < PENDING:
            taken = log.run(groups.fetch(stream_id, group, limit=10_000)).deliveries
            pending += len(taken)
            if how == "pending one by one":  # an answer makes a record of its own of each
                log.run(groups.working(stream_id, group, "leases", [each.lease for each in taken]))
        log.close()
        middle, slow = _middle_and_p99_ms(ours, name, group)
        what = f"fetch 10 with {PENDING:,} {how},"
        found += [
            Figure(name=f"{what} median", reached=middle, unit="ms", at_most=5),
            Figure(name=f"{what} p99", reached=slow, unit="ms"),
        ]
    ours.drop(name)
    return [*found, Figure(name="fetch 10 with few pending, median", reached=baseline[0], unit="ms")]


def _middle_and_p99_ms(ours: Product, stream: str, group: str) -> tuple[float, float]:
    target = ours_target(ours, f"/api/v1/streams/{stream}/groups/{group}/fetch")
    took_s = sorted(uvloop.run(_timed(target, target.post(b'{"limit":10,"wait":0}'), 200)))
    return took_s[len(took_s) // 2] * 1e3, took_s[len(took_s) * 99 // 100] * 1e3


async def _timed(target: Target, request: bytes, times: int) -> Sequence[float]:
    (connection,) = await connect(target.port, 1)
    took_s = []
    for _ in range(times):
        began = time.perf_counter()
        await connection.ask(request)
        took_s.append(time.perf_counter() - began)
    connection.transport.close()
    return took_s
