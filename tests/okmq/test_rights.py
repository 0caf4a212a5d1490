"""The product's user on the private servers may say what the product says, and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from okmq.env import PROJECT
from okmq.rights import COMMANDS
from streams.log.client import Log
from streams.log.commands import one
from streams.log.errors import LogError
from streams.log.scripts import LUA
from tests.servers import FLAVOURS, Store, store

SAID_IN_LUA = re.compile(r"redis\.p?call\(\s*'(\w+)'")
CALLED_IN_LUA = re.compile(r"redis\.p?call\(")
SAID_IN_PYTHON = re.compile(r'\(\s*"([A-Z]{2,})"(?:, "([A-Z]{2,})")?')
OF_SEVERAL_PARTS = {"CONFIG", "FUNCTION", "PUBSUB"}
FREE = {"AUTH"}
"""Everybody may say it."""


def said() -> set[str]:
    """Every command that the log's scripts and its Python name."""
    lua = "".join(path.read_text("utf-8") for path in LUA.rglob("*.lua"))
    named = SAID_IN_LUA.findall(lua)
    assert len(named) == len(CALLED_IN_LUA.findall(lua)), "a command that is not named can be any"
    found = {name.lower() for name in named}
    for path in (PROJECT / "streams" / "log").glob("*.py"):
        for name, part in SAID_IN_PYTHON.findall(path.read_text("utf-8")):
            if name not in FREE:
                found.add(f"{name}|{part}".lower() if name in OF_SEVERAL_PARTS else name.lower())
    return found


def test_the_product_may_say_what_it_says_and_no_more() -> None:
    of_the_supervisor_and_the_live_pages = {"ping", "subscribe", "unsubscribe"}
    assert said() | of_the_supervisor_and_the_live_pages == COMMANDS


@pytest.fixture(scope="module", params=FLAVOURS)
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with store(tmp_path_factory.mktemp("rights"), flavour=request.param, guarded=True) as running:
        yield running


@pytest.mark.parametrize(
    "command",
    [
        ("CONFIG", "SET", "appendfsync", "no"),
        ("CONFIG", "REWRITE"),
        ("EVAL", "return 1", 0),
        ("EVALSHA", "0" * 40, 0),
        ("SCRIPT", "FLUSH"),
        ("FUNCTION", "FLUSH"),
        ("FUNCTION", "RESTORE", "x"),
        ("FLUSHALL",),
        ("FLUSHDB",),
        ("KEYS", "*"),
        ("SHUTDOWN", "NOSAVE"),
        ("DEBUG", "SLEEP", "1"),
        ("REPLICAOF", "127.0.0.1", "1"),
        ("MIGRATE", "127.0.0.1", "1", "okmq:streams", "0", "1"),
        ("MODULE", "LOAD", "/tmp/x.so"),
        ("ACL", "SETUSER", "default", "+@all"),
        ("ACL", "LIST"),
        ("CLIENT", "KILL", "TYPE", "normal"),
        ("MONITOR",),
        ("BGREWRITEAOF",),
        ("SAVE",),
        ("RENAME", "okmq:streams", "okmq:x"),
        ("RESTORE", "okmq:x", "0", "x"),
        ("SORT", "okmq:streams"),
        ("GET", "another"),
        ("SET", "another", "1"),
        ("UNLINK", "another"),
        ("PUBLISH", "another", "1"),
    ],
    ids=lambda command: " ".join(map(str, command[:2])),
)
def test_anything_else_is_refused(stores: Store, command: tuple[object, ...]) -> None:
    log = Log(stores.url)
    try:
        with pytest.raises(LogError, match=r"permission|not allowed"):
            log.run(one(command))
    finally:
        log.close()


def test_the_keeper_may_do_everything_and_the_password_is_for_the_owner_only(stores: Store) -> None:
    log = Log(stores.keeper_url)
    try:
        assert log.run(one(("CONFIG", "SET", "maxmemory", "0"))) == b"OK"
    finally:
        log.close()
    socket = Path(stores.url.removeprefix("unix://"))
    for name in ("keeper", "valkey.conf"):
        assert (socket.parent / name).stat().st_mode & 0o077 == 0
    assert (socket.parent / "keeper").read_text() not in (socket.parent / "valkey.conf").read_text()
