"""A history that is not as its log says is told, by the ends of its files, without Spark."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.conf import settings
from pyarrow import parquet

from okmq.env import Env
from okmq.operation.history_check import kept_history
from okmq.operation.kept_history import archived_offsets

STREAM = "abcdefghijkl"


def batch(folder: Path, number: int, first: int, last: int, **other: Any) -> str:
    """A batch with one file that holds these offsets; where that lies."""
    path = f"workspace_id=1/stream_id={STREAM}/day=2026-11-26/{number:012d}-0.parquet"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(
        pa.table({"id": ["x"] * (last - first + 1), "offset": range(first, last + 1)}), folder / path
    )
    file = {"path": path, "stream_id": STREAM, "messages": last - first + 1, "first": first, "last": last}
    entry = {"number": number, "start": {STREAM: first - 1}, "end": {STREAM: last}, "files": [file], **other}
    (folder / "_log").mkdir(exist_ok=True)
    (folder / "_log" / f"{number:012d}.json").write_text(json.dumps(entry))
    return path


@pytest.fixture
def env(tmp_path: Path) -> Env:
    env: Env = settings.ENV
    return replace(env, history_url=str(tmp_path))


def sentences(env: Env) -> list[str]:
    return [each.sentence for each in kept_history(env).findings]


def test_one_that_is_whole_agrees_and_tells_where_it_ends(env: Env, tmp_path: Path) -> None:
    assert kept_history(env).ends is None
    old = batch(tmp_path, 1, 1, 50)
    batch(tmp_path, 2, 51, 70, removed=[old])
    (tmp_path / old).unlink()
    assert sentences(env) == []
    assert kept_history(env).ends == archived_offsets(env) == {STREAM: 70}


def test_what_is_missing_changed_or_there_twice_is_told(env: Env, tmp_path: Path) -> None:
    first, second = batch(tmp_path, 1, 1, 50), batch(tmp_path, 2, 51, 70)
    third, fourth = batch(tmp_path, 4, 71, 80), batch(tmp_path, 5, 75, 90)
    (tmp_path / first).unlink()
    (tmp_path / second).write_bytes(b"no Parquet")
    parquet.write_table(pa.table({"offset": range(71, 80)}), tmp_path / third)
    parquet.write_table(pa.table({"offset": range(76, 92)}), tmp_path / fourth)
    found = sentences(env)
    assert found[:2] == [
        "the history's log lacks batch 3 of 5",
        "batch 5 of the history begins above 74, and 80 was in it",
    ]
    assert found[2] == f"the history's file {first} is not there"
    assert found[3].startswith(f"the history's file {second} cannot be read")
    assert found[4:] == [
        f"the history's file {third} holds 9 messages, not 10",
        f"the history's file {fourth} holds offsets 76 to 91, not 75 to 90",
    ]
