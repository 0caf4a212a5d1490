"""The whole product on a PostgreSQL of its own on loopback."""

from collections.abc import Iterator

import httpx
import pytest

from tests.postgres import Postgres, postgres_folder
from tests.product import Product
from tests.waiting import until

PAGES = ("/", "/streams/", "/events/", "/groups/", "/alerts/", "/settings/people/", "/settings/system/")


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with postgres_folder() as server:
        yield server


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
            (found,) = client.get("/streams/", params={"name_regex": "^o.*s$"}).json()
            assert found["name"] == "orders"
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
