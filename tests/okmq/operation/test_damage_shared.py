"""A damaged value under a key that all streams go by: the worker and a start put it right, and fsck names the rest."""

from collections.abc import Iterator

import pytest

from streams.log import config, keys, shapes
from streams.log.client import Log
from tests.okmq.operation.damaging import GARBAGE, WAYS
from tests.okmq.operation.test_fsck import fsck
from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running

NOT_DERIVED = (keys.BEGUN, keys.ENDED)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    more = {"OKMQ_HISTORY": "off", "OKMQ_FSYNC": "everysec"}
    product = Product(data_dir=tmp_path_factory.mktemp("shared") / "data", more=more)
    try:
        product.start()
        with product.client() as client:
            client.post("/streams/", json={"name": "orders", "archive": False}).raise_for_status()
            client.post("/streams/orders/groups/", json={"name": "g"}).raise_for_status()
            batch = [{"id": str(n), "body": n} for n in range(5)]
            client.post("/streams/orders/messages", json=batch).raise_for_status()
        yield product
    finally:
        product.end_all()


def damage(log: Log, key: str, type_: str, way: str) -> None:
    ask = log.client.execute_command
    if way == "wrong-type" or type_ == "string":
        ask("DEL", key)
        ask("RPUSH", key, GARBAGE) if type_ == "string" and way == "wrong-type" else ask("SET", key, GARBAGE)
    else:
        verbs = {"hash": ("HSET", key, GARBAGE, GARBAGE), "zset": ("ZADD", key, 5, GARBAGE)}
        ask(*verbs.get(type_, ("SADD" if type_ == "set" else "RPUSH", key, GARBAGE)))


def shared(log: Log) -> dict[str, str]:
    (workspace_id,) = {each.workspace_id for each in log.run(config.streams()) if each.name == "orders"}
    shaped = {**shapes.SHARED, **shapes.of_workspace(workspace_id)}
    return {key: shape.type for key, shape in shaped.items()}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_all_streams_go_by_is_put_right_and_upkeep_goes_on(steady: Product, way: str) -> None:
    log = Log(steady.store_url)
    kinds = shared(log)
    for key, type_ in kinds.items():
        damage(log, key, type_, way)
    with steady.client() as client:

        def serves() -> bool:
            answers = [
                client.get("/streams/orders"),
                client.get("/streams/"),
                client.get("/streams/orders/groups/g"),
            ]
            assert [each for each in answers if each.status_code == 500] == []
            return all(each.status_code == 200 for each in answers)

        until(serves, within_s=40, what="it is put right")
        fsck(steady, "--repair")
        code, _, err = fsck(steady)
        assert (code, err) == (0, "")
        client.patch("/streams/orders", json={"max_messages": 1}).raise_for_status()

        def is_tended() -> bool:
            (stream_id,) = [each.stream_id for each in log.run(config.streams()) if each.name == "orders"]
            return int(log.client.execute_command("XLEN", keys.log(stream_id))) == 1

        until(is_tended, within_s=40, what="what is over goes")
        client.patch("/streams/orders", json={"max_messages": None}).raise_for_status()
        batch = [{"id": f"{way}-{n}", "body": n} for n in range(5)]
        client.post("/streams/orders/messages", json=batch).raise_for_status()
    log.close()


def test_a_start_puts_right_what_the_database_tells(steady: Product) -> None:
    log = Log(steady.store_url)
    kinds = {key: type_ for key, type_ in shared(log).items() if key not in NOT_DERIVED}
    worker = steady.pid("worker")
    for key, type_ in kinds.items():
        damage(log, key, type_, "wrong-type")
    log.close()
    assert worker
    steady.stop()
    steady.start()
    with steady.client() as client:
        assert client.get("/streams/orders").status_code == 200
