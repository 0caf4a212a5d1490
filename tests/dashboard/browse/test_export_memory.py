"""An export takes the same memory whatever its length."""

from collections.abc import Iterator

import httpx
import pytest

from tests.okmq.memory import megabytes
from tests.product import Product

pytestmark = pytest.mark.running

MESSAGES = 60_000
BODY = "x" * 1000
MOST_MEGABYTES = 40
"""A sixth of what the whole file would take: a few pages of messages, and what the allocator keeps."""


@pytest.fixture(scope="module")
def filled(running: Product) -> str:
    with running.client() as client:
        client.post("/streams/", json={"name": "exported", "archive": False}).raise_for_status()
        for first in range(0, MESSAGES, 1000):
            batch = [{"id": f"m{n}", "body": BODY} for n in range(first, first + 1000)]
            client.post("/streams/exported/messages", json=batch).raise_for_status()
    return "exported"


@pytest.fixture
def browser(running: Product) -> Iterator[httpx.Client]:
    """Logged in as the administrator."""
    client = httpx.Client(base_url=running.url, timeout=60)
    client.get("/login/")
    form = {
        "username": "admin",
        "password": running.password,
        "csrfmiddlewaretoken": client.cookies["csrftoken"],
    }
    assert client.post("/login/", data=form).status_code == 302
    yield client
    client.close()


@pytest.mark.parametrize("kind", ["ndjson", "csv"])
def test_an_export_takes_the_same_memory_whatever_its_length(
    running: Product, browser: httpx.Client, filled: str, kind: str
) -> None:
    web = running.pid("web")
    with browser.stream(
        "GET", f"/streams/{filled}/export/?format={kind}&start=offset&at={MESSAGES - 2000}"
    ) as answer:
        answer.read()
    before = highest = megabytes(web)
    lines = 0
    with browser.stream("GET", f"/streams/{filled}/export/?format={kind}") as answer:
        for part in answer.iter_bytes():
            lines += part.count(b"\n")
            highest = max(highest, megabytes(web))
    assert lines == MESSAGES + (kind == "csv")
    assert highest - before < MOST_MEGABYTES
