"""What an entry of the history's log says: a batch, its files, and what an erasure took; and what they come to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFile:
    """One Parquet file. ``first`` and ``last`` are offsets, times unix ms; ``path`` is relative to the history."""

    path: str
    workspace_id: int
    stream_id: str
    messages: int
    bytes: int
    first: int
    last: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erasure took out of the history: how many messages, and up to which offset it looked."""

    messages: int = 0
    through: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch of the archive.

    Attributes:
        number: 1, 2, … in the order of the log.
        query, batch_id: Spark's identity of the micro-batch; the same again is the same batch.
        start, end: stream id → last offset before and with this batch, of the streams that moved.
        files: what it added; none where all of its offsets were empty.
        staging: the folder that the files were first written to.
        written_ms: when it was read from the streams.
        removed: files of earlier batches that no longer count. Such a batch is a rewrite: it moves no offsets, and
            Spark knows nothing of it.
        erased: what a rewrite took out, by the name of the erasure that asked for it.
    """

    number: int
    query: str
    batch_id: int
    start: dict[str, int]
    end: dict[str, int]
    files: list[HistoryFile]
    staging: str
    written_ms: int
    removed: list[str] = field(default_factory=list)
    erased: dict[str, Erased] = field(default_factory=dict)

    @property
    def is_rewrite(self) -> bool:
        return bool(self.removed)

    @property
    def messages(self) -> int:
        return sum(file.messages for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the history has at one moment: as large as what counts then, however long its log is.

    Attributes:
        newest: the last batch; None before the first.
        files: the files that count, by their paths, oldest first.
        ends: stream id → last offset of which nothing is left behind.
        erased: what each erasure took so far, by its name.
    """

    newest: Batch | None = None
    files: Mapping[str, HistoryFile] = field(default_factory=dict)
    ends: Mapping[str, int] = field(default_factory=dict)
    erased: Mapping[str, Erased] = field(default_factory=dict)

    def followed_by(self, batches: Iterable[Batch]) -> "Snapshot":
        """What it has with more batches, those that come next in the log."""
        newest, files, ends, erased = self.newest, dict(self.files), dict(self.ends), dict(self.erased)
        for batch in batches:
            newest = batch
            for path in batch.removed:
                files.pop(path, None)
            files |= {file.path: file for file in batch.files}
            ends |= batch.end
            for name, took in batch.erased.items():
                before = erased.get(name, Erased())
                erased[name] = Erased(
                    messages=before.messages + took.messages, through=max(before.through, took.through)
                )
        return Snapshot(newest=newest, files=files, ends=ends, erased=erased)
