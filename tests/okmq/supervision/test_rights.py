"""The product's user on the private servers may say what the product says, and nothing else."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from okmq.env import PROJECT
from okmq.supervision import rights
from streams.log.client import Log
from streams.log.commands import one
from streams.log.errors import LogError
from tests.servers import FLAVOURS, Store, store

CHECK = runpy.run_path(str(PROJECT / "scripts" / "check-project"))["the_store_is_asked_what_it_may_be"]


def test_the_product_may_say_what_it_says_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CHECK() == []
    monkeypatch.setattr(rights, "COMMANDS", rights.COMMANDS - {"xadd"} | {"eval"})
    assert CHECK() == [
        "okmq/supervision/rights.py: xadd is said and may not be",
        "okmq/supervision/rights.py: eval may be said and is not",
    ]


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


def test_a_function_of_somebody_s_own_can_say_no_more_than_its_caller(stores: Store) -> None:
    callback = "function(keys, args) return redis.call(unpack(args)) end"
    library = f"#!lua name=own\nredis.register_function('own_call', {callback})"
    log = Log(stores.url)
    try:
        log.run(one(("FUNCTION", "LOAD", "REPLACE", library)))
        assert log.run(one(("FCALL", "own_call", 0, "GET", "okmq:x"))) is None
        for refused in (("FLUSHALL",), ("CONFIG", "SET", "appendfsync", "no"), ("GET", "another")):
            with pytest.raises(LogError, match=r"permission|not allowed|can't"):
                log.run(one(("FCALL", "own_call", 0, *refused)))
    finally:
        log.run(one(("FUNCTION", "DELETE", "own")))
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
