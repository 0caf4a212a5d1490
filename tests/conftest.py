"""Real servers for every test, started once a run; tests keep apart by names of their own, not by flushing."""

import importlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.management.commands import flush
from django.core.management.sql import sql_flush

from okmq.env import private_socket
from tests.product import Product
from tests.servers import FLAVOURS, store

# For the tests that drive the product at random: half an hour instead of a minute, and never the same one.
hypothesis.settings.register_profile("long", max_examples=100)


@pytest.fixture(scope="session", autouse=True)
def valkey() -> Iterator[str]:
    """The address of the private Valkey that the settings name, as the product starts it."""
    env = settings.ENV
    with store(env.valkey_dir, socket=private_socket(env.data_dir)) as running:
        yield running.url


@pytest.fixture(scope="session", autouse=True)
def emptying_tables() -> Iterator[None]:
    """Tests empty all tables after them, which the database refuses for events: lift its guard around it."""
    guard = importlib.import_module("streams.migrations.0005_events_append_only")

    def unguarded(style: Any, connection: Any, **options: Any) -> list[str]:
        lift, again = guard.LIFT[connection.vendor], guard.GUARD[connection.vendor]
        return [*lift, *sql_flush(style, connection, **options), *again]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", unguarded)
        yield


@pytest.fixture(scope="session", autouse=True)
def valkey_memory() -> Iterator[str]:
    """The address of the private server of the streams in memory that the settings name."""
    env = settings.ENV
    socket = private_socket(env.data_dir, server="valkey-memory")
    with store(env.valkey_memory_dir, socket=socket, fsync=None) as running:
        yield running.url


@pytest.fixture(scope="session")
def redis7(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Debian's Redis 7.0 with the same configuration."""
    with store(tmp_path_factory.mktemp("redis7"), flavour="redis7") as running:
        yield running.url


@pytest.fixture(scope="session", params=FLAVOURS)
def redis_url(request: pytest.FixtureRequest) -> str:
    """Each kind of server in turn."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The whole product, started once a run: address, token, folders, processes."""
    product = Product(data_dir=tmp_path_factory.mktemp("running") / "data")
    try:
        yield product.start()
    finally:
        product.end_all()


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Product]:
    """A product of this test's own, not started yet."""
    product = Product(data_dir=tmp_path / "data")
    try:
        yield product
    finally:
        product.end_all()


@pytest.fixture
def unique() -> str:
    """A name that no other test uses."""
    return f"t{secrets.token_hex(6)}"
