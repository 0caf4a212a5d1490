"""The loads that are compared with others and with what stands under them, and the ratios that are promised."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench import group_load, jetstream, jetstream_groups, store_load
from bench.http_load import Target, http_load
from bench.measure import BODY, Load, Measured, Promise, Watched
from bench.product import Product
from okmq.instance import Broken, child, clean_environ, free_port, wait_for_port
from streams.log import keys

STORED_TO_READ = 100_000
STORED_TO_WORK = 400_000
STORED_FOR_JETSTREAM = 100_000

PUBLISH_1, PUBLISH_100, PUBLISH_1000, READ_1000 = (
    "publish 1 a request, 16 connections",
    "publish 100 a request, 16 connections",
    "publish 1000 a request, 4 connections",
    "read 1000 a request, 4 connections",
)
DIRECT_1000 = "append script called directly, 1000 a call, 1 client"
BARE_1000 = "bare pipelined XADD, 1000 a pipeline, 1 client"
XRANGE_1000 = "XRANGE 1000 through redis-py, 1 client"
DRF_1 = "publish 1 through a DRF view, 16 connections"
JS_16, JS_4000 = "JetStream, 16 in flight", "JetStream, 4 connections, 1000 in flight each"
WORK_1000, WORK_10 = "fetch 1000 + ack, 4 connections", "fetch 10 + ack, 16 connections"
DIRECT_WORK_1000 = "fetch and ack scripts called directly, 1000 a call, 1 client"
JS_WORK_1000 = "JetStream pull fetch(1000) + confirmed acks, 4 connections, sync always, nats-py"
JS_WORK_10 = "JetStream pull fetch(10) + confirmed acks, 16 connections, sync always, nats-py"
JS_UNSURE_1000 = "JetStream pull fetch(1000) + unconfirmed acks, 4 connections, sync always, nats-py"
JS_UNSURE_10 = "JetStream pull fetch(10) + unconfirmed acks, 16 connections, sync always, nats-py"
JS_WORK = [
    # name, batch, members, whether the server answers each acknowledgement
    *((JS_WORK_1000, 1000, 4, True), (JS_UNSURE_1000, 1000, 4, False)),
    *((JS_WORK_10, 10, 16, True), (JS_UNSURE_10, 10, 16, False)),
]
ALWAYS, LAZY, NATS_PY = ", sync always", ", default sync", ", nats-py"

# Loads that are compared run one after the other, so that both sides meet the same minute of a busy machine.
ORDER = [
    PUBLISH_1,
    *(JS_16 + ALWAYS, JS_16 + ALWAYS + NATS_PY, DRF_1, PUBLISH_100),
    *(JS_4000 + ALWAYS, JS_4000 + ALWAYS + NATS_PY),
    PUBLISH_1000,
    *(DIRECT_1000, BARE_1000, JS_4000 + LAZY, JS_4000 + LAZY + NATS_PY),
    *(READ_1000, XRANGE_1000),
    *(DIRECT_WORK_1000, WORK_1000, JS_WORK_1000, JS_UNSURE_1000, WORK_10, JS_WORK_10, JS_UNSURE_10),
    *(JS_16 + LAZY, JS_16 + LAZY + NATS_PY),
]

PROMISES = [
    Promise(of=PUBLISH_1000, to=DIRECT_1000, at_least=0.6),
    Promise(of=PUBLISH_1000, to=JS_4000 + ALWAYS + NATS_PY, at_least=10),
    Promise(of=PUBLISH_1000, to=JS_4000 + ALWAYS, at_least=10),
    Promise(of=PUBLISH_1000, to=JS_4000 + LAZY + NATS_PY, at_least=1.5),
    Promise(of=PUBLISH_1000, to=JS_4000 + LAZY, at_least=1.5),
    Promise(of=PUBLISH_1, to=DRF_1, at_least=7),
    Promise(of=PUBLISH_1, to=JS_16 + ALWAYS + NATS_PY, at_least=1.5),
    Promise(of=PUBLISH_1, to=JS_16 + ALWAYS, at_least=1.5),
    Promise(of=READ_1000, to=XRANGE_1000, at_least=0.6),
    Promise(of=WORK_1000, to=DIRECT_WORK_1000, at_least=0.6),
    Promise(of=WORK_1000, to=JS_WORK_1000, at_least=3),
    Promise(of=WORK_1000, to=JS_UNSURE_1000),
    Promise(of=WORK_10, to=JS_WORK_10, at_least=1),
    Promise(of=WORK_10, to=JS_UNSURE_10),
]


def all_loads(
    ours: Product,
    folder: Path,
    stack: contextlib.ExitStack,
    *,
    seconds: float,
    meant: Callable[[str], bool],
) -> list[Load]:
    """What is to be compared and is meant; what it needs is started and filled."""
    web, store = Watched(server=ours.pid("web"), store=ours.pid("valkey")), Watched(store=ours.pid("valkey"))
    publish = partial(_publish, ours, seconds=seconds, watched=web)
    loads = [
        Load(name=PUBLISH_1, batch=1, run=partial(publish, 1, 16)),
        Load(name=PUBLISH_100, batch=100, run=partial(publish, 100, 16)),
        Load(name=PUBLISH_1000, batch=1000, run=partial(publish, 1000, 4)),
        Load(name=DIRECT_1000, batch=1000, run=partial(_direct, ours, seconds, store)),
        Load(
            name=BARE_1000,
            batch=1000,
            run=partial(store_load.bare_xadd, ours.keeper_url, batch=1000, seconds=seconds, watched=store),
        ),
    ]
    if any(map(meant, (READ_1000, XRANGE_1000))):
        loads += _reading(ours, web, store, seconds=seconds)
    if any(map(meant, (WORK_1000, DIRECT_WORK_1000, WORK_10))):
        loads += _working(ours, web, store, seconds=seconds)
    if meant(DRF_1):
        port, pid = stack.enter_context(_drf(ours, folder))
        drf = Watched(server=pid, store=ours.pid("valkey"))
        run = partial(_publish, ours, 1, 16, seconds=seconds, watched=drf, port=port)
        loads.append(Load(name=DRF_1, batch=1, run=run))
    if any(meant(name) for name in ORDER if name.startswith("JetStream")):
        loads += _jetstream(folder, stack, seconds=seconds, meant=meant)
    return sorted((load for load in loads if meant(load.name)), key=lambda load: ORDER.index(load.name))


def _jetstream(
    folder: Path, stack: contextlib.ExitStack, *, seconds: float, meant: Callable[[str], bool]
) -> list[Load]:
    binary = Path(sys.executable).with_name("nats-server")
    if any(meant(name) for name, *_ in JS_WORK):
        with jetstream.jetstream(binary, folder / "nats-always", always=False) as filling:
            jetstream_groups.fill(filling, messages=STORED_FOR_JETSTREAM)
    loads = []
    for always, sync in ((True, ALWAYS), (False, LAZY)):
        place = folder / f"nats-{'always' if always else 'lazy'}"
        server = stack.enter_context(jetstream.jetstream(binary, place, always=always))
        for name, connections, window in ((JS_16, 1, 16), (JS_4000, 4, 1000)):
            for client, suffix in ((jetstream.publish_lean, ""), (jetstream.publish_nats_py, NATS_PY)):
                run = partial(client, server, connections=connections, window=window, seconds=seconds)
                loads.append(Load(name=name + sync + suffix, batch=1, run=run))
        if always:
            work = partial(jetstream_groups.work, server, seconds=seconds)
            for name, batch, members, confirmed in JS_WORK:
                run = partial(work, batch=batch, members=members, confirmed=confirmed)
                loads.append(Load(name=name, batch=batch, run=run))
    return loads


def _publish(
    ours: Product,
    batch: int,
    connections: int,
    *,
    seconds: float,
    watched: Watched,
    port: int | None = None,
) -> Measured:
    with _stream(ours) as (name, _):
        target = Target(
            port=port or ours.port, path=f"/api/v1/streams/{name}/messages", token=ours.token, watched=watched
        )
        measured = http_load(
            target, target.publish(batch), batch=batch, connections=connections, seconds=seconds
        )
        stored = ours.last_offset(name)
        if stored != measured.messages:
            raise Broken(f"{measured.messages} messages were acknowledged, {stored} are stored.")
        return measured


def _direct(ours: Product, seconds: float, store: Watched) -> Measured:
    with _stream(ours) as (_, stream_id):
        return store_load.direct_append(
            ours.keeper_url, stream_id, batch=1000, seconds=seconds, watched=store
        )


def _reading(ours: Product, web: Watched, store: Watched, *, seconds: float) -> list[Load]:
    name, stream_id = ours.stream()
    target = Target(port=ours.port, path=f"/api/v1/streams/{name}/messages", token=ours.token, watched=web)
    store_load.fill(ours.keeper_url, stream_id, messages=STORED_TO_READ)

    def over_http() -> Measured:
        return http_load(
            target,
            target.read(1000, stored=STORED_TO_READ),
            batch=1000,
            connections=4,
            seconds=seconds,
            smallest=1000 * len(BODY),
        )

    xrange = partial(
        store_load.xrange_pages,
        ours.keeper_url,
        keys.log(stream_id),
        batch=1000,
        stored=STORED_TO_READ,
        seconds=seconds,
        watched=store,
    )
    return [Load(name=READ_1000, batch=1000, run=over_http), Load(name=XRANGE_1000, batch=1000, run=xrange)]


def _working(ours: Product, web: Watched, store: Watched, *, seconds: float) -> list[Load]:
    name, stream_id = ours.stream()
    store_load.fill(ours.keeper_url, stream_id, messages=STORED_TO_WORK)
    over_http = partial(group_load.over_http, ours, name, seconds=seconds, watched=web)
    direct = partial(group_load.direct, ours, name, stream_id, seconds=seconds, watched=store)
    return [
        Load(name=WORK_1000, batch=1000, run=partial(over_http, batch=1000, members=4)),
        Load(name=DIRECT_WORK_1000, batch=1000, run=partial(direct, batch=1000)),
        Load(name=WORK_10, batch=10, run=partial(over_http, batch=10, members=16)),
    ]


@contextlib.contextmanager
def _stream(ours: Product) -> Iterator[tuple[str, str]]:
    name, stream_id = ours.stream()
    try:
        yield name, stream_id
    finally:
        ours.drop(name)


@contextlib.contextmanager
def _drf(ours: Product, folder: Path) -> Iterator[tuple[int, int]]:
    port, output = free_port(), folder / "drf.output"
    command = [
        *(sys.executable, "-m", "uvicorn", "bench.drf_view:application", "--port", str(port)),
        *("--loop", "uvloop", "--http", "httptools", "--log-level", "warning", "--no-access-log"),
        *("--no-proxy-headers", "--no-server-header"),
    ]
    environ = {
        **clean_environ(),
        "BENCH_REDIS_URL": ours.keeper_url,
        "DJANGO_SETTINGS_MODULE": "bench.drf_settings",
    }
    with child(command, environ=environ, output=output) as process:
        wait_for_port(port, process=process, output=output)
        yield port, process.pid
