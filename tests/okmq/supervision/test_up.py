"""One command starts the product, keeps it alive and ends it: every sentence of that, on real processes."""

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.okmq.memory import megabytes
from tests.product import Product
from tests.servers import store
from tests.waiting import Stopwatch, until

pytestmark = pytest.mark.running

NO_HISTORY = {"OKMQ_HISTORY": "off"}
IDLE_LIMIT_MIB = 350


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product whose processes the tests of this file kill; each leaves it running."""
    product = Product(data_dir=tmp_path_factory.mktemp("steady") / "data", more=NO_HISTORY)
    try:
        yield product.start()
    finally:
        product.end_all()


def publish(product: Product, *, stream: str, body: str) -> int:
    with product.client() as client:
        answer = client.post(f"/streams/{stream}/messages", json={"id": body, "body": body})
        assert answer.is_success, answer.text
        return int(answer.json()[0]["offset"])


def create(product: Product, stream: str) -> None:
    with product.client() as client:
        answer = client.post("/streams/", json={"name": stream})
        assert answer.status_code == 201, answer.text


def bodies(product: Product, stream: str) -> list[str]:
    with product.client() as client:
        answer = client.get(f"/streams/{stream}/messages", params={"offset": 1, "limit": 100})
        assert answer.is_success, answer.text
        return [message["body"] for message in answer.json()]


def refuses(product: Product) -> str:
    """What it says when it refuses to start; it must end by itself, with a code that is not zero."""
    product.start(wait=False)
    assert product.ended(within_s=20) != 0
    assert not product.alive()
    return product.output.strip()


def is_back(product: Product, name: str, *, killed: int) -> None:
    os.kill(killed, signal.SIGKILL)
    until(
        lambda: (
            product.processes()[name].state == "running"
            and product.processes()[name].pid not in (None, killed)
        ),
        within_s=20,
        what=f"{name} is back",
    )


def test_it_is_ready_in_time_and_ends_in_time_without_an_orphan(product: Product) -> None:
    watch = Stopwatch()
    product.bare, product.more = True, NO_HISTORY
    product.start()
    assert watch.elapsed_s < 30
    assert httpx.get(f"{product.url}/readyz").status_code == 200
    assert len(product.alive()) == 5  # two stores, web, worker and census
    watch = Stopwatch()
    assert product.stop(signal.SIGINT) == 0
    assert watch.elapsed_s < 10
    assert product.alive() == []
    with socket.create_server(("127.0.0.1", product.port)):
        states = {name: status.state for name, status in product.processes().items()}
    assert states.pop("analytics") == "off"
    assert set(states.values()) == {"stopped"}


def test_a_second_start_has_everything(product: Product) -> None:
    product.bare = True
    product.more = {**NO_HISTORY, "OKMQ_ADMIN_PASSWORD": "", "OKMQ_ADMIN_TOKEN": ""}
    product.start()
    (product.token,) = re.findall(r"Token .* \(shown this once\): (\S+)", product.output)
    assert re.search(r"Password of the user admin \(shown this once\): \S{12,}", product.output)
    create(product, "kept")
    publish(product, stream="kept", body="before")
    product.stop()
    product.start()
    assert "shown this once" not in product.output
    publish(product, stream="kept", body="after")
    assert bodies(product, "kept") == ["before", "after"]


def test_what_was_removed_for_a_while_comes_back_as_it_was_after_a_restart_of_everything(
    product: Product,
) -> None:
    product.more = NO_HISTORY
    product.start()
    with client_of(product) as client:
        client.post("/streams/", json={"name": "undone"}).raise_for_status()
        client.post("/streams/undone/groups/", json={"name": "g"}).raise_for_status()
        batch = [{"id": f"m{n}", "body": n, "key": f"k{n % 2}"} for n in range(1, 21)]
        client.post("/streams/undone/messages", json=batch).raise_for_status()
        before = client.get("/streams/undone/messages?offset=1&limit=100").json()
        assert client.delete("/streams/undone/messages/15?undo=true").json() == {"deleted": 1, "removal": 1}
        purged = client.delete("/streams/undone/messages?offset=11&undo=true").json()
        assert purged == {"deleted": 10, "removal": 2}
    product.stop()
    product.start()
    with client_of(product) as client:
        assert [each["removal"] for each in client.get("/streams/undone/removals/").json()] == [1, 2]
        assert len(client.get("/streams/undone/messages?offset=1&limit=100").json()) == 9
        for removal, messages in ((2, 10), (1, 1)):
            back = client.post(f"/streams/undone/removals/{removal}/undo").json()
            assert back["messages"] == messages
        assert client.get("/streams/undone/messages?offset=1&limit=100").json() == before
        fetched = client.post("/streams/undone/groups/g/fetch", json={"limit": 100}).json()
        assert sorted(each["offset"] for each in fetched) == list(range(1, 21))


def client_of(product: Product) -> httpx.Client:
    return httpx.Client(
        base_url=f"{product.url}/api/v1", headers={"authorization": f"Bearer {product.token}"}, timeout=20
    )


def test_it_ends_in_time_while_clients_wait_for_messages(product: Product) -> None:
    product.more = NO_HISTORY
    product.start()
    create(product, "quiet")
    asked = threading.Event()

    def wait_for_messages() -> None:
        with product.client() as client:
            asked.set()
            try:
                client.get("/streams/quiet/messages", params={"wait": 30}, timeout=60)
            except httpx.HTTPError:
                return  # cut off by the end

    thread = threading.Thread(target=wait_for_messages)
    thread.start()
    asked.wait()
    watch = Stopwatch()
    assert product.stop(signal.SIGHUP) == 0
    assert watch.elapsed_s < 10
    thread.join()


def test_a_killed_supervisor_leaves_no_orphan_and_the_next_start_works(product: Product) -> None:
    product.more = NO_HISTORY
    product.start()
    create(product, "kept")
    publish(product, stream="kept", body="one")
    assert product.supervisor is not None
    product.supervisor.kill()
    product.supervisor.wait()
    product.start()
    assert bodies(product, "kept") == ["one"]
    product.supervisor.kill()
    product.supervisor.wait()
    until(lambda: not product.alive(), what="every process has ended with the supervisor")


def test_a_folder_in_use_is_one_sentence(steady: Product) -> None:
    said = refuses_beside(steady)
    assert steady.supervisor is not None
    assert said == (
        f"The data folder {steady.data_dir} is in use by another OKMQ (process {steady.supervisor.pid}); "
        "end that one, or set OKMQ_DATA_DIR to another folder."
    )


def refuses_beside(steady: Product) -> str:
    """What a second instance on the same folder says; the first one's terminal stays its own."""
    second = Product(data_dir=steady.data_dir.parent / "link", more={"OKMQ_DATA_DIR": str(steady.data_dir)})
    return refuses(second)


def test_a_folder_that_cannot_be_used_is_one_sentence(product: Product) -> None:
    product.data_dir.mkdir()
    (product.data_dir / "log").touch()
    said = refuses(product).splitlines()[-1]
    assert said.startswith("OKMQ cannot start: ")
    assert str(product.data_dir / "log") in said


def test_a_busy_port_is_one_sentence(product: Product) -> None:
    with socket.create_server(("127.0.0.1", product.port)):
        assert refuses(product) == (
            f"Port {product.port} on 127.0.0.1 is taken by another program; "
            "end it, or set OKMQ_PORT to a free port."
        )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OKMQ_PORT", "eighty", "OKMQ_PORT='eighty': expected a whole number from 1 to 65535."),
        ("OKMQ_FSYNC", "sometimes", "OKMQ_FSYNC='sometimes': expected one of always, everysec, no."),
        ("OKMQ_ADMIN_TOKEN", "short", "OKMQ_ADMIN_TOKEN: expected 16 to 200 visible ASCII characters."),
    ],
)
def test_a_broken_setting_is_one_sentence(product: Product, name: str, value: str, said: str) -> None:
    product.more = {name: value}
    assert refuses(product) == said


def test_a_history_that_cannot_be_written_is_said_and_keeps_nothing_from_starting(
    product: Product, unique: str
) -> None:
    product.more = {"OKMQ_HISTORY_URL": "/dev/null/history"}
    product.start()
    said = (
        "OKMQ_HISTORY_URL='/dev/null/history': Not a directory. The history waits for it; nothing else does."
    )
    assert said in product.output
    create(product, unique)
    with product.client() as client:
        client.post(f"/streams/{unique}/messages", json={"id": "a", "body": 1}).raise_for_status()


def test_a_database_that_is_not_there_is_said(product: Product) -> None:
    product.more = {**NO_HISTORY, "OKMQ_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    started, sentence = refuses(product).splitlines()
    assert started.startswith("OKMQ starts")
    assert sentence.startswith("The database cannot be used: ")


@pytest.mark.parametrize("name", ["web", "worker", "census", "valkey", "valkey-memory"])
def test_what_is_killed_comes_back_and_the_file_says_so(steady: Product, name: str) -> None:
    others = {status.name: status.pid for status in steady.processes().values() if status.name != name}
    is_back(steady, name, killed=steady.pid(name))
    said = steady.processes()[name]
    assert (said.restarts, said.note) == (1, "exited with signal 9")
    assert f"{name} exited with signal 9; it is started again in 0.2 s" in steady.output
    assert "exited with signal 9" in steady.page("/")
    assert {other: steady.processes()[other].pid for other in others} == others
    until(steady.answers, within_s=20)


def test_nothing_acknowledged_is_lost_when_the_store_is_killed(steady: Product, unique: str) -> None:
    create(steady, unique)
    sent = [f"{number}" for number in range(30)]
    for body in sent:
        publish(steady, stream=unique, body=body)
    is_back(steady, "valkey", killed=steady.pid("valkey"))
    until(steady.answers, within_s=20)
    publish(steady, stream=unique, body="30")
    assert bodies(steady, unique) == [*sent, "30"]


def test_a_request_during_a_restart_of_the_web_process_waits(steady: Product) -> None:
    """The port is the supervisor's: while the web process is replaced, nobody is refused."""
    killed = steady.pid("web")
    os.kill(killed, signal.SIGKILL)
    assert httpx.get(f"{steady.url}/healthz", timeout=30).status_code == 200
    until(lambda: steady.processes()["web"].pid not in (None, killed))


def test_history_that_is_switched_off_is_listed_with_the_reason(steady: Product) -> None:
    said = steady.processes()["analytics"]
    assert (said.pid, said.state, said.note) == (None, "off", "Switched off by OKMQ_HISTORY=off.")


def test_idle_it_stays_within_its_memory(steady: Product) -> None:
    names = ("valkey", "valkey-memory", "web", "worker", "census")
    used = {name: megabytes(steady.pid(name)) for name in names}
    used["supervisor"] = megabytes(steady.supervisor.pid) if steady.supervisor else 0.0
    print("resident MiB:", {name: round(size, 1) for name, size in used.items()}, round(sum(used.values())))
    assert sum(used.values()) < IDLE_LIMIT_MIB


def test_a_log_that_is_damaged_in_its_middle_is_said_with_the_server_s_reason(product: Product) -> None:
    """It could not be read on; going on with half of it would lose what was acknowledged."""
    product.more = NO_HISTORY
    product.start()
    create(product, "kept")
    product.stop()
    (newest,) = product.data_dir.glob("valkey/appendonlydir/*.incr.aof")
    damaged = bytearray(newest.read_bytes())
    damaged[damaged.index(b"\r\n*", len(damaged) // 2) + 2] = ord("?")
    newest.write_bytes(damaged)
    said = refuses(product)
    assert "valkey does not start" in said
    assert "Bad file format reading the append only file" in said


def test_as_many_files_may_be_open_as_the_machine_permits(steady: Product) -> None:
    """A parked long poll is one of them."""
    limits = Path(f"/proc/{steady.pid('web')}/limits").read_text()
    found = re.search(r"Max open files +(\d+) +(\d+)", limits)
    assert found
    assert int(found[1]) == min(65_536, int(found[2]))


def test_the_answers_do_not_name_the_server(steady: Product) -> None:
    assert "server" not in httpx.get(f"{steady.url}/healthz").headers


def test_the_client_address_is_seen_through_the_shared_socket(steady: Product) -> None:
    """Uvicorn takes the inherited socket for a unix one; the peer must be known all the same."""
    with steady.client() as client:
        assert client.get("/streams/").is_success


def test_several_web_processes_share_the_port(product: Product) -> None:
    """And it finds itself, whatever names it answers to."""
    product.more = {
        **NO_HISTORY,
        "OKMQ_WEB_WORKERS": "2",
        "OKMQ_HOST": "0.0.0.0",
        "OKMQ_ALLOWED_HOSTS": ".example.com,127.0.0.1",
    }
    product.start()
    assert {"web-1", "web-2"} <= set(product.processes())
    is_back(product, "web-1", killed=product.pid("web-1"))
    assert httpx.get(f"{product.url}/readyz", timeout=20).status_code == 200


def test_one_of_several_web_processes_runs_when_it_takes_requests_itself(product: Product) -> None:
    """The others answer on the same port, and say nothing of it."""
    product.more = {**NO_HISTORY, "OKMQ_WEB_WORKERS": "2"}
    product.start()
    killed = product.pid("web-1")
    os.kill(killed, signal.SIGKILL)
    until(lambda: product.processes()["web-1"].pid not in (None, killed))
    fresh = product.pid("web-1")
    os.kill(fresh, signal.SIGSTOP)
    try:
        # As long as it takes to see another one work: the supervisor looks at all of them many times meanwhile.
        is_back(product, "worker", killed=product.pid("worker"))
        assert product.processes()["web-1"].state == "starting"
    finally:
        os.kill(fresh, signal.SIGCONT)
    until(lambda: product.processes()["web-1"].state == "running", within_s=60)


def test_without_java_everything_but_history_works(product: Product, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    product.more = {"PATH": str(tmp_path / "bin"), "JAVA_HOME": ""}
    product.start()
    create(product, "works")
    publish(product, stream="works", body="without Java")
    said = product.processes()["analytics"]
    assert said.state == "unavailable"
    assert "apt-get install openjdk-17-jre-headless" in said.note
    assert said.note in product.output
    assert "apt-get install openjdk-17-jre-headless" in product.page("/")


def test_a_redis_of_ones_own_is_used_instead(product: Product, tmp_path: Path) -> None:
    with store(tmp_path / "redis", flavour="redis7") as server:
        product.more = {**NO_HISTORY, "OKMQ_REDIS_URL": server.url}
        product.start()
        assert "valkey" not in product.processes()
        create(product, "elsewhere")
        publish(product, stream="elsewhere", body="kept by Redis 7.0")
        assert bodies(product, "elsewhere") == ["kept by Redis 7.0"]
        server.kill()
        server.start()
        until(product.answers, within_s=20)
        assert bodies(product, "elsewhere") == ["kept by Redis 7.0"]
        product.stop()


def test_a_redis_that_is_not_there_is_one_sentence(product: Product) -> None:
    product.more = {**NO_HISTORY, "OKMQ_REDIS_URL": f"unix://{product.data_dir}/nobody.sock"}
    assert refuses(product).splitlines()[-1].startswith("No server can be reached at unix://")
