"""The protocol of the product, served to sockets of a test; and a login of the whole product."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from django.conf import settings

from tests.product import Product
from tests.waiting import until


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        yield connection


def told(connection: socket.socket) -> bytes:
    """Everything until the other side has nothing more to say."""
    came = b""
    while part := connection.recv(65536):
        came += part
    return came


def make_static_root() -> None:
    """The folder without which WhiteNoise warns when the product's protocol is loaded."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


class Served:
    """The protocol of the product in front of an application that reads the body or not."""

    def __init__(self, application: Callable[..., Any], *, keep_alive_s: int = 5) -> None:
        make_static_root()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application,
            http="okmq.framing:FramedProtocol",
            loop="uvloop",
            lifespan="off",
            log_level="error",
            timeout_keep_alive=keep_alive_s,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        until(lambda: self._server.started)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()


def session_cookie(product: Product) -> str:
    """What the browser of the first administrator sends."""
    with httpx.Client(base_url=product.url) as browser:
        browser.get("/login/")
        form = {
            "username": "admin",
            "password": product.password,
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        }
        browser.post("/login/", data=form, headers={"Referer": f"{product.url}/login/"})
        return f"sessionid={browser.cookies['sessionid']}"
