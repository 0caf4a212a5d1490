"""The private server: its configuration, and what is there again after each kind of end."""

import stat
from pathlib import Path

import pytest

from okmq.supervision import resp
from okmq.supervision.valkey import ValkeyError, ValkeyServer, binary
from streams.log.client import Log, one
from tests.servers import FLAVOURS, store


def test_the_wheel_holds_a_server_for_this_machine() -> None:
    assert binary().name == "valkey-server"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path, flavour: str) -> None:
    with store(tmp_path, flavour=flavour) as server:
        log = Log(server.url)
        for number in range(100):
            log.run(one(("RPUSH", "list", number)))
        server.kill()
        server.start()
        assert log.run(one(("LLEN", "list"))) == 100
        log.close()


def test_half_an_entry_at_the_end_of_the_file_is_cut_off(tmp_path: Path) -> None:
    with store(tmp_path) as server:
        log = Log(server.url)
        log.run(one(("SET", "kept", "1")))
        server.kill()
        (newest,) = tmp_path.glob("appendonlydir/*.incr.aof")
        with newest.open("ab") as file:
            file.write(b"*3\r\n$3\r\nSET\r\n$4\r\nha")
        server.start()
        assert log.run(one(("GET", "kept"))) == b"1"
        log.close()


def test_the_socket_is_for_its_owner_only(tmp_path: Path) -> None:
    with store(tmp_path) as server:
        socket = Path(server.url.removeprefix("unix://"))
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_it_flushes_as_it_was_told_and_never_evicts(tmp_path: Path) -> None:
    with store(tmp_path, fsync="everysec") as server:
        log = Log(server.url)
        told = log.run(
            one(("CONFIG", "GET", "appendfsync", "maxmemory-policy", "appendonly", "save", "port"))
        )
        log.close()
    pairs = dict(zip(told[::2], told[1::2], strict=True))
    assert pairs == {
        b"appendfsync": b"everysec",
        b"maxmemory-policy": b"noeviction",
        b"appendonly": b"yes",
        b"save": b"",
        b"port": b"0",
    }


def test_a_folder_with_quotes_and_spaces_serves(tmp_path: Path) -> None:
    with store(tmp_path / 'a "quoted" \\ folder') as server:
        resp.ping(server.url)


def test_a_socket_left_over_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    with store(tmp_path) as server:
        resp.ping(server.url)


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    server = ValkeyServer(folder=tmp_path / "data", socket=tmp_path / "link" / "s", fsync="always")
    with pytest.raises(ValkeyError, match="belongs to somebody else"):
        server.prepare()
