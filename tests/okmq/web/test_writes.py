"""What the product writes to a connection, told by the kernel and by raw sockets."""

import socket
import struct

import pytest

from tests.product import Product

pytestmark = pytest.mark.running

DATA_SEGMENTS_IN = 152
"""Where struct tcp_info has tcpi_data_segs_in (linux/tcp.h)."""

ASK = b"GET /api/v1/streams/none/messages HTTP/1.1\r\nhost: 127.0.0.1\r\n%b\r\n"


def connected(product: Product) -> socket.socket:
    return socket.create_connection(("127.0.0.1", product.port), timeout=10)


def answer_of(connection: socket.socket) -> bytes:
    """One answer of a kept connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)
    return body


def segments_in(connection: socket.socket) -> int:
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    (count,) = struct.unpack_from("I", told, DATA_SEGMENTS_IN)
    return int(count)


def test_an_answer_is_one_segment(running: Product) -> None:
    with connected(running) as connection:
        for number in range(1, 11):
            connection.sendall(ASK % b"")
            assert b'"unauthorized"' in answer_of(connection)
            assert segments_in(connection) == number


def test_pipelined_requests_are_answered_in_order(running: Product) -> None:
    with connected(running) as connection:
        connection.sendall(
            b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" + ASK % b"connection: close\r\n"
        )
        data = b""
        while part := connection.recv(65_536):
            data += part
    assert 0 <= data.index(b"HTTP/1.1 200") < data.index(b"HTTP/1.1 401") < data.index(b'"unauthorized"')


def test_an_answer_that_ends_its_connection_arrives_whole(running: Product) -> None:
    with connected(running) as connection:
        connection.sendall(ASK % b"connection: close\r\n")
        assert b'"unauthorized"' in answer_of(connection)
        assert connection.recv(1) == b""
