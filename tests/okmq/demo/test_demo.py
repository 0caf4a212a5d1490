"""``make demo`` on the whole product: what it stores, and that it stores it once."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from okmq.demo import flights
from tests.okmq.demo.reading import data_set, demo, demo_run, everything, last_offset
from tests.product import Product, free_port
from tests.waiting import until

pytestmark = pytest.mark.running

SOME = 2_500


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product whose processes the tests of this file kill; each leaves it running."""
    product = Product(data_dir=tmp_path_factory.mktemp("demo") / "data", more={"OKMQ_HISTORY": "off"})
    try:
        yield product.start()
    finally:
        product.end_all()


def stored(product: Product, stream: str, *arguments: str) -> tuple[int, int]:
    """Run the demo; how many departures it says it stored, and how many were known."""
    code, out, err = demo_run(product, "--stream", stream, *arguments)
    assert code == 0, err
    _, _, counts = out.partition(": ")
    now, known = counts.replace(",", "").replace(" stored now", "").split()[:2]
    return int(now), int(known)


def test_it_stores_the_first_departures_in_order(running: Product, unique: str) -> None:
    assert stored(running, unique, "--limit", str(SOME)) == (SOME, 0)
    table, messages = flights.load(), everything(running, unique)
    assert [message["offset"] for message in messages] == list(range(1, SOME + 1))
    assert [{name: message[name] for name in ("id", "key", "body")} for message in messages] == [
        table.message(rank) for rank in range(SOME)
    ]


def test_a_second_run_adds_nothing_and_a_longer_one_the_rest(running: Product, unique: str) -> None:
    stored(running, unique, "--limit", "1200")
    assert stored(running, unique, "--limit", "1200") == (0, 1200)
    assert stored(running, unique, "--limit", str(SOME)) == (SOME - 1200, 1200)
    assert last_offset(running, unique) == SOME


def test_it_finds_its_place_behind_messages_of_others(running: Product, unique: str) -> None:
    stored(running, unique, "--limit", "1200")
    with running.client() as client:
        client.post(f"/streams/{unique}/messages", json={"id": "mine", "body": 1}).raise_for_status()
    assert stored(running, unique, "--limit", str(SOME)) == (SOME - 1200, 1200)


def test_a_purged_stream_still_knows_what_it_had(running: Product, unique: str) -> None:
    stored(running, unique, "--limit", "1200")
    with running.client() as client:
        client.delete(f"/streams/{unique}/messages").raise_for_status()
    assert stored(running, unique, "--limit", "1200") == (0, 1200)
    assert everything(running, unique) == []


def test_live_it_takes_the_time_that_was_asked(running: Product, unique: str) -> None:
    live = demo(running, "--stream", unique, "--limit", "40", "--live", "2")
    with live:
        until(lambda: 0 < last_offset(running, unique) < 30, what="a part is there while it runs")
        assert live.wait(timeout=20) == 0
    assert last_offset(running, unique) == 40


def test_ctrl_c_and_again_continues(running: Product, unique: str) -> None:
    live = demo(running, "--stream", unique, "--limit", "400", "--live", "60")
    with live:
        until(lambda: last_offset(running, unique) > 5)
        live.send_signal(signal.SIGINT)
        assert live.wait(timeout=10) == 130
        assert live.stderr is not None
        assert "Traceback" not in live.stderr.read()
    before = last_offset(running, unique)
    assert stored(running, unique, "--limit", "400") == (400 - before, before)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--token-file", "/dev/null"], "give --token-file or set OKMQ_ADMIN_TOKEN"),
        (["--token-file", "/"], "The token in / cannot be read: Is a directory."),
        (["--stream", "two words"], "OKMQ refused: name"),
        (["--url", "ftp://127.0.0.1"], "is not an address"),
    ],
)
def test_a_refusal_is_one_sentence(running: Product, arguments: list[str], sentence: str) -> None:
    code, out, err = demo_run(running, *arguments)
    assert (code, out) == (1, "")
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_the_token_of_a_file_is_the_one_that_is_sent(running: Product, tmp_path: Path, unique: str) -> None:
    (tmp_path / "token").write_text("not-a-token-of-ours\n")
    code, _, err = demo_run(running, "--token-file", str(tmp_path / "token"))
    assert (code, "Unknown token" in err) == (1, True)
    (tmp_path / "token").write_text(f"{running.environ['OKMQ_ADMIN_TOKEN']}\n")
    kept = demo_run(
        running,
        "--token-file",
        str(tmp_path / "token"),
        "--stream",
        unique,
        "--limit",
        "5",
        OKMQ_ADMIN_TOKEN="",
    )
    assert kept[0] == 0


def test_without_a_token_it_says_where_to_give_one(running: Product, tmp_path: Path) -> None:
    code, _, err = demo_run(running, OKMQ_ADMIN_TOKEN="", OKMQ_DATA_DIR=str(tmp_path))
    assert code == 1
    assert "OKMQ_ADMIN_TOKEN" in err
    # The token in the folder is for the folder's own server, not for whatever address is given.
    (tmp_path / "admin_token").write_text("a-token-that-stays-here\n")
    code, _, err = demo_run(
        running, "--url", f"http://127.0.0.1:{free_port()}", OKMQ_ADMIN_TOKEN="", OKMQ_DATA_DIR=str(tmp_path)
    )
    assert code == 1
    assert "give --token-file" in err


def test_it_finds_the_token_that_the_first_start_made_up(product: Product, unique: str) -> None:
    product.more = {"OKMQ_HISTORY": "off", "OKMQ_ADMIN_TOKEN": ""}
    product.start()
    assert (product.data_dir / "admin_token").stat().st_mode & 0o777 == 0o600
    assert stored(product, unique, "--limit", "10") == (10, 0)


@pytest.mark.timeout(400)
def test_the_whole_year_survives_kills_of_the_web_process_and_of_the_store(steady: Product) -> None:
    year = demo(steady)
    with year:
        for name, after in (("web", 60_000), ("valkey", 130_000), ("web", 200_000), ("valkey", 270_000)):
            until(partial(is_beyond, steady, after), within_s=100, what=f"{after} departures are stored")
            os.kill(steady.pid(name), signal.SIGKILL)
        out, err = year.communicate(timeout=200)
        assert year.returncode == 0, err
    assert "336,776 departures are in stream flights" in out
    messages = everything(steady, "flights")
    assert [message["offset"] for message in messages] == list(range(1, 336_777))
    assert len({message["id"] for message in messages}) == 336_776
    expected = sorted(data_set(), key=lambda row: (row["time_hour"], row["minute"]))
    assert [message["body"] for message in messages] == expected
    assert [message["key"] for message in messages] == [
        f"flights.{row['origin']}.{row['carrier']}" for row in expected
    ]
    assert stored(steady, "flights") == (0, 336_776)
    with steady.client() as client:
        stream = client.get("/streams/flights").json()
    assert (stream["offset"], stream["messages"]) == (336_776, 336_776)


def is_beyond(product: Product, offset: int) -> bool:
    """Whether the demo has come this far; a server that is just being restarted cannot tell."""
    with product.client() as client:
        try:
            answer = client.get("/streams/flights")
        except httpx.TransportError:
            return False
    return answer.is_success and answer.json()["offset"] > offset
