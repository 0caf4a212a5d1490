"""What is not HTTP, or no WebSocket's handshake, is refused in the same shape as everything else, with a request id and
a line in the access log; uvicorn would say it in plain text.
"""

import msgspec
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHandshake
from websockets.http11 import Request
from websockets.server import ServerProtocol

from okmq.asgi import data_plane, env, record
from okmq.web.capacity import Capacity, most_of
from okmq.web.connections import BoundedProtocol
from okmq.web.gate import socket_route
from streams.errors import Refusal
from streams.exchange import REQUEST_ID, UNKNOWN, begin, header

REASONS = {
    400: b"Bad Request",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
}


class FramedProtocol(BoundedProtocol):
    """Uvicorn's HTTP/1.1 with our shape for a request that cannot be parsed, or is not taken."""

    capacity = Capacity(most_of(env.max_connections))

    def shutdown(self) -> None:
        """Take no more requests on this connection, as the process is to end; open polls are answered now."""
        data_plane.finish_polls()
        super().shutdown()

    def handle_websocket_upgrade(self) -> None:
        """Hand over to the WebSocket protocol what is a handshake, and refuse what is none."""
        fields = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.headers])
        path, method = self.url.partition(b"?")[0], self.scope["method"]
        refusal = None
        if method != "GET":
            refusal = Refusal(
                "method_not_allowed",
                "A WebSocket begins with GET.",
                headers={"Allow": "GET"},
                allowed=["GET"],
            )
        else:
            try:
                ServerProtocol().process_request(Request(path.decode("latin-1"), fields))
            except InvalidHandshake as error:
                refusal = Refusal(
                    "validation_error", f"This is no WebSocket's handshake: {error}.", fields=[]
                )
        if refusal is None:
            super().handle_websocket_upgrade()
        else:
            self.refuse(refusal, method=method, path=path, route=socket_route(path.decode("latin-1")))

    def refuse(self, refusal: Refusal, *, method: str = "", path: bytes = b"", route: str = UNKNOWN) -> None:
        """Answer in the one shape, and hang up."""
        sent = self.headers if method else []
        scope = {"method": method, "raw_path": path, "path": "", "client": self.client}
        exchange = begin(scope, header(sent, REQUEST_ID), header(sent, b"user-agent"))
        exchange.route, exchange.status = route, refusal.status
        body = msgspec.json.encode(refusal.body())
        fields = {
            b"content-type": b"application/json",
            b"cache-control": b"no-store",
            b"content-length": b"%d" % len(body),
            b"connection": b"close",
            REQUEST_ID: exchange.request_id,
            **{name.lower().encode(): value.encode() for name, value in refusal.headers.items()},
        }
        lines = [b"HTTP/1.1 %d %b" % (refusal.status, REASONS[refusal.status])]
        lines += [b"%b: %b" % field for field in fields.items()]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()
        exchange.bytes_out = len(body)
        exchange.end()
        record(exchange)
