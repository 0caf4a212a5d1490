"""Logs of children: errors are found once, files stay bounded."""

import json
from pathlib import Path

from okmq.supervision.childlogs import ChildLog


def error(message: str) -> str:
    return json.dumps({"level": "error", "message": message}) + "\n"


def test_what_was_there_before_is_not_told_again(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_text(error("of yesterday"))
    log = ChildLog(path=path)
    with path.open("a") as file:
        file.write(error("of today"))
    assert list(log.errors()) == ["of today"]
    assert list(log.errors()) == []


def test_a_line_that_is_being_written_is_told_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = ChildLog(path=path)
    whole = error("slowly")
    with path.open("a") as file:
        file.write(whole[:10])
        file.flush()
        assert list(log.errors()) == []
        file.write(whole[10:])
    assert list(log.errors()) == ["slowly"]


def test_a_line_that_is_no_object_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = ChildLog(path=path)
    path.write_text('["error"]\n"error" in a traceback\n' + error("told"))
    assert list(log.errors()) == ["told"]


def test_a_file_over_the_limit_moves_aside_and_the_writer_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = ChildLog(path=path, largest_bytes=1000)
    with path.open("a") as file:
        file.write("x" * 1001)
        file.flush()
        assert log.rotate()
        file.write("after")
    assert path.read_text() == "after"
    assert path.with_name("web.log.1").stat().st_size == 1001


def test_a_file_under_the_limit_stays(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_text("x" * 1000)
    assert not ChildLog(path=path, largest_bytes=1000).rotate()


def test_an_error_of_the_web_server_is_told_too(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = ChildLog(path=path)
    path.write_text("ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n")
    assert list(log.errors()) == ["Exception in ASGI application"]


def test_what_is_said_again_and_again_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = ChildLog(path=path)
    path.write_text(error("the disk is full") * 3 + error("the store is gone"))
    assert list(log.errors()) == ["the disk is full", "the store is gone"]
