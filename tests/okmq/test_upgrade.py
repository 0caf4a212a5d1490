"""From the version before to this one, under load: on the same folder, and host by host while the other goes on."""

import asyncio
import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from okmq import env
from okmq.prove.checking import check
from okmq.prove.history import Publish
from okmq.prove.load import Load
from tests.contracts.test_doors import SHUT
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
OF_ONE_HOST = "tests/contracts/test_doors.py::test_what_is_stored_of_a_token_opens_nothing"
"""It opens the file of a database, and hosts of a pair share a server of one."""

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


def contracts_hold(product: Product) -> None:
    """Ask the contract tests of one that runs, all but the one that looks into the database of a single host."""
    command = ["pytest", "tests/contracts", "-q", "--asked", f"{product.port}", "-p", "no:cacheprovider"]
    asked = subprocess.run(
        [sys.executable, "-m", *command, "--deselect", OF_ONE_HOST],
        cwd=env.PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stdout
    (passed,) = re.findall(r"(\d+) passed", asked.stdout)
    assert int(passed) > 5 * len(SHUT), asked.stdout


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


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two hosts of the version before on one store and one database, and the same two of this one, in their places."""

    first: Product
    second: Product
    first_new: Product
    second_new: Product


@contextmanager
def pair(before: Path, folder: Path) -> Iterator[Pair]:
    with store(folder / "store") as valkey, postgres_folder() as postgres, postgres.running():
        shared = {
            **NO_HISTORY,
            "OKMQ_REDIS_URL": valkey.url,
            "OKMQ_DATABASE_URL": postgres.url,
            "OKMQ_SECRET_KEY": "one-for-all-hosts-and-long-enough-for-it",
        }
        first, second = (
            Product(data_dir=folder / name, more=shared, project=before, bare=True) for name in ("a", "b")
        )
        first_new, second_new = (
            Product(data_dir=old.data_dir, more=shared, port=old.port, bare=True) for old in (first, second)
        )
        with ended(first, second, first_new, second_new):
            first.start()
            second.start()
            yield Pair(first=first, second=second, first_new=first_new, second_new=second_new)


def test_hosts_are_upgraded_one_after_the_other_while_the_others_go_on(before: Path, tmp_path: Path) -> None:
    async def upgraded(load: Load, hosts: Pair) -> None:
        async with load.running():
            await goes_on(load)
            await asyncio.to_thread(hosts.first.stop)
            await asyncio.to_thread(hosts.first_new.start)
            await goes_on(load)
            for product in (hosts.first_new, hosts.second):
                await asyncio.to_thread(guided, product, f"guided-by-{product.port}")
            await asyncio.to_thread(hosts.second.stop)
            await asyncio.to_thread(hosts.second_new.start)
            await goes_on(load)

    with pair(before, tmp_path) as hosts:
        load = Load(hosts.first.port, hosts.second.port, token=TOKEN)
        load.scene.history.ack_wait_s -= CLOCKS_APART_S
        asyncio.run(upgraded(load, hosts))
        nothing_was_lost(load)
        code, said, _ = manage(hosts.first_new, "okmq_fsck")
        assert code == 0, said


@pytest.mark.timeout(1800)
def test_the_contract_tests_pass_on_a_host_beside_one_of_the_version_before(
    before: Path, tmp_path: Path
) -> None:
    """The worker of the version before was first: it makes the events of what both hosts do."""
    with pair(before, tmp_path) as hosts:
        hosts.first.stop()
        hosts.first_new.start()
        contracts_hold(hosts.first_new)
