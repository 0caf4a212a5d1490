"""A database that went away, or another one, must not take the messages along."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from okmq import env
from tests.product import Product

pytestmark = pytest.mark.running

REFUSED = "The message store holds 2 streams of another database than this one"
"""One that was made, and the one of the metrics."""


@pytest.mark.parametrize("is_prepared", [False, True], ids=["new", "of another installation"])
def test_another_database_beside_old_messages_is_refused_and_nothing_is_lost(
    product: Product, tmp_path: Path, is_prepared: bool
) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    with product.client() as client:
        client.post("/streams/", json={"name": "kept"}).raise_for_status()
        client.post("/streams/kept/messages", json={"id": "1", "body": 1}).raise_for_status()
    product.stop()
    away = tmp_path / "away"
    away.mkdir()
    _move_database(product.data_dir, away)
    if is_prepared:
        held = (product.data_dir / "valkey").rename(away / "valkey")
        product.start()
        product.stop()
        shutil.rmtree(product.data_dir / "valkey")
        held.rename(product.data_dir / "valkey")
    product.start(wait=False)
    assert product.ended() == 1
    sentence = product.output.strip().splitlines()[-1]
    assert sentence.startswith(f"{REFUSED}: bring that database back")
    # With what the database has not yet taken over from its journal.
    for file in product.data_dir.glob("okmq.sqlite3*"):
        file.unlink()
    _move_database(away, product.data_dir)
    product.start()
    with product.client() as client:
        assert client.get("/streams/kept").json()["messages"] == 1


def _move_database(come_from: Path, to: Path) -> None:
    for file in come_from.glob("okmq.sqlite3*"):
        file.rename(to / file.name)


def test_the_log_is_told_again_by_a_command(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    done = subprocess.run(
        [sys.executable, "manage.py", "okmq_republish"],
        cwd=env.PROJECT,
        env=product.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "The log has been told of 1 streams and 1 tokens.\n"


def test_nothing_takes_messages_out_beside_a_database_that_was_never_prepared(
    product: Product, tmp_path: Path
) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    with product.client() as client:
        client.post("/streams/", json={"name": "kept"}).raise_for_status()
        client.post("/streams/kept/messages", json={"id": "1", "body": 1}).raise_for_status()
    other = {**product.environ, "OKMQ_DATABASE_URL": f"sqlite:///{tmp_path}/other.sqlite3"}
    migrated, told, checked = (
        subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=env.PROJECT,
            env=other,
            capture_output=True,
            text=True,
            check=False,
        )
        for command in (["migrate", "-v0"], ["okmq_republish"], ["okmq_fsck", "--repair"])
    )
    assert migrated.returncode == 0
    assert (told.returncode, told.stdout) == (1, "")
    assert REFUSED in told.stderr
    assert (checked.returncode, REFUSED in checked.stderr, "put right" in checked.stdout) == (1, True, False)
    with product.client() as client:
        assert client.get("/streams/kept").json()["messages"] == 1
        assert len(client.get("/streams/kept/messages?offset=1").json()) == 1
