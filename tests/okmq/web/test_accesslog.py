"""The access log's lines and its file; what requests put there is in ``test_observed``."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from okmq.web.accesslog import AccessLog, text_of
from tests.exchanges import ended


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def only_line(text: bytes) -> dict[str, Any]:
    assert text.count(b"\n") == 1
    line: dict[str, Any] = json.loads(text)
    return line


def test_a_line_tells_what_was_asked_and_answered() -> None:
    line = only_line(
        text_of([ended(route="/api/v1/streams/{name}", status=200, workspace="w", token=7, bytes_out=12)])
    )
    assert line.pop("time").endswith("Z")
    assert line.pop("duration_ms") >= 0
    assert line == {
        "level": "info",
        "logger": "okmq.access",
        "request_id": "given-1",
        "method": "GET",
        "route": "/api/v1/streams/{name}",
        "path": "/api/v1/streams/a",
        "status": 200,
        "bytes_in": 0,
        "bytes_out": 12,
        "workspace": "w",
        "token": 7,
        "user": "",
        "address": "10.0.0.9",
        "user_agent": "curl/8",
    }


@pytest.mark.parametrize(
    "hostile", [b'\n{"status": 1}', b"\r\x1b[2J", b"\x00", b"\xff\xfe", b'"}', "\u2028\x9b".encode()]
)
def test_nothing_that_is_sent_makes_a_second_line_or_a_control_character(hostile: bytes) -> None:
    text = text_of([ended(b"/x" + hostile, agent=hostile)])
    assert only_line(text)["path"].startswith("/x")
    assert all(0x20 <= byte < 0x7F for byte in text.removesuffix(b"\n"))


def test_what_looks_like_a_token_is_blotted_out() -> None:
    secret = b"okmq_abcdefghijklmnopqrstuvwxyz"
    text = text_of([ended(b"/api/v1/streams/" + secret, agent=b"x " + secret)])
    assert secret not in text
    assert only_line(text)["path"] == "/api/v1/streams/okmq_***"


def test_a_long_path_is_cut() -> None:
    assert len(text_of([ended(b"/" + b"x" * 60_000, agent=b"y" * 60_000)])) < 2_000


def test_what_does_not_fit_is_counted_and_told(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "access.log", most_held=2)
    for _ in range(5):
        log.note(ended())
    log.write()
    assert [line.get("dropped") for line in lines(tmp_path / "access.log")] == [None, None, 3]


def test_what_a_disk_refuses_is_told_when_it_takes_lines_again(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    log = AccessLog(folder / "access.log")
    log.note(ended())
    log.write()
    folder.mkdir()
    log.write()
    assert [line["dropped"] for line in lines(folder / "access.log")] == [1]


def test_a_file_over_the_limit_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    log = AccessLog(path, largest_bytes=500)
    for _ in range(3):
        log.note(ended())
        log.write()
    assert len(lines(tmp_path / "access.log.1")) == 2
    assert len(lines(path)) == 1


def test_processes_that_share_a_file_lose_no_line_when_it_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "access.log"

    def write() -> None:
        log = AccessLog(path, largest_bytes=30_000)
        for _ in range(60):
            log.note(ended())
            log.write()

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(path)) + len(lines(tmp_path / "access.log.1")) == 120
