"""The whole product on a PostgreSQL of its own on loopback."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.product import Product, free_port
from tests.waiting import until

PROGRAMS = Path("/usr/lib/postgresql")
AS_ITS_OWN_USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
PAGES = ("/", "/streams/", "/events/", "/groups/", "/alerts/", "/settings/people/", "/settings/system/")


def program(name: str) -> str:
    """Of the newest version that the system has (``scripts/system-packages`` installs one)."""
    found = sorted(PROGRAMS.glob(f"*/bin/{name}"), key=lambda path: int(path.parent.parent.name))
    assert found, "PostgreSQL is missing: run scripts/system-packages"
    return str(found[-1])


class Postgres:
    """A server in a folder of its own; root may not run one, so it runs as the user of Debian's package then."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._as = AS_ITS_OWN_USER if os.getuid() == 0 else []
        made = ["-D", str(folder / "data"), "-U", "okmq", "--auth=trust", "-E", "UTF8"]
        subprocess.run([*self._as, program("initdb"), *made], check=True, stdout=subprocess.DEVNULL, cwd="/")

    @property
    def url(self) -> str:
        return f"postgresql://okmq@127.0.0.1:{self.port}/postgres"

    @contextmanager
    def running(self) -> Iterator[None]:
        where = [
            "-D",
            str(self.folder / "data"),
            "-k",
            str(self.folder),
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        with (self.folder / "output").open("ab") as output:
            server = subprocess.Popen(
                [*self._as, program("postgres"), *where], stdout=output, stderr=output, cwd="/"
            )
        try:
            asked = [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
            until(lambda: subprocess.run(asked, check=False).returncode == 0, what="PostgreSQL answers")
            yield
        finally:
            server.send_signal(signal.SIGINT)  # at once; SIGTERM waits for those who are connected
            server.wait(30)


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    # Not in pytest's own folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="okmq-postgres-") as folder:
        Path(folder).chmod(0o777)
        yield Postgres(Path(folder))


@pytest.mark.running
@pytest.mark.timeout(300)
def test_everything_works_on_postgresql_and_waits_for_it_while_it_is_away(
    postgres: Postgres, product: Product
) -> None:
    product.bare = True
    product.more = {"OKMQ_HISTORY": "off", "OKMQ_DATABASE_URL": postgres.url}
    with product.client() as client:
        with postgres.running():
            product.start()
            made = client.post("/streams/", json={"name": "orders"})
            assert made.status_code == 201
            client.post("/streams/orders/groups/", json={"name": "g"}).raise_for_status()
            client.post("/streams/orders/messages", json={"id": "a", "body": 1}).raise_for_status()
            (taken,) = client.post("/streams/orders/groups/g/fetch", json={"wait": 5}).json()
            assert taken["body"] == 1
            for page in PAGES:
                assert "</html>" in product.page(page)
            assert {event["kind"] for event in client.get("/events").json()} >= {
                "stream.created",
                "group.created",
            }

        # The data plane asks the database for nothing.
        assert client.post("/streams/orders/messages", json={"id": "b", "body": 2}).status_code == 201
        refused = httpx.get(f"{product.url}/readyz")
        assert (refused.status_code, list(refused.json()["error"]["details"]["reasons"])) == (
            503,
            ["database"],
        )
        assert client.get("/streams/").status_code == 503

        with postgres.running():
            until(product.answers, within_s=30, what="it is ready again")
            until(lambda: client.get("/streams/orders").status_code == 200, what="the control plane answers")
            assert client.get("/streams/orders").json()["messages"] == 2
            assert client.delete("/streams/orders").status_code == 204
            product.stop()
