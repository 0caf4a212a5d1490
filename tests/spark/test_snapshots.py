"""What a process knows of the log of batches: as much as counts, read once, shared by its threads."""

import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from spark.batches import Batch, Erased, HistoryFile
from spark.history import HEAD, History, HistoryUnreadable, KnownBatches, _entry


class Log(History):
    """A log of batches in memory, which notes what is read of it; something else may happen meanwhile."""

    def __init__(self, *batches: Batch, meanwhile: Callable[[], Any] = lambda: None) -> None:
        self.texts = {HEAD: "0"}
        self.read_paths: list[str] = []
        self.meanwhile = meanwhile
        self.add(*batches)

    def add(self, *batches: Batch) -> None:
        for batch in batches:
            self.texts |= {
                HEAD: str(batch.number),
                _entry(batch.number): msgspec.json.encode(batch).decode(),
            }

    def _text(self, path: str) -> str | None:
        self.read_paths.append(path)
        found = self.texts.get(path)
        if path != HEAD:
            self.meanwhile()
        return found


def batch_of(
    number: int, *added: str, removed: tuple[str, ...] = (), erased: dict[str, Erased] | None = None
) -> Batch:
    """A batch that adds files called so; one that removes some is a rewrite."""
    return Batch(
        number=number,
        query="q",
        batch_id=number,
        start={},
        end={} if removed else {"a": number},
        files=[
            HistoryFile(
                path=name,
                workspace_id=1,
                stream_id="a",
                messages=1,
                bytes=1,
                first=number,
                last=number,
                first_ms=0,
                last_ms=0,
            )
            for name in added
        ],
        staging=f"s{number}",
        written_ms=0,
        removed=list(removed),
        erased=erased or {},
    )


def test_a_batch_that_two_queries_learn_of_at_the_same_moment_is_known_once() -> None:
    known = KnownBatches()
    inner = Log(batch_of(1, "x"))
    outer = Log(batch_of(1, "x"), meanwhile=lambda: known.refresh(inner))
    for log in (outer, inner):
        found = known.refresh(log)
        assert (found.newest, [*found.files], found.ends) == (batch_of(1, "x"), ["x"], {"a": 1})


def test_what_is_known_is_what_the_whole_log_says() -> None:
    known, log = KnownBatches(), Log()
    batches = [
        batch_of(1, "x", "y"),
        batch_of(2, "z"),
        batch_of(3, "xy", removed=("x", "y"), erased={"1": Erased(messages=2, through=5)}),
        batch_of(4),
        batch_of(5, "xyz", removed=("xy", "z"), erased={"1": Erased(messages=3, through=4), "2": Erased()}),
        batch_of(6, "w"),
    ]
    for batch in batches:
        log.add(batch)
        assert known.refresh(log) == log.snapshot() == KnownBatches().refresh(log)
    found = known.snapshot
    assert ([*found.files], found.ends, found.newest) == (["xyz", "w"], {"a": 6}, batches[-1])
    assert found.erased == {"1": Erased(messages=5, through=5), "2": Erased()}


def test_only_what_is_new_is_read() -> None:
    known, log = KnownBatches(), Log(*[batch_of(n, f"{n}") for n in range(1, 101)])
    known.refresh(log)
    log.add(batch_of(101, "101"), batch_of(102, "102"))
    log.read_paths.clear()
    known.refresh(log)
    assert set(log.read_paths) == {HEAD, *[_entry(n) for n in range(100, 104)]}


@pytest.mark.parametrize(
    "other",
    [[], [batch_of(1, "o")], [batch_of(1, "a"), batch_of(2, "o")], [batch_of(n, "o") for n in (1, 2, 3)]],
)
def test_another_log_in_its_place_is_read_whole(other: list[Batch]) -> None:
    known = KnownBatches()
    known.refresh(Log(batch_of(1, "a"), batch_of(2, "b")))
    assert known.refresh(Log(*other)) == Log(*other).snapshot()
    assert "b" not in known.snapshot.files


def test_a_log_that_lacks_a_part_is_not_read_in_silence() -> None:
    log = Log(*[batch_of(n, f"{n}") for n in range(1, 5)])
    del log.texts[_entry(2)]
    with pytest.raises(HistoryUnreadable, match=r"000002\.json is missing"):
        KnownBatches().refresh(log)


def test_what_is_kept_of_a_log_follows_the_files_that_count_and_not_its_age() -> None:
    """Each day some files come, and are put together with all before."""

    def kept_bytes(days: int) -> int:
        known, log, before = KnownBatches(), Log(), tuple[str, ...]()
        for day in range(1, days + 1):
            names = tuple(f"{day:06}-{n}" for n in range(16))
            log.add(batch_of(2 * day - 1, *names), batch_of(2 * day, f"{day:06}", removed=before + names))
            before = (f"{day:06}",)
            known.refresh(log)
        return len(pickle.dumps(known))

    assert kept_bytes(400) < 1.1 * kept_bytes(20)
