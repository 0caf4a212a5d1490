"""The data plane behind a real HTTP server on loopback, with tokens and streams published straight to the log."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn

from okmq.up import KEEP_ALIVE_S
from streams import bearer
from streams.dataplane.app import DataPlane
from streams.dataplane.context import Context
from streams.log import config, keys
from streams.log.client import AsyncLog, Log
from tests.waiting import until

WORKSPACE_ID = 7
OTHER_WORKSPACE_ID = 8


class Server:
    """A uvicorn that serves one DataPlane from a thread."""

    context: Context

    def __init__(self, store_url: str, **options: Any) -> None:
        plane = DataPlane(store_url, allowed_hosts=["127.0.0.1", "localhost"], **{"undo_s": 3600, **options})

        async def application(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "lifespan":
                await receive()
                self.context = await plane.start()
                await send({"type": "lifespan.startup.complete"})
                await receive()
                await plane.stop()
                await send({"type": "lifespan.shutdown.complete"})
            else:
                await plane(scope, receive, send)

        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        # httpx keeps an idle connection for 5 s, as long as uvicorn's default: a call that came just then would be
        # sent on a connection that ends. The product keeps them longer than its clients do.
        served = uvicorn.Config(
            application, log_level="error", lifespan="on", timeout_keep_alive=KEEP_ALIVE_S
        )
        self._server = uvicorn.Server(served)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        until(lambda: self._server.started)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)


class LateLog(AsyncLog):
    """Hands an answer over only when it is told to; ``asked`` are the operations that were begun, by name."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked: list[str] = []
        self.answered, self.may_go = asyncio.Event(), asyncio.Event()
        self.may_go.set()

    async def run(self, op: Any) -> Any:
        self.asked.append(op.__name__)
        answer = await super().run(op)
        self.answered.set()
        await self.may_go.wait()
        return answer


@asynccontextmanager
async def inside(store_url: str, token: str) -> AsyncIterator[tuple[Context, httpx.AsyncClient]]:
    """A data plane in the event loop of the test, and a client of it without a server between."""
    plane = DataPlane(store_url, allowed_hosts=["127.0.0.1"])
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(plane),
        base_url="http://127.0.0.1/api/v1/streams",
        headers={"authorization": f"Bearer {token}"},
    )
    try:
        async with client:
            yield await plane.start(), client
    finally:
        await plane.stop()


@pytest.fixture(scope="session")
def log(valkey: str) -> Iterator[Log]:
    client = Log(valkey)
    yield client
    client.close()


@pytest.fixture(scope="session")
def server(valkey: str) -> Iterator[Server]:
    server = Server(valkey)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def token_for(log: Log) -> Callable[..., str]:
    """Makes tokens known: scopes, and optionally workspace, patterns, expiry."""

    def make(*scopes: str, workspace_id: int = WORKSPACE_ID, id: int = 1, **grant: Any) -> str:
        secret = bearer.make()
        log.run(
            config.token_publish(
                bearer.digest(secret),
                config.TokenGrant(
                    id=id, workspace=f"w{workspace_id}", workspace_id=workspace_id, scopes=scopes, **grant
                ),
            )
        )
        return secret

    return make


@pytest.fixture(scope="session")
def client(server: Server, token_for: Callable[..., str]) -> Iterator[httpx.Client]:
    """A client with a token that may do everything."""
    with httpx.Client(
        base_url=f"http://127.0.0.1:{server.port}/api/v1/streams",
        headers={"authorization": f"Bearer {token_for('admin')}"},
        timeout=35,
    ) as client:
        yield client


@dataclass(frozen=True)
class Stream:
    """A stream of one test's own: its path under /api/v1/streams, and its internal id."""

    name: str
    stream_id: str

    @property
    def messages(self) -> str:
        return f"/{self.name}/messages"


@pytest.fixture
def make_stream(log: Log, unique: str) -> Callable[..., Stream]:
    def make(*, name: str = unique, workspace_id: int = WORKSPACE_ID, **settings: Any) -> Stream:
        stream = Stream(name, keys.stream_id())
        configure(log, stream, workspace_id=workspace_id, **settings)
        return stream

    return make


def configure(log: Log, stream: Stream, *, workspace_id: int = WORKSPACE_ID, **settings: Any) -> None:
    """Tell the log a stream with these settings, the first time or again."""
    told = config.Registered(
        stream_id=stream.stream_id,
        name=stream.name,
        workspace=f"w{workspace_id}",
        workspace_id=workspace_id,
        archive=False,
    )
    defaults = {"dedup_window": 86_400, "max_message_bytes": 1_048_576, "discard": "old"}
    log.run(config.stream_publish(told, {**defaults, **settings}))


@pytest.fixture
def stream(make_stream: Callable[..., Stream]) -> Stream:
    return make_stream()


def refusal(response: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal; its shape is checked on the way."""
    error = response.json()["error"]
    assert set(error) == {"code", "message", "details"}
    assert error["message"]
    return response.status_code, error["code"]
