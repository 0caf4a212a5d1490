"""From the version before to this one, under load: on the same folder, and host by host while the other goes on."""

import asyncio
import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from okmq import env
from okmq.prove.checking import check
from okmq.prove.history import Publish
from okmq.prove.load import Load
from tests.guide import guided
from tests.okmq.operation.test_backup import manage
from tests.postgres import postgres_folder
from tests.product import TOKEN, Product
from tests.servers import store
from tests.waiting import until

pytestmark = [pytest.mark.running, pytest.mark.timeout(600)]

BEFORE = "3b51e521cf87c18b26af400ac5e0cec10e20af3c"
"""The version before; the newest that was released, whenever the way from it is changed."""

CLOCKS_APART_S = 0.05
"""Processes of the version before tell the time differently by some ms, and leases ended by that too early; to be
removed with the version that has it."""

NO_HISTORY = {"OKMQ_HISTORY": "off"}
ENOUGH = 150
"""So many publishes are stored between two steps of an upgrade."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the version before, out of the repository's own history."""
    folder = tmp_path_factory.mktemp("before")
    packed = subprocess.run(["git", "archive", BEFORE], cwd=env.PROJECT, capture_output=True, check=False)
    assert packed.returncode == 0, f"clone the repository with its history: {packed.stderr.decode()}"
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@contextmanager
def ended(*products: Product) -> Iterator[None]:
    """Whatever becomes of them, nothing of them is left."""
    try:
        yield
    finally:
        for product in products:
            product.end_all()


def stored(load: Load) -> int:
    """How many publishes were answered that they are stored."""
    done = load.scene.history.operations
    return sum(isinstance(each, Publish) and each.outcome == "ok" for each in done)


async def goes_on(load: Load) -> None:
    """Return when enough more was stored."""
    wanted = stored(load) + ENOUGH
    await asyncio.to_thread(until, lambda: stored(load) >= wanted, within_s=60, what="publishing goes on")


def nothing_was_lost(load: Load) -> None:
    verdict = check(load.scene.history)
    assert {name: found for name, found in verdict.found.items() if found} == {}
    assert load.scene.surprises == {}


def test_what_the_version_before_held_is_there_and_goes_on(before: Path, tmp_path: Path) -> None:
    old = Product(data_dir=tmp_path / "data", more=NO_HISTORY, project=before, bare=True)
    new = Product(data_dir=old.data_dir, more=NO_HISTORY, port=old.port, bare=True)

    async def upgraded(load: Load) -> None:
        async with load.running():
            await goes_on(load)
            assert await asyncio.to_thread(old.stop) == 0
            await asyncio.to_thread(new.start)
            await goes_on(load)

    with ended(old, new):
        old.start()
        with old.client() as client:
            client.post("/policies/", json={"name": "day", "ttl": 86400}).raise_for_status()
            client.post("/streams/", json={"name": "kept", "policy": "day"}).raise_for_status()
            client.post("/streams/kept/messages", json=[{"id": f"{n}", "body": n} for n in range(9)])
            client.delete("/streams/kept/messages?offset=5&undo=true").raise_for_status()
        load = Load(old.port, token=TOKEN)
        asyncio.run(upgraded(load))
        nothing_was_lost(load)
        with new.client() as client:
            assert client.get("/streams/kept").json()["policy"] == "day"
            client.post("/streams/kept/removals/1/undo").raise_for_status()
            found = client.get("/streams/kept/messages").json()
            assert [(each["offset"], each["id"]) for each in found] == [(n + 1, f"{n}") for n in range(9)]
        code, said, _ = manage(new, "okmq_fsck")
        assert code == 0, said
        code, said, _ = manage(new, "okmq_verify_events")
        assert code == 0, said


def test_hosts_are_upgraded_one_after_the_other_while_the_others_go_on(before: Path, tmp_path: Path) -> None:
    with (
        store(tmp_path / "store") as valkey,
        postgres_folder() as postgres,
        postgres.running(),
    ):
        shared = {
            **NO_HISTORY,
            "OKMQ_REDIS_URL": valkey.url,
            "OKMQ_DATABASE_URL": postgres.url,
            "OKMQ_SECRET_KEY": "one-for-all-hosts-and-long-enough-for-it",
        }
        first, second = (
            Product(data_dir=tmp_path / name, more=shared, project=before, bare=True) for name in ("a", "b")
        )
        first_new, second_new = (
            Product(data_dir=old.data_dir, more=shared, port=old.port, bare=True) for old in (first, second)
        )

        async def upgraded(load: Load) -> None:
            async with load.running():
                await goes_on(load)
                await asyncio.to_thread(first.stop)
                await asyncio.to_thread(first_new.start)
                await goes_on(load)
                for product in (first_new, second):
                    await asyncio.to_thread(guided, product, f"guided-by-{product.port}")
                await asyncio.to_thread(second.stop)
                await asyncio.to_thread(second_new.start)
                await goes_on(load)

        with ended(first, second, first_new, second_new):
            first.start()
            second.start()
            load = Load(first.port, second.port, token=TOKEN)
            load.scene.history.ack_wait_s -= CLOCKS_APART_S
            asyncio.run(upgraded(load))
            nothing_was_lost(load)
            code, said, _ = manage(first_new, "okmq_fsck")
            assert code == 0, said
