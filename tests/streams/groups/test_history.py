"""The checker is checked: it finds what it is there to find."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.streams.groups.history import History


def faults(folder: Path, *notes: tuple[str, list[Any]]) -> list[str]:
    for member, note in notes:
        with (folder / f"{member}.notes").open("a") as file:
            file.write(json.dumps(note) + "\n")
    return History.read(sorted(folder.glob("*.notes"))).faults(ack_wait_s=1)


def fetched(at: float, offset: int, number: int, id_: str = "x") -> list[Any]:
    return ["fetch", at, at + 0.1, [[offset, number, "lease", id_]]]


def test_a_redelivery_after_the_wait_or_after_a_nack_is_none(tmp_path: Path) -> None:
    assert not faults(
        tmp_path,
        ("a", fetched(0, 1, 1)),
        ("b", fetched(1, 1, 2)),
        ("b", ["nack", 1.2, 1.3, [[1, 2]]]),
        ("a", fetched(1.3, 1, 3)),
        ("a", ["acked", 1.4, 1.5, [1]]),
    )


@pytest.mark.parametrize(
    "second",
    [
        fetched(0.5, 1, 2),  # the first lease still held
        fetched(1.5, 1, 1),  # the same delivery twice
        fetched(1.5, 1, 2, "y"),  # another message under the offset
        ["acked", 0.2, 0.3, [1]],  # counted twice
    ],
)
def test_what_cannot_be_is_found(tmp_path: Path, second: list[Any]) -> None:
    more = [("a", ["acked", 0.1, 0.2, [1]])] if second[0] == "acked" else []
    assert len(faults(tmp_path, ("a", fetched(0, 1, 1)), *more, ("b", second))) == 1


def test_a_delivery_after_the_ack_is_found(tmp_path: Path) -> None:
    found = faults(
        tmp_path, ("a", fetched(0, 1, 1)), ("a", ["acked", 0.1, 0.2, [1]]), ("b", fetched(2, 1, 2))
    )
    assert found == ["1 was delivered to b after it was acknowledged"]
