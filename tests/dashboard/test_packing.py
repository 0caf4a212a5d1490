"""What travels packed: pages do, files and the API do not."""

import gzip

import pytest
from django.test import Client

from tests.dashboard.conftest import MakeStream

PACKED = {"Accept-Encoding": "br, gzip"}


def test_a_page_travels_packed_to_who_can_unpack_it(owner: Client, make_stream: MakeStream) -> None:
    for number in range(50):
        make_stream(f"orders-{number}")
    plain, packed = owner.get("/streams/"), owner.get("/streams/", headers=PACKED)
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "orders-49" in gzip.decompress(packed.content).decode()
    assert len(packed.content) * 5 < len(plain.content)
    assert {"Accept-Encoding", "HX-Request"} <= set(packed.headers["Vary"].split(", "))


@pytest.mark.parametrize(
    "path", ["/streams/orders/export/?format=ndjson", "/streams/_export/", "/live/now/?topic=overview"]
)
def test_a_file_or_a_number_travels_as_it_is(owner: Client, make_stream: MakeStream, path: str) -> None:
    make_stream("orders", bodies=[b'"%s"' % (b"x" * 1000)])
    assert "Content-Encoding" not in owner.get(path, headers=PACKED).headers
