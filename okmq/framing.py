"""What is not HTTP at all is refused in the same shape as everything else; uvicorn would say it in plain text."""

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from streams.errors import Refusal


class FramedProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1 on httptools, with our shape for a request that cannot be parsed."""

    def send_400_response(self, msg: str) -> None:
        """Refuse and hang up: where the next request would begin is not known."""
        refusal = Refusal("validation_error", "This is not a valid HTTP request.", fields=[])
        body = msgspec.json.encode(refusal.body())
        head = (
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncache-control: no-store\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        )
        self.transport.write(head + body)
        self.transport.close()
