"""A store on a file that was cut off: what is left is held against what was there."""

from dataclasses import replace
from pathlib import Path

import pytest

from okmq.prove.cuts import cuts
from okmq.prove.history import History, Publish, Remains, Seen, checksum
from streams.log import append, config, entries, read
from streams.log.client import Log
from tests.servers import store

BATCHES, SIZE = 60, 5


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, History]:
    """A data folder that a store was killed on, and the history of what it took."""
    data_dir = tmp_path_factory.mktemp("cuts")
    history = History(ack_wait_s=1)
    with store(data_dir / "valkey") as server:
        log = Log(server.url)
        registered = config.Registered(
            stream_id="abcdefghijkl", workspace_id=1, workspace="w", name="s", archive=False, internal=False
        )
        log.run(config.stream_publish(registered, {"max_message_bytes": 1000, "dedup_window": 60}))
        for number in range(BATCHES):
            ids = tuple(f"{number}-{at}" for at in range(SIZE))
            log.run(
                append.append("abcdefghijkl", [entries.NewMessage(id=id_, body=b'{"n":1}') for id_ in ids])
            )
            history.note(
                Publish(
                    began=0,
                    ended=1,
                    outcome="ok",
                    stream="s",
                    ids=ids,
                    bodies=(0,) * SIZE,
                    keys=("",) * SIZE,
                    headers=(0,) * SIZE,
                )
            )
        found = [entries.parse(each) for each in log.run(read.archive_range("abcdefghijkl", 1, 10**9, 10**6))]
        log.close()
        server.kill()
    messages = tuple(
        Seen(offset=each.offset, id=each.id, content=(each.timestamp, checksum(each.body))) for each in found
    )
    history.remains["s"] = Remains(messages=messages, offset=len(messages), count=len(messages))
    return data_dir, history


def test_a_cut_leaves_an_exact_prefix(written: tuple[Path, History], tmp_path: Path) -> None:
    data_dir, history = written
    made = list(cuts(data_dir, history, places=12, folder=tmp_path))
    assert [cut.faults for cut in made] == [()] * 12
    assert {cut.of for cut in made} == {BATCHES * SIZE}
    left = sorted(cut.left for cut in made)
    assert left[0] < left[-1]  # they were really cut
    assert all(number % SIZE == 0 for number in left)


def test_what_is_no_prefix_is_told(written: tuple[Path, History], tmp_path: Path) -> None:
    data_dir, history = written
    first, *rest = history.remains["s"].messages
    other = History(ack_wait_s=1, operations=history.operations)
    other.remains["s"] = replace(history.remains["s"], messages=(replace(first, id="another"), *rest))
    made = list(cuts(data_dir, other, places=6, folder=tmp_path))
    assert any(cut.left for cut in made)
    told = ["s: what is left is no prefix" in cut.faults for cut in made]
    assert told == [cut.left > 0 for cut in made]
