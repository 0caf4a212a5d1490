"""Browsers and pollers by the hundred: pages with a live socket, polls that wait, and clients that vanish."""

import asyncio
import http.cookiejar
import json
import re
import socket
import struct
import urllib.parse
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from okmq.instance import Broken, Instance

OPENS_WITHIN_S = 60.0
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: what is closed now is reset, and says no farewell."""

FIELD = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


def logged_in(product: Instance) -> str:
    """The cookie of a person's session.

    Raises:
        Broken: the page does not let admin in.
    """
    page = f"http://127.0.0.1:{product.port}/login/"
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    found = FIELD.search(browser.open(page, timeout=30).read().decode())
    form = {
        "username": "admin",
        "password": product.password,
        "csrfmiddlewaretoken": found[1] if found else "",
    }
    sent = urllib.request.Request(page, urllib.parse.urlencode(form).encode(), {"Referer": page})
    browser.open(sent, timeout=30).close()
    sessions = [cookie.value for cookie in jar if cookie.name == "sessionid"]
    if not sessions:
        raise Broken("The page of the login does not let admin in.")
    return f"sessionid={sessions[0]}"


@dataclass(eq=False)
class Browser:
    """A page that shows one stream; ``heard_at`` is when it was last told how that stands."""

    port: int
    cookie: str
    topic: str
    heard_at: float = 0.0
    told: dict[str, Any] = field(default_factory=dict)
    _socket: ClientConnection | None = None
    _reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect as a page does, and be told how the stream stands; again after a refusal, as a page is."""
        while True:
            try:
                self._socket = await connect(
                    f"ws://127.0.0.1:{self.port}/live/",
                    origin=f"http://127.0.0.1:{self.port}",  # type: ignore[arg-type]
                    additional_headers={"Cookie": self.cookie},
                    proxy=None,
                    compression=None,
                    open_timeout=OPENS_WITHIN_S,
                )
                await self._socket.send(json.dumps({"type": "subscribe", "topics": ["overview", self.topic]}))
                await self._hear()
            except (OSError, WebSocketException):
                await asyncio.sleep(0.5)
                continue
            self._reading = asyncio.create_task(self._read())
            return

    async def _hear(self) -> None:
        """Return when it was told of the stream."""
        assert self._socket is not None
        heard = False
        while not heard:
            frame = str(await self._socket.recv())
            heard = f'"topic": "{self.topic}"' in frame
        self.heard_at, self.told = monotonic(), json.loads(frame)["event"]

    async def _read(self) -> None:
        with suppress(OSError, WebSocketException):
            while True:
                await self._hear()

    def stop_reading(self) -> None:
        """Take nothing more from the socket: its buffers fill, as those of a page that hangs do."""
        assert self._socket is not None
        if self._reading:
            self._reading.cancel()
        self._socket.transport.pause_reading()

    def read_on(self) -> None:
        """Take everything that has come meanwhile, and what comes."""
        assert self._socket is not None
        with suppress(RuntimeError):  # the socket was closed meanwhile
            self._socket.transport.resume_reading()
        self._reading = asyncio.create_task(self._read())

    @property
    def is_shut(self) -> bool:
        """Whether the server has ended it."""
        return self._socket is None or self._socket.close_code is not None

    def vanish(self) -> None:
        """Be gone without a farewell."""
        if self._reading:
            self._reading.cancel()
        if self._socket is not None:
            _reset(self._socket.transport)


@dataclass(eq=False)
class Poller:
    """A client that waits for a stream's next message."""

    port: int
    token: str
    path: str
    _reader: asyncio.StreamReader | None = None
    _writer: asyncio.StreamWriter | None = None

    async def ask(self) -> None:
        """Send the request; the answer is waited for by ``answer``."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = f"GET /api/v1{self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        self._writer.write(f"{head}Authorization: Bearer {self.token}\r\n\r\n".encode())
        await self._writer.drain()

    async def answer(self) -> int:
        """The status of the answer; 0 where there was none."""
        assert self._reader is not None
        with suppress(OSError, EOFError):
            head = await self._reader.readuntil(b"\r\n\r\n")
            return int(head.split(b" ", 2)[1])
        return 0

    def vanish(self) -> None:
        """Be gone without a farewell."""
        if self._writer is not None:
            _reset(self._writer.transport)


def _reset(transport: asyncio.BaseTransport) -> None:
    end: socket.socket | None = transport.get_extra_info("socket")
    if end is not None and end.fileno() >= 0:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
