"""Ten members come and go while messages are published and processes are killed; every message is done once."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from okmq.env import PROJECT
from tests.product import Product
from tests.streams.groups.history import History
from tests.streams.groups.restarts import kill_and_wait
from tests.waiting import until

pytestmark = pytest.mark.running

ACK_WAIT_S = 1.5


@dataclass
class Producer:
    """Publishes small batches until it is stopped; a batch without an answer is sent again."""

    product: Product
    stream: str
    offsets: dict[str, int] = field(default_factory=dict)
    """The id and the offset of what was acknowledged."""

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(30)

    def _publish(self) -> None:
        with self.product.client() as client:
            batch = 0
            while not self._stopped.wait(0.02):
                messages = [{"id": f"{batch}-{n}", "body": n} for n in range(10)]
                try:
                    answer = client.post(f"/streams/{self.stream}/messages", json=messages)
                except httpx.HTTPError:
                    continue
                if answer.status_code == 201:
                    self.offsets |= {each["id"]: each["offset"] for each in answer.json()}
                    batch += 1


@dataclass
class Crew:
    """The members that work now, and the notes of all that ever did."""

    product: Product
    stream: str
    folder: Path
    working: "list[subprocess.Popen[bytes]]" = field(default_factory=list)
    joined: int = 0

    def join(self, count: int) -> None:
        for _ in range(count):
            self.joined += 1
            name = f"member-{self.joined}"
            command = [sys.executable, "-m", "tests.streams.groups.member", str(self.product.port)]
            more = [
                self.product.token,
                f"/api/v1/streams/{self.stream}/groups/g",
                name,
                str(self.folder / f"{name}.notes"),
            ]
            self.working.append(subprocess.Popen([*command, *more], cwd=PROJECT))

    def leave(self, count: int) -> None:
        """The oldest finish what they have and go."""
        self._end(count, "terminate")

    def die(self, count: int) -> None:
        """The oldest are gone in the middle of what they did."""
        self._end(count, "kill")

    def _end(self, count: int, how: str) -> None:
        ending, self.working = self.working[:count], self.working[count:]
        for member in ending:
            getattr(member, how)()
        for member in ending:
            member.wait(20)

    def history(self) -> History:
        return History.read(sorted(self.folder.glob("*.notes")))

    def wait_for_more(self, count: int = 200) -> None:
        """Until so many more messages were acknowledged."""
        before = len(self.history().acked)
        until(lambda: len(self.history().acked) >= before + count, within_s=30, what="the work goes on")


@pytest.fixture
def working(mortal: Product, unique: str, tmp_path: Path) -> Iterator[tuple[Producer, Crew]]:
    with mortal.client() as client:
        assert client.post("/streams/", json={"name": unique}).status_code == 201
        group = {"name": "g", "ack_wait": ACK_WAIT_S, "max_deliver": -1, "max_ack_pending": 100_000}
        assert client.post(f"/streams/{unique}/groups/", json=group).status_code == 201
    producer, crew = Producer(mortal, unique), Crew(mortal, unique, tmp_path)
    try:
        yield producer, crew
    finally:
        producer.stop()
        crew.die(len(crew.working))


def test_ten_members_lose_and_double_nothing_whatever_is_killed(
    mortal: Product, working: tuple[Producer, Crew]
) -> None:
    producer, crew = working
    crew.join(10)
    crew.wait_for_more()
    crew.die(3)
    crew.join(3)
    kill_and_wait(mortal, "valkey")
    crew.wait_for_more()
    crew.leave(3)
    kill_and_wait(mortal, "worker")
    crew.join(3)
    kill_and_wait(mortal, "web")
    crew.die(2)
    crew.join(2)
    crew.wait_for_more()
    producer.stop()

    def group() -> dict[str, Any]:
        with mortal.client() as client:
            found: dict[str, Any] = client.get(f"/streams/{crew.stream}/groups/g").json()
            return found

    until(lambda: group()["lag"] == group()["ack_pending"] == 0, within_s=30, what="everything is done")
    crew.leave(len(crew.working))
    end, history = group(), crew.history()
    assert (end["dead_letters"], end["lost"]) == (0, 0)
    assert end["ack_floor"] >= max(producer.offsets.values())
    assert history.faults(ack_wait_s=ACK_WAIT_S) == []
    delivered = {offset: seen[0].id for offset, seen in history.deliveries.items()}
    assert {delivered[offset]: offset for offset in producer.offsets.values()} == producer.offsets
    # What was on its way when a process was killed may have been done without an answer; the rest is answered.
    assert len(history.acked) > 0.9 * len(producer.offsets)
