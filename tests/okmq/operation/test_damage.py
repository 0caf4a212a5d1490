"""One damaged value of any kind of key: it is named, nothing is answered with 500, everything else goes on."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from streams.log import config
from streams.log.client import Log
from tests.okmq.operation.damaging import GROUP, OF_STREAMS, cases, damage, is_there, key_of
from tests.okmq.operation.test_doctor import doctor
from tests.okmq.operation.test_fsck import fsck
from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running

SOUND = "sound"
OTHER = "other"
WRITTEN_ANEW = ("acks", "health", "kept", "last")
"""Of these the worker clears away what it cannot read, or writes it anew; or they end within a minute."""

NOT_ASKED = ("/tail", "/schema", "/docs")


def name_of(kind: str, way: str) -> str:
    return f"{kind.replace('_', '-')}.{way}"


NAMES = {name_of(kind, way): (kind, way) for kind, way in cases()}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A stream for each kind of key and way to damage it, used in every way, and one that is sound."""
    product = Product(
        data_dir=tmp_path_factory.mktemp("damage") / "data",
        more={"OKMQ_HISTORY": "off", "OKMQ_FSYNC": "everysec"},
    )
    try:
        product.start()
        with product.client() as client:
            for name in (SOUND, *NAMES):
                lived_in(client, name)
            groups = client.get(f"/streams/{SOUND}/groups/").json()
            assert len(groups) == 2
        log = Log(product.store_url)
        ids = {each.name: each.stream_id for each in log.run(config.streams())}
        for name, (kind, way) in NAMES.items():
            damage(log, ids[name], kind, way)
        log.close()
        yield product
    finally:
        product.end_all()


def lived_in(client: httpx.Client, name: str) -> None:
    made = {"name": name, "max_messages_per_key": 3, "archive": False, "dedup_window": 3600}
    client.post("/streams/", json=made).raise_for_status()
    for group in (GROUP, OTHER):
        settings = {"name": group, "ordered_by_key": True, "max_deliver": 2, "filter_keys": ["k.>"]}
        client.post(f"/streams/{name}/groups/", json=settings).raise_for_status()
    batch: list[dict[str, Any]] = [
        {"id": str(n), "key": f"k.{n % 6}", "body": n, "ttl": 3600} for n in range(20)
    ]
    client.post(f"/streams/{name}/messages", json=batch).raise_for_status()
    for group in (GROUP, OTHER):
        taken = client.post(f"/streams/{name}/groups/{group}/fetch", json={"limit": 5, "wait": 0}).json()
        offsets = [each["offset"] for each in taken]
        client.post(f"/streams/{name}/groups/{group}/term", json={"offsets": offsets[:1]}).raise_for_status()
        client.post(f"/streams/{name}/groups/{group}/ack", json={"offsets": offsets[1:2]}).raise_for_status()
    client.post(f"/streams/{name}/commit", json={"offset": 3}).raise_for_status()


def asked_of(schema: dict[str, Any]) -> Iterator[str]:
    """Every path of the API that is read, with the stream and the group in their places."""
    for path, methods in schema["paths"].items():
        filled = path.removeprefix("/api/v1").replace("{offset}", "10").replace("{group}", GROUP)
        filled = filled.replace("{key}", "k.1").replace("{number}", "1")
        if "get" in methods and "{name}" in filled and not path.endswith(NOT_ASKED):
            rest = filled.replace("{name}", "NAME")
            if "{" not in rest:
                yield f"{rest}?wait=0" if rest.endswith("/messages") else rest


def asked_everything(product: Product) -> list[tuple[str, int, str]]:
    """Every path of every stream, and what calls on messages answer: path, status, and code of the error."""
    with product.client() as client:
        paths = list(asked_of(client.get("/schema", headers={"Accept": "application/json"}).json()))

        def ask(name: str) -> list[tuple[str, int, str]]:
            answers = [client.get(path.replace("NAME", name)) for path in paths]
            answers += written(client, name)
            return [_told(each) for each in answers]

        with ThreadPoolExecutor(4) as pool:
            return [each for some in pool.map(ask, (SOUND, *NAMES)) for each in some]


def written(client: httpx.Client, name: str) -> Iterator[httpx.Response]:
    of_group = f"/streams/{name}/groups/{GROUP}"
    yield client.post(f"/streams/{name}/messages", json=[{"id": "new", "body": 1, "key": "k.9"}])
    yield client.post(f"/streams/{name}/commit", json={"offset": 4})
    yield client.get(f"/streams/{name}/messages", params={"offset": 1})
    yield client.post(f"{of_group}/fetch", json={"limit": 2, "wait": 0})
    yield client.post(f"{of_group}/ack", json={"offsets": [4]})
    yield client.post(f"{of_group}/nack", json={"offsets": [5]})
    yield client.post(f"{of_group}/dead-letters/replay", json={})
    yield client.patch(of_group, json={"ack_wait": 60})
    yield client.patch(f"/streams/{name}", json={"description": "d"})
    yield client.delete(f"/streams/{name}/messages/12")
    yield client.delete(f"/streams/{name}/messages", params={"below": 2})
    yield client.get("/streams/")
    yield client.get(f"/streams/{name}/groups/{OTHER}")


def _told(answer: httpx.Response) -> tuple[str, int, str]:
    is_error = answer.status_code >= 400
    code = answer.json()["error"]["code"] if is_error and "json" in answer.headers["content-type"] else ""
    return f"{answer.request.method} {answer.request.url.path}", answer.status_code, code


def still_there(product: Product) -> set[str]:
    """The streams of which what was damaged still is."""
    log = Log(product.store_url)
    ids = {each.name: each.stream_id for each in log.run(config.streams())}
    found = {name for name, (kind, way) in NAMES.items() if is_there(log, ids[name], kind, way)}
    log.close()
    return found


def test_nothing_is_answered_with_500_and_what_is_sound_as_ever(damaged: Product) -> None:
    answers = asked_everything(damaged)
    assert [each for each in answers if each[1] == 500] == []
    assert {each for each in answers if each[1] == 503 and each[2] != "stream_damaged"} == set()
    assert [each for each in answers if f"/streams/{SOUND}" in each[0] and each[1] >= 500] == []
    whole = {kind for kind in OF_STREAMS if kind in {"log", "meta"}}
    named = {path for path, status, _ in answers if status == 503}
    for name, (kind, way) in NAMES.items():
        if kind in whole and way == "wrong-type":
            assert f"GET /api/v1/streams/{name}" in named
        if kind == "group":
            assert f"GET /api/v1/streams/{name}/groups/{GROUP}" in named
            assert f"GET /api/v1/streams/{name}/groups/{OTHER}" not in named


def test_upkeep_of_the_others_goes_on(damaged: Product) -> None:
    with damaged.client() as client:
        client.patch(f"/streams/{SOUND}", json={"ttl": 1}).raise_for_status()
        log = Log(damaged.store_url)
        ids = {each.name: each.stream_id for each in log.run(config.streams())}

        def entries_left() -> int:
            return int(log.client.execute_command("XLEN", key_of(ids[SOUND], "log")))

        until(lambda: entries_left() == 0, within_s=40, what="what is over goes")
        client.patch(f"/streams/{SOUND}", json={"ttl": None}).raise_for_status()
        batch = [{"id": f"late-{n}", "body": n, "key": "k.1"} for n in range(3)]
        client.post(f"/streams/{SOUND}/messages", json=batch).raise_for_status()
        log.close()
    lines = (damaged.data_dir / "log" / "worker.log").read_text()
    assert re.findall(r".*(?:tick of the worker failed|does not answer).*", lines) == []


def test_readiness_doctor_and_console_name_it(damaged: Product) -> None:
    told = httpx.get(f"{damaged.url}/readyz").json()
    assert told["status"] == "degraded"
    counted = r"What the store holds of (one stream or group|\d+ streams and groups) cannot be read; .*"
    assert re.fullmatch(counted, told["checks"]["log"]), "which ones is not told to just anybody"
    assert "cannot be read" in damaged.page("/")
    code, out = doctor(damaged)
    assert code == 2
    assert "something that the message store holds cannot be read: stream 'meta.garbage': " in out


def test_it_starts_all_the_same(damaged: Product) -> None:
    damaged.stop()
    damaged.start()
    with damaged.client() as client:
        assert client.get(f"/streams/{SOUND}").json()["messages"] == 3


def test_fsck_names_each_and_puts_right_what_can_be_derived(damaged: Product) -> None:
    there = still_there(damaged)
    assert len(there) > 0.8 * len(NAMES)
    code, _, err = fsck(damaged)
    assert code == 1
    told = set(re.findall(r"^([\w.-]+): ", err, re.MULTILINE))
    assert {name for name in there if NAMES[name][0] not in WRITTEN_ANEW} - told == set()
    code, out, err = fsck(damaged, "--repair")
    print(out, err)
    left = [line for line in err.splitlines() if "does not follow from anything else" not in line]
    assert [line for line in left if "is not there" not in line and "things are wrong" not in line] == []
    code, _, err = fsck(damaged)
    assert code == 0, err
    answers = asked_everything(damaged)
    assert [each for each in answers if each[1] >= 500] == []
