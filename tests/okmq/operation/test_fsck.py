"""``manage.py okmq_fsck`` beside a running product: silent while all is well, and of use when it is not."""

import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from okmq import env
from streams import bearer
from streams.log import config, group_meta, healths, keys, meta
from streams.log.client import Log
from tests.product import Product

pytestmark = pytest.mark.running


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(data_dir=tmp_path_factory.mktemp("fsck") / "data", more={"OKMQ_HISTORY": "off"})
    try:
        yield product.start()
    finally:
        product.end_all()


@pytest.fixture
def log(steady: Product) -> Iterator[Log]:
    client = Log(steady.store_url)
    yield client
    client.close()


def fsck(product: Product, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "manage.py", "okmq_fsck", *words],
        cwd=env.PROJECT,
        env=product.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def filled(product: Product, stream: str) -> None:
    with product.client() as client:
        client.post("/streams/", json={"name": stream}).raise_for_status()
        client.post(f"/streams/{stream}/groups/", json={"name": "g"}).raise_for_status()
        batch = [{"id": str(n), "key": "k", "body": n} for n in range(100)]
        client.post(f"/streams/{stream}/messages", json=batch).raise_for_status()
        client.post(f"/streams/{stream}/groups/g/fetch", json={"limit": 10, "wait": 0}).raise_for_status()


def id_of(log: Log, stream: str) -> str:
    (found,) = [each.stream_id for each in log.run(config.streams()) if each.name == stream]
    return found


def test_all_is_well(steady: Product, log: Log, unique: str) -> None:
    filled(steady, unique)
    # As a look at a group leaves it that goes in the middle of it; it goes by itself.
    log.run(healths.put(keys.stream_id(), "g", b"{}"))
    code, out, err = fsck(steady)
    assert (code, err) == (0, "")
    assert "everything agrees" in out


def test_what_the_log_forgot_is_told_and_put_right(steady: Product, log: Log, unique: str) -> None:
    filled(steady, unique)
    stream_id, stranger = id_of(log, unique), keys.stream_id()
    log.client.execute_command("SET", f"okmq:{{{stranger}}}:meta", "left behind")
    log.client.execute_command("HDEL", keys.meta(stream_id), "settings")
    log.client.execute_command("HDEL", keys.by_key(stream_id), "k")
    (token,) = log.client.execute_command("KEYS", keys.token("*"))
    log.client.execute_command("DEL", token)
    code, _, err = fsck(steady)
    assert code == 1
    for sentence in (
        f"does not know the stream {unique} as the database has it (--repair puts it right)",
        "does not know the token admin as the database has it",
        f"{stranger}: keys that belong to no stream",
    ):
        assert sentence in err
    code, out, err = fsck(steady, "--repair")
    assert code == 0, err
    assert out.count("put right: ") >= 3
    code, out, _ = fsck(steady)
    assert (code, "everything agrees" in out) == (0, True)
    with steady.client() as client:
        assert client.get(f"/streams/{unique}").json()["messages"] == 100


def test_what_readers_and_groups_go_by_is_put_right(steady: Product, log: Log, unique: str) -> None:
    filled(steady, unique)
    stream_id = id_of(log, unique)
    with steady.client() as client:
        for name in ("lost", "unlisted", "other"):
            client.post(f"/streams/{unique}/groups/", json={"name": name}).raise_for_status()
        taken = client.post(f"/streams/{unique}/groups/lost/fetch", json={"limit": 20, "wait": 0}).json()
        leases = [each["lease"] for each in taken[:10]]
        client.post(f"/streams/{unique}/groups/lost/ack", json={"leases": leases}).raise_for_status()
    other = log.client.execute_command("HGET", keys.group(stream_id, "other"), group_meta.SETTINGS)
    changed = {**msgspec.msgpack.decode(other), "ack_wait_ms": 7}
    log.client.execute_command("HDEL", keys.REGISTRY, stream_id)
    log.client.execute_command("DEL", keys.group(stream_id, "lost"))
    log.client.execute_command("SREM", keys.groups(stream_id), "unlisted")
    log.client.execute_command(
        "HSET", keys.group(stream_id, "other"), group_meta.SETTINGS, msgspec.msgpack.encode(changed)
    )
    code, _, err = fsck(steady)
    assert code == 1
    for sentence in (
        f"does not know the stream {unique} as the database has it",
        "group lost: it is listed and not there",
        "the group other has other settings in the database",
    ):
        assert sentence in err
    code, _, err = fsck(steady, "--repair")
    assert code == 0, err
    code, out, err = fsck(steady)
    assert (code, "everything agrees" in out) == (0, True), err
    assert log.client.execute_command("HGET", keys.group(stream_id, "other"), group_meta.SETTINGS) == other
    # If the worker was not faster.
    assert log.client.execute_command("SISMEMBER", keys.groups(stream_id), "unlisted") == 1
    with steady.client() as client:
        shown = client.get(f"/streams/{unique}/groups/lost").json()
        assert (shown["delivered_offset"], shown["ack_pending"]) == (20, 10)


def test_what_only_the_log_has_is_told_and_taken_away(steady: Product, log: Log, unique: str) -> None:
    filled(steady, unique)
    workspace_id = next(each.workspace_id for each in log.run(config.streams()) if each.name == unique)
    grant = config.TokenGrant(id=999, workspace="default", workspace_id=workspace_id, scopes=("read",))
    log.run(config.token_publish(bearer.digest("of-nobody"), grant))
    log.client.execute_command("HSET", keys.names(workspace_id), f"{unique}-left", "abcdefghijkl")
    code, _, err = fsck(steady)
    assert code == 1
    assert "the log lets a token in that the database does not have" in err
    assert f"the log knows the name {unique}-left" in err
    with steady.client(token="of-nobody") as stranger:
        assert stranger.get(f"/streams/{unique}/messages").status_code == 200
    code, _, err = fsck(steady, "--repair")
    assert code == 0, err
    code, out, _ = fsck(steady)
    assert (code, "everything agrees" in out) == (0, True)
    with steady.client(token="of-nobody") as stranger:
        assert stranger.get(f"/streams/{unique}/messages").status_code == 401


def test_a_message_that_is_not_there_cannot_be_put_right(steady: Product, log: Log, unique: str) -> None:
    filled(steady, unique)
    stream_id = id_of(log, unique)
    ((entry, _),) = log.client.execute_command("XRANGE", keys.log(stream_id), 50, 50)
    log.client.execute_command("XDEL", keys.log(stream_id), entry)
    code, _, err = fsck(steady, "--repair")
    assert code == 1
    assert f"{unique}: the message at 50 is not there" in err
    assert log.client.execute_command("HEXISTS", keys.meta(stream_id), meta.COUNTERS) == 1
    with steady.client() as client:
        assert client.get(f"/streams/{unique}").json()["messages"] == 99
        client.delete(f"/streams/{unique}").raise_for_status()


def test_what_people_took_is_told_as_lost_where_it_cannot_be_read(
    steady: Product, log: Log, unique: str
) -> None:
    filled(steady, unique)
    log.client.execute_command("HSET", keys.meta(id_of(log, unique)), meta.TAKEN, b"\xc1")
    code, _, err = fsck(steady, "--repair")
    assert code == 1
    (told,) = [line for line in err.splitlines() if line.startswith(f"{unique}: ")]
    assert "taken" in told
    assert told.endswith("it does not follow from anything else")
    assert fsck(steady)[0] == 0


def test_a_store_that_does_not_answer_is_one_sentence(product: Product) -> None:
    code, _, err = fsck(product)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
