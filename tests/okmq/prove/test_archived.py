"""What is wrong with a history is found in its files: each fault is planted, and told by its kind."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyarrow import parquet

from okmq.prove.archived import KINDS, Written, judged, message

BEGAN = datetime(2026, 11, 20, tzinfo=UTC)
Row = dict[str, Any]


def rows(name: str, numbers: Sequence[int]) -> list[Row]:
    """As the archive writes them."""
    return [
        {
            "offset": number,
            "timestamp": BEGAN + timedelta(seconds=number),
            "id": sent["id"],
            "key": sent["key"],
            "body": msgspec.json.encode(sent["body"]).decode(),
        }
        for number in numbers
        for sent in [message(name, number)]
    ]


def batch(
    history: Path, number: int, found: list[Row], *, stream: str = "abc", removed: Sequence[str] = ()
) -> str:
    """Write one, of one file; the file's path."""
    path = f"workspace_id=1/stream_id={stream}/day=2026-11-20/{number:012d}-0.parquet"
    (history / path).parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(found), history / path)
    entry = {"files": [{"path": path, "first": found[0]["offset"]}], "removed": list(removed)}
    (history / "_log").mkdir(exist_ok=True)
    (history / "_log" / f"{number:012d}.json").write_text(json.dumps(entry))
    return path


def kinds(history: Path, *written: Written) -> set[str]:
    return {kind for kind, sentences in judged(history, written).items() if sentences}


def test_a_history_of_everything_has_no_fault(tmp_path: Path) -> None:
    small = [batch(tmp_path, 1, rows("a", [1, 2])), batch(tmp_path, 2, rows("a", [3]))]
    batch(tmp_path, 3, rows("a", [1, 2, 3]), removed=small)
    for path in small:
        (tmp_path / path).unlink()
    batch(tmp_path, 4, rows("b", [1]), stream="def")
    assert kinds(tmp_path, Written(name="a", last=3), Written(name="b", last=5, deleted=True)) == set()


def lost(history: Path) -> None:
    batch(history, 2, rows("a", [5, 6]))


def lost_at_the_end(history: Path) -> None:
    batch(history, 2, rows("a", [4, 5]))


def doubled(history: Path) -> None:
    batch(history, 2, rows("a", [3, 4, 5, 6]))


def changed(history: Path) -> None:
    batch(history, 2, [{**row, "body": "{}"} for row in rows("a", [4, 5, 6])])


def swapped(history: Path) -> None:
    first, second, third = rows("a", [4, 5, 6])
    batch(history, 2, [first, {**second, "offset": 6}, {**third, "offset": 5}])


def upside_down(history: Path) -> None:
    batch(history, 2, rows("a", [6, 5, 4]))


def back_in_time(history: Path) -> None:
    batch(history, 2, [{**row, "timestamp": BEGAN} for row in rows("a", [4, 5, 6])])


def made_up(history: Path) -> None:
    batch(history, 2, rows("a", [4, 5, 6, 7]))


def left_behind(history: Path) -> None:
    batch(history, 2, rows("a", [4, 5, 6]))
    batch(history, 3, rows("a", [6]))
    (history / "_log" / f"{3:012d}.json").unlink()


def gone(history: Path) -> None:
    (history / batch(history, 2, rows("a", [4, 5, 6]))).unlink()


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (lost, {"lost"}),
        (lost_at_the_end, {"lost"}),
        (doubled, {"doubled"}),
        (changed, {"changed"}),
        (swapped, {"changed", "out of order"}),
        (upside_down, {"out of order"}),
        (back_in_time, {"out of order"}),
        (made_up, {"never sent"}),
        (left_behind, {"left behind"}),
        (gone, {"lost"}),
    ],
)
def test_what_is_planted_is_found(tmp_path: Path, plant: Callable[[Path], None], found: set[str]) -> None:
    batch(tmp_path, 1, rows("a", [1, 2, 3]))
    plant(tmp_path)
    assert kinds(tmp_path, Written(name="a", last=6)) == found
    assert found <= set(KINDS)


def test_a_stream_that_is_there_twice_or_not_at_all_is_found(tmp_path: Path) -> None:
    batch(tmp_path, 1, rows("a", [1]))
    batch(tmp_path, 2, rows("a", [1]), stream="def")
    assert kinds(tmp_path, Written(name="a", last=1)) == {"doubled"}
    assert kinds(tmp_path, Written(name="a", last=1), Written(name="b", last=1)) == {"doubled", "lost"}
