"""Who may open a socket: pages of this very address, as with forms.

A browser sends the cookies of a site with every handshake, whatever page asks for it, and those of a host whatever the
port. So the page's own address (``Origin``) must be the one that it asks (``Host``), port and all; a handshake without
one is of no browser. Another host than those that are served is refused even where both name it.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.http.request import split_domain_port, validate_host

from streams.dataplane.request import Receive, Scope, Send
from streams.exchange import header

USUAL_PORTS = {"http": 80, "https": 443}


class SameOrigin:
    """Wraps an ASGI application that serves WebSockets; refuses a handshake of a page from elsewhere.

    Args:
        allowed_hosts: what the Host header may name, as Django's ALLOWED_HOSTS.
    """

    def __init__(self, inner: Any, *, allowed_hosts: Sequence[str]) -> None:
        self._inner, self._allowed_hosts = inner, list(allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin, host = (header(scope["headers"], name).decode("latin-1") for name in (b"origin", b"host"))
        if self._is_served(host) and is_same(origin, host):
            await self._inner(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 4403})

    def _is_served(self, host: str) -> bool:
        name, _ = split_domain_port(host)
        return bool(name) and validate_host(name, self._allowed_hosts)


def is_same(origin: str, host: str) -> bool:
    """Whether a page's origin is at the host, and the port, that a request names."""
    try:
        page = urlsplit(origin)
        asked = urlsplit(f"{page.scheme}://{host}")
        usual = USUAL_PORTS[page.scheme]
        return (
            origin == f"{page.scheme}://{page.netloc}"
            and page.username is None
            and page.hostname is not None
            and (page.hostname, page.port or usual) == (asked.hostname, asked.port or usual)
        )
    except (KeyError, ValueError):
        return False
