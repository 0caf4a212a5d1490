"""Real servers for every test, started once a run; tests keep apart by names of their own, not by flushing."""

import importlib
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.management.commands import flush

from okmq.env import PROJECT, private_socket
from tests.product import Product
from tests.servers import FLAVOURS, store

# The same examples every time, however slow the machine is; or half an hour of new ones, to look for what these miss.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("long", derandomize=False, deadline=None, max_examples=100)
hypothesis.settings.load_profile("same")

ONLY_IN = {"e2e": "tests/e2e", "alone": "tests/streams/upkeep"}
"""Marks whose tests lie in one folder: their run of ``scripts/test-all`` looks nowhere else."""

FILLED_BY_DJANGO = frozenset({"auth_permission", "django_content_type"})


def where_it_has_to_lie(path: Path, marks: Iterable[str]) -> str | None:
    """The folder that a test with these marks is missing from, if it is."""
    folders = (ONLY_IN[mark] for mark in marks if mark in ONLY_IN)
    return next((each for each in folders if not path.is_relative_to(PROJECT / each)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test that lies where the run of its mark does not look."""
    for item in items:
        folder = where_it_has_to_lie(item.path, (mark.name for mark in item.iter_markers()))
        if folder:
            raise pytest.UsageError(f"{item.nodeid}: a test with this mark has to lie in {folder}.")


@pytest.fixture(scope="session", autouse=True)
def valkey() -> Iterator[str]:
    """The address of the private Valkey that the settings name, as the product starts it."""
    env = settings.ENV
    with store(env.valkey_dir, socket=private_socket(env.data_dir)) as running:
        yield running.url


@pytest.fixture(scope="session", autouse=True)
def emptying_tables() -> Iterator[None]:
    """Tests empty the tables after them, which the database refuses for events: lift its guard around it.

    The tables that Django fills by itself stay as they are: to fill them again takes longer than most tests.
    """
    guard = importlib.import_module("streams.migrations.0005_events_append_only")

    def emptied(style: Any, connection: Any, **options: Any) -> list[str]:
        lift, again = guard.LIFT[connection.vendor], guard.GUARD[connection.vendor]
        tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
        wanted = [table for table in tables if table not in FILLED_BY_DJANGO]
        return [*lift, *connection.ops.sql_flush(style, wanted, **options), *again]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "sql_flush", emptied)
        patch.setattr(flush, "emit_post_migrate_signal", lambda *args, **options: None)
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
