"""``python -m bench``: start everything, measure in rounds, print the table."""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench import jetstream, report, store_load
from bench.http_load import Target, http_load
from bench.measure import BODY, Load, Measured, Promise, Watched
from bench.product import Broken, Product, child, clean_environ, free_port, product, wait_for_port
from streams.log import keys

STORED_TO_READ = 100_000

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
ALWAYS, LAZY, NATS_PY = ", sync always", ", default sync", ", nats-py"

# Loads that are compared run one after the other, so that both sides meet the same minute of a busy machine.
ORDER = [
    PUBLISH_1,
    *(JS_16 + ALWAYS, JS_16 + ALWAYS + NATS_PY, DRF_1, PUBLISH_100),
    *(JS_4000 + ALWAYS, JS_4000 + ALWAYS + NATS_PY),
    PUBLISH_1000,
    *(DIRECT_1000, BARE_1000, JS_4000 + LAZY, JS_4000 + LAZY + NATS_PY),
    *(READ_1000, XRANGE_1000),
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
]


def main() -> int:
    """The exit code: 0, or 1 after one sentence when something did not start or did not do its part."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each load runs (default: 5)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each runs (default: 2)")
    parser.add_argument("--only", default="", help="loads whose name contains this text")
    asked = parser.parse_args()
    rounds: list[dict[str, Measured]] = []
    try:
        with tempfile.TemporaryDirectory(prefix="okmq-bench-") as name, contextlib.ExitStack() as stack:
            loads = [
                load for load in _loads(Path(name), stack, seconds=asked.seconds) if asked.only in load.name
            ]
            for number in range(1, asked.rounds + 1):
                measured = {}
                for load in loads:
                    print(
                        f"\rround {number}/{asked.rounds}: {load.name:<60}",
                        end="",
                        file=sys.stderr,
                        flush=True,
                    )
                    measured[load.name] = load.run()
                rounds.append(measured)
            print(file=sys.stderr)
    except Broken as error:
        print(error, file=sys.stderr)
        return 1
    print(report.text(loads, rounds, PROMISES))
    return 0


def _loads(folder: Path, stack: contextlib.ExitStack, *, seconds: float) -> list[Load]:
    """Everything that is compared, started and ready."""
    ours = stack.enter_context(product(folder))
    drf_port, drf_pid = stack.enter_context(_drf(ours, folder))
    web, store = Watched(server=ours.pid("web"), store=ours.pid("valkey")), Watched(store=ours.pid("valkey"))
    drf = Watched(server=drf_pid, store=ours.pid("valkey"))
    loads = [
        Load(name=PUBLISH_1, batch=1, run=partial(_publish, ours, 1, 16, seconds, web)),
        Load(name=PUBLISH_100, batch=100, run=partial(_publish, ours, 100, 16, seconds, web)),
        Load(name=PUBLISH_1000, batch=1000, run=partial(_publish, ours, 1000, 4, seconds, web)),
        Load(name=DIRECT_1000, batch=1000, run=partial(_direct, ours, seconds, store)),
        Load(
            name=BARE_1000,
            batch=1000,
            run=partial(store_load.bare_xadd, ours.redis_url, batch=1000, seconds=seconds, watched=store),
        ),
        *_reading(ours, web, store, seconds=seconds),
        Load(name=DRF_1, batch=1, run=partial(_publish, ours, 1, 16, seconds, drf, drf_port)),
    ]
    nats_server = Path(sys.executable).with_name("nats-server")
    for always, sync in ((True, ALWAYS), (False, LAZY)):
        server = stack.enter_context(
            jetstream.jetstream(nats_server, folder / f"nats-{'always' if always else 'lazy'}", always=always)
        )
        for name, connections, window in ((JS_16, 1, 16), (JS_4000, 4, 1000)):
            for client, suffix in ((jetstream.publish_lean, ""), (jetstream.publish_nats_py, NATS_PY)):
                run = partial(client, server, connections=connections, window=window, seconds=seconds)
                loads.append(Load(name=name + sync + suffix, batch=1, run=run))
    return sorted(loads, key=lambda load: ORDER.index(load.name))


def _publish(
    ours: Product, batch: int, connections: int, seconds: float, watched: Watched, port: int | None = None
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
        return store_load.direct_append(ours.redis_url, stream_id, batch=1000, seconds=seconds, watched=store)


def _reading(ours: Product, web: Watched, store: Watched, *, seconds: float) -> list[Load]:
    name, stream_id = ours.stream()
    target = Target(port=ours.port, path=f"/api/v1/streams/{name}/messages", token=ours.token, watched=web)
    store_load.fill(ours.redis_url, stream_id, messages=STORED_TO_READ)

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
        ours.redis_url,
        keys.log(stream_id),
        batch=1000,
        stored=STORED_TO_READ,
        seconds=seconds,
        watched=store,
    )
    return [Load(name=READ_1000, batch=1000, run=over_http), Load(name=XRANGE_1000, batch=1000, run=xrange)]


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
        "BENCH_REDIS_URL": ours.redis_url,
        "DJANGO_SETTINGS_MODULE": "bench.drf_settings",
    }
    with child(command, environ=environ, output=output) as process:
        wait_for_port(port, process=process, output=output)
        yield port, process.pid


if __name__ == "__main__":
    sys.exit(main())
