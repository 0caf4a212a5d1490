"""A disk that gets full: nothing new is taken while there is still room for what lets go."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from okmq.supervision.room import Room
from streams.log import config, keys
from streams.log.append import append
from streams.log.client import Log, one
from streams.log.errors import StoreFull
from streams.log.trim import purge
from tests.servers import Store, store
from tests.streams.log.messages import message
from tests.waiting import until

STREAM = "aaaaaaaaaaaa"


@dataclass
class Own:
    """A store of the test's own, as the product uses it, and who looks after its disk."""

    store: Store
    log: Log
    room: Room
    said: list[str] = field(default_factory=list)

    def little(self) -> None:
        """Twice of what is free is to be kept free."""
        self.room.reserve_bytes = 2 * shutil.disk_usage(self.room.folder).free
        self.room.look()

    def much(self) -> None:
        """Nothing has to be kept free."""
        self.room.reserve_bytes = 0
        self.room.look()

    def publish(self, number: int) -> None:
        self.log.run(append(STREAM, [message(number)]))

    def held(self) -> int:
        return len(self.log.run(one(("XRANGE", keys.log(STREAM), "-", "+"))))


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Own]:
    with store(tmp_path / "store", guarded=True) as running:
        log = Log(running.url)
        said: list[str] = []
        stream = config.Registered(
            stream_id=STREAM, name="orders", workspace="w", workspace_id=1, archive=False
        )
        log.run(config.stream_publish(stream, {"dedup_window": 60, "max_message_bytes": 9, "discard": "old"}))
        room = Room(folder=tmp_path / "store", url=running.keeper_url, say=said.append, reserve_bytes=0)
        yield Own(running, log, room, said)
        log.close()


def test_below_the_reserve_nothing_new_is_taken_and_the_rest_goes_on(own: Own) -> None:
    own.publish(1)
    own.little()
    with pytest.raises(StoreFull):
        own.publish(2)
    assert own.held() == 1
    own.log.run(purge(STREAM))
    assert own.held() == 0


def test_with_room_again_it_takes_by_itself_as_much_as_before(own: Own) -> None:
    keeper = Log(own.store.keeper_url)
    keeper.run(one(("CONFIG", "SET", "maxmemory", "100000000")))
    own.little()
    own.little()
    own.much()
    own.publish(1)
    assert keeper.run(one(("CONFIG", "GET", "maxmemory")))[1] == b"100000000"
    keeper.close()
    assert [sentence.split(" ")[-4:] for sentence in own.said] == [
        ["there", "is", "more", "room."],
        ["is", "published", "is", "stored."],
    ]


def test_a_little_more_than_the_reserve_is_not_room_yet(own: Own) -> None:
    own.little()
    own.room.reserve_bytes = int(shutil.disk_usage(own.room.folder).free / 1.1)
    own.room.look()
    with pytest.raises(StoreFull):
        own.publish(1)


def test_a_server_that_started_anew_is_told_again(own: Own) -> None:
    own.little()
    own.store.kill()
    own.room.look()
    own.store.start()
    own.room.look()
    with pytest.raises(StoreFull):
        own.publish(1)
    own.much()
    own.publish(2)
    assert len(own.said) == 2


def test_what_was_let_go_leaves_the_file(own: Own) -> None:
    keeper = Log(own.store.keeper_url)
    keeper.run(one(("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")))
    for _ in range(3):
        keeper.run(one(("SET", "large", "x" * 8_000_000)))
    keeper.run(one(("DEL", "large")))
    keeper.close()

    def size() -> int:
        return sum(path.stat().st_size for path in own.room.folder.glob("appendonlydir/*"))

    assert size() > 24_000_000
    own.little()
    until(lambda: size() < 1_000_000, what="the file is small")


def test_a_disk_of_this_machine_has_a_reserve_of_its_own_size(own: Own) -> None:
    own.room.reserve_bytes = None
    usage = shutil.disk_usage(own.room.folder)
    own.room.look()
    assert bool(own.said) == (usage.free < min(256 * 2**20, usage.total / 10))


def test_a_disk_that_cannot_be_asked_is_for_the_next_time(own: Own) -> None:
    own.room.folder = own.room.folder / "unmounted"
    own.room.look()
    assert own.said == []
