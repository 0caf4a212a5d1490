"""``manage.py okmq_doctor`` of a product that is well, and of some that are not."""

import os
import signal
import subprocess
import sys

import pytest

from okmq import env
from streams.log.client import Log
from tests.product import Product, free_port
from tests.waiting import until

pytestmark = pytest.mark.running


def doctor(product: Product, **more: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "manage.py", "okmq_doctor"],
        cwd=env.PROJECT,
        env={**product.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def looks(out: str) -> dict[str, str]:
    """What it says about each thing: the mark and the sentence."""
    rows = [line for line in out.splitlines() if line[:2] in {"ok", "! ", "!!"}]
    return {row[4:].split("  ")[0]: f"{row[:2].strip()} {row[4:].split('  ', 1)[1].strip()}" for row in rows}


def test_it_has_nothing_to_say_against_one_that_is_well_and_tells_what_is_changed(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    code, out = doctor(product)
    told = looks(out)
    assert told["message store"].startswith("ok answers")
    assert told["durability"] == "ok what is acknowledged is on disk"
    assert told["database"].startswith("ok ")
    assert {told[name].split()[0] for name in ("web", "worker", "valkey")} == {"ok"}
    assert code in {0, 1}  # 1: the machine of the test is short of room
    assert "!!" not in out

    log = Log(product.store_url)
    log.client.execute_command("CONFIG", "SET", "appendfsync", "everysec")
    log.client.execute_command("CONFIG", "SET", "maxmemory", "1mb")
    killed = product.pid("worker")
    os.kill(killed, signal.SIGKILL)
    until(lambda: product.processes()["worker"].pid not in (None, killed))
    code, out = doctor(product)
    told = looks(out)
    assert told["durability"].startswith("! publishes are promised 'window'")
    assert "→ OKMQ_FSYNC=always" in out
    assert told["message store"] == "!! its memory is used up: nothing can be published"
    assert told["worker"].startswith("! exited with signal 9")
    assert code == 2

    log.client.execute_command("REPLICAOF", "127.0.0.1", free_port())
    code, out = doctor(product)
    assert looks(out)["message store"] == "!! it is a replica of another server: nothing can be published"
    assert "REPLICAOF NO ONE" in out
    assert code == 2
    log.close()


def test_it_says_what_to_do_where_nothing_runs(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    code, out = doctor(product)
    assert code == 2
    told = looks(out)
    assert told["processes"] == "!! OKMQ does not run on this data folder"
    assert told["message store"].startswith("!! No server can be reached")
    assert told["database"] == "!! there is none yet"
    assert out.count("→ make run") >= 3
    assert not (product.data_dir / "okmq.sqlite3").exists()


def test_a_database_of_an_older_version_is_told(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "streams", "0010", "--verbosity", "0"],
        cwd=env.PROJECT,
        env=product.environ,
        check=True,
    )
    assert "migrations are not applied" in looks(doctor(product)[1])["database"]


def test_a_history_of_which_a_part_is_missing_or_damaged_is_told(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "on"}
    log = product.data_dir / "history" / "_log"
    log.mkdir(parents=True)
    for number in (1, 3):
        (log / f"{number:012d}.json").write_text("{}")
    assert looks(doctor(product)[1])["history"] == "! its log lacks batch 2 of 3: runs and SQL fail"
    (log / "HEAD").write_text("4")
    (log / "000000000002.json").write_text("{}")
    assert looks(doctor(product)[1])["history"] == "! its log lacks batch 4 of 4: runs and SQL fail"
    (log / "HEAD").write_text("x")
    assert looks(doctor(product)[1])["history"].startswith("! its log cannot be read")


def test_a_data_folder_that_others_can_read_is_told_and_closed_by_a_start(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.bare = True
    # As an operator makes one.
    product.data_dir.mkdir(mode=0o755)
    assert "can get at" in looks(doctor(product)[1])["rights"]
    product.start()
    assert looks(doctor(product)[1])["rights"] == "ok the data folder is its owner's"
    assert product.data_dir.stat().st_mode & 0o077 == 0
    for path in product.data_dir.glob("okmq.sqlite3*"):
        assert path.stat().st_mode & 0o077 == 0, path
    (product.data_dir / "okmq.sqlite3").chmod(0o640)
    assert str(product.data_dir / "okmq.sqlite3") in looks(doctor(product)[1])["rights"]


def test_a_command_makes_a_data_folder_for_its_owner_only(product: Product) -> None:
    doctor(product)
    assert product.data_dir.stat().st_mode & 0o077 == 0


def test_a_process_that_was_stopped_and_a_disk_without_room_are_told(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    stopped = product.pid("web")
    os.kill(stopped, signal.SIGSTOP)
    log = Log(product.store_url)
    log.client.execute_command(
        "CONFIG", "SET", "maxmemory", "1"
    )  # as its keeper does without room on the disk
    log.close()
    try:
        code, out = doctor(product)
    finally:
        os.kill(stopped, signal.SIGCONT)
    told = looks(out)
    assert code == 2
    assert told["web"] == f"!! is stopped (process {stopped}): it does nothing"
    assert f"kill -CONT {stopped}" in out
    assert f"of the disk of {product.data_dir / 'valkey'} are free" in told["message store"]
    assert "maxmemory" not in out


def test_files_that_are_damaged_are_told_with_what_to_do(product: Product) -> None:
    product.more = {"OKMQ_HISTORY": "off"}
    product.start()
    with product.client() as client:
        client.post("/streams/", json={"name": "s"}).raise_for_status()
    product.stop()
    (aof,) = (product.data_dir / "valkey" / "appendonlydir").glob("*.incr.aof")
    held = aof.read_bytes()
    aof.write_bytes(held[: len(held) // 2] + b"no command" + held[len(held) // 2 :])
    product.start(wait=False)
    assert product.ended() != 0
    database = product.data_dir / "okmq.sqlite3"
    database.write_bytes(b"no database at all" * 1000)
    code, out = doctor(product)
    told = looks(out)
    assert code == 2
    assert told["message store"].startswith("!! it cannot read its file, and does not start: ")
    assert "valkey-check-aof" in out
    assert told["database"].startswith("!! its file is damaged: ")
    assert "okmq_restore" in out


def test_a_setting_that_cannot_be_read_is_one_sentence(product: Product) -> None:
    code, out = doctor(product, OKMQ_WEB_WORKERS="abc")
    assert (code, out) == (2, "OKMQ_WEB_WORKERS='abc': expected a whole number from 1 to 64.\n")
