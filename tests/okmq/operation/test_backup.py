"""A backup that is taken while everything goes on, brought up in another place: an exact prefix, and it goes on."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from okmq import env
from okmq.operation.backup import BackupError, check
from streams.log.client import Log
from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running

NO_HISTORY = {"OKMQ_HISTORY": "off"}


def manage(product: Product, *words: str, most_kib: int | None = None) -> tuple[int, str, str]:
    """What a command ends with and says; ``most_kib``: of each file that it writes, as on a disk that is full."""
    limited = ["bash", "-c", f'ulimit -f {most_kib}; exec "$@"', "limited"] if most_kib else []
    done = subprocess.run(
        [*limited, sys.executable, "manage.py", *words],
        cwd=env.PROJECT,
        env=product.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@contextmanager
def publishing(product: Product, stream: str) -> Iterator[list[int]]:
    """Somebody publishes batches of three, one after the other; the offsets that were acknowledged."""
    ended, acknowledged = threading.Event(), list[int]()

    def publish() -> None:
        with product.client() as client:
            number = 0
            while not ended.is_set():
                number += 1
                batch = [{"id": f"{number}-{at}", "key": f"k.{at}", "body": {"n": number}} for at in range(3)]
                answer = client.post(f"/streams/{stream}/messages", json=batch)
                acknowledged.extend(each["offset"] for each in answer.raise_for_status().json())

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield acknowledged
    finally:
        ended.set()
        thread.join()


def everything(product: Product, stream: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with product.client() as client:
        while True:
            start = found[-1]["offset"] + 1 if found else 1
            page = (
                client.get(f"/streams/{stream}/messages?offset={start}&limit=10000").raise_for_status().json()
            )
            if not page:
                return found
            found += page


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Product]:
    product = Product(data_dir=tmp_path / "elsewhere", more=NO_HISTORY)
    try:
        yield product
    finally:
        product.end_all()


@pytest.mark.timeout(400)
def test_a_backup_under_load_is_an_exact_prefix_elsewhere(
    product: Product, elsewhere: Product, tmp_path: Path
) -> None:
    product.more = NO_HISTORY
    product.start()
    copy = tmp_path / "copy"
    with product.client() as client:
        client.post("/streams/", json={"name": "s", "labels": {"a": "b"}}).raise_for_status()
        client.post("/streams/s/groups/", json={"name": "g", "ack_wait": 600}).raise_for_status()
        with publishing(product, "s") as acknowledged:
            until(lambda: len(acknowledged) > 300)
            taken = client.post("/streams/s/groups/g/fetch", json={"limit": 50, "wait": 0}).json()
            leases = [each["lease"] for each in taken]
            assert client.post("/streams/s/groups/g/ack", json={"leases": leases[:20]}).json() == {
                "acked": 20
            }
            client.post("/streams/s/commit", json={"offset": 100}).raise_for_status()
            before = len(acknowledged)
            code, out, err = manage(product, "okmq_backup", str(copy))
            assert code == 0, err
            assert "streams with" in out
            after = len(acknowledged)
            until(lambda: len(acknowledged) > after + 30, what="it goes on")
    whole = everything(product, "s")

    assert manage(elsewhere, "okmq_restore", "--check", str(copy))[0] == 0
    assert manage(elsewhere, "okmq_restore", str(copy))[0] == 0
    elsewhere.start()
    part = everything(elsewhere, "s")
    assert before <= len(part) < len(whole)
    assert part == whole[: len(part)]
    assert len(part) % 3 == 0
    code, _, err = manage(elsewhere, "okmq_fsck")
    assert code == 0, err
    code, _, err = manage(elsewhere, "okmq_verify_events")
    assert code == 0, err
    with elsewhere.client() as client:
        shown = client.get("/streams/s").json()
        assert (shown["committed_offset"], shown["labels"], shown["messages"]) == (100, {"a": "b"}, len(part))
        assert client.get("/streams/s/groups/g").json()["ack_pending"] == 30
        assert client.post("/streams/s/groups/g/ack", json={"leases": leases[20:]}).json() == {"acked": 30}
        known, fresh = client.post(
            "/streams/s/messages", json=[{"id": part[-1]["id"], "body": 1}, {"id": "fresh", "body": 1}]
        ).json()
    assert (known["duplicate"], known["offset"]) == (True, len(part))
    assert (fresh["duplicate"], fresh["offset"]) == (False, len(part) + 1)


def test_what_is_damaged_or_in_the_way_is_one_sentence_and_changes_nothing(
    product: Product, elsewhere: Product, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    assert "The message store does not answer" in refused(product, "okmq_backup", str(copy))
    assert not copy.exists()
    product.more = NO_HISTORY
    product.start()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    assert "is not empty" in refused(product, "okmq_backup", str(tmp_path / "full"))
    assert (tmp_path / "full" / "mine").read_text() == "mine"
    assert manage(product, "okmq_backup", str(copy))[0] == 0
    assert "is in use by another OKMQ" in refused(product, "okmq_restore", str(copy))
    assert "is no backup" in refused(elsewhere, "okmq_restore", str(tmp_path / "full"))
    with (copy / "log.rdb").open("r+b") as file:
        file.seek(20)
        file.write(b"?")
    assert "the backup is damaged" in refused(elsewhere, "okmq_restore", str(copy))
    assert not (elsewhere.data_dir / "okmq.sqlite3").exists()


def test_what_is_left_of_another_database_is_in_the_way_as_a_whole(
    product: Product, elsewhere: Product, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    product.more = NO_HISTORY
    product.start()
    assert manage(product, "okmq_backup", str(copy))[0] == 0
    elsewhere.data_dir.mkdir()
    journal, shared = (elsewhere.data_dir / f"okmq.sqlite3-{end}" for end in ("wal", "shm"))
    journal.write_bytes(b"of another one")
    (elsewhere.data_dir / "okmq.sqlite3").write_bytes(b"another one")
    said = refused(elsewhere, "okmq_restore", str(copy))
    assert f"{elsewhere.data_dir}/okmq.sqlite3, {journal} are there already" in said
    assert journal.read_bytes() == b"of another one"
    (elsewhere.data_dir / "okmq.sqlite3").unlink()
    assert f"{journal} is there already" in refused(elsewhere, "okmq_restore", str(copy))
    journal.write_bytes(b"")
    assert manage(elsewhere, "okmq_restore", str(copy))[0] == 0
    assert not journal.exists()
    assert not shared.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("OKMQ_REDIS_URL", "redis://127.0.0.1:1/0"), ("OKMQ_DATABASE_URL", "sqlite:////nowhere/other.sqlite3")],
)
def test_a_folder_that_no_start_would_look_at_is_not_restored(
    product: Product, elsewhere: Product, tmp_path: Path, name: str, value: str
) -> None:
    copy = tmp_path / "copy"
    product.more = NO_HISTORY
    product.start()
    assert manage(product, "okmq_backup", str(copy))[0] == 0
    elsewhere.more = {**NO_HISTORY, name: value}
    assert name in refused(elsewhere, "okmq_restore", str(copy))
    assert not (elsewhere.data_dir / "okmq.sqlite3").exists()


@pytest.mark.parametrize(
    "told", [{"files": None}, {"files": []}, {"files": {}}, {"messages": "many"}, {"streams": None}]
)
def test_what_no_backup_writes_of_itself_is_one_sentence(tmp_path: Path, told: dict[str, Any]) -> None:
    whole = {"taken_at": "2026-11-26T00:00:00Z", "files": {"log.rdb": "", "okmq.sqlite3": ""}}
    written = {**whole, "streams": 1, "messages": 1, "format": 1, **told}
    (tmp_path / "backup.json").write_text(json.dumps(written))
    with pytest.raises(BackupError, match="is not as a backup writes it"):
        check(tmp_path)


def test_a_backup_is_for_its_owner_only_also_in_a_folder_that_was_there(
    product: Product, tmp_path: Path
) -> None:
    product.more = NO_HISTORY
    product.start()
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o755)
    assert manage(product, "okmq_backup", str(copy))[0] == 0
    for path in (copy, *copy.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path


def test_where_there_is_no_room_nothing_is_left_and_it_can_be_done_again(
    product: Product, elsewhere: Product, tmp_path: Path
) -> None:
    product.more = NO_HISTORY
    product.start()
    copy = tmp_path / "copy"
    with product.client() as client:
        client.post("/streams/", json={"name": "s"}).raise_for_status()
        client.post("/streams/s/messages", json={"id": "1", "body": 1}).raise_for_status()
    assert "is no folder" in refused(product, "okmq_backup", "/etc/hostname")
    assert "cannot be written" in refused(product, "okmq_backup", str(copy), most_kib=64)
    assert not copy.exists()
    copy.mkdir()
    assert "cannot be written" in refused(product, "okmq_backup", str(copy), most_kib=64)
    assert list(copy.iterdir()) == []
    assert manage(product, "okmq_backup", str(copy))[0] == 0

    assert "Nothing was restored" in refused(elsewhere, "okmq_restore", str(copy), most_kib=64)
    left = {path.name for path in elsewhere.data_dir.rglob("*") if path.is_file()}
    assert left <= {"okmq.lock", "secret_key"}
    code, _, err = manage(elsewhere, "okmq_restore", str(copy))
    assert code == 0, err
    elsewhere.start()
    assert len(everything(elsewhere, "s")) == 1


CUT_OFF = """
import os, pathlib, sys
replace, done = pathlib.Path.replace, []
def cut_off(self, target):
    if done:
        os._exit(9)
    done.append(replace(self, target))
pathlib.Path.replace = cut_off
from django.core.management import execute_from_command_line
os.environ["DJANGO_SETTINGS_MODULE"] = "okmq.settings"
execute_from_command_line(["manage.py", "okmq_restore", sys.argv[1]])
"""
"""A restore that is killed after the first of its renames."""


def test_a_restore_that_was_cut_off_is_told_by_a_start_and_begun_anew_by_the_next(
    product: Product, elsewhere: Product, tmp_path: Path
) -> None:
    product.more = elsewhere.more = NO_HISTORY
    product.start()
    with product.client() as client:
        client.post("/streams/", json={"name": "s"}).raise_for_status()
        client.post("/streams/s/messages", json=[{"id": "1", "body": 1}]).raise_for_status()
    copy = tmp_path / "copy"
    assert manage(product, "okmq_backup", str(copy))[0] == 0
    cut = [sys.executable, "-c", CUT_OFF, str(copy)]
    assert subprocess.run(cut, cwd=env.PROJECT, env=elsewhere.environ, check=False).returncode == 9
    elsewhere.bare = True
    elsewhere.start(wait=False)
    assert elsewhere.ended() != 0
    told = " ".join(elsewhere.output.split())
    assert f"A restore of {copy} into {elsewhere.data_dir} was cut off" in told
    assert f"manage.py okmq_restore {copy}" in told
    code, _, err = manage(elsewhere, "okmq_restore", str(copy))
    assert code == 0, err
    elsewhere.start()
    assert len(everything(elsewhere, "s")) == 1


def test_a_backup_that_is_interrupted_says_so_and_leaves_nothing(product: Product, tmp_path: Path) -> None:
    product.more = NO_HISTORY
    product.start()
    log = Log(product.store_url)
    log.client.execute_command("CONFIG", "SET", "rdb-key-save-delay", "1000000")  # so it takes a while
    copy = tmp_path / "copy"
    running = subprocess.Popen(
        # Whoever runs the tests may ignore the signal, as a shell has what it starts in the background do.
        ["env", "--default-signal=INT", sys.executable, "manage.py", "okmq_backup", str(copy)],
        cwd=env.PROJECT,
        env=product.environ,
        stderr=subprocess.PIPE,
        text=True,
    )

    def saves() -> bool:
        return b"rdb_bgsave_in_progress:1" in log.client.execute_command("INFO", "persistence")

    until(saves, what="the snapshot is written")
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (
        130,
        f"CommandError: Interrupted: there is no backup in {copy}, and nothing of it is left.\n",
    )
    assert not copy.exists()
    until(lambda: not saves(), what="the snapshot is given up")
    assert not (product.data_dir / "valkey" / "dump.rdb").exists()
    log.close()


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_with_the_history_everything_published_is_in_it_once(
    product: Product, elsewhere: Product, tmp_path: Path
) -> None:
    product.start()
    with product.client() as client:
        client.post("/streams/", json={"name": "s"}).raise_for_status()
    archived(product, first=1, count=50)
    code, _, err = manage(product, "okmq_backup", "--history", str(tmp_path / "copy"))
    assert code == 0, err
    product.stop()
    elsewhere.more = {}
    code, _, err = manage(elsewhere, "okmq_restore", str(tmp_path / "copy"))
    assert code == 0, err
    elsewhere.start()
    archived(elsewhere, first=41, count=30)  # ten of them are known
    with elsewhere.client() as client:
        sql = "SELECT count(*) AS n, count(DISTINCT offset) AS offsets, max(offset) AS last FROM messages"
        asked = client.post("/analytics/query", json={"sql": sql})
        if asked.status_code == 202:
            url = f"/analytics/query/{asked.json()['id']}"
            until(lambda: client.get(url).status_code == 200, within_s=300)
            asked = client.get(url)
        points = client.get("/streams/s/history?step=day").json()["points"]
    assert asked.json()["rows"] == [[70, 70, 70]]
    assert sum(point["messages"] for point in points) == 70


def archived(product: Product, *, first: int, count: int) -> None:
    """Publish, and let Spark copy and count it."""
    with product.client() as client:
        batch = [{"id": str(n), "body": n} for n in range(first, first + count)]
        client.post("/streams/s/messages", json=batch).raise_for_status()
        begun = client.post("/analytics/runs/", json={}).raise_for_status().json()
        until(
            lambda: client.get(f"/analytics/runs/{begun['id']}").json()["state"] == "succeeded",
            within_s=400,
            what="the run has ended",
        )


def refused(product: Product, *words: str, most_kib: int | None = None) -> str:
    code, out, err = manage(product, *words, most_kib=most_kib)
    assert (code, out) == (1, "")
    assert len(err.strip().splitlines()) == 1, err
    return err
