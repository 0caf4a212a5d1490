"""Exchanges as requests leave them behind, for what counts or writes them."""

from typing import Any

from streams import exchange
from streams.exchange import Exchange


def ended(path: bytes = b"/api/v1/streams/a", **more: Any) -> Exchange:
    """One that has ended; what is not said is a GET with the id ``given-1`` from 10.0.0.9."""
    scope = {"method": "GET", "path": path.decode("latin-1"), "raw_path": path, "client": ("10.0.0.9", 5)}
    found = exchange.begin(scope, b"given-1", more.pop("agent", b"curl/8"))
    found.end()
    for name, value in more.items():
        setattr(found, name, value)
    return found
